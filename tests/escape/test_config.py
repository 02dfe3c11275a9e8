"""CASES.md A35 and I6: values of policies, flags and variables that are empty, odd or too wide."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, lay, offences, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail
from support.policies import NOTHING_RAN, nothing_ran, policy, started, undelivered


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


# ---- A35: values that are empty, relative or too wide ----

TOO_WIDE = {
    "empty": "",
    "a space": " ",
    "the root": "/",
    "the root, twice": "//",
    "the root by dots": "/.",
    "the root by climbing": "/usr/..",
    "the home folder": "~",
    "the home folder with a slash": "~/",
    "the home folder by its path": "{home}",
    "the home folder with dots": "{home}/./",
    "above the home folder": "{home}/..",
    "the folder of homes": "{above}",
    "the parent": "..",
    "climbing": "a/../..",
    "a variable": "$HOME",
    "a braced variable": "${{HOME}}",
    "another's home": "~root",
    "a wildcard": "*",
    "all of a folder": "/home/*",
    "a newline": "a\nb",
    "proc": "/proc",
    "a process": "/proc/1/root",
    "devices": "/dev",
    "sockets": "/run",
    "sockets by the old name": "/var/run",
    "the session's sockets": "/run/user",
    "everybody's files": "/tmp",
    "sys": "/sys",
}


@pytest.mark.parametrize("verb", ["write", "read"])
def test_a35_a_flag_that_is_empty_relative_or_too_wide_is_refused_and_nothing_runs(
    verb: str, warm: Jail, tmp_path: Path
) -> None:
    fine = tmp_path / "fine"
    fine.mkdir()
    assert started(warm, f"--{verb}", fine).returncode == 0, "the control: a narrow folder is given"
    (warm.workspace / "ran").unlink()
    ran = {}
    for name, text in TOO_WIDE.items():
        done = started(warm, f"--{verb}", text.format(home=warm.home, above=warm.home.parent))
        if not nothing_ran(warm, done):
            ran[name] = done.returncode
    assert ran == {}


@pytest.mark.parametrize("verb", ["write", "read"])
def test_a35_each_value_of_a_policy_that_is_empty_relative_or_too_wide_is_named_and_nothing_runs(
    verb: str, warm: Jail, tmp_path: Path
) -> None:
    fine = tmp_path / "fine"
    fine.mkdir()
    values = [text.format(home=warm.home, above=warm.home.parent) for text in TOO_WIDE.values()]
    done = started(warm, "--policy", policy(tmp_path, **{verb: [str(fine), *values]}))
    assert nothing_ran(warm, done)
    assert [name for at, name in enumerate(TOO_WIDE, 1) if f"files.{verb}[{at}]:" not in done.stderr] == []
    assert f"files.{verb}[0]" not in done.stderr
    assert started(warm, "--policy", policy(tmp_path, **{verb: [str(fine)]})).returncode == 0


TRAPS = {
    "an unknown table": "\n[network]\nallow = []\n",
    "a misspelt key": "\n[limits]\nprocesse = 1\n",
    "a null of another language": "\n[files]\nwrite = null\n",
    "a string for a list": '\n[files]\nwrite = "/srv"\n',
    "a list in the list": '\n[files]\nwrite = [["/srv"]]\n',
    "a number for a path": "\n[files]\nread = [1]\n",
    "no limit": "\n[limits]\nprocesses = 0\n",
    "less than nothing": "\n[limits]\nprocesses = -1\n",
    "a loss that is not known": '\n[accept]\nlosses = ["everything"]\n',
    "a wildcard for losses": '\n[accept]\nlosses = ["*"]\n',
    "all variables": '\n[environment]\npass = ["*"]\n',
    "secrets by pattern": '\n[environment]\npass = ["AWS_*"]\n',
    "the loader's variables": '\n[environment]\npass = ["LD_PRELOAD"]\n',
    "an empty variable": '\n[environment]\npass = [""]\n',
    "text after the end": "\n[files\n",
    "a byte that is no text": "\n# \udcff\n",
}


def merged(text: str, addition: str) -> str:
    """The policy with the table of `addition` in the place of its own of that name."""
    header = addition.strip().splitlines()[0]
    key = addition.strip().splitlines()[-1].split(" =")[0]
    lines = text.splitlines()
    if header not in lines:
        return text + addition
    lines = [line for line in lines if not line.startswith(f"{key} =")]
    at = lines.index(header)
    return "\n".join([*lines[: at + 1], *addition.strip().splitlines()[1:], *lines[at + 1 :]]) + "\n"


@pytest.mark.parametrize("name", TRAPS)
def test_a35_a_policy_with_a_mistake_gives_less_than_it_says_namely_nothing(
    name: str, warm: Jail, tmp_path: Path
) -> None:
    path = policy(tmp_path)
    path.write_text(merged(path.read_text(), TRAPS[name]), encoding="utf-8", errors="surrogateescape")
    done = started(warm, "--policy", path)
    assert nothing_ran(warm, done), done.stderr
    assert str(path) in done.stderr, "the control is in the tests above: without the mistake it runs"


@pytest.mark.parametrize("kind", ["absent", "empty", "folder", "fifo", "device"])
def test_a35_a_policy_that_is_no_policy_is_refused(kind: str, warm: Jail, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    made: dict[str, Callable[[], object]] = {
        "absent": lambda: None,
        "empty": lambda: path.write_text(""),
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
    }
    made[kind]()
    assert nothing_ran(warm, started(warm, "--policy", path))


@pytest.mark.parametrize(
    "home",
    ["", "relative", "/", "/usr", "/etc", "/proc/self", "{workspace}", "{workspace}/below", "{missing}"],
)
def test_a35_an_odd_home_folder_widens_nothing(home: str, warm: Jail, tmp_path: Path) -> None:
    lay(warm.home, {".ssh/id": "canary"})
    (warm.workspace / "below").mkdir()
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    value = home.format(workspace=warm.workspace, missing=tmp_path / "missing")
    program = """
