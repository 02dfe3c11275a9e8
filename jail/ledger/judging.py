"""A chain of entries, judged line by line while it passes by.

Rule: whatever the bytes are, they become problems with their line and never an exception; each line gets at
most one problem, the one that explains it. What each ledger asks beyond the chain (which kinds, where it
ends, what its marks must name) is in `reader` and `reviewed`.
"""

import os
from typing import Final, NamedTuple

from jail.kernel.digest import sha256_hex as digest
from jail.ledger import beside, chain
from jail.ledger.entries import ENTRY_LIMIT
from jail.ledger.lines import Entry, Line, lines, parse

PROBLEMS_LIMIT: Final = 20
"""Problems kept; the rest are counted. A file of garbage must not fill the memory of who looks at it."""
BESIDE: Final = 0
"""Line number of a problem that is not in a line of the ledger."""


class Problem(NamedTuple):
    """What is wrong, at which line (from 1; 0: not in a line)."""

    line: int
    what: str


class Walk:
    """What is known while the lines of one ledger pass by; `of` as in chain.first, `kinds` are those that it
    may have.
    """

    def __init__(self, session: str, said: beside.Beside, kinds: frozenset[str], of: str = "") -> None:
        self.session = session
        self.said = said
        self.number = 0
        self.entries = 0
        self.last = ""
        self.half = 0
        self.expected = 0
        self.problems: list[Problem] = []
        self.count = 0
        self.remarks: list[str] = []
        self._of = of
        self._kinds = kinds
        self._prev = ""
        self._strange: set[str] = set()
        self._marks: dict[int, list[str]] = {}
        for mark in said.records:
            self._marks.setdefault(mark.seq, []).append(mark.last)

    def problem(self, line: int, what: str) -> None:
        """Keep a problem, up to PROBLEMS_LIMIT."""
        self.count += 1
        if len(self.problems) < PROBLEMS_LIMIT:
            self.problems.append(Problem(line, what))

    def take_all(self, fd: int) -> None:
        """Judge each line of an open ledger, and close it."""
        try:
            for line in lines(fd):
                self.take(line)
        except OSError as error:
            self.problem(self.number + 1, f"cannot be read: {error.strerror}")
        finally:
            os.close(fd)

    def take(self, line: Line) -> None:
        """Judge the next line."""
        self.number = line.number
        if not line.ended:
            self.half = line.number
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
        fault = self._order(entry) or self.content(entry)
        if fault:
            self.problem(line.number, fault)
        if entry.seq >= self.expected:
            self._accept(entry, digest(line.raw))

    def content(self, entry: Entry) -> str:  # noqa: ARG002 - for the ledgers that ask more
        """What is wrong with an entry whose place in the chain is right, "" for nothing."""
        return ""

    def accepted(self, entry: Entry) -> None:
        """An entry was taken as one of the chain."""

    def first_of(self, entry: Entry) -> str:
        """The id of the session from which the first entry must follow."""
        return str(entry.fields.get("session", ""))

    def _unreadable(self, what: str) -> None:
        self.problem(self.number, what)
        self.expected += 1
        self._prev = self.last = ""

    def _order(self, entry: Entry) -> str:
        """How the entry fails to follow the line before it. After an unreadable line only its number can be
        asked for.
        """
        if entry.seq > self.expected:
            return f"entry {entry.seq} is here, but entry {self.expected} should follow: lines are missing"
        if entry.seq < self.expected:
            return f"entry {entry.seq} is here again or out of its place: entry {self.expected} should follow"
        if entry.seq == 0:
            if entry.prev != chain.first(self.first_of(entry), self._of):
                return "the first entry does not follow from the id of its session"
        elif self._prev and entry.prev != self._prev:
            return "it does not follow from the line before it: one of the two was put in or replaced"
        return ""

    def _accept(self, entry: Entry, last: str) -> None:
        self.entries += 1
        self.expected = entry.seq + 1
        self._prev = self.last = last
        self.accepted(entry)
        if entry.kind not in self._kinds and len(self._strange) < PROBLEMS_LIMIT:
            self._strange.add(entry.kind)
        if any(named != last for named in self._marks.get(entry.seq, ())):
            self.problem(self.number, f"the index of sessions names another hash for entry {entry.seq}")

    def judge_marks(self) -> None:
        """Compare how far the file goes with how far the head file and the index say that it went."""
        cut = f"but the file has {self.expected} entries: its end is cut off"
        known = max((mark.seq for mark in self.said.records), default=-1)
        if known >= self.expected:
            self.problem(BESIDE, f"the index of sessions knows entry {known}, {cut}")
        if self.said.head_fault:
            self.problem(BESIDE, f"the head file: {self.said.head_fault}")
        head = self.said.head
        if head is not None and head.seq >= self.expected:
            self.problem(BESIDE, f"the head file names entry {head.seq}, {cut}")
        elif head is not None:
            self.judge_head(head)
        if self.said.record_faults:
            self.remarks.append(f"{self.said.record_faults} lines of the index of sessions cannot be read")
        if head is not None and self.session and self.said.head_session != self.session:
            self.problem(BESIDE, f"the head file is that of session {self.said.head_session!r}")

    def judge_head(self, head: beside.Mark) -> None:
        """The head file names an entry that is there: is it the one?"""

    def tell_strange(self) -> None:
        """The last remark: kinds that this ledger does not have."""
        if self._strange:
            names = ", ".join(sorted(self._strange))
            self.remarks.append(f"kinds of entry that this version of jail does not know: {names}")
