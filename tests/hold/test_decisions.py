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
    return {
        Path(fields["path"]).name: (kind, fields) for kind, fields in written(session) if "path" in fields
    }


def written(session: Kept) -> list[tuple[str, dict[str, Any]]]:
    """All of the review ledger."""
    file = session.folder / "review.jsonl"
    read = [parse(line)[0] for line in file.read_bytes().splitlines()] if file.exists() else []
    return [(each.kind, dict(each.fields)) for each in read if each is not None]


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


def test_an_apply_is_in_the_ledger_before_and_after_its_paths(session: Kept, found: Review) -> None:
    whole = chosen(found, ("a", "b"), str(session.workspace))
    carry_out(found, apply=whole.taken)
    (first, begins), *paths, (last, ends) = written(session)
    assert (first, begins["becomes"], begins["changes"]) == ("applying", "applied", 2)
    assert (last, ends["outcome"], ends["applied"], ends["refused"]) == ("settled", "applied", 2, 0)
    assert {fields["apply"] for _, fields in paths} == {begins["apply"]} == {ends["apply"]}
    assert len(begins["digest"]) == 64


def test_each_kill_of_an_apply_is_told_and_each_path_written_once(tmp_path: Path) -> None:
    """Killed at each change of the disk, and while that is finished a second time."""
    names = steps.count(both_applied(kept_in(tmp_path / "count")))
    places = [at for at, name in enumerate(names, 1) if name in steps.CHANGING]
    assert len(places) > 20
    for at in places[::2]:
        session = kept_in(tmp_path / str(at))
        assert steps.failing(both_applied(session), at, steps.KILL) == -9
        touched = (session.workspace / "a").read_bytes() == b"new" or (session.workspace / "b").exists()
        begun = any(kind == "applying" for kind, _ in written(session))
        ended = any(kind == "settled" for kind, _ in written(session))
        assert begun or not touched, at
        assert verify(str(session.folder)).state == ("incomplete" if begun and not ended else "intact"), at
        folder, manifest = str(session.folder), session.manifest
        for again in range(5, 200, 60):
            steps.failing(lambda: finished(folder, manifest), again, steps.KILL)  # noqa: B023 - called at once
        finished(folder, manifest)
        said = written(session)
        assert verify(folder).state == "intact", at
        assert (
            [kind for kind, _ in said].count("settled") == [kind for kind, _ in said].count("applying") <= 1
        )
        became = sorted(fields["path"] for kind, fields in said if kind == "applied")
        done = [f"{session.workspace}/a", f"{session.workspace}/b"]
        assert became == (done if (session.workspace / "b").exists() else []), at


def test_an_apply_whose_journal_was_removed_gets_an_end(session: Kept) -> None:
    names = steps.count(both_applied(kept_in(session.folder.parent / "count")))
    assert steps.failing(both_applied(session), names.index("renameat2") + 1, steps.KILL) == -9
    (session.folder / "held/journal").unlink()
    assert verify(str(session.folder)).state == "incomplete"
    assert finished(str(session.folder), session.manifest) is None
    assert written(session)[-1][1]["outcome"] == "unknown: its journal was removed"
    assert verify(str(session.folder)).state == "intact"


def test_an_apply_that_is_taken_back_says_so(tmp_path: Path) -> None:
    names = steps.count(both_applied(kept_in(tmp_path / "count")))
    session = kept_in(tmp_path / "failing")
    last = len(names) - names[::-1].index("renameat2")
    assert steps.failing(both_applied(session), last, "EIO") == steps.REFUSED
    assert [kind for kind, _ in written(session)] == ["applying", "settled"]
    assert written(session)[1][1]["outcome"] == "taken back"
    assert verify(str(session.folder)).state == "intact"
