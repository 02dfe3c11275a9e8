"""What the commands about held changes share: whose session, which paths, and how the outcome is told."""

import os
from itertools import islice
from typing import Final, NamedTuple

import click

from jail.cli.show import show
from jail.errors import EXIT_USAGE, JailError
from jail.hold import shown, store, waiting
from jail.hold.change import LETTERS, Change
from jail.hold.decisions import Done
from jail.hold.review import Review
from jail.hold.store import Manifest
from jail.launch import reach
from jail.ledger import place
from jail.ledger.reviewed import resumed_by
from jail.policy.paths import beneath
from jail.report import changes as listing

WORDS = click.argument("words", nargs=-1, metavar="[SESSION] [PATH]...")
"""A session, and paths of what it holds."""
ALL_BUT = click.option("--all-but", is_flag=True, help="All but what lies at each PATH, instead of that.")


class Named(NamedTuple):
    """The folder of the session that is meant, the paths, and what it holds, None for nothing; `of`: how many
    sessions might have been meant, 0 for the newest of all, or one that was named.
    """

    folder: str
    paths: tuple[str, ...]
    manifest: Manifest | None
    of: int = 0

    def tell(self) -> None:
        """Say which session is meant, where it may have been another."""
        if self.of:
            name, several = os.path.basename(self.folder), f" of {self.of}" if self.of > 1 else ""
            show(f"session {name}, the newest{several} with changes of this workspace")


def named(words: tuple[str, ...], *, reading: bool = False) -> Named:
    """What the words mean. Where no session is named, it is the newest with changes of the workspace that the
    current folder lies in; where there is none, the newest of all, but not one with changes of another
    workspace unless they are only read. Raises JailError.

    The first word is a session where it is `last`, `-`, or an id or the beginning of one; `./last` is a path.
    """
    state = reach.state_of(os.environ)
    first = words[0] if words else place.LAST
    known = first in (place.LAST, reach.NEWEST_RUNNING) or place.is_id(first)
    if not known and first[:1].isdigit():
        known = any(name.startswith(first) for name in place.listing(state))
    if not known or not words:
        here = list(waiting.of_workspace(state, "."))
        if here:
            newest = os.path.basename(here[0][0]) == place.listing(state)[0]
            return Named(here[0][0], words, here[0][1], 0 if newest and len(here) == 1 else len(here))
        last = _of(reach.session_named(state, place.LAST), words)
        if not reading:
            _refuse_elsewhere(last)
        return last
    return _of(reach.session_named(state, first), words[1:])


def _of(session: str, paths: tuple[str, ...]) -> Named:
    return Named(session, paths, store.read_manifest(session))


def _refuse_elsewhere(newest: Named) -> None:
    folder, manifest = os.path.realpath("."), newest.manifest
    if manifest is None or beneath(folder, manifest.workspace):
        return
    name = os.path.basename(newest.folder)
    raise JailError(
        "no session holds changes of the workspace that you are in",
        where=folder,
        hint=f"the newest, {name}, is of {manifest.workspace}: name it if you mean it",
        code=EXIT_USAGE,
    )


def show_nothing(folder: str) -> None:
    """Say that a session holds nothing, and which one does."""
    taken = resumed_by(folder)
    why = f"session {taken} went on from it" if taken else "what its command wrote is in place"
    show(f"session {os.path.basename(folder)} holds nothing: {why}")
    sessions = os.path.dirname(folder)
    newest = place.listing(os.path.dirname(sessions))[: waiting.LOOKED_AT]
    other = next((name for name in newest if _waits(os.path.join(sessions, name))), "")
    if other and not taken:
        show(f"the newest that holds changes: jail changes {other}")


def _waits(folder: str) -> bool:
    try:
        return waiting.waits(folder)
    except JailError:
        return True  # `jail changes` says what is wrong with it


def show_rows(review: Review, changes: list[Change], *, every: bool = False) -> None:
    """The list of changes for a person."""
    for line in listing.as_lines([shown.row(review, change) for change in changes], every=every):
        show(line.text, line.word, line.colour)


def show_diff_line(line: str) -> None:
    """A line of a diff."""
    show(line, line[:1], _COLOURS.get(line[:1], ""), tabs=True)


_COLOURS: Final = {"+": "green", "-": "red", "!": "red"}
"""Of the lines of a diff, by how they begin."""


EXIT_LEFT: Final = 1
"""Something that was meant is left as it is: refused, in conflict, or covered by something else."""


def show_finished(first: Done) -> None:
    """What became of an apply that was interrupted."""
    left = f", {len(first.left)} left" if first.left else ""
    show(f"an apply was interrupted, and is finished: {len(first.applied)} applied{left}")


def finished_objects(review: Review, first: Done | None) -> list[dict[str, object]]:
    """The same as objects of JSON."""
    return [] if first is None else [shown.as_object(review, change) for change in first.applied]


def left_objects(review: Review, done: Done) -> list[dict[str, object]]:
    """What was meant and is not done, as objects of JSON."""
    return [{**shown.as_object(review, change), "why": why} for change, why in done.left]


CONFLICT_LINES: Final = 40
"""Lines shown of one conflict when something was applied; there may be thousands of both."""


def show_left(review: Review, left: tuple[tuple[Change, str], ...]) -> None:
    """What was meant and is not done, with both sides of a conflict."""
    for change, why in left:
        show(f"left: {LETTERS[change.what]} {shown.path_of(review, change.tree, change.path)}: {why}")
        if change.conflict and why == change.conflict:
            lines = list(islice(shown.both_sides(review, change), CONFLICT_LINES + 1))
            for line in lines[:CONFLICT_LINES]:
                show(f"    {line}")
            if len(lines) > CONFLICT_LINES:
                show("    … and more: jail changes --diff shows all")
