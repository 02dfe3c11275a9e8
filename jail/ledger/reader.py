"""The reader: is this ledger what jail wrote, and is it all of it?

Rule: three answers about a ledger. *Broken*: some byte is not as jail wrote it, or an entry is missing; it
says where. *Incomplete*: all that is there is good, but there is no end: still running, crashed, or (which
nobody can tell from a crash) cut. *Intact*: good from the start entry to the end entry. Doubts that prove
nothing are remarks. Where there is no ledger, since `jail gc` removed the session and said so in the index,
the answer is that: *removed*. What no reader can see is said in `heads` and `chain`.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.ledger import beside, place, review, reviewed
from jail.ledger.entries import END, ENTRY_LIMIT, KINDS, REVIEW_KINDS, START
from jail.ledger.judging import BESIDE, Problem, Walk
from jail.ledger.lines import Entry, lines, open_regular, parse
from jail.ledger.reviewed import Reviewed
from jail.ledger.writer import LEDGER


class Result(NamedTuple):
    """What `verify` found. `entries` counts the good ones; `start` and `end` are None where there is none
    that is good. `removed`: when `jail gc` removed all of it, in seconds since the epoch; else 0.0. `review`:
    the same of its review ledger, None where there is none; `interrupted`: an apply of what it held has no
    end.
    """

    problems: tuple[Problem, ...]
    problem_count: int
    remarks: tuple[str, ...]
    complete: bool
    running: bool
    entries: int
    session: str
    last: str
    start: Entry | None
    end: Entry | None
    removed: float = 0.0
    review: Reviewed | None = None
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Nothing is wrong with what is there."""
        return self.problem_count == 0 and (self.review is None or self.review.problem_count == 0)

    @property
    def state(self) -> str:
        """`intact`, `incomplete`, `broken` or `removed`."""
        if self.removed:
            return "removed"
        if not self.ok:
            return "broken"
        return "intact" if self.complete and not self.interrupted else "incomplete"


def verify(path: str) -> Result:
    """Check the ledgers in the session folder `path` (or beside the file `path`, if it is one of them in
    place), or the copy of a run's ledger `path` alone. Any bytes; memory is bounded by one entry.
    """
    path = os.path.abspath(path)
    if os.path.basename(path) == review.REVIEW:
        path = os.path.dirname(path)
    result = _verify_run(path)
    folder = path if os.path.isdir(path) or result.removed else os.path.dirname(path)
    alone = os.path.basename(path) not in (LEDGER, os.path.basename(folder))
    if alone or not place.is_id(os.path.basename(folder)):
        return result
    found = reviewed.verify(folder)
    return result._replace(review=found, interrupted=found is not None and found.interrupted)


def _verify_run(path: str) -> Result:
    if os.path.isdir(path) or place.is_id(os.path.basename(path)):
        folder, file = path, os.path.join(path, LEDGER)
    else:
        folder, file = os.path.dirname(path), path
    in_place = os.path.basename(file) == LEDGER
    running = in_place and place.running(folder)
    said = beside.read(folder) if in_place else beside.Beside(None, "", "", (), 0)
    name = os.path.basename(folder) if in_place and place.is_id(os.path.basename(folder)) else ""
    walk = _RunWalk(name, said)
    if said.removed and not os.path.lexists(folder):
        return walk.result(running)._replace(removed=said.removed)
    try:
        fd = open_regular(file, follow=file == path)
    except JailError as error:
        # Its supervisor was killed before the first entry; once there was one, the index knows it.
        locked = in_place and os.path.lexists(os.path.join(folder, place.LOCK))
        if locked and not os.path.lexists(file) and not said.records and said.head is None:
            walk.finish(running)
            return walk.result(running)
        walk.problem(BESIDE, f"{error.message} ({error.where})")
        walk.judge_marks()
        return walk.result(running)
    walk.take_all(fd)
    walk.finish(running)
    return walk.result(running)


def read(path: str) -> Iterator[Entry]:
    """The entries of a ledger file or session folder, in the order of the file; what does not read as an
    entry is left out.

    Judges nothing: who shows them calls `verify` too. Raises JailError when there is no file to read.
    """
    fd = open_regular(os.path.join(path, LEDGER) if os.path.isdir(path) else path)
    try:
        for line in lines(fd):
            entry = parse(line.raw)[0] if line.raw is not None else None
            if entry is not None:
                yield entry
    finally:
        os.close(fd)


def glance(folder: str) -> tuple[Entry | None, Entry | None]:
    """The first entry of the session in `folder` if it is `start`, and the last if it is `end`, unverified.

    Reads two pieces of the file, however long it is; for lists of sessions.
    """
    try:
        fd = open_regular(os.path.join(folder, LEDGER))
    except JailError:
        return None, None
    try:
        first = os.pread(fd, ENTRY_LIMIT + 1, 0).partition(b"\n")[0]
        size = os.fstat(fd).st_size
        tail = os.pread(fd, ENTRY_LIMIT + 2, max(0, size - ENTRY_LIMIT - 2))
        last = tail.removesuffix(b"\n").rpartition(b"\n")[2]
    except OSError:
        return None, None
    finally:
        os.close(fd)
    start, end = parse(first)[0], parse(last)[0]
    return start if start and start.kind == START else None, end if end and end.kind == END else None


class _RunWalk(Walk):
    """The ledger of a run: from its one start entry to its one end entry."""

    def __init__(self, session: str, said: beside.Beside) -> None:
        super().__init__(session, said, frozenset(KINDS) - REVIEW_KINDS)
        self.start: Entry | None = None
        self.end: Entry | None = None

    def content(self, entry: Entry) -> str:
        if self.end is not None:
            return "an entry after the end entry"
        if (entry.kind == START) != (entry.seq == 0):
            return f"entry {entry.seq} is {entry.kind!r}: {START!r} comes first, and once"
        named = str(entry.fields.get("session", "")) if entry.kind == START else self.session
        if self.session and named != self.session:
            return f"this is the ledger of session {named!r}, not of {self.session!r}"
        return ""

    def accepted(self, entry: Entry) -> None:
        if entry.kind == START and self.start is None:
            self.start = entry
            self.session = self.session or str(entry.fields.get("session", ""))
        if entry.kind == END:
            self.end = entry

    def judge_head(self, head: beside.Mark) -> None:
        if (head.seq, head.last) != (self.expected - 1, self.last):
            self.problem(BESIDE, "the last line is not the one that the head file names: added or replaced")

    def finish(self, running: bool) -> None:
        self.judge_marks()
        if self.half and (self.end is not None or self.said.head is not None):
            self.problem(self.half, "half a line after the end entry")
        elif self.half:
            self.remarks.append(f"line {self.half} is half written: its writer was killed, or writes it now")
        if self.number == 0 and not running:
            if self.said.records or self.said.head is not None:
                self.problem(BESIDE, "the file is empty: not even a start entry")
            else:
                self.remarks.append(_NOTHING)
        if self.said.head is None and not running and not self.said.head_fault:
            self.remarks.append(_NO_HEAD[self.end is not None])
        self.tell_strange()

    def result(self, running: bool) -> Result:
        complete = self.end is not None and self.count == 0
        ends = (self.session, self.last, self.start, self.end)
        return Result(
            tuple(self.problems), self.count, tuple(self.remarks), complete, running, self.entries, *ends
        )


_NOTHING: Final = (
    "there is no entry: jail was killed before the first one, which is before anything is executed"
)
_NO_HEAD: Final = {
    True: "no head file beside it: only its own end entry says that nothing follows",
    False: "no head file beside it: a cut tail cannot be ruled out",
}
