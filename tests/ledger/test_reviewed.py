from pathlib import Path

import pytest

from jail.errors import JailError
from jail.ledger import reviewed
from jail.ledger.lines import parse
from jail.ledger.reader import verify
from jail.ledger.review import ReviewLedger
from support.ledgers import REVIEWED, state_in, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(state_in(tmp_path))[0]


def append(folder: Path, kind: str) -> None:
    opened = ReviewLedger.open(str(folder), folder.name)
    opened.append(kind, **REVIEWED)
    opened.close()


def test_a_session_that_nobody_reviewed_has_nothing_to_judge(folder: Path) -> None:
    assert reviewed.verify(str(folder)) is None
    assert list(reviewed.review_lines(str(folder))) == []


def test_its_lines_are_given_as_they_are(folder: Path) -> None:
    append(folder, "applied")
    append(folder, "refused")
    found = [parse(line.raw or b"")[0] for line in reviewed.review_lines(str(folder))]
    assert [entry and entry.kind for entry in found] == ["applied", "refused"]


def test_a_link_in_its_place_is_broken_and_not_followed(folder: Path) -> None:
    (folder / "review.jsonl").symlink_to("ledger.jsonl")
    found = reviewed.verify(str(folder))
    assert found is not None
    assert "ELOOP" in found.problems[0].what
    with pytest.raises(JailError, match="cannot read"):
        list(reviewed.review_lines(str(folder)))


def test_the_file_of_the_review_stands_for_its_session(folder: Path) -> None:
    append(folder, "applied")
    found = verify(str(folder / "review.jsonl"))
    assert (found.state, found.session) == ("intact", folder.name)
    assert found.review is not None
    assert found.review.entries == 1


def test_a_run_that_was_not_ended_is_incomplete_whatever_its_review_says(tmp_path: Path) -> None:
    crashed = write(state_in(tmp_path), end=False)[0]
    append(crashed, "applied")
    assert verify(str(crashed)).state == "incomplete"


def test_kinds_of_a_run_are_strange_in_a_review(folder: Path) -> None:
    opened = ReviewLedger.open(str(folder), folder.name)
    opened._put("running", {}, 1 << 20)
    opened.close()
    found = reviewed.verify(str(folder))
    assert found is not None
    assert found.remarks == ("kinds of entry that this version of jail does not know: running",)
