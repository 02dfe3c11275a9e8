"""`jail apply`: what a session holds, onto the host."""

import os

import click

from jail.cli import held, walk
from jail.cli.show import json_option, show, show_json
from jail.errors import JailError
from jail.hold import choosing, decisions, review, shown
from jail.hold.decisions import Done
from jail.hold.lock import Lock
from jail.hold.review import Review


@click.command(name="apply")
@held.WORDS
@held.ALL_BUT
@click.option("--walk", "walking", is_flag=True, help="Show one change after another, and ask for each.")
@click.option("--dry-run", is_flag=True, help="Print what would be applied and what not, and do nothing.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    words: tuple[str, ...],
    *,
    all_but: bool,
    walking: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Apply what SESSION holds to the real files, or of it what lies at each PATH. An error undoes all of it;
    what is refused or in conflict is left (exit code 1), and the rest applied.

    SESSION is an id or the beginning of one, or `last`; where none is named, the newest that holds changes
    of the workspace that you are in. A PATH is relative to the current folder, or to the
    session's workspace; a folder is all beneath it.

    What `jail changes` lists as refused is applied only where PATH is its own name: no folder above it
    counts, nor does --all-but. What can never be applied is not. Where the host changed a file since the run
    began, that file is left as it is, both sides are shown, and what is held stays held. Of git's settings
    the keys that are offered are put into your config as it is now, and no other.

    A folder that is new comes along with what is in it; setuid bits and extended attributes do not. An apply
    that was interrupted is finished first, then the list is made anew.

    \b
    Exit code:
      0    it is applied, or there was nothing to apply
      1    something that was meant was left: refused or in conflict
      2    no such session, it still runs, another one that runs writes
           the same files, nothing held at a PATH, or the command line
           is wrong
      125  it failed: the real files are as they were, or the next
           `jail apply` finishes it; which, is said
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    if walking and (dry_run or as_json):
        raise click.UsageError("--walk asks a person: it goes with neither --dry-run nor --json.")
    named = held.named(words)
    folder, paths, manifest = named.folder, named.paths, named.manifest
    if all_but and not paths:
        raise click.UsageError("--all-but needs a PATH.")
    if manifest is None:
        if as_json:
            show_json({"finished": [], "applied": [], "discarded": [], "left": []})
        else:
            held.show_nothing(folder)
        return
    if not as_json:
        named.tell()
    with Lock(folder):
        first = None if dry_run else decisions.finished(folder, manifest)
        if first is not None and not as_json:
            held.show_finished(first)
        found = review.reviewed(folder)
        if walking:
            done = walk.walk(found, choosing.meant(found, paths, os.getcwd()))
        else:
            chosen = choosing.chosen(found, paths, os.getcwd(), all_but=all_but)
            done = _planned(chosen) if dry_run else decisions.carry_out(found, chosen.taken, left=chosen.left)
    if as_json:
        show_json({"finished": held.finished_objects(found, first), **_as_object(found, done)})
    else:
        _tell(found, done, dry_run=dry_run)
    if done.problem:
        raise JailError(done.problem, where=folder, hint="what was chosen is applied; `jail apply` tidies up")
    context.exit(held.EXIT_LEFT if done.left else 0)


def _planned(chosen: choosing.Chosen) -> Done:
    return Done(chosen.taken, (), chosen.left, "")


def _tell(found: Review, done: Done, *, dry_run: bool) -> None:
    if dry_run:
        held.show_rows(found, list(done.applied))
    held.show_left(found, done.left)
    if not (done.applied or done.discarded or done.left):
        show("nothing to apply")
        return
    parts = [f"{len(done.applied)} {'would be ' if dry_run else ''}applied"]
    parts += [f"{len(done.discarded)} discarded"] if done.discarded else []
    parts += [f"{len(done.left)} left"] if done.left else []
    show(", ".join(parts))


def _as_object(found: Review, done: Done) -> dict[str, object]:
    return {
        "applied": [shown.as_object(found, change) for change in done.applied],
        "discarded": [shown.as_object(found, change) for change in done.discarded],
        "left": held.left_objects(found, done),
    }
