"""The changes that a session holds, as lines for a person.

Rule: what will run on somebody's machine comes first, then what a list of additions would hide: what is gone,
what is of another kind, whose mode is another. Of these every one is shown, whatever their number; only
renames, edits, additions and times are cut at `MOST`, with a count. Each change stands once, in the first
group that it belongs to. Linear in the changes. Paths and reasons hold what a program chose: they are escaped
here, since columns are measured, and once more by who prints them, which changes nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from jail.errors import printable
from jail.plan.autoexec import NEVER, REFUSED, WARNED
from jail.policy.amounts import measured_size

MOST: Final = 60
"""Rows of a group that may be cut: a person reads tens; `--all` and `--json` have the others."""
PATH_WIDTH: Final = 48
"""Columns for paths before what is said of them; longer ones push it to the right."""

CONFLICT: Final = "conflict"
MODE: Final = "m"
REFS: Final = "refs"


class Row(NamedTuple):
    """One change, as it is shown. `letter` as jail.hold.change has it; `path` as it would be typed; `tier`:
    NEVER, REFUSED, WARNED or ""; `reason` for the tier; `conflict`: why it cannot be applied now, or "";
    `detail`: what is worth knowing besides; `mode`: "0644 → 0755" where that changed too; `size`: bytes that
    would be written; `fold`: a folder that a program fills, whose rows are told as one number where nothing
    must be seen to the last one, or ""; `moves`: what of git's refs it moves, a line each.
    """

    letter: str
    path: str
    tier: str = ""
    reason: str = ""
    conflict: str = ""
    detail: str = ""
    mode: str = ""
    size: int = 0
    fold: str = ""
    moves: tuple[str, ...] = ()


class Line(NamedTuple):
    """`text`, of which the first `word` has the `colour`, where colours are wanted."""

    text: str
    word: str = ""
    colour: str = ""


class _Group(NamedTuple):
    heading: str
    in_sum: str
    colour: str
    whole: bool = True
    folds: bool = False


_GROUPS: Final = {
    NEVER: _Group("cannot be applied", "that cannot be applied", "red"),
    REFUSED: _Group("refused: applied only when named, word for word", "refused unless named", "red"),
    WARNED: _Group(
        "look at these: they run on somebody's machine, or lead out", "to look at", "yellow", folds=True
    ),
    CONFLICT: _Group("in conflict with the host, which is left as it is", "in conflict", "red"),
    REFS: _Group(
        "branches, tags and HEAD of git: what they carry is not judged here",
        "that move refs of git",
        "yellow",
    ),
    "D": _Group("deleted", "deleted", "red"),
    "T": _Group("of another kind than before", "of another kind", "yellow"),
    MODE: _Group("mode changed", "of another mode", "yellow"),
    "S": _Group("settings of git", "settings of git", ""),
    "R": _Group("renamed", "renamed", "", whole=False, folds=True),
    "M": _Group("modified", "modified", "", whole=False, folds=True),
    "A": _Group("added", "added", "green", whole=False, folds=True),
    "t": _Group("only touched", "only touched", "", whole=False, folds=True),
}
"""Groups in the order in which they are shown."""


def group_of(row: Row) -> str:
    """The group that a row is shown in."""
    if row.tier in (NEVER, REFUSED):
        return row.tier
    if row.conflict:
        return CONFLICT
    if row.moves:
        return row.tier or REFS
    return row.tier or (MODE if row.mode else row.letter)


def told_with(row: Row) -> str:
    """The folder that a row is told with as one number; "" for one that has a line of its own."""
    return row.fold if _GROUPS[group_of(row)].folds else ""


def as_lines(rows: Sequence[Row], *, every: bool = False) -> Iterator[Line]:
    """The list of `rows`, in their order within each group, and its sum; with `every` nothing is cut."""
    if not rows:
        yield Line("no changes")
        return
    groups: dict[str, list[Row]] = {name: [] for name in _GROUPS}
    for row in rows:
        groups[group_of(row)].append(row)
    for name, found in groups.items():
        if found:
            yield from _group_lines(_GROUPS[name], found, every=every)
    yield Line(_sum(rows, {name: len(found) for name, found in groups.items()}))


def ordered(rows: Sequence[Row]) -> list[int]:
    """The places of `rows` in the order in which they are shown."""
    rank = {name: place for place, name in enumerate(_GROUPS)}
    return sorted(range(len(rows)), key=lambda place: rank[group_of(rows[place])])


def _group_lines(group: _Group, rows: list[Row], *, every: bool) -> Iterator[Line]:
    yield Line(f"{group.heading} ({len(rows)})", group.heading, group.colour)
    folded = Counter(() if every else map(told_with, rows))
    shown = [row for row in rows if every or not told_with(row) or folded[told_with(row)] == 1]
    kept = shown if group.whole or every else shown[:MOST]
    cells = [(row.letter, printable(_path(row)), printable(_said(row)), row.moves) for row in kept]
    width = min(PATH_WIDTH, max((len(path) for _, path, _, _ in cells), default=0))
    for letter, path, said, moves in cells:
        yield Line(
            f"  {letter}  {path.ljust(width) if said else path}  {said}".rstrip(), letter, group.colour
        )
        for move in moves if len(moves) > 1 else ():
            yield Line(f"       {printable(move)}")
    for folder, count in folded.items():
        if folder and count > 1:
            yield Line(f"  {count} in {printable(folder)}: --all lists them")
    if len(kept) < len(shown):
        yield Line(f"  and {len(shown) - len(kept)} more: --all lists them")


def _path(row: Row) -> str:
    return row.path or "."


def _said(row: Row) -> str:
    return "; ".join(text for text in (row.reason, row.conflict, row.detail, row.mode) if text)


def _sum(rows: Sequence[Row], counts: dict[str, int]) -> str:
    parts = [f"{count} {_GROUPS[name].in_sum}" for name, count in counts.items() if count]
    noun = "change" if len(rows) == 1 else "changes"
    return f"{len(rows)} {noun}: {', '.join(parts)}; {measured_size(sum(row.size for row in rows))} to write"
