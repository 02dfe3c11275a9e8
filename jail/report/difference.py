r"""Two texts as a unified diff, in a time that nobody who chose the texts can stretch.

Rule: what is shown is a true diff, of the shortest where that is cheap: lines that both texts have once, in
the same order, are the anchors (as in a patience diff); what lies between two anchors is compared by difflib
where it is small, and else shown as all old lines gone and all new ones come. No line is cut: who reviews
sees all of it, or is told that nothing is shown. Lines end at "\n" alone, so a carriage return is seen.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from jail.policy.amounts import measured_size

MOST_BYTES: Final = 1 << 20
"""A side that is longer is not compared line by line: nobody reads that much."""
CONTEXT: Final = 3
SMALL: Final = 10_000
"""Old lines times new lines that difflib gets at once: it may take the square of that."""
BUDGET: Final = 1_000_000
"""The same for all of one diff, a second or two at the worst."""
_NO_NEWLINE: Final = "\\ No newline at end of file"


class _Run(NamedTuple):
    """Lines that are the same: `size` of them, from `old` and `new` on."""

    old: int
    new: int
    size: int


def is_text(content: bytes) -> bool:
    """Whether lines of it mean something: no NUL byte, as git has it (xdiff-interface.c), or a script, which
    runs whatever bytes come later (execve(2)).
    """
    return b"\0" not in content or content.startswith(b"#!")


def difference(old: bytes, new: bytes) -> Iterator[str]:
    """The lines of a unified diff without its two names, or one line that says why there is none."""
    if old == new:
        return
    if is_text(new) and new and not is_text(old):
        yield f"binary before, {measured_size(len(old))}"
        yield from difference(b"", new)
        return
    if not (is_text(old) and is_text(new)):
        yield f"binary, {measured_size(len(old))} → {measured_size(len(new))}"
        return
    if max(len(old), len(new)) > MOST_BYTES:
        yield too_long(len(old), len(new))
        return
    before, after = _lines(old), _lines(new)
    for hunk in _hunks(_pieces(_runs(before, after), len(before), len(after))):
        yield from _hunk_lines(before, after, hunk)


def too_long(old: int, new: int) -> str:
    """What is shown of a file that is too long to be compared: its two sizes."""
    return f"too long to compare line by line, {measured_size(old)} → {measured_size(new)}"


def _lines(content: bytes) -> list[str]:
    r"""Lines with their "\n", so that a missing last one is a difference."""
    parts = content.decode("utf-8", "surrogateescape").split("\n")
    last = parts.pop()
    return [*(f"{part}\n" for part in parts), *([last] if last else [])]


def _runs(old: Sequence[str], new: Sequence[str]) -> list[_Run]:
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    runs = [_Run(0, 0, start)]
    at_old = at_new = 0
    left = BUDGET
    for anchor in (*_anchors(middle_old, middle_new), (len(middle_old), len(middle_new))):
        piece_old, piece_new = middle_old[at_old : anchor[0]], middle_new[at_new : anchor[1]]
        cells = len(piece_old) * len(piece_new)
        if 0 < cells <= min(SMALL, left):
            left -= cells
            matcher = SequenceMatcher(None, piece_old, piece_new, autojunk=False)
            found = matcher.get_matching_blocks()
            runs += [_Run(start + at_old + a, start + at_new + b, size) for a, b, size in found]
        if anchor[0] < len(middle_old):
            runs.append(_Run(start + anchor[0], start + anchor[1], 1))
        at_old, at_new = anchor[0] + 1, anchor[1] + 1
    runs.append(_Run(len(old) - end, len(new) - end, end))
    return [run for run in runs if run.size]


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that both have once, the longest row of them that goes up in both."""
    once = {line for line, count in Counter(old).items() if count == 1}
    places = {line: at for at, line in enumerate(new) if line in once}
    counts = Counter(line for line in new if line in once)
    pairs = [(at, places[line]) for at, line in enumerate(old) if counts.get(line) == 1]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(ends, at)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [at]
        last[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


class _Piece(NamedTuple):
    """Old lines and new ones at one place: the same ones, or others."""

    same: bool
    old: int
    old_end: int
    new: int
    new_end: int


_SAME: Final = True
_OTHER: Final = False


def _pieces(runs: list[_Run], old: int, new: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    at_old = at_new = 0
    for run in (*runs, _Run(old, new, 0)):
        if run.old > at_old or run.new > at_new:
            pieces.append(_Piece(_OTHER, at_old, run.old, at_new, run.new))
        at_old, at_new = run.old + run.size, run.new + run.size
        if run.size and pieces and pieces[-1].same:
            pieces[-1] = pieces[-1]._replace(old_end=at_old, new_end=at_new)
        elif run.size:
            pieces.append(_Piece(_SAME, run.old, at_old, run.new, at_new))
    return pieces


def _hunks(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces that are shown together: those with no more than twice CONTEXT same lines between them."""
    hunk: list[_Piece] = []
    for number, piece in enumerate(pieces):
        if not piece.same:
            hunk.append(piece)
            continue
        head = piece._replace(old_end=piece.old + CONTEXT, new_end=piece.new + CONTEXT)
        tail = piece._replace(old=piece.old_end - CONTEXT, new=piece.new_end - CONTEXT)
        size = piece.old_end - piece.old
        last = number == len(pieces) - 1
        if size > 2 * CONTEXT or ((not hunk or last) and size > CONTEXT):
            if hunk:
                yield [*hunk, head]
            hunk = [] if last else [tail]
        else:
            hunk.append(piece)
    if any(not piece.same for piece in hunk):
        yield hunk


def _hunk_lines(old: Sequence[str], new: Sequence[str], hunk: list[_Piece]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    yield f"@@ -{_span(first.old, last.old_end)} +{_span(first.new, last.new_end)} @@"
    for piece in hunk:
        if piece.same:
            yield from _marked(" ", old[piece.old : piece.old_end])
        else:
            yield from _marked("-", old[piece.old : piece.old_end])
            yield from _marked("+", new[piece.new : piece.new_end])


def _span(start: int, end: int) -> str:
    """As diff -u has it: the line before an empty span, and no count of one."""
    size = end - start
    if size == 1:
        return f"{start + 1}"
    return f"{start + 1 if size else start},{size}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_NEWLINE
