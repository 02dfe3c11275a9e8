"""What a person does on the host while a command inside attacks: protection that comes off comes back, and is
told.

Issue 2, Must show 3; CASES.md A15, A16; DESIGN.md, Files. A loop inside tries each protected path all the
time, keeps what it could open, and answers the test's question whether all is refused again. What was written
in a window is not denied: the digests of the ledger must tell it.
"""

import ctypes
import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from support.attempts import PRELUDE, REFUSED, offences, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, git
from support.running import Running, until

SETTLE: Final = 60.0
"""Seconds in which protection must be back after an action on the host; it takes milliseconds."""
HINDERED: Final = 3.0
"""Seconds in which a person tries to move `.git` back, where the loop inside may have made another for good; and
in which what stays away then may yet be told as restored.
"""
FREE: Final = "free"

LOOP: Final = r"""
import time
FILES = ["RESEARCH.md", ".agent/state", ".git/config", "CLAUDE.md"]
FOLDERS = [".agent", ".git/hooks"]
held, opened = {}, {}
def write(path):
    flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT if create else 0)
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP and path == ".git/config":
            raise OSError(errno.EROFS, "covered by the link to the session's copy")
        raise
    os.write(fd, b"evil\n")
    opened[path] = opened.get(path, 0) + 1
    if len(held.setdefault(path, [])) < 5:
        held[path].append(fd)
        os.link(path, f"free/link-{len(opened)}-{opened[path]}")
    else:
        os.close(fd)
def plant(folder):
    os.makedirs(folder, exist_ok=True)
    fd = os.open(folder + "/planted", os.O_WRONLY | os.O_CREAT, 0o755)
    os.write(fd, b"evil\n")
    os.close(fd)
    opened[folder] = opened.get(folder, 0) + 1
def attack():
    results = {}
    for path in FILES:
        results[path] = outcome(lambda: write(path))
    for folder in FOLDERS:
        results[folder] = outcome(lambda: plant(folder))
    return results
create, creates = False, "create" in sys.argv
print("ready", flush=True)
while True:
    results = attack()
    create = creates and not create
    try:
        question = os.readlink("free/ask")
    except FileNotFoundError:
        continue
    if question == "end":
        break
    os.unlink("free/ask")
    keep("free/part", json.dumps([attack(), opened]))
    os.rename("free/part", f"free/answer-{question}")
if "late" in sys.argv:
    for path, fds in held.items():
        for fd in fds:
            os.write(fd, b"late evil\n")
print(json.dumps(opened), flush=True)
"""


