"""`jail discard`: what a session holds, forgotten."""

import os

import click

from jail.cli import held
from jail.cli.show import json_option, show, show_json
from jail.hold import choosing, decisions, review, shown
from jail.hold.decisions import Done
from jail.hold.lock import Lock
from jail.hold.review import Review


@click.command(name="discard")
@held.WORDS
@held.ALL_BUT
@click.option("--dry-run", is_flag=True, help="Print what would be discarded, and do nothing.")
@json_option
@click.pass_context
def command(
    context: click.Context, words: tuple[str, ...], *, all_but: bool, dry_run: bool, as_json: bool
) -> None:
    """Forget what SESSION holds, or of it what lies at each PATH. The real files are not touched.

    SESSION is an id or the beginning of one, or `last`; where none is named, the newest that holds changes
    of the workspace that you are in. A PATH is relative to the current folder, or to the
    session's workspace; a folder is all beneath it. What is discarded is gone: the ledger keeps its path
    and its digest alone.

    Of a folder that was replaced by something else, what was in it can go only after that, or with it: then
    what is to be discarded first is said. An apply that was interrupted is finished first.

    \b
    Exit code:
      0    it is discarded, or there was nothing
      1    something that was meant is still held; why, is said
      2    no such session, it still runs, nothing held at a PATH, or the
           command line is wrong
      125  it failed; what is left is still held
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    named = held.named(words)
    folder, paths, manifest = named.folder, named.paths, named.manifest
    if all_but and not paths:
        raise click.UsageError("--all-but needs a PATH.")
    if manifest is None:
        if as_json:
            show_json({"finished": [], "discarded": [], "left": []})
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
        thrown = choosing.thrown(found, choosing.meant(found, paths, os.getcwd(), all_but=all_but))
        if dry_run:
            done = Done((), thrown.taken, thrown.left, "")
        else:
            done = decisions.carry_out(found, discard=thrown.taken, left=thrown.left)
    if as_json:
        show_json(
            {
                "finished": held.finished_objects(found, first),
                "discarded": [shown.as_object(found, change) for change in done.discarded],
                "left": held.left_objects(found, done),
            }
        )
    else:
        _tell(found, done, dry_run=dry_run)
    context.exit(held.EXIT_LEFT if done.left else 0)


def _tell(found: Review, done: Done, *, dry_run: bool) -> None:
    if dry_run:
        held.show_rows(found, list(done.discarded))
    held.show_left(found, done.left)
    if not (done.discarded or done.left):
        show("nothing to discard")
        return
    left = f", {len(done.left)} left" if done.left else ""
    show(f"{len(done.discarded)} {'would be ' if dry_run else ''}discarded{left}")
