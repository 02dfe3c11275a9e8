"""Going on from a session: what the manifest says stands where the command line does not, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.hold import store
from jail.hold.store import Manifest
from jail.launch import resume
from jail.launch.resume import Resumed
from jail.launch.start import Options
from jail.ledger.place import Session, new_session
from jail.ledger.review import ReviewLedger
from jail.plan.build import build
from jail.plan.held import COPY, FILE, OVERLAY, Held
from support.changed import held_session
from support.hosts import FACTS, POLICY
from support.ledgers import state_in, write

TREE = Held("t0", OVERLAY, "/w", "the workspace")
MORE = Held("t1", COPY, "/more", "hold = /more")
VENV = Held("t2", OVERLAY, "/w2/.venv", "a PATH folder", "commands")
CONFIG = Held("f0", FILE, "/w/.git/config", "git", "git-config")
ALONE = Held("f1", FILE, "/alone", "hold = /alone")
MANIFEST = Manifest("s", "/w", 1000, 1000, -1, 7, (), (TREE, MORE, VENV, CONFIG, ALONE))
RESUMED = Resumed("/state/20261130-141502-k3f9x2ab", MANIFEST)


def test_workspace_and_what_is_held_come_from_the_manifest() -> None:
    found = resume.completed(Options(resume="last"), RESUMED)
    assert (found.workspace, found.hold, found.hold_path) == ("/w", True, ("/more", "/alone"))
    found = resume.completed(Options(workspace="/w/", hold_path=("/other", "/more")), RESUMED)
    assert (found.workspace, found.hold_path) == ("/w", ("/other", "/more", "/alone"))
    only_venv = Resumed("x", MANIFEST._replace(held=(VENV, CONFIG)))
    assert resume.completed(Options(), only_venv).hold is False
    with pytest.raises(JailError, match="worked on /w") as caught:
        resume.completed(Options(workspace="/elsewhere"), RESUMED)
    assert caught.value.code == EXIT_USAGE


PLAN = build(POLICY, FACTS, ("true",))._replace(held=MANIFEST.held)
CHECKS = {
    "the same": (PLAN, ""),
    "more than before": (PLAN._replace(held=(*PLAN.held, Held("t3", OVERLAY, "/x", "x"))), ""),
    "a tree is missing": (PLAN._replace(held=(TREE, VENV, CONFIG, ALONE)), "/more was held"),
    "another means": (
        PLAN._replace(held=(TREE, MORE._replace(kind=OVERLAY), *PLAN.held[2:])),
        "by another means",
    ),
    "another name": (PLAN._replace(held=(TREE._replace(name="t9"), *PLAN.held[1:])), "by another means"),
    "another uid": (PLAN._replace(uid=1001), "uid 1000 and gid 1000, this run would be uid 1001"),
    "another gid": (PLAN._replace(gid=1001), "gid 1001"),
}


@pytest.mark.parametrize("case", CHECKS)
def test_a_plan_must_hold_all_that_was_held(case: str) -> None:
    plan, told = CHECKS[case]
    if not told:
        resume.check(plan, RESUMED)
        return
    with pytest.raises(JailError, match="cannot be resumed") as caught:
        resume.check(plan, RESUMED)
    assert told in caught.value.message
    assert caught.value.hint


def test_names_are_kept_and_new_ones_do_not_meet_them() -> None:
    from jail.plan.held import name_for

    facts = FACTS._replace(held_names=RESUMED.names)
    assert name_for("t", "/more", (), facts) == "t1"
    assert name_for("t", "/new", (), facts) == "t3"
    assert name_for("t", "/newer", (Held("t3", COPY, "/new", ""),), facts) == "t4"
    assert name_for("t", "/new", (), FACTS) == "t0"


def held_by(folder: Path) -> Path:
    """Let the session in `folder` hold a tree, that lies beside it."""
    tree = folder.parent / "tree"
    tree.mkdir(exist_ok=True)
    for part in ("t0/upper", "t0/work", "base"):
        (folder / "held" / part).mkdir(parents=True)
    thing = TREE._replace(path=str(tree))
    manifest = Manifest(folder.name, str(tree), 1000, 1000, -1, 7, (), (thing,))
    store.write_manifest(str(folder / "held"), manifest)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> str:
    return state_in(tmp_path)


def _taken(folder: Path) -> None:
    review = ReviewLedger.open(str(folder), folder.name)
    review.append("resumed", by="20261130-141502-k3f9x2ab")
    review.close()


DEEDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "it holds nothing": (lambda _: None, "holds nothing"),
    "another has it": (_taken, "holds nothing any more: 20261130-141502-k3f9x2ab went on"),
    "half applied": (lambda folder: (held_by(folder) / "held/journal").touch(), "was interrupted"),
    "damaged": (lambda folder: (held_by(folder) / "held/manifest").write_bytes(b"x"), "cannot be read"),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_session_that_cannot_be_gone_on_from_is_named_with_the_reason(state: str, deed: str) -> None:
    folder = write(state)[0]
    act, told = DEEDS[deed]
    act(folder)
    with pytest.raises(JailError) as caught:
        resume.of("last", state)
    assert told in caught.value.message
    assert caught.value.hint


def test_one_that_runs_is_refused_and_one_that_crashed_is_not(state: str) -> None:
    session = new_session(state)
    held_by(Path(session.folder))
    with pytest.raises(JailError, match="still runs"):
        resume.of(session.id, state)
    import os

    os.close(session.lock_fd)
    assert resume.of(session.id, state).names == ((str(Path(session.folder).parent / "tree"), "t0"),)


def test_what_is_held_is_taken_once(state: str) -> None:
    old = held_by(write(state)[0])
    found = resume.of(old.name, state)
    first, second = new_session(state), new_session(state)
    resume.take(found, first)
    assert (Path(first.folder) / "held" / "manifest").exists()
    with pytest.raises(JailError, match="holds nothing any more"):
        resume.take(found, second)


def test_nobody_takes_it_while_another_is_at_it(state: str) -> None:
    old = held_by(write(state)[0])
    found = resume.of(old.name, state)
    from jail.hold.lock import Lock

    session: Session = new_session(state)
    with Lock(str(old)), pytest.raises(JailError, match="another `jail` is at what it holds"):
        resume.take(found, session)
    assert (old / "held").exists()


def test_last_is_the_newest_with_changes_of_this_workspace(state: str, tmp_path: Path) -> None:
    """And where there is none, the newest of all."""
    here = held_session(state, tmp_path / "ws", {}, {"a": b""}).folder
    there = held_session(state, tmp_path / "other", {}, {"a": b""}).folder
    assert resume.of("last", state, str(tmp_path / "ws")).folder == str(here)
    assert resume.of("last", state, str(tmp_path / "other")).folder == str(there)
    assert resume.of("last", state, str(tmp_path)).folder == str(there)
    assert resume.of(here.name, state, str(tmp_path / "other")).folder == str(here)
