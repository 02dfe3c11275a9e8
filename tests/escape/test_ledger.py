"""J: the record is out of reach, the environment is an allow-list, and a failed step lets nothing start."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.answers import PRELUDE, new_jail, numbers
from support.entries import Entries, compile_entries
from support.installed import Installed
from support.jails import PYTHON, Jail
from support.running import Running


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    made = new_jail(installed, tmp_path_factory.mktemp("ledger"))
    assert made.run("true").returncode == 0  # so that there is an earlier session
    return made


@pytest.fixture(scope="module")
def entries(folder: Jail) -> Entries:
    return compile_entries(folder.workspace)


# J1, agent 33 and 34: where the record lies, from inside.

SEARCH = r"""
told = json.loads(sys.stdin.readline())
wanted = set(map(tuple, told["inodes"]))
numbers_only = {inode for _, inode in wanted}
found = {"seen": [], "walked": 0, "answers": {}}

def walk(folder):
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        found["walked"] += 1
        if entry.inode() in numbers_only or entry.name in told["names"]:
            status = entry.stat(follow_symlinks=False)
            if (status.st_dev, status.st_ino) in wanted or entry.name in told["names"]:
                found["seen"].append(entry.path)
        if entry.is_dir(follow_symlinks=False) and entry.path not in ("/proc", "/sys", "/usr", "/opt"):
            walk(entry.path)

def ways(path):
    yield path
    for process in ("self", "1", "thread-self"):
        for link in ("root", "cwd"):
            yield f"/proc/{process}/{link}{path if link == 'root' else '/../..' + path}"
    yield "/" + "../" * 40 + path.lstrip("/")
    yield "/run/../" + path.lstrip("/")

if told["walk"]:
    walk("/")
for path in told["paths"]:
    for way in ways(path):
        found["answers"][f"list {way}"] = answer(lambda: os.listdir(way) and None)
        found["answers"][f"open {way}"] = answer(lambda: os.open(way, os.O_RDONLY | os.O_PATH) and None)
        found["answers"][f"write {way}"] = answer(lambda: os.open(way, os.O_WRONLY | os.O_APPEND) and None)
with open("/proc/self/mountinfo") as file:
    found["roots"] = [line.split()[3:5] for line in file]
found["fds"] = sorted(os.listdir("/proc/self/fd"))
found["init fds"] = answer(lambda: os.listdir("/proc/1/fd") and None)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def searched(folder: Jail) -> dict[str, Any]:
    """What a search of everything inside finds of the state folder, while the session is going on."""
    (folder.workspace / "control").write_text("seen from both sides")
    with Running(
        folder,
        *("sh", "-c", 'echo ready; exec "$@"', "sh", PYTHON, "-I", "-c", PRELUDE + SEARCH, numbers()),
        stdin=subprocess.PIPE,
    ) as run:
        run.ready()
        state = folder.home / ".local/state/jail"
        places = [state, *state.rglob("*")]
        assert len([path for path in places if path.name == "ledger.jsonl"]) >= 2, (
            "one of them is this session's"
        )
        run.say(
            json.dumps(
                {
                    "inodes": [(path.stat().st_dev, path.stat().st_ino) for path in places]
                    + [
                        (
                            (folder.workspace / "control").stat().st_dev,
                            (folder.workspace / "control").stat().st_ino,
                        )
                    ],
                    "names": [
                        "ledger.jsonl",
                        "heads.jsonl",
                        "head",
                        *(path.name for path in folder.sessions()),
                    ],
                    "paths": [
                        str(path)
                        for path in (state, folder.sessions()[-1], folder.sessions()[-1] / "ledger.jsonl")
                    ],
                    "walk": True,
                }
            )
            + "\n"
        )
        said = run.line()
        assert run.wait() == 0, run.errors
    found: dict[str, Any] = json.loads(said)
    return found


