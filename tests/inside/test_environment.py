"""What surrounds the command: its environment, its home, PATH, identity, language, time, and the small files
that jail writes.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jail.plan import caches as caches_plan
from jail.policy.value import TOOLCHAINS
from support.attempts import lay
from support.installed import Installed
from support.jails import AT_HOME, PATIENCE, PYTHON
from support.work import STARTERS, Ground, make_ground

GIVEN = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "LC_TIME": "C",
    "LC_MESSAGES": "C.UTF-8",
    "TZ": "Asia/Kathmandu",
    "CI": "true",
    "NO_COLOR": "1",
    "SOURCE_DATE_EPOCH": "0",
}
"""On the list of the shipped policy."""

WITHHELD = {
    "AWS_SECRET_ACCESS_KEY": "canary",
    "GITHUB_TOKEN": "canary",
    "LC_PVE_TICKET": "canary",
    "SSH_AUTH_SOCK": "/tmp/canary",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/canary",
    "XDG_RUNTIME_DIR": "/run/user/canary",
    "DOCKER_HOST": "unix:///canary",
    "DISPLAY": ":0",
    "https_proxy": "http://canary:canary@127.0.0.1:1",
    "BASH_ENV": "/canary",
    "ENV": "/canary",
    "BASH_FUNC_ls%%": "() { echo canary; }",
    "PROMPT_COMMAND": "echo canary",
    "PYTHONSTARTUP": "/canary",
    "NODE_OPTIONS": "--require=/canary",
    "PERL5OPT": "-Mcanary",
    "JAVA_TOOL_OPTIONS": "-javaagent:/canary",
    "GIT_DIR": "/canary",
    "GIT_CONFIG_COUNT": "0",
    "GIT_SSH_COMMAND": "canary",
    "EDITOR": "canary",
    "PAGER": "canary",
    "TMPDIR": "/canary",
    "OLDPWD": "/canary",
    "VIRTUAL_ENV": "/canary",
    "UNKNOWN": "canary",
    "UNICODE_ÄÖ": "canary",
}
"""Not on it: secrets, what leads to sockets, what makes programs load or run things, and the unknown."""

ALWAYS = {"JAIL", "HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "GIT_CONFIG_SYSTEM", "LANG"}

LOOK = r"""
import grp, json, locale, os, pwd, resource, socket, stat, subprocess, sys, time
from pathlib import Path

