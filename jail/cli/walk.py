"""`jail apply --walk`: one change after another, shown and decided by a person.

Rule: only what a person at a terminal types decides; an empty line is no. Nothing is done before the last
answer: who ends the walk by the end of input or by Ctrl-C has done nothing. What can never be applied, and
what is in conflict, is shown and not asked for. What is refused by default is asked for alone, since it is
named by that.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final

import click

from jail.cli.held import show_diff_line
from jail.cli.show import show
from jail.errors import EXIT_USAGE, JailError, printable
from jail.hold import choosing, shown
from jail.hold.change import NEVER, REFUSED, Change
from jail.hold.decisions import Done, carry_out
from jail.hold.review import Review
from jail.report import changes as listing

LINES: Final = 200
"""Lines of one diff that are shown before the question; `v` shows all."""
_ANSWERS: Final = "[y]es [n]o [d]iscard [a]ll of this folder [v]iew all [q]uit [?]"
_HELP: Final = (
    "y: apply it   n (or nothing): leave it held   d: forget it, for ever",
    "a: apply it and all that is still to come in its folder, but for what is refused by default",
    "v: show all of it   q: ask no more; what you said until now is done",
    "the end of input, or Ctrl-C: nothing at all is done",
)
_Ask = Callable[[str], str]


def walk(found: Review, changes: Sequence[Change], ask: _Ask | None = None) -> Done:
    """Ask for each of `changes`, then do what was said. Raises JailError, click.Abort."""
    if ask is None:
        if not sys.stdin.isatty():
            raise JailError(
                "--walk asks a person, and stdin is no terminal",
                where="stdin",
                hint="run it on a terminal, or name the paths: `jail apply SESSION PATH`",
                code=EXIT_USAGE,
            )
        ask = _from_terminal
    taken, thrown, left = _decided(found, changes, ask)
    chosen = choosing.whole(found, taken, left, thrown)
    lost = choosing.thrown(found, thrown)
    return carry_out(found, apply=chosen.taken, discard=lost.taken, left=(*chosen.left, *lost.left))


def _from_terminal(question: str) -> str:
    click.echo(f"{question} ", nl=False)
    line = sys.stdin.readline()
    if not line:
        raise click.Abort
    return line


def _decided(
    found: Review, changes: Sequence[Change], ask: _Ask
) -> tuple[list[Change], list[Change], list[tuple[Change, str]]]:
    taken: list[Change] = []
    thrown: list[Change] = []
    left: list[tuple[Change, str]] = []
    folders: list[str] = []
    for group in _groups(found, changes):
        first = group[0]
        if first.tier == NEVER or first.conflict:
            _show(found, group)
            left.append((first, first.conflict or first.reason))
            continue
        path = found.absolute(first.tree, first.path)
        if first.tier != REFUSED and any(path.startswith(folder) for folder in folders):
            taken += group
            continue
        _show(found, group)
        answer = _answer(found, group, ask)
        if answer == "q":
            break
        if answer == "a":
            folders.append(path[: path.rindex("/") + 1])
        if answer in ("y", "a"):
            taken += group
        elif answer == "d":
            thrown += group
    return taken, thrown, left


def _groups(found: Review, changes: Sequence[Change]) -> Iterator[list[Change]]:
    """What is asked for at once: one change, or the rows that the list tells as one number."""
    rows = [shown.row(found, change) for change in changes]
    for _, places in groupby(listing.ordered(rows), lambda at: listing.told_with(rows[at]) or at):
        yield [changes[at] for at in places]


def _show(found: Review, group: list[Change]) -> None:
    show("")
    if len(group) > 1:
        for row in listing.as_lines([shown.row(found, change) for change in group]):
            show(row.text)
        return
    lines = list(islice(shown.diff(found, group[0]), LINES + 1))
    for line in lines[:LINES]:
        show_diff_line(line)
    if len(lines) > LINES:
        show("… and more: v shows all")


def _answer(found: Review, group: list[Change], ask: _Ask) -> str:
    what = printable(shown.path_of(found, group[0].tree, group[0].path))
    many = f" and {len(group) - 1} more" if len(group) > 1 else ""
    while True:
        answer = ask(f"apply {what}{many}? {_ANSWERS}").strip().lower()[:1] or "n"
        if answer == "v":
            for change in group:
                for line in shown.diff(found, change):
                    show_diff_line(line)
        elif answer in "yndaq":
            return answer
        else:
            for text in _HELP:
                show(text)
