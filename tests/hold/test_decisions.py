"""What was decided is done and written down: each path once, with what became of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jail.hold import decisions, review, store
from jail.hold.choosing import chosen
from jail.hold.decisions import carry_out, finished
from jail.hold.review import Review
from jail.ledger.lines import parse
from jail.ledger.reader import verify
from support import steps
from support.changed import Kept, held_session
from support.ledgers import state_in


def kept_in(folder: Path) -> Kept:
    folder.mkdir(exist_ok=True)
    host: dict[str, bytes | str | None] = {"a": b"old", "both": b"old"}
    new: dict[str, bytes | str | None] = {"a": b"new", "both": b"new", "b": b"b", "CLAUDE.md": b"obey"}
    made = held_session(state_in(folder), folder / "ws", host, new)
    (made.workspace / "both").write_bytes(b"mine")
    return made


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return kept_in(tmp_path)


@pytest.fixture
def found(session: Kept) -> Review:
    return review.reviewed(str(session.folder))


def entries(session: Kept) -> dict[str, tuple[str, dict[str, Any]]]:
    lines = (session.folder / "review.jsonl").read_bytes().splitlines()
    read = [parse(line)[0] for line in lines]
    return {
        Path(each.fields["path"]).name: (each.kind, dict(each.fields)) for each in read if each is not None
    }


def both_applied(session: Kept) -> Callable[[], object]:
    found = review.reviewed(str(session.folder))
    taken = chosen(found, ("a", "b"), str(session.workspace)).taken
    return lambda: carry_out(found, apply=taken)


def test_each_path_is_written_down_with_what_became_of_it(session: Kept, found: Review) -> None:
    thrown = [each for each in found.changes if each.path == "b"]
    whole = chosen(found, ("b",), str(session.workspace), all_but=True)
    done = carry_out(found, apply=whole.taken, discard=thrown, left=whole.left)
    assert ([each.path for each in done.applied], [each.path for each in done.discarded]) == (["a"], ["b"])
    said = entries(session)
    assert {name: kind for name, (kind, _) in said.items()} == {
        "a": "applied",
        "b": "discarded",
        "both": "refused",
        "CLAUDE.md": "refused",
    }
    applied = said["a"][1]
    by_path = {each.path: each for each in found.changes}
    assert (applied["digest_before"], applied["digest_after"]) == (
        by_path["a"].old.digest,
        by_path["a"].new.digest,
    )
    assert said["both"][1]["reason"] == by_path["both"].conflict
    refused = said["CLAUDE.md"][1]
    assert (refused["tier"], refused["reason"]) == ("refused", by_path["CLAUDE.md"].reason)
    assert verify(str(session.folder)).state == "intact"


def test_what_remains_is_what_a_second_look_finds(session: Kept, found: Review) -> None:
    whole = chosen(found, (), str(session.workspace))
    done = carry_out(found, apply=whole.taken, left=whole.left)
    left = decisions.remaining(found, done)
    assert left == review.reviewed(str(session.folder)).changes
    assert {each.path for each in left} == {"both", "CLAUDE.md"}


def test_nothing_decided_writes_nothing(session: Kept, found: Review) -> None:
    assert carry_out(found) == decisions.Done((), (), (), "")
    assert not (session.folder / "review.jsonl").exists()


def test_a_host_that_changes_between_the_list_and_the_apply_is_a_conflict(
    session: Kept, found: Review
) -> None:
    taken = chosen(found, ("a", "b"), str(session.workspace)).taken
    (session.workspace / "a").write_bytes(b"meanwhile")
    done = carry_out(found, apply=taken)
    assert [each.path for each in done.applied] == ["b"]
    ((conflict, why),) = done.left
    assert (conflict.path, bool(why)) == ("a", True)
    assert (session.workspace / "a").read_bytes() == b"meanwhile"
    assert entries(session)["a"][0] == "refused"


def test_an_apply_that_was_not_interrupted_needs_no_end(session: Kept) -> None:
    manifest = store.read_manifest(str(session.folder))
    assert manifest == session.manifest
    assert finished(str(session.folder), session.manifest) is None
    assert not (session.folder / "review.jsonl").exists()


@pytest.mark.parametrize(("call", "became"), [("mkdir", {}), ("renameat2", {"a": "applied", "b": "applied"})])
def test_an_apply_that_was_killed_is_finished_or_taken_away_and_written_down(
    tmp_path: Path, call: str, became: dict[str, str]
) -> None:
    """Before it had committed and after that: at the first call of each kind."""
    names = steps.count(both_applied(kept_in(tmp_path / "count")))
    session = kept_in(tmp_path / "killed")
    assert steps.failing(both_applied(session), names.index(call) + 1, steps.KILL) == -9
    done = finished(str(session.folder), session.manifest)
    assert done is not None
    assert {each.path: "applied" for each in done.applied} == became
    assert {path: kind for path, (kind, _) in entries(session).items()} == became
    assert (session.workspace / "b").exists() == bool(became)
    assert verify(str(session.folder)).state == "intact"
    assert finished(str(session.folder), session.manifest) is None