def lay(jail: Jail) -> None:
    """A repository whose protected files are tracked, with two more branches."""
    here = jail.workspace
    (here / ".gitignore").write_text(f"{FREE}/\n")
    (here / FREE).mkdir()
    (here / "CLAUDE.md").write_text("instructions\n")
    (here / "RESEARCH.md").write_text("a finding\n")
    (here / ".agent").mkdir()
    (here / ".agent/state").write_text("a state\n")
    git(here, "init", "-q")
    (here / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    git(here, "add", ".")
    git(here, "commit", "-qm", "first")
    git(here, "switch", "-qc", "other")
    (here / "RESEARCH.md").write_text("another finding\n")
    git(here, "commit", "-qam", "another")
    git(here, "switch", "-qc", "without")
    git(here, "rm", "-q", "RESEARCH.md")
    git(here, "commit", "-qm", "none")
    git(here, "switch", "-q", "main")


def git_config(here: Path) -> None:
    git(here, "config", "user.name", "Somebody")


def git_gc(here: Path) -> None:
    git(here, "gc", "-q")


def switch_to_other_content(here: Path) -> None:
    git(here, "switch", "-qf", "other")


def switch_back(here: Path) -> None:
    git(here, "switch", "-qf", "main")


def switch_away_and_back(here: Path) -> None:
    git(here, "switch", "-qf", "without")
    git(here, "switch", "-qf", "main")


def stash(here: Path) -> None:
    (here / "RESEARCH.md").write_text("half a finding\n")
    git(here, "stash", "-q")


def save_by_rename(here: Path) -> None:
    (here / "RESEARCH.md.new").write_text("saved\n")
    os.replace(here / "RESEARCH.md.new", here / "RESEARCH.md")


def save_with_backup(here: Path) -> None:
    """As vim does it with backupcopy=no and backup: the old file keeps its inode under another name."""
    os.rename(here / "RESEARCH.md", here / "RESEARCH.md~")
    (here / "RESEARCH.md").write_text("saved again\n")


def make_a_folder_anew(here: Path) -> None:
    os.rename(here / ".agent", here / ".agent.old")
    shutil.copytree(here / ".agent.old", here / ".agent", dirs_exist_ok=True)


def exchange_a_folder(here: Path) -> None:
    shutil.copytree(here / ".agent", here / ".agent.new")
    at, names = -100, (os.fsencode(here / ".agent.new"), os.fsencode(here / ".agent"))
    exchange = 2  # AT_FDCWD above; RENAME_EXCHANGE of <linux/fs.h>
    assert ctypes.CDLL(None).renameat2(at, names[0], at, names[1], exchange) == 0


def move_git_aside_and_back(here: Path) -> None:
    """In between, the loop inside makes a `.git` of its own, unless it is hindered."""
    os.rename(here / ".git", here / "aside")
    time.sleep(0.3)
    until(lambda: _moved(here / "aside", here / ".git"), HINDERED)


def _moved(source: Path, target: Path) -> bool:
    try:
        os.rename(source, target)
    except OSError:
        return False
    return True


def touch_nothing(here: Path) -> None:
    """The control: with nothing done on the host, nothing opens."""


class Action(NamedTuple):
    """What a person does: how, and the paths of which the ledger must have `lost` and `restored`."""

    do: Callable[[Path], None]
    lost: set[str]


REPLACED: Final = {
    # the name leads to another file at once: the kernel drops the mount
    "nothing": Action(touch_nothing, set()),
    "git config": Action(git_config, {".git/config"}),
    "git gc": Action(git_gc, set()),
    "git switch to a branch with another RESEARCH.md": Action(switch_to_other_content, {"RESEARCH.md"}),
    "git switch back": Action(switch_back, {"RESEARCH.md"}),
    "git switch to a branch without RESEARCH.md, and back": Action(switch_away_and_back, {"RESEARCH.md"}),
    "git stash": Action(stash, {"RESEARCH.md"}),
    "an editor saves by rename": Action(save_by_rename, {"RESEARCH.md"}),
    "git config again": Action(git_config, {".git/config"}),
}
MOVED_ASIDE: Final = {
    # the file is moved and keeps its mount under the other name: nothing changes in the jail's mount table
    "an editor saves and keeps the old file": Action(save_with_backup, {"RESEARCH.md"}),
    "a folder is moved aside and made anew": Action(make_a_folder_anew, {".agent"}),
    "a folder is exchanged": Action(exchange_a_folder, {".agent"}),
    "mv .git aside and back": Action(move_git_aside_and_back, set()),
}
ACTIONS: Final = {**REPLACED, **MOVED_ASIDE}


class After(NamedTuple):
    """What was met inside once an action had settled, the entries that it brought, and what failed on the
    host.
    """

    met: dict[str, str]
    entries: list[dict[str, Any]]
    failure: str


def ask(jail: Jail, question: str) -> dict[str, str]:
    """A whole round of attacks from now on, as the loop inside met it."""
    free = jail.workspace / FREE
    (free / "ask").symlink_to(question)
    answer = free / f"answer-{question}"
    assert until(answer.exists, 60), "no answer from inside"
    met, _ = json.loads(answer.read_text())
    assert isinstance(met, dict)
    return met


def settled(jail: Jail, name: str) -> dict[str, str]:
    """Ask until all is refused, at most SETTLE seconds; the last answer."""
    end = time.monotonic() + SETTLE
    for number in range(10000):
        met = ask(jail, f"{name}-{number}")
        if not offences(met, REFUSED) or time.monotonic() > end:
            return met
        time.sleep(0.01)
    raise AssertionError("unreachable")


def acted(jail: Jail, number: int, action: Action) -> After:
    known = len(jail.ledger())
    failure = ""
    try:
        action.do(jail.workspace)
    except (AssertionError, OSError) as error:
        failure = f"{type(error).__name__}: {error}"
    met = settled(jail, str(number))
    # What was put back is told a moment later.
    until(lambda: _is_told(jail.ledger()[known:], action.lost), SETTLE if action.lost else HINDERED)
    return After(met, jail.ledger()[known:], failure)


def _open_pairs(entries: list[dict[str, Any]]) -> set[str]:
    """Paths that were lost and not restored."""
    missing: set[str] = set()
    for entry in entries:
        if entry["kind"] == "lost":
            missing.add(entry["fields"]["path"])
        elif entry["kind"] == "restored":
            missing.discard(entry["fields"]["path"])
    return missing


def _is_told(entries: list[dict[str, Any]], lost: set[str]) -> bool:
    """Whether all of `lost` was told as lost, and all that was lost as restored."""
    told = [entry["fields"]["path"] for entry in entries if entry["kind"] == "lost"]
    return all(any(path.endswith(f"/{name}") for path in told) for name in lost) and not _open_pairs(entries)


@pytest.fixture(scope="module")
def day(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, After]:
    """What each action brought: those of REPLACED happen one after another in one run, each of the others in
    its own, where the loop makes what is missing, too (git would find that in its way).
    """
    runs = [REPLACED, *({name: action} for name, action in MOVED_ASIDE.items())]
    found: dict[str, After] = {}
    for run in runs:
        jail = warm_jail(installed, tmp_path_factory.mktemp("meanwhile"))
        lay(jail)
        how = [] if run is REPLACED else ["create"]
        with Running(jail, PYTHON, "-I", "-c", PRELUDE + LOOP, *how) as running:
            running.ready()
            found |= {name: acted(jail, number, action) for number, (name, action) in enumerate(run.items())}
            (jail.workspace / FREE / "ask").symlink_to("end")
            assert running.wait() == 0, running.errors
    return found


@pytest.mark.parametrize("name", ACTIONS)
def test_afterwards_every_protected_path_is_refused_again(day: dict[str, After], name: str) -> None:
    assert offences(day[name].met, REFUSED) == {}


@pytest.mark.parametrize("name", ACTIONS)
def test_the_person_could_do_it(day: dict[str, After], name: str) -> None:
    assert day[name].failure == ""


@pytest.mark.parametrize("name", [name for name, action in ACTIONS.items() if action.lost])
def test_the_ledger_has_what_was_lost_and_restored_with_window_and_digests(
    day: dict[str, After], name: str
) -> None:
    entries = day[name].entries
    assert _open_pairs(entries) == set()
    for path in ACTIONS[name].lost:
        kinds = {
            kind: [
                entry["fields"]
                for entry in entries
                if entry["kind"] == kind and entry["fields"]["path"].endswith(f"/{path}")
            ]
            for kind in ("lost", "restored")
        }
        assert kinds["lost"], f"{path} is not told as lost"
        assert kinds["restored"], f"{path} is not told as restored"
        for fields in kinds["restored"]:
            assert 0 <= fields["window_s"] < SETTLE
            assert fields["digest_before"]
            assert fields["digest_after"]


def test_what_was_made_while_git_was_moved_aside_is_told(day: dict[str, After]) -> None:
    after = day["mv .git aside and back"]
    told = {entry["fields"]["path"] for entry in after.entries if "path" in entry["fields"]}
    assert any(path.endswith("/.git") or "/.git/" in path for path in told)


def test_nothing_is_told_of_a_host_that_does_nothing(day: dict[str, After]) -> None:
    assert day["nothing"].entries == []


# A window held open: the keeper is stopped, so that what is written in it is sure.


def run_with_a_window(installed: Installed, folder: Path, *how: str) -> tuple[Jail, str]:
    """A whole run in which RESEARCH.md was open for a while; the jail and what it told."""
    jail = warm_jail(installed, folder)
    lay(jail)
    with Running(jail, PYTHON, "-I", "-c", PRELUDE + LOOP, *how) as running:
        running.ready()
        keeper = running.family().keeper.pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            save_by_rename(jail.workspace)
            met = ask(jail, "open")
            assert met["RESEARCH.md"] == "done", "the window is not open: nothing is tested"
        finally:
            os.kill(keeper, signal.SIGCONT)
        assert offences(settled(jail, "closed"), REFUSED) == {}
        (jail.workspace / FREE / "ask").symlink_to("end")
        assert running.wait() == 0, running.errors
        return jail, running.errors


def of_research(jail: Jail, kind: str) -> list[dict[str, Any]]:
    """The entries of one kind about RESEARCH.md."""
    fields = [entry["fields"] for entry in jail.ledger() if entry["kind"] == kind]
    return [found for found in fields if found["path"].endswith("RESEARCH.md")]


def test_what_was_written_in_a_window_is_told_by_the_digests(installed: Installed, tmp_path: Path) -> None:
    jail, _ = run_with_a_window(installed, tmp_path)
    content = (jail.workspace / "RESEARCH.md").read_bytes()
    assert b"evil" in content
    (restored,) = of_research(jail, "restored")
    # rename(2) drops the mount a moment before the old name (vfs_rename: detach_mounts, then d_move): who opens
    # the name in between appends to the old file, which has no name any more.
    before = [hashlib.sha256(b"a finding\n" + b"evil\n" * times).hexdigest() for times in (0, 1)]
    assert restored["digest_before"] in before
    assert restored["digest_after"] != hashlib.sha256(b"saved\n").hexdigest()
    # A write that was on its way when the mount came back may follow the digest; the end tells it then.
    last = [restored["digest_after"], *(found["digest"] for found in of_research(jail, "changed"))][-1]
    assert last == hashlib.sha256(content).hexdigest()


def test_what_is_written_later_through_a_file_opened_in_a_window_is_told_at_the_end(
    installed: Installed, tmp_path: Path
) -> None:
    jail, errors = run_with_a_window(installed, tmp_path, "late")
    content = (jail.workspace / "RESEARCH.md").read_bytes()
    assert b"late evil" in content
    (changed,) = of_research(jail, "changed")
    assert changed["digest"] == hashlib.sha256(content).hexdigest()
    assert "RESEARCH.md: changed after" in errors


def test_a_protected_path_that_the_host_took_away_for_good_is_an_absent_one(
    installed: Installed, tmp_path: Path
) -> None:
    jail = warm_jail(installed, tmp_path)
    lay(jail)
    with Running(jail, PYTHON, "-I", "-c", PRELUDE + LOOP) as running:
        running.ready()
        (jail.workspace / "RESEARCH.md").unlink()
        assert until(lambda: any("still absent" in str(entry) for entry in jail.ledger()), 2 * SETTLE)
        (jail.workspace / "RESEARCH.md").symlink_to("/etc/passwd")
        assert until(lambda: not os.path.lexists(jail.workspace / "RESEARCH.md"), SETTLE)
        (jail.workspace / FREE / "ask").symlink_to("end")
        assert running.wait() == 0, running.errors
    swept = [entry["fields"]["path"] for entry in jail.ledger() if entry["kind"] == "swept"]
    assert str(jail.workspace / "RESEARCH.md") in swept