def test_j1_agent_34_no_inode_and_no_name_of_the_record_is_found_in_all_that_is_visible(
    folder: Jail, searched: dict[str, Any]
) -> None:
    """But in /usr and /opt, which are the system's: that no mount leads from them to it is the next test but one."""
    assert searched["walked"] > 300
    assert searched["seen"] == [str(folder.workspace / "control")], "the control alone is seen"


def test_j1_agent_33_no_path_leads_to_the_record(searched: dict[str, Any]) -> None:
    assert set(searched["answers"].values()) <= {"ENOENT", "EACCES", "EPERM"}, searched["answers"]


def test_j1_no_mount_shows_a_folder_that_holds_the_record(folder: Jail, searched: dict[str, Any]) -> None:
    state = str(folder.home / ".local/state/jail")
    above = {str(path) for path in Path(state).parents} | {state}
    own = [target for root, target in searched["roots"] if root in above and root != "/"]
    # A private tmpfs has folders of the same names on the way to HOME and the workspace; nothing is in them.
    assert all(target in above and not os.path.samefile(target, "/") for target in own), own
    assert [str(folder.workspace)] * 2 in searched["roots"], "no positive control"


def test_b1_j1_no_fd_of_ours_is_open_inside(searched: dict[str, Any]) -> None:
    assert searched["fds"] == ["0", "1", "2", "3"], "3 is the listing's own"
    assert searched["init fds"] in ("EACCES", "EPERM")


def test_j1_i14_a_forged_session_inside_is_none_outside(folder: Jail) -> None:
    state = folder.home / ".local/state/jail"
    forged = "20990101-000000-aaaaaaaa"
    before = sorted(path.name for path in state.rglob("*"))
    script = (
        f"mkdir -p {state}/sessions/{forged} && cd {state}/sessions/{forged} && "
        "echo forged > ledger.jsonl && echo made"
    )
    done = folder.run("sh", "-c", script)
    assert done.stdout.endswith("made\n"), done.stderr
    after = sorted(path.name for path in state.rglob("*"))
    assert forged not in after
    assert len(after) > len(before), "no positive control: this session is recorded"
    assert folder.call("verify", "last").returncode == 0


@pytest.mark.parametrize(
    ("sentence", "options", "environment"),
    [
        ("the state folder for writing", ["--write", "{state}"], {}),
        ("the state folder for reading", ["--read", "{state}"], {}),
        ("a session for reading", ["--read", "{session}"], {}),
        ("a folder above it for writing", ["--write", "{local}"], {}),
        ("the state folder as the workspace", ["--workspace", "{state}"], {}),
        ("a folder above it as the workspace", ["--workspace", "{local}"], {}),
        ("a state folder in the workspace", [], {"XDG_STATE_HOME": "{workspace}/state"}),
        ("a cache folder in the workspace", [], {"XDG_CACHE_HOME": "{workspace}/cache"}),
        ("a state folder that is a link into the workspace", [], {"XDG_STATE_HOME": "{link}"}),
        ("the installation for writing", ["--write", "{venv}"], {}),
        ("the installation for reading", ["--read", "{venv}"], {}),
    ],
)
def test_a31_agent_34_a_rule_that_would_give_what_is_jails_own_is_refused(
    folder: Jail, tmp_path: Path, sentence: str, options: list[str], environment: dict[str, str]
) -> None:
    (folder.workspace / "state").mkdir(exist_ok=True)
    (folder.workspace / "cache").mkdir(exist_ok=True)
    link = tmp_path / "link"
    link.symlink_to(folder.workspace / "state")
    places = {
        "state": folder.home / ".local/state/jail",
        "session": folder.sessions()[-1],
        "local": folder.home / ".local",
        "workspace": folder.workspace,
        "link": link,
        "venv": folder.installed.root,
    }
    filled = [option.format(**places) for option in options]
    done = folder.run(
        "touch",
        "ran",
        options=filled,
        env={key: value.format(**places) for key, value in environment.items()},
    )
    assert done.returncode == 78, done.stderr
    assert "jail's own" in done.stderr or "holds the home folder" in done.stderr
    assert not (folder.workspace / "ran").exists()
    assert not (places["state"] / "ran").exists()
    assert not (places["local"] / "ran").exists()