attempt("canary", lambda: content(sys.argv[1]))
for path in ("/planted", "/etc/planted", "/usr/planted", "/var/planted", "/sys/planted"):
    attempt(path, lambda: keep(path, "x"))
attempt("replace passwd", lambda: (keep("/etc/new", "x"), os.rename("/etc/new", "/etc/passwd")))
attempt("rename usr", lambda: os.rename("/usr", "/moved"))
attempt("free", lambda: keep("free", "x"))
say()
"""
    command = [PYTHON, "-I", "-c", PRELUDE + program, str(warm.home / ".ssh/id")]
    done = warm.run(*command, env={"HOME": value, "XDG_STATE_HOME": str(state)})
    if done.returncode != 0:
        assert done.returncode in {*NOTHING_RAN, 125}, done.stderr
        assert "Traceback" not in done.stderr
        return
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("free") == DONE
    assert not offences(found, REFUSED | GONE)


PATHS = {
    "empty": "",
    "a dot": ".",
    "a relative folder": "bin",
    "the workspace": "{workspace}",
    "the home folder": "{home}",
    "above the home folder": "{home}/..",
    "the root": "/",
    "the root by climbing": "/usr/bin/../../../..",
    "a tilde": "~/bin",
    "credentials": "{home}/.ssh",
    "a link to credentials": "{home}/link",
    "what is absent": "/absent/bin",
    "a file": "{home}/note",
    "a process's folder": "/proc/self/cwd",
    "jail's own": "{own}",
}


@pytest.fixture(scope="module")
def odd_path(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is left of a PATH of all these entries, and what could be run and read by it."""
    jail = warm_jail(installed, tmp_path_factory.mktemp("path"))
    lay(jail.home, {".ssh/id": "canary", "note": "canary", "bin/tool": "x"})
    (jail.home / "link").symlink_to(jail.home / ".ssh")
    for path in ("planted", "bin/planted"):
        lay(jail.workspace, {path: "#!/bin/sh\necho planted\n"})
        (jail.workspace / path).chmod(0o755)
    own = jail.installed.command.parent
    entries = [text.format(workspace=jail.workspace, home=jail.home, own=own) for text in PATHS.values()]
    script = f'planted; cat {jail.home}/.ssh/id {jail.home}/note {jail.home}/link/id; ls -A {own}; echo "PATH=$PATH"; ./planted'
    done = jail.run(
        "sh", "-c", script, env={"PATH": ":".join([entries[0], "/usr/bin", *entries[1:], "/bin"])}
    )
    assert done.returncode == 0, done.stderr
    reached, _, path = done.stdout.partition("PATH=")
    path, control = path.splitlines()
    assert control == "planted", "the control: named by its path it runs"
    return {"kept": path.split(":"), "reached": reached, "entries": entries}


