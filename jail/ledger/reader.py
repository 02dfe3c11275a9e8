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
from jail.kernel.digest import sha256_hex as digest
from jail.ledger import beside, chain, place
from jail.ledger.entries import END, ENTRY_LIMIT, KINDS, START
from jail.ledger.lines import Entry, Line, lines, open_regular, parse
from jail.ledger.writer import LEDGER

PROBLEMS_LIMIT: Final = 20
"""Problems kept; the rest are counted. A file of garbage must not fill the memory of who looks at it."""
_BESIDE: Final = 0
"""Line number of a problem that is not in a line of the ledger."""


class Problem(NamedTuple):
    """What is wrong, at which line (from 1; 0: not in a line)."""

    line: int
    what: str


class Result(NamedTuple):
    """What `verify` found. `entries` counts the good ones; `start` and `end` are None where there is none
    that is good. `removed`: when `jail gc` removed all of it, in seconds since the epoch; else 0.0.
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

    @property
    def ok(self) -> bool:
        """Nothing is wrong with what is there."""
        return self.problem_count == 0

    @property
    def state(self) -> str:
        """`intact`, `incomplete`, `broken` or `removed`."""
        if self.removed:
            return "removed"
        if not self.ok:
            return "broken"
        return "intact" if self.complete else "incomplete"


def verify(path: str) -> Result:
    """Check the ledger in the session folder `path`, or the ledger file `path` alone. Any bytes; memory is
    bounded by one entry.
    """
    path = os.path.abspath(path)
    if os.path.isdir(path) or place.is_id(os.path.basename(path)):
        folder, file = path, os.path.join(path, LEDGER)
    else:
        folder, file = os.path.dirname(path), path
    in_place = os.path.basename(file) == LEDGER
    running = in_place and place.running(folder)
    said = beside.read(folder) if in_place else beside.Beside(None, "", "", (), 0)
    name = os.path.basename(folder) if in_place and place.is_id(os.path.basename(folder)) else ""
    walk = _Walk(name, said)
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
        walk.problem(_BESIDE, f"{error.message} ({error.where})")
        walk.judge_marks()
        return walk.result(running)
    try:
        for line in lines(fd):
            walk.take(line)
    except OSError as error:
        walk.problem(walk.number + 1, f"cannot be read: {error.strerror}")
    finally:
        os.close(fd)
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


class _Walk:
    """What is known while the lines pass by; each line gets at most one problem, the one that explains it."""

    def __init__(self, session: str, said: beside.Beside) -> None:
        self.session = session
        self.said = said
        self.number = 0
        self.entries = 0
        self.start: Entry | None = None
        self.end: Entry | None = None
        self.last = ""
        self._expected = 0
        self._prev = ""
        self._half = 0
        self._strange: set[str] = set()
        self._problems: list[Problem] = []
        self._count = 0
        self._remarks: list[str] = []
        self._marks: dict[int, list[str]] = {}
        for mark in said.records:
            self._marks.setdefault(mark.seq, []).append(mark.last)

    def problem(self, line: int, what: str) -> None:
        self._count += 1
        if len(self._problems) < PROBLEMS_LIMIT:
            self._problems.append(Problem(line, what))

    def take(self, line: Line) -> None:
        self.number = line.number
        if not line.ended:
            self._half = line.number
            return
        if line.raw is None:
            self._unreadable(f"longer than any entry ({ENTRY_LIMIT} bytes)")
            return
        entry, fault = parse(line.raw)
        if entry is None:
            self._unreadable(f"not an entry: {fault}")
            return
        if not chain.sealed(line.raw):
            self._unreadable("edited: its content does not have the hash that it names")
            return
        fault = self._order(entry) or self._content(entry)
        if fault:
            self.problem(line.number, fault)
        if entry.seq >= self._expected:
            self._accept(entry, digest(line.raw))

    def _unreadable(self, what: str) -> None:
        self.problem(self.number, what)
        self._expected += 1
        self._prev = self.last = ""

    def _order(self, entry: Entry) -> str:
        """How the entry fails to follow the line before it. After an unreadable line only its number can be
        asked for.
        """
        if entry.seq > self._expected:
            return f"entry {entry.seq} is here, but entry {self._expected} should follow: lines are missing"
        if entry.seq < self._expected:
            return (
                f"entry {entry.seq} is here again or out of its place: entry {self._expected} should follow"
            )
        if entry.seq == 0:
            session = str(entry.fields.get("session", ""))
            if entry.prev != chain.first(session):
                return "the first entry does not follow from the id of its session"
        elif self._prev and entry.prev != self._prev:
            return "it does not follow from the line before it: one of the two was put in or replaced"
        return ""

    def _content(self, entry: Entry) -> str:
        if self.end is not None:
            return "an entry after the end entry"
        if (entry.kind == START) != (entry.seq == 0):
            return f"entry {entry.seq} is {entry.kind!r}: {START!r} comes first, and once"
        named = str(entry.fields.get("session", "")) if entry.kind == START else self.session
        if self.session and named != self.session:
            return f"this is the ledger of session {named!r}, not of {self.session!r}"
        return ""

    def _accept(self, entry: Entry, last: str) -> None:
        self.entries += 1
        self._expected = entry.seq + 1
        self._prev = self.last = last
        if entry.kind == START and self.start is None:
            self.start = entry
            self.session = self.session or str(entry.fields.get("session", ""))
        if entry.kind == END:
            self.end = entry
        if entry.kind not in KINDS and len(self._strange) < PROBLEMS_LIMIT:
            self._strange.add(entry.kind)
        if any(named != last for named in self._marks.get(entry.seq, ())):
            self.problem(self.number, f"the index of sessions names another hash for entry {entry.seq}")

    def judge_marks(self) -> None:
        """Compare how far the file goes with how far the head file and the index say that it went."""
        written = self._expected
        cut = f"but the file has {written} entries: its end is cut off"
        known = max((mark.seq for mark in self.said.records), default=-1)
        if known >= written:
            self.problem(_BESIDE, f"the index of sessions knows entry {known}, {cut}")
        if self.said.head_fault:
            self.problem(_BESIDE, f"the head file: {self.said.head_fault}")
        head = self.said.head
        if head is not None and head.seq >= written:
            self.problem(_BESIDE, f"the head file names entry {head.seq}, {cut}")
        elif head is not None and (head.seq, head.last) != (written - 1, self.last):
            self.problem(_BESIDE, "the last line is not the one that the head file names: added or replaced")
        if self.said.record_faults:
            self._remarks.append(f"{self.said.record_faults} lines of the index of sessions cannot be read")
        if head is not None and self.session and self.said.head_session != self.session:
            self.problem(_BESIDE, f"the head file is that of session {self.said.head_session!r}")

    def finish(self, running: bool) -> None:
        self.judge_marks()
        if self._half and (self.end is not None or self.said.head is not None):
            self.problem(self._half, "half a line after the end entry")
        elif self._half:
            self._remarks.append(
                f"line {self._half} is half written: its writer was killed, or writes it now"
            )
        if self.number == 0 and not running:
            if self.said.records or self.said.head is not None:
                self.problem(_BESIDE, "the file is empty: not even a start entry")
            else:
                self._remarks.append(_NOTHING)
        if self.said.head is None and not running and not self.said.head_fault:
            self._remarks.append(_NO_HEAD[self.end is not None])
        if self._strange:
            names = ", ".join(sorted(self._strange))
            self._remarks.append(f"kinds of entry that this version of jail does not know: {names}")

    def result(self, running: bool) -> Result:
        complete = self.end is not None and self._count == 0
        ends = (self.session, self.last, self.start, self.end)
        return Result(
            tuple(self._problems), self._count, tuple(self._remarks), complete, running, self.entries, *ends
        )


_NOTHING: Final = (
    "there is no entry: jail was killed before the first one, which is before anything is executed"
)
_NO_HEAD: Final = {
    True: "no head file beside it: only its own end entry says that nothing follows",
    False: "no head file beside it: a cut tail cannot be ruled out",
}
