"""The journal of an apply: what is read of it after a kill, wherever the kill was."""

from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import journal
from jail.hold.change import ABSENT, ADDED, Change, State
from jail.hold.journal import BACK, COMMITTED, PUT, STAGING, Intent, Journal, Written
from jail.hold.seen import Seen

CHANGE = Change("t0", "\udcff\n\u2010/x", ADDED, ABSENT, State("file", 0o644, 3, 5, "ab" * 32), ABSENT)
INTENT = Intent(0, "t0", CHANGE.path, PUT, "1", Seen("file", 7, 0o644, 3, 5), None, "ab" * 32)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    (tmp_path / "held").mkdir()
    return tmp_path


def written(session: Path, state: str = "") -> Path:
    book = Journal(str(session), new=True)
    book.add([journal.staging("t0", ".jail-apply-1", 0)])
    book.add([journal.staging("t0", ".jail-apply-1", 9)])
    book.add(journal.meant([CHANGE], [INTENT]))
    if state:
        book.say(state)
    book.close()
    return session / "held/journal"


def test_without_a_journal_there_is_nothing_to_finish(session: Path) -> None:
    assert journal.state(str(session)) == ""
    assert journal.read(str(session)) is None
    assert journal.read(str(session / "nowhere")) is None


def test_what_was_written_is_read(session: Path) -> None:
    written(session, COMMITTED)
    expected = Written(COMMITTED, {"t0": (".jail-apply-1", 9)}, [CHANGE], [INTENT], {})
    assert journal.read(str(session)) == expected
    book = Journal(str(session), new=False)
    book.add(journal.refused({0: "why"}))
    book.say(BACK)
    assert journal.read(str(session)) == expected._replace(state=BACK, conflicts={0: "why"})
    book.remove()
    assert journal.read(str(session)) is None


def test_there_is_one_at_a_time(session: Path) -> None:
    written(session)
    with pytest.raises(FileExistsError):
        Journal(str(session), new=True)


def test_cut_anywhere_it_is_not_committed_or_it_is_damaged(session: Path) -> None:
    """A cut of the committed part is no kill: it is fsynced before. Nothing is done on its word then."""
    file = written(session)
    content = file.read_bytes()
    for size in range(len(content)):
        file.write_bytes(content[:size])
        found = journal.read(str(session))
        assert found is not None
        assert found.state == STAGING
        assert found.staging in ({}, {"t0": (".jail-apply-1", 0)}, {"t0": (".jail-apply-1", 9)})
    file.unlink()
    content = written(session, COMMITTED).read_bytes()
    end = content.index(b'["meant"') + len('["meant",1,1]')
    for size in range(16, end, 7):
        file.write_bytes(content[:size])
        with pytest.raises(JailError, match="damaged"):
            journal.read(str(session))


def test_half_a_line_before_a_state_spoils_nothing(session: Path) -> None:
    file = written(session, COMMITTED)
    file.write_bytes(file.read_bytes() + b'["conflict",0,"ha')
    book = Journal(str(session), new=False)
    book.add(journal.refused({0: "whole"}))
    book.close()
    found = journal.read(str(session))
    assert found is not None
    assert (found.state, found.conflicts) == (COMMITTED, {0: "whole"})


def test_going_on_takes_no_room(session: Path) -> None:
    file = written(session, COMMITTED)
    size = file.stat().st_size
    book = Journal(str(session), new=False)
    for state in (BACK, journal.APPLIED, STAGING):
        book.say(state)
        assert (journal.state(str(session)), file.stat().st_size) == (state, size)
    book.close()


def test_a_link_is_no_journal(session: Path) -> None:
    (session / "held/journal").symlink_to("/etc/passwd")
    with pytest.raises(JailError, match="cannot be read"):
        journal.state(str(session))