@pytest.mark.parametrize(("at", "name"), list(enumerate(PATHS)), ids=list(PATHS))
def test_a35_i6_an_odd_entry_of_path_is_left_out(at: int, name: str, odd_path: dict[str, Any]) -> None:
    assert odd_path["entries"][at] not in odd_path["kept"]
    assert odd_path["kept"][0] == "/usr/bin"
    assert odd_path["kept"][-1] == "/bin"


def test_a35_i6_an_odd_path_gives_neither_files_nor_commands(odd_path: dict[str, Any]) -> None:
    assert odd_path["reached"] == ""


COMMANDS = """
folder = sys.argv[1]
def command(name):
    keep(f"{folder}/{name}", f"#!/bin/sh\\necho inside {name}\\n", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.chmod(f"{folder}/{name}", 0o755)
for name in ("git", "ls", "fresh", "tool"):
    attempt(name, lambda: command(name))
attempt("moved git", lambda: (command("aside"), os.rename(f"{folder}/aside", f"{folder}/ssh")))
attempt("linked git", lambda: os.symlink("fresh", f"{folder}/env"))
attempt("move", lambda: os.rename(os.path.dirname(folder), "moved"))
found["runs"] = os.popen("tool; fresh; git; ls; ssh; env").read()
say()
"""


def test_i6_a_path_folder_in_the_workspace_is_kept_but_no_command_of_the_host_is_shadowed(warm: Jail) -> None:
    """What is made there runs inside at once; what is delivered of it shadows nothing, and a rest waits."""
    lay(warm.workspace, {".venv/bin/tool": "#!/bin/sh\necho tool\n"})
    (warm.workspace / ".venv/bin/tool").chmod(0o755)
    folder = warm.workspace / ".venv/bin"
    jail = warm._replace(environment={**warm.environment, "PATH": f"{folder}:/usr/bin:/bin"})
    program = PRELUDE + COMMANDS
    kept = jail.inside(program, str(folder), options=["--policy", undelivered(warm.home)])
    names = ("git", "ls", "fresh", "tool", "moved git", "linked git")
    assert [kept.pop(name) for name in names] == [DONE] * len(names)
    ran = ["inside tool", "inside fresh", "inside git", "inside ls", "inside aside", "inside fresh"]
    assert kept.pop("runs").splitlines() == ran, "the control: each of them runs inside"
    assert kept["move"] == "EBUSY"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"tool": "#!/bin/sh\necho tool\n"}
    jail.inside(program, str(folder))
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "fresh": "#!/bin/sh\necho inside fresh\n",
        "tool": "#!/bin/sh\necho tool\n",
    }
    waiting = [json.loads(line) for line in jail.call("changes", "last", "--json").stdout.splitlines()]
    assert {os.path.basename(change["path"]): change["tier"] for change in waiting} == dict.fromkeys(
        ("git", "ls", "ssh", "env", "tool"), "refused"
    )


def test_h1_a_limit_of_the_caller_that_is_lower_than_the_policys_is_kept(warm: Jail) -> None:
    command = [str(warm.installed.command), "run", "--", "bash", "-c", "ulimit -Hu; ulimit -Hn"]
    for limits, expected in ((["--nproc=1500", "--nofile=900"], "1500\n900\n"), ([], "4096\n")):
        words = ["/usr/bin/prlimit", *limits, *command]
        done = subprocess.run(
            words,
            cwd=warm.workspace,
            env=dict(warm.environment),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.startswith(expected), done.stderr
