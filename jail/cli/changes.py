"""`jail changes`: what a session holds, and what of it should be looked at."""

import os
from typing import Final

import click

from jail.cli import held
from jail.cli.show import json_option, show, show_json
from jail.hold import apply, choosing, review, shown
from jail.hold.change import NEVER, REFUSED, Change
from jail.hold.review import Review
from jail.ledger import place
from jail.report import changes as listing


@click.command(name="changes")
@held.WORDS
@click.option("--diff", is_flag=True, help="Show what changed in each, as `diff -u` does.")
@click.option("--all", "every", is_flag=True, help="List every change: no additions are left out.")
@json_option
def command(words: tuple[str, ...], *, diff: bool, every: bool, as_json: bool) -> None:
    """List what SESSION holds, or of it what lies at each PATH; nothing is applied.

    SESSION is an id or the beginning of one, `last`, or `-` for the newest that runs; where none is named,
    the newest that holds changes of the workspace that you are in, else the last. A PATH is relative to the
    current folder, or to the session's workspace; a folder is all beneath it.

    \b
    Each change has a letter:
      A  added       M  modified      D  deleted    R  renamed
      T  of another kind              m  its mode   t  its time
      S  settings of git that were there before, told key by key

    First come those that cannot be applied (devices, odd names, keys of git that never arrive), those that
    are refused unless you name them (hooks, what sends git or python elsewhere, what the next agent obeys,
    commands that shadow others in PATH), and those that run on somebody's machine (CI files, Makefiles,
    package scripts, new sources of lock files). Then which branches and tags of git moved, what is deleted,
    and whose kind or mode is another. All of these are listed, whatever their number; of the others the
    first.

    With --json each change is one line: path, what, source, tier (never, refused, warned, plain), reason,
    conflict; old, new and host, each with kind, mode, bytes, mtime_ns and sha256; refs, what of git's
    branches and tags it moves; and of git's settings which are offered and which are refused.

    \b
    Exit code:
      0    it is listed, also when there is nothing
      2    no such session, nothing held at a PATH, or the command line is wrong
      125  what is held cannot be read
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    if diff and as_json:
        raise click.UsageError("--diff is for people, --json for programs: give one of them.")
    named = held.named(words, reading=True)
    folder, paths, manifest = named.folder, named.paths, named.manifest
    if manifest is None:
        if not as_json:
            held.show_nothing(folder)
        return
    if not as_json:
        named.tell()
    found = review.reviewed(folder, manifest)
    changes = list(choosing.meant(found, paths, os.getcwd()))
    if as_json:
        for change in changes:
            show_json(shown.as_object(found, change))
        return
    if diff:
        _show_diffs(found, changes)
    else:
        held.show_rows(found, changes, every=every)
    _show_next(found, changes)


NOTHING_READY: Final = "nothing of it can be applied as it is"


def _show_diffs(found: Review, changes: list[Change]) -> None:
    rows = [shown.row(found, change) for change in changes]
    for at in listing.ordered(rows):
        for line in shown.diff(found, changes[at]):
            held.show_diff_line(line)
        show("")


def _show_next(found: Review, changes: list[Change]) -> None:
    name = os.path.basename(found.folder)
    if place.running(found.folder):
        show(f"session {name} is running: what it holds may change until it ends")
    elif apply.unfinished(found.folder):
        show(f"an apply was interrupted: `jail apply {name}` finishes it first")
    elif ready := sum(1 for each in changes if each.tier not in (NEVER, REFUSED) and not each.conflict):
        show(f"`jail apply {name}` applies {ready} of them, `jail apply --walk {name}` asks for each")
    elif changes:
        forget = f"jail discard {name}" + (" PATH" if len(changes) < len(found.changes) else "")
        named = any(each.tier == REFUSED and not each.conflict for each in changes)
        how = f"only what is named can be applied: `jail apply {name} PATH`" if named else NOTHING_READY
        show(f"{how}; `{forget}` forgets it")
