"""What lies beside a ledger and speaks of it: the head file, and the index one folder higher.

Rule: as hostile as the ledger itself; read before it, so that all they name must be in it already.
"""

import json
import os
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.ledger import chain, place
from jail.ledger.heads import HEAD, INDEX
from jail.ledger.lines import lines, open_regular

_RECORD_LIMIT: Final = 4096
"""Bytes of a head file or a line of the index; ours have about 150."""
RECORDS_LIMIT: Final = 16
"""Records of one session that are kept; a session makes two."""


class Mark(NamedTuple):
    """Line `seq` (from 0) of the session has the hash `last`."""

    seq: int
    last: str


class Beside(NamedTuple):
    """What the head file and the index say of a session.

    The head file's mark (None: no head file), the session that it names, its fault if it is not as jail
    writes it; the index's marks of the session, and how many lines of the index cannot be read.
    """

    head: Mark | None
    head_session: str
    head_fault: str
    records: tuple[Mark, ...]
    record_faults: int


def read(folder: str) -> Beside:
    """What is said about the session in `folder`."""
    session = os.path.basename(folder)
    head, named, fault = _head(os.path.join(folder, HEAD))
    marks, faults = _index(os.path.join(os.path.dirname(folder), INDEX), session)
    return Beside(head, named, fault, marks, faults)


def _head(path: str) -> tuple[Mark | None, str, str]:
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
    session, mark = _mark(raw)
    if mark is None or raw != chain.head(session, mark.seq, mark.last):
        return None, "", "it is not as jail writes it: damaged or edited"
    return mark, session, ""


def _index(path: str, session: str) -> tuple[tuple[Mark, ...], int]:
    marks: list[Mark] = []
    faults = 0
    try:
        fd = open_regular(path)
    except JailError:
        return (), 0
    try:
        for line in lines(fd, _RECORD_LIMIT):
            named, mark = _mark(line.raw or b"")
            if mark is None:
                faults += 1
            elif named == session and len(marks) < RECORDS_LIMIT:
                marks.append(mark)
    except OSError:
        faults += 1
    finally:
        os.close(fd)
    return tuple(marks), faults


def _mark(raw: bytes) -> tuple[str, Mark | None]:
    try:
        found = json.loads(raw.decode("ascii"))
        session, seq, last = found["session"], found["seq"], found["hash"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", None
    if isinstance(session, str) and type(seq) is int and 0 <= seq < 1 << 63 and isinstance(last, str):
        return session, Mark(seq, last)
    return "", None


def sessions_named(state: str) -> set[str]:
    """The ids of all sessions that the index in `state` knows, whether or not their folders are still
    there.
    """
    try:
        fd = open_regular(os.path.join(state, place.SESSIONS, INDEX))
    except JailError:
        return set()
    try:
        named = {_mark(line.raw)[0] for line in lines(fd, _RECORD_LIMIT) if line.raw}
    except OSError:
        return set()
    finally:
        os.close(fd)
    return {name for name in named if place.is_id(name)}
