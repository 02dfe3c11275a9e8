"""`jail gc`: remove what crashes left, and old sessions when asked to."""

import os

import click

from jail.cli.show import json_option, show, show_json
from jail.cli.units import seconds, size
from jail.errors import EXIT_JAIL
from jail.launch import gc, places, reach
from jail.policy.amounts import measured_size


@click.command(name="gc")
@click.option(
    "--older-than",
    metavar="TIME",
    help="Remove sessions that ended, and caches last used, longer ago than TIME, as in 30d.",
)
@click.option(
    "--keep", metavar="SIZE", help="Remove the oldest of both until the rest has at most SIZE, as in 5GiB."
)
@click.option("--held", is_flag=True, help="Remove also sessions that hold changes nobody applied.")
@click.option("--dry-run", is_flag=True, help="Print what would go, and remove nothing.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    older_than: str | None,
    keep: str | None,
    *,
    held: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove what jails that were killed left behind; and with the first two options, old sessions and
    private caches.

    A session goes with its ledger, its output and all that was moved out of the workspace into it; the index
    of sessions keeps that it was there, and that it was removed. One that runs is never touched, nor is the
    cache of its workspace. One that holds changes which nobody applied or discarded is kept, unless you say
    --held. Nothing of a session that ended as it should is removed unless you ask.

    \b
    Exit code:
      0    all of it is gone, but for sessions that are kept for what they hold
      2    the command line is wrong
      125  something could not be removed; what, is printed
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    wishes = gc.Wishes(
        None if older_than is None else seconds("--older-than", older_than, "30d"),
        None if keep is None else size("--keep", keep, '"5 GiB"'),
        dry_run,
        held,
    )
    state = reach.state_of(os.environ)
    cache = places.own(os.environ, places.home(os.environ)).cache
    collected = gc.collect(state, cache, wishes)
    if as_json:
        every = list(collected)
        show_json([_as_object(found, dry_run=dry_run) for found in every])
        context.exit(EXIT_JAIL if any(found.problem for found in every) else 0)
    count, total, failed = 0, 0, False
    for found in collected:
        if found.problem:
            failed = True
            show(f"{found.what}: not removed: {found.problem}")
            continue
        if found.kept:
            show(f"{found.what}: kept: {found.kept}; `jail changes` shows them, --held removes it too")
            continue
        count, total = count + 1, total + found.size
        show(f"{found.what}  {measured_size(found.size)}  {found.why}")
    verb = "would go" if dry_run else "removed"
    show(f"{count} {verb}, {measured_size(total)}" if count else "nothing to remove")
    context.exit(EXIT_JAIL if failed else 0)


def _as_object(found: gc.Found, *, dry_run: bool) -> dict[str, object]:
    what, why, size, problem, kept = found
    gone = not dry_run and not problem and not kept
    return {
        "what": what,
        "why": why,
        "bytes": size,
        "problem": problem or None,
        "kept": kept or None,
        "removed": gone,
    }