def test_j1_a_given_folder_that_holds_the_state_folder_does_not_show_it(folder: Jail) -> None:
    (folder.home / ".local/beside").write_text("shown\n")
    script = f"cat {folder.home}/.local/beside; ls -A {folder.home}/.local/state/jail"
    done = folder.run("sh", "-c", script, options=["--read", folder.home / ".local"])
    assert done.stdout == "shown\n", done.stderr


def test_j4_a_program_that_rewrites_its_argv_and_name_is_recorded_as_it_was_started(
    folder: Jail, entries: Entries
) -> None:
    with Running(folder, entries.program, "lie", "--really=this") as run:
        assert run.wait() == 0, run.errors
    assert run.output.startswith("pytest"), "no positive control: the kernel shows the old argv"
    first = entries_of(folder, run)[0]
    assert first["fields"]["command"] == [str(entries.program), "lie", "--really=this"]


def entries_of(folder: Jail, run: Running) -> list[dict[str, Any]]:
    (session,) = [path for path in folder.sessions() if path.name == run.status()["session"]]
    return [json.loads(line) for line in (session / "ledger.jsonl").read_text(encoding="ascii").splitlines()]


def test_the_last_session_is_the_one_that_was_started_last(folder: Jail) -> None:
    """Runs that follow each other within a second, as in a loop: `last` must not be a matter of luck."""
    for _ in range(3):
        assert folder.run("true").returncode == 0
    with Running(folder, "sh", "-c", "exit 3") as run:
        assert run.wait() == 3
    assert run.status()["session"] in folder.call("verify", "last").stdout


def _edit(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"exit":0', b'"exit":1') for line in lines]


TAMPERED: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "an edited exit code": _edit,
    "a cut end": lambda lines: lines[:-1],
    "a line taken out": lambda lines: [lines[0], *lines[2:]],
    "two lines exchanged": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a line said twice": lambda lines: [*lines[:2], lines[1], *lines[2:]],
    "half a last line": lambda lines: [*lines[:-1], lines[-1][:20]],
    "nothing": lambda lines: lines[:0],
}


@pytest.mark.parametrize("name", TAMPERED)
def test_j1_agent_34_a_ledger_that_was_changed_later_does_not_verify(folder: Jail, name: str) -> None:
    with Running(folder, "true") as run:
        run.wait()
    session = next(path for path in folder.sessions() if path.name == run.status()["session"])
    assert folder.call("verify", session.name).returncode == 0, "no positive control"
    ledger = session / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    changed = TAMPERED[name](lines)
    assert changed != lines
    ledger.write_bytes(b"".join(changed))
    done = folder.call("verify", session.name)
    assert done.returncode not in (0, 2), done.stdout
    shutil.rmtree(session)


# Agent 43: what a person reads.

STEERING = (
    "\x1b]0;owned\x07",
    "\x9b31m",
    "\u202egnp.exe",
    "a\rb",
    "line\nbreak",
    "\u200b",
    "\x1b]8;;http://x\x07y",
)


def test_agent_43_c6_nothing_that_steers_a_terminal_is_shown_of_a_command(folder: Jail) -> None:
    ran = folder.run("true", *STEERING)
    assert ran.returncode == 0, ran.stderr
    missing = folder.run("no\x1b[31m\u202e", *STEERING)
    assert missing.returncode == 127
    shown = [
        folder.call("sessions"),
        folder.call("verify", "last"),
        folder.call("plan", "--", "true", *STEERING),
        folder.call("run", "--policy", "\x1b[31m\u202e", "--", "true"),
        folder.call("verify", "\x1b[31m\u202e"),
        missing,
    ]
    assert any("true" in done.stdout for done in shown), (
        "no positive control: the command is not shown at all"
    )
    for done in shown:
        for text in (done.stdout, done.stderr):
            assert not set(text) & set("\x1b\x07\x9b\r\u202e\u200b"), (done.args, text)