def said(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return [done.returncode, done.stdout, done.stderr]

def mode(path):
    found = os.stat(path)
    return [oct(stat.S_IMODE(found.st_mode)), found.st_uid == os.getuid()]

home = Path(os.environ["HOME"])
found = {
    "environment": dict(os.environ),
    "home": sorted(os.listdir(home)),
    "home mode": mode(home),
    "tmp mode": mode("/tmp"),
    "folder": os.getcwd(),
    "pwd": list(pwd.getpwuid(os.getuid()))[:1] + list(pwd.getpwuid(os.getuid()))[5:],
    "group": grp.getgrgid(os.getgid()).gr_name,
    "groups": os.getgroups(),
    "ids": [os.getuid(), os.getgid()],
    "umask": os.umask(0o22),
    "hostname": socket.gethostname(),
    "localhost": socket.gethostbyname("localhost"),
    "own name": socket.gethostbyname(socket.gethostname()),
    "encoding": [sys.getfilesystemencoding(), locale.getpreferredencoding(False), sys.stdout.encoding],
    "zone": time.strftime("%Z", time.gmtime(0)) and said("date", "-d", "@0", "+%H:%M %Z"),
    "locale": said("locale"),
    "perl": said("perl", "-e", "print 1"),
    "bash": said("bash", "-c", "printf %s ä | wc -m"),
    "identity": said("git", "var", "GIT_AUTHOR_IDENT"),
    "signing": said("git", "config", "--get-all", "commit.gpgSign"),
    "whoami": said("whoami"),
    "tool": said("sh", "-c", "command -v tool && tool"),
    "readme": Path("/run/jail/README").read_text(),
    "files": {name: Path(name).read_text() for name in
        "/etc/passwd /etc/group /etc/hosts /etc/hostname /etc/resolv.conf /etc/nsswitch.conf /etc/machine-id".split()},
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "cmdline": Path("/proc/1/cmdline").read_bytes().decode(),
}
(home / ".bashrc").write_text("made inside")
Path("/tmp/made").write_text("made inside")
for path in ("/run/jail/README", "/etc/passwd", os.environ["PATH"].split(":")[0] + "/planted"):
    try:
        open(path, "a").close()
        found["write " + path] = "done"
    except OSError as error:
        found["write " + path] = error.strerror
print(json.dumps(found))
"""


class Seen(NamedTuple):
    """What one start found inside, and where it was started."""

    found: Mapping[str, Any]
    ground: Ground
    tools: Path

    def __getitem__(self, name: str) -> Any:
        return self.found[name]


@pytest.fixture(scope="module", params=STARTERS)
def ground(request: pytest.FixtureRequest, installed: Installed, open_folder: Path) -> Ground:
    found = make_ground(request.param, installed, open_folder / "environment")
    lay(
        found.jail.home,
        {
            ".bashrc": "host",
            ".ssh/id_ed25519": "canary",
            ".gitconfig": '[user]\nname = Ada \\"Q\\" Löw\nemail = ada@example.org\n[commit]\ngpgSign = true\n',
        },
    )
    lay(found.workspace, {"deep/er/file": "", "bin/local": "#!/bin/sh\n"})
    found.hand_over()
    return found


@pytest.fixture(scope="module")
def seen(ground: Ground) -> Seen:
    """One start from a shell that is full of things, in a folder of the workspace, with a PATH as people have."""
    tools = ground.workspace.parent / "toolchain"
    lay(
        tools,
        {"bin/tool": '#!/bin/sh\ncat "${0%/*}/../lib/part"\n', "lib/part": "part\n", "secret": "canary"},
    )
    (tools / "bin" / "tool").chmod(0o755)
    path = f"{tools}/bin::bin:.:/nonexistent/bin:/usr/bin:/usr/bin:/bin:{ground.workspace}/bin:~/bin"
    environment = {**ground.jail.environment, **GIVEN, **WITHHELD, "PATH": path}
    done = subprocess.run(
        [
            ground.jail.installed.command,
            "run",
            "--workspace",
            ground.workspace,
            "--",
            PYTHON,
            "-I",
            "-c",
            LOOK,
        ],
        cwd=ground.workspace / "deep" / "er",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        umask=0o027,
    )
    assert done.returncode == 0, done.stderr
    return Seen(json.loads(done.stdout), ground, tools)


def _environment(ground: Ground, *options: str, **given: str) -> dict[str, str]:
    done = ground.jail.run("env", "-0", options=options, env=given)
    assert done.returncode == 0, done.stderr
    pairs = (entry.partition("=") for entry in done.stdout.split("\0") if entry)
    return {name: value for name, _, value in pairs}


def test_what_is_on_the_list_comes_in_unchanged(seen: Seen) -> None:
    assert {name: seen["environment"].get(name) for name in GIVEN} == GIVEN


def test_nothing_else_comes_in(seen: Seen) -> None:
    caches = caches_plan.environment(TOOLCHAINS, "kept")
    expected = {*GIVEN, *ALWAYS, *caches, "PIP_RETRIES", "npm_config_fetch_retries"}
    assert set(seen["environment"]) == expected
    assert "canary" not in json.dumps(seen["environment"])


def test_a_variable_is_handed_on_by_name_and_set_by_value(ground: Ground) -> None:
    options = (
        "--env",
        "UNKNOWN",
        "--env",
        "MADE=a=b c",
        "--env",
        "EMPTY=",
        "--env",
        "TERM=other",
        "--env",
        "ABSENT",
    )
    got = _environment(ground, *options, UNKNOWN="from the caller", TERM="xterm")
    assert (got["UNKNOWN"], got["MADE"], got["EMPTY"], got["TERM"]) == (
        "from the caller",
        "a=b c",
        "",
        "other",
    )
    assert "ABSENT" not in got


def test_a_name_that_makes_programs_load_code_is_set_by_value_only(ground: Ground) -> None:
    refused = ground.jail.run("true", options=("--env", "LD_PRELOAD"), env={"LD_PRELOAD": "/canary.so"})
    assert refused.returncode == 2
    assert "LD_PRELOAD" in refused.stderr
    assert _environment(ground, "--env", "PYTHONPATH=/x")["PYTHONPATH"] == "/x"


def test_the_value_of_a_variable_is_neither_in_the_ledger_nor_in_the_plan(ground: Ground) -> None:
    _environment(ground, "--env", "MADE=canary-5f1c")
    text = (ground.jail.sessions()[-1] / "ledger.jsonl").read_text()
    assert "canary-5f1c" not in text


def test_home_is_private_and_empty_and_the_hosts_stays_as_it_is(seen: Seen) -> None:
    assert seen["home"] == AT_HOME
    assert seen["home mode"] == ["0o700", True]
    assert (seen.ground.jail.home / ".bashrc").read_text() == "host"
    assert seen["environment"]["HOME"] == str(seen.ground.jail.home)


def test_tmp_is_private(seen: Seen) -> None:
    assert seen["tmp mode"][0] == "0o1777"
    assert not Path("/tmp/made").exists()


def test_path_keeps_what_is_absolute_and_there_and_nothing_else(seen: Seen) -> None:
    workspace = seen.ground.workspace
    expected = [f"{seen.tools}/bin", "/usr/bin", "/bin", f"{workspace}/bin"]
    assert seen["environment"]["PATH"].split(":") == expected


def test_a_path_without_any_usable_entry_becomes_the_systems(ground: Ground) -> None:
    shell = f'PATH=:relative:/nonexistent; export PATH; exec "{ground.jail.installed.command}" run -- /usr/bin/env'
    done = subprocess.run(
        ["/bin/sh", "-c", shell],
        cwd=ground.workspace,
        env=dict(ground.jail.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "PATH=/usr/bin:/bin\n" in done.stdout, done.stderr


def test_a_toolchain_that_path_leads_to_works_with_what_lies_beside_it(seen: Seen) -> None:
    assert seen["tool"] == [0, f"{seen.tools}/bin/tool\npart\n", ""]


def test_a_path_folder_cannot_be_written(seen: Seen) -> None:
    assert seen[f"write {seen.tools}/bin/planted"] == "Read-only file system"
    assert not (seen.tools / "bin" / "planted").exists()


def test_the_folder_is_the_callers(seen: Seen) -> None:
    folder = f"{seen.ground.workspace}/deep/er"
    assert (seen["folder"], seen["environment"]["PWD"]) == (folder, folder)


def test_the_umask_is_the_callers(seen: Seen) -> None:
    assert seen["umask"] == 0o027


def test_every_way_to_ask_who_one_is_says_the_same(seen: Seen) -> None:
    user = seen["environment"]["USER"]
    assert seen["whoami"][1].strip() == user
    assert seen["environment"]["LOGNAME"] == user
    assert seen["pwd"] == [user, seen["environment"]["HOME"], seen["environment"]["SHELL"]]
    assert seen["ids"][0] not in (0, 65534)
    assert seen["group"] == user
    assert set(seen["groups"]) <= {seen["ids"][1]}


def test_git_signs_with_the_name_of_the_person_and_asks_for_no_key(seen: Seen) -> None:
    assert seen["identity"][1].startswith('Ada "Q" Löw <ada@example.org> ')
    assert seen["signing"][1] == "false\n"


def test_a_name_in_the_callers_environment_goes_before_the_configured_one(ground: Ground) -> None:
    given = {"GIT_AUTHOR_NAME": "Grace", "GIT_AUTHOR_EMAIL": "grace@example.org"}
    done = ground.jail.run("git", "var", "GIT_COMMITTER_IDENT", env=given)
    assert done.stdout.startswith("Grace <grace@example.org> "), done.stderr


def test_language_and_encoding_are_utf8_and_nobody_complains(seen: Seen) -> None:
    assert [name.lower() for name in seen["encoding"]] == ["utf-8"] * 3
    assert seen["bash"] == [0, "1\n", ""]
    assert seen["locale"][2] == ""
    assert seen["perl"] == [0, "1", ""]


def test_a_language_is_given_where_the_caller_has_none(ground: Ground) -> None:
    done = subprocess.run(
        [ground.jail.installed.command, "run", "--", "locale"],
        cwd=ground.workspace,
        env={name: value for name, value in ground.jail.environment.items() if name != "LANG"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.startswith("LANG=C.UTF-8\n"), done.stderr


def test_the_time_zone_of_the_caller_holds(seen: Seen) -> None:
    assert seen["zone"] == [0, "05:30 +0530\n", ""]


def test_without_a_zone_it_is_the_hosts(ground: Ground) -> None:
    environment = {name: value for name, value in ground.jail.environment.items() if name != "TZ"}
    here = subprocess.run(["date", "-d", "@0"], env=environment, capture_output=True, text=True, check=True)
    assert ground.jail.run("date", "-d", "@0").stdout == here.stdout


def test_the_host_is_named_jail_and_found_under_its_name(seen: Seen) -> None:
    assert seen["hostname"] == "jail"
    assert (seen["localhost"], seen["own name"]) == ("127.0.0.1", "127.0.1.1")


def test_the_small_files_of_etc_say_nothing_of_the_host(seen: Seen) -> None:
    told = "".join(seen["files"].values())
    assert os.uname().nodename not in told.replace("jail", "")
    assert len(seen["files"]["/etc/passwd"].splitlines()) == 3
    machine = Path("/etc/machine-id")
    assert not machine.exists() or machine.read_text().strip() not in told


def test_what_jail_wrote_cannot_be_changed(seen: Seen) -> None:
    assert seen["write /run/jail/README"] in ("Read-only file system", "Permission denied")
    assert seen["write /etc/passwd"] in ("Read-only file system", "Permission denied")


def test_the_readme_says_what_is_writable_and_what_is_not(seen: Seen) -> None:
    told = seen["readme"]
    assert f"\n  {seen.ground.workspace}\n" in told
    assert re.search(r"RESEARCH\.md", told)
    assert re.search(r"loopback only", told)


def test_process_1_tells_neither_where_jail_lies_nor_how_it_was_called(seen: Seen) -> None:
    """Options name files of the person (`--hide`, `--policy`), and the path of jail is the host's."""
    assert str(seen.ground.jail.installed.root) not in seen["cmdline"]
    assert "run" not in seen["cmdline"].split("\0")


def test_no_core_is_written(seen: Seen) -> None:
    assert seen["core"] == [1, 1]  # fs/coredump.c: 1 stops the handlers of core_pattern too


def test_a_folder_that_holds_jail_itself_is_given_without_it(ground: Ground, installed: Installed) -> None:
    """As where pipx put jail beneath /opt: its package lies in its environment, and both are hidden."""
    folder = ground.workspace.parent / "opt"
    lay(folder, {"other/tool": "given\n"})
    moved = shutil.copytree(installed.root, folder / "venv", symlinks=True)
    jail = ground.jail._replace(installed=installed._replace(command=moved / "bin" / "jail"))
    done = jail.run("sh", "-c", f"cat {folder}/other/tool; cat {moved}/bin/jail", options=("--read", folder))
    assert done.stdout == "given\n", done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("mode", [0o444, 0o000], ids=["of mode 0444", "of mode 0000"])
def test_a_protected_file_that_nobody_could_write_anyway_stops_no_run(
    installed: Installed, open_folder: Path, mode: int
) -> None:
    ground = make_ground("owner", installed, open_folder / f"environment-mode-{mode:o}")
    (ground.workspace / "RESEARCH.md").write_text("findings\n")
    (ground.workspace / "RESEARCH.md").chmod(mode)
    done = ground.jail.run("ls")
    assert (done.returncode, done.stdout) == (0, "RESEARCH.md\n"), done.stderr


@pytest.mark.parametrize(
    "target", ["../share/agent/versions/1.0/agent", "{home}/.local/share/venvs/tool/bin/agent"]
)
def test_a_command_that_is_a_link_in_the_persons_bin_runs(
    installed: Installed, open_folder: Path, target: str
) -> None:
    """As installers of agents, pipx and uv put their commands into ~/.local/bin."""
    ground = make_ground("owner", installed, open_folder / f"environment-link-{len(target)}")
    home = ground.jail.home
    target = target.format(home=home)
    real = home / ".local" / "bin" / target
    lay(
        home, {".local/share/agent/versions/x": "", ".local/share/venvs/tool/pyvenv.cfg": "home = /usr/bin\n"}
    )
    (home / ".local" / "bin").mkdir()
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho agent runs\n")
    real.chmod(0o755)
    (home / ".local" / "bin" / "agent").symlink_to(target)
    done = ground.jail.run("agent", env={"PATH": f"{home}/.local/bin:/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (0, "agent runs\n"), done.stderr
