"""`jail discard`: what a session holds, forgotten."""

import os

import click

from jail.cli import held
from jail.cli.show import json_option, show, show_json
from jail.hold import choosing, decisions, review, shown, store
from jail.hold.lock import Lock


@click.command(name="discard")
@held.WORDS
@held.ALL_BUT
@click.option("--dry-run", is_flag=True, help="Print what would be discarded, and do nothing.")
@json_option
def command(words: tuple[str, ...], *, all_but: bool, dry_run: bool, as_json: bool) -> None:
    """Forget what SESSION holds, or of it what lies at each PATH. The real files are not touched.

    SESSION is an id or the beginning of one, or `last`; where none is named, the newest that holds changes
    of the workspace that you are in, else the last. A PATH is relative to the current folder, or to the
    session's workspace; a folder is all beneath it. What is discarded is gone: the ledger keeps its path
    and its digest alone.

    \b
    Exit code:
      0    it is discarded, or there was nothing
      2    no such session, it still runs, nothing held at a PATH, or the
           command line is wrong
      125  it failed; what is left is still held
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    folder, paths = held.named(words)
    if all_but and not paths:
        raise click.UsageError("--all-but needs a PATH.")
    manifest = store.read_manifest(folder)
    if manifest is None:
        if as_json:
            show_json({"discarded": []})
        else:
            held.holds(folder)
        return
    with Lock(folder):
        if not dry_run:
            decisions.finished(folder, manifest)
        found = review.reviewed(folder)
        meant = choosing.meant(found, paths, os.getcwd(), all_but=all_but)
        thrown = choosing.without_filled(found, meant)
        if not dry_run:
            decisions.carry_out(found, discard=thrown)
    if as_json:
        show_json({"discarded": [shown.as_object(found, change) for change in thrown]})
        return
    if dry_run:
        held.show_rows(found, list(thrown))
    show(f"{len(thrown)} {'would be ' if dry_run else ''}discarded" if thrown else "nothing to discard")
