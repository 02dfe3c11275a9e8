"""J7, J8, J12: the environment is an allow-list, and the command is data that no shell and no option parser reads."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.answers import PRELUDE, new_jail, numbers
from support.installed import Installed
from support.jails import PYTHON, Jail


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return new_jail(installed, tmp_path_factory.mktemp("command"))


# J7: the environment.

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "canary-1f0e",
    "GITHUB_TOKEN": "canary-1f0e",
    "ANTHROPIC_API_KEY": "canary-1f0e",
    "SSH_AUTH_SOCK": "/tmp/canary-1f0e",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/canary-1f0e",
    "LC_SECRET": "canary-1f0e",
    "XDG_RUNTIME_DIR": "/run/canary-1f0e",
    "TMUX": "/tmp/canary-1f0e",
    "DATABASE_URL": "postgres://canary-1f0e",
    "LD_CANARY": "canary-1f0e",
    "NODE_OPTIONS": "--title=canary-1f0e",
    "GIT_SSH_COMMAND": "canary-1f0e",
    "BASH_FUNC_ls%%": "() { echo canary-1f0e; }",
}
ENVIRONMENT = r"""
hits, read, closed = [], 0, 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    for path in [f"/proc/{pid}/environ", f"/proc/{pid}/cmdline", f"/proc/{pid}/auxv",
                 *(f"/proc/{pid}/task/{task}/environ" for task in os.listdir(f"/proc/{pid}/task"))]:
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            closed += 1
            continue
        read += 1
        if b"canary-" + b"1f0e" in content:
            hits.append(path)
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    stack = next(line for line in maps if "[stack]" in line)
    begin, end = (int(part, 16) for part in stack.split()[0].split("-"))
    memory.seek(begin)
    if b"canary-" + b"1f0e" in memory.read(end - begin):
        hits.append("stack")
print(json.dumps({"hits": hits, "read": read, "closed": closed, "names": sorted(os.environ)}))
"""


def test_j7_agent_46_no_secret_of_the_environment_is_in_any_process_inside(folder: Jail) -> None:
    done = folder.run(PYTHON, "-I", "-c", PRELUDE + ENVIRONMENT, numbers(), env=SECRETS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hits"] == []
    assert found["read"] >= 3
    assert not set(found["names"]) & set(SECRETS)
    session = max(folder.sessions(), key=lambda path: path.stat().st_ctime_ns)
    kept = {path.name: path.read_bytes() for path in session.rglob("*") if path.is_file()}
    assert "ledger.jsonl" in kept
    assert [name for name, content in kept.items() if b"canary-1f0e" in content] == []


def test_j7_the_control_a_variable_that_is_asked_for_is_there(folder: Jail) -> None:
    done = folder.run(
        *(PYTHON, "-I", "-c", PRELUDE + ENVIRONMENT, numbers()),
        options=["--env", "GITHUB_TOKEN"],
        env=SECRETS,
    )
    found = json.loads(done.stdout)
    assert any(hit.endswith("/environ") for hit in found["hits"])
    assert set(found["names"]) & set(SECRETS) == {"GITHUB_TOKEN"}


# J8 and J12: the command is data.

SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"
OPAQUE = (
    ["--write", "/"],
    ["--status-file", "made"],
    ["--policy=none", "--env", "X=1"],
    ["--", "--"],
    ["-x", "-", "--help"],
    ["; touch made"],
    ["$(touch made)", "`touch made`", "|touch made", "&", "> made"],
    ["*", "?", "~", "{a,b}", "$HOME", "%s", "\\"],
    ["a\ntouch made\n", "'", '"'],
)


@pytest.mark.parametrize("separator", [True, False], ids=["after --", "after the first word"])
def test_j8_j12_agent_38_what_follows_the_command_is_handed_on_as_it_is(
    folder: Jail, separator: bool
) -> None:
    arguments = [argument for group in OPAQUE for argument in group]
    words = ["run", *(["--"] if separator else []), PYTHON, "-I", "-c", SHOW, *arguments]
    done = folder.call(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == arguments
    assert not (folder.workspace / "made").exists()


@pytest.mark.parametrize(
    "command", ["--help", "--version", "-c", "touch made; true", "touch made", "$(touch made)"]
)
def test_j8_j12_a_command_that_looks_like_an_option_or_a_script_is_a_name(folder: Jail, command: str) -> None:
    done = folder.call("run", "--", command)
    assert done.returncode == 127, done.stdout + done.stderr
    assert done.stdout == ""
    assert not (folder.workspace / "made").exists()
    assert folder.run("sh", "-c", "touch made").returncode == 0
    (folder.workspace / "made").unlink()


@pytest.mark.parametrize(
    "name",
    ["with blank", "a;touch made", "$(touch made)", "quote'\"", "new\nline", "-rf", "%s\\n", "é\udcff"],
)
def test_j12_the_name_of_the_workspace_is_no_shell_text(
    installed: Installed, tmp_path: Path, name: str
) -> None:
    made = new_jail(installed, tmp_path / "home")
    workspace = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + os.fsencode(name)))
    workspace.mkdir()
    made = made._replace(workspace=workspace)
    done = made.run("sh", "-c", "echo here > ran; pwd")
    assert done.returncode == 0, done.stderr
    assert (workspace / "ran").read_text() == "here\n"
    assert os.fsencode(done.stdout) == os.fsencode(workspace) + b"\n"
    assert not list(tmp_path.rglob("made"))


def test_j11_i6_no_program_of_path_is_run_outside(installed: Installed, tmp_path: Path) -> None:
    """With an empty cache too, when the filters are compiled and the git identity is asked for."""
    made = new_jail(installed, tmp_path / "made")
    planted, marker = tmp_path / "planted", made.workspace / "marker"
    planted.mkdir()
    for (
        name
    ) in "ldconfig gcc cc ld objdump git uname getconf sh env python3 readlink ls newuidmap ip nft".split():
        (planted / name).write_text(f"#!/bin/sh\necho {name} >> {marker}\n")
        (planted / name).chmod(0o755)
    (made.workspace / ".git").mkdir()
    subprocess.run(["git", "init", "-q", made.workspace], check=True, timeout=20)
    environment = {"PATH": f"{planted}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = made.run("/bin/true", env=environment)
    assert done.returncode == 0, done.stderr
    assert not marker.exists(), marker.read_text()
    assert made.run("gcc", env=environment).returncode == 0
    assert marker.read_text() == "gcc\n", "no positive control"
