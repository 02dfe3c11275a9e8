"""Is a session's review ledger what jail wrote, and is it all of it?

Rule: two answers, as it has no end: all that is there is as jail wrote it, or it is broken, with the lines.
Its marks (heads.py) were put when a review was closed, so all that they name must be there; entries that
follow them are those of a writer that was killed, or that writes now.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.ledger import beside, heads, place
from jail.ledger.entries import APPLYING, RESUMED, REVIEW_KINDS, SETTLED
from jail.ledger.judging import BESIDE, Problem, Walk
from jail.ledger.lines import Entry, Line, lines, open_regular, parse
from jail.ledger.review import NOTE, REVIEW


class Reviewed(NamedTuple):
    """What `verify` found; the fields are those of reader.Result. `interrupted`: an apply has no end."""

    problems: tuple[Problem, ...]
    problem_count: int
    remarks: tuple[str, ...]
    entries: int
    last: str
    interrupted: bool = False


def verify(folder: str) -> Reviewed | None:
    """Check the review ledger in the session's `folder`; None where there never was one."""
    said = beside.read(folder, heads.REVIEW)
    path = os.path.join(folder, REVIEW)
    walk = _ReviewWalk(os.path.basename(folder), said)
    if not os.path.lexists(path):
        if not said.records and said.head is None and not said.head_fault:
            return None
        walk.problem(BESIDE, f"there is none: {path}")
        walk.judge_marks()
        return walk.result()
    try:
        fd = open_regular(path)
    except JailError as error:
        walk.problem(BESIDE, f"{error.message} ({error.where})")
        return walk.result()
    walk.take_all(fd)
    walk.judge_marks()
    return walk.result()


def review_lines(folder: str) -> Iterator[Line]:
    """The lines of a session's review ledger, unjudged; none where there is none. Raises JailError."""
    path = os.path.join(folder, REVIEW)
    if not os.path.lexists(path):
        return
    fd = open_regular(path)
    try:
        yield from lines(fd)
    finally:
        os.close(fd)


def resumed_by(folder: str) -> str:
    """The session that went on from the one in `folder`, as its review ledger says, unjudged; "" for none."""
    taken = ""
    for line in review_lines(folder):
        entry = parse(line.raw)[0] if line.raw is not None else None
        if entry is not None and entry.kind == RESUMED and place.is_id(entry.fields.get("by")):
            taken = str(entry.fields["by"])
    return taken


def open_applies(folder: str) -> list[str]:
    """The ids of applies in the review ledger that have no end, unjudged."""
    found: dict[str, None] = {}
    for line in review_lines(folder):
        if line.raw is None or (b'"applying"' not in line.raw and b'"settled"' not in line.raw):
            continue
        entry = parse(line.raw)[0]
        if entry is not None:
            _take_apply(found, entry)
    return list(found)


def _take_apply(found: dict[str, None], entry: Entry) -> None:
    apply = entry.fields.get("apply")
    if entry.kind == APPLYING and isinstance(apply, str):
        found[apply] = None
    elif entry.kind == SETTLED and isinstance(apply, str):
        found.pop(apply, None)


class _ReviewWalk(Walk):
    """A chain that has no start and no end of its own."""

    def __init__(self, session: str, said: beside.Beside) -> None:
        super().__init__(session, said, REVIEW_KINDS | {NOTE}, heads.REVIEW)
        head = said.head
        self._head = head.seq if head is not None else -1
        self._at_head = ""
        self._applies: dict[str, None] = {}

    def take(self, line: Line) -> None:
        before = self.expected
        super().take(line)
        if before <= self._head < self.expected:
            self._at_head = self.last

    def accepted(self, entry: Entry) -> None:
        _take_apply(self._applies, entry)

    def first_of(self, entry: Entry) -> str:  # noqa: ARG002 - no entry of it names the session
        return self.session

    def judge_head(self, head: beside.Mark) -> None:
        if head.last != self._at_head:
            self.problem(BESIDE, f"entry {head.seq} is not the one that the head file names: replaced")
        elif head.seq < self.expected - 1:
            more = self.expected - 1 - head.seq
            self.remarks.append(f"{more} entries after the last mark: {_KILLED}")

    def result(self) -> Reviewed:
        if self.half:
            self.remarks.append(f"line {self.half} is half written: {_KILLED}")
        if self.said.head is None and self.entries and not self.said.head_fault:
            self.remarks.append("no head file beside it: a cut tail cannot be ruled out")
        self.tell_strange()
        return Reviewed(
            tuple(self.problems),
            self.count,
            tuple(self.remarks),
            self.entries,
            self.last,
            bool(self._applies),
        )


_KILLED: Final = "the writer was killed, or writes now"
