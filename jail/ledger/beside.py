"""What lies beside a ledger and speaks of it: the head file, and the index one folder higher.

Rule: as hostile as the ledger itself; read before it, so that all they name must be in it already.
"""

import json
import os
from collections import deque
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.ledger import chain, place
from jail.ledger.heads import HEAD, INDEX, REVIEW, REVIEW_HEAD
from jail.ledger.lines import lines, open_regular

_RECORD_LIMIT: Final = 4096
"""Bytes of a head file or a line of the index; ours have about 150."""
RECORDS_LIMIT: Final = 16
"""Records of one ledger that are kept, the last ones; a run makes two, and each review one."""


class Mark(NamedTuple):
    """Line `seq` (from 0) of the session has the hash `last`."""

    seq: int
    last: str


class Beside(NamedTuple):
    """What the head file and the index say of a session.

    The head file's mark (None: no head file), the session that it names, its fault if it is not as jail
    writes it; the index's marks of the session, how many lines of the index cannot be read, and when
    `jail gc` removed the session (seconds since the epoch; 0.0: it did not).
    """

    head: Mark | None
    head_session: str
    head_fault: str
    records: tuple[Mark, ...]
    record_faults: int
    removed: float = 0.0


def read(folder: str, of: str = "") -> Beside:
    """What is said about a ledger of the session in `folder`; `of` as in chain.head."""
    session = os.path.basename(folder)
    head, named, fault = _head(os.path.join(folder, REVIEW_HEAD if of == REVIEW else HEAD), of)
    return Beside(head, named, fault, *_index(os.path.join(os.path.dirname(folder), INDEX), session, of))


def _head(path: str, of: str) -> tuple[Mark | None, str, str]:
    if not os.path.lexists(path):
        return None, "", ""
    try:
        fd = open_regular(path)
    except JailError as error:
        return None, "", error.message
    try:
        raw = os.read(fd, _RECORD_LIMIT)
    except OSError as error:
        return None, "", f"cannot read it: {error.strerror}"
    finally:
        os.close(fd)
    session, mark, _, _ = _parsed(raw)
    if mark is None or raw != chain.head(session, mark.seq, mark.last, of):
        return None, "", "it is not as jail writes it: damaged or edited"
    return mark, session, ""


def _index(path: str, session: str, of: str) -> tuple[tuple[Mark, ...], int, float]:
    marks: deque[Mark] = deque(maxlen=RECORDS_LIMIT)
    faults, removed = 0, 0.0
    try:
        fd = open_regular(path)
    except JailError:
        return (), 0, 0.0
    try:
        for line in lines(fd, _RECORD_LIMIT):
            named, mark, gone, ledger = _parsed(line.raw or b"")
            if not named:
                faults += 1
            elif named == session:
                removed = gone or removed
                if mark is not None and ledger == of:
                    marks.append(mark)
    except OSError:
        faults += 1
    finally:
        os.close(fd)
    return tuple(marks), faults, removed


def _parsed(raw: bytes) -> tuple[str, Mark | None, float, str]:
    """The session that a line is about, with its mark or the time of its removal, and which ledger; "" for
    what is no line of ours.
    """
    nothing = "", None, 0.0, ""
    try:
        found = json.loads(raw.decode("ascii"))
        session, gone = found["session"], found.get("removed", False)
        when = found["time"] if gone else 0.0
        seq, last = (0, "") if gone else (found["seq"], found["hash"])
        of = found.get("ledger", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return nothing
    if not isinstance(session, str) or not session or not isinstance(gone, bool) or not isinstance(of, str):
        return nothing
    if gone:
        good = type(when) in (int, float) and 0 < when < _TIMES_END
        return (session, None, float(when), "") if good else nothing
    good = type(seq) is int and 0 <= seq < 1 << 63 and isinstance(last, str)
    return (session, Mark(seq, last), 0.0, of) if good else nothing


_TIMES_END: Final = 1e12
"""Seconds since the epoch, far past the last year that can be shown; nan and infinity are not below it."""


def sessions_named(state: str) -> dict[str, float]:
    """The ids of all sessions that the index in `state` knows, whether or not their folders are still there;
    and when `jail gc` removed them, 0.0 where it did not.
    """
    named: dict[str, float] = {}
    try:
        fd = open_regular(os.path.join(state, place.SESSIONS, INDEX))
    except JailError:
        return named
    try:
        for line in lines(fd, _RECORD_LIMIT):
            session, _, removed, _ = _parsed(line.raw or b"")
            if place.is_id(session):
                named[session] = removed or named.get(session, 0.0)
    except OSError:
        return named
    finally:
        os.close(fd)
    return named
