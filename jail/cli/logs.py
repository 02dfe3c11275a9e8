"""`jail logs`: what a session's ledger says, line by line, and the end of what its command printed.

Rule: shown, not judged: `jail verify` tells whether it can be believed. All of it may have been chosen by
what ran inside, so each line is escaped; the bytes as they were go to a file or a pipe only.
"""

import os
import sys
import time
from collections.abc import Iterator
from itertools import chain
from typing import Final

import click

from jail.cli.show import json_option, moment, show, show_json
from jail.errors import EXIT_USAGE, JailError, say
from jail.launch import kept, reach
from jail.ledger import place
from jail.ledger.entries import END, ENTRY_LIMIT
from jail.ledger.lines import Line, lines, open_regular, parse
from jail.ledger.reviewed import review_lines
from jail.ledger.writer import LEDGER
from jail.report.words import sentence

POLL: Final = 0.2
"""Seconds between two looks at a ledger that grows."""
OUTPUT_LIMIT: Final = 4 * kept.HALF
"""Bytes read of one file of output: ours have less; one that somebody else put there may have any size."""


@click.command(name="logs")
@click.argument("session", metavar="SESSION")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until the session has ended.")
@json_option
@click.option("--output", is_flag=True, help="Print the end of what the command printed, instead of entries.")
@click.option("--raw", is_flag=True, help="With --output: the bytes as they were; not to a terminal.")
def command(session: str, *, follow: bool, as_json: bool, output: bool, raw: bool) -> None:
    """Print what the ledger of SESSION says: time (UTC) and words, one line an entry; then what became of the
    changes that it held.

    SESSION is an id or the beginning of one, `last`, or `-` for the newest session that runs.

    With --output, the last 4 to 8 MiB that the command printed on its pipes or its terminal (of a flood above
    4 MiB a second the last one or two); what goes to /dev/null, and what joined commands print, is not kept.
    Each line is escaped, so that it cannot steer your terminal. With --json each entry is one line of JSON.

    \b
    Exit code:
      0    all of it is printed
      2    no such session, or the command line is wrong
      125  the record cannot be read
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    if output and (follow or as_json):
        raise click.UsageError("--output goes with neither --follow nor --json.")
    if raw and not output:
        raise click.UsageError("--raw is for --output.")
    folder = reach.session_named(reach.state_of(os.environ), session)
    if output:
        _show_output(folder, raw=raw)
        return
    for line in chain(_lines(folder, follow=follow), review_lines(folder)):
        _show(line, as_json=as_json)


def _show(line: Line, *, as_json: bool) -> None:
    entry, fault = (None, "too long") if line.raw is None else parse(line.raw)
    if as_json:
        found = {"line": line.number, "fault": fault} if entry is None else entry._asdict()
        show_json(found)
    elif entry is None:
        show(f"line {line.number} is no entry: {fault}")
    else:
        show(f"{moment(entry.time)}  {sentence(entry.kind, entry.fields)}")
    sys.stdout.flush()


def _lines(folder: str, *, follow: bool) -> Iterator[Line]:
    """The whole lines of the ledger; with `follow` those to come, until the session is over."""
    fd = open_regular(os.path.join(folder, LEDGER))
    number = at = 0
    try:
        while True:
            runs = follow and place.running(
                folder
            )  # asked first: what it writes at its end is read after that
            for line in lines(fd):
                if not line.ended and runs:
                    break
                number += 1
                at += len(line.raw or b"") + 1
                yield line._replace(number=number)
                if line.raw is not None and len(line.raw) <= ENTRY_LIMIT and _is_end(line.raw):
                    return
            if not runs:
                return
            os.lseek(fd, at, os.SEEK_SET)
            time.sleep(POLL)
    finally:
        os.close(fd)


def _is_end(raw: bytes) -> bool:
    entry = parse(raw)[0]
    return entry is not None and entry.kind == END


def _show_output(folder: str, *, raw: bool) -> None:
    if raw and sys.stdout.isatty():
        hint = "leave --raw out, or send it on: `jail logs --output --raw SESSION > FILE`"
        raise JailError(
            "the bytes that a command printed could steer this terminal",
            where="--raw",
            hint=hint,
            code=EXIT_USAGE,
        )
    pieces = [_content(os.path.join(folder, name)) for name in (kept.OLD, kept.NAME)]
    if pieces == [None, None]:
        say("no output of this session is kept: it printed nothing, or to /dev/null")
        return
    whole = b"".join(piece for piece in pieces if piece)
    if raw:
        sys.stdout.buffer.write(whole)
        sys.stdout.flush()
        return
    for line in whole.removesuffix(b"\n").split(b"\n"):
        show(line.removesuffix(b"\r").decode("utf-8", "surrogateescape"))


def _content(path: str) -> bytes | None:
    try:
        fd = open_regular(path)
    except JailError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    with open(fd, "rb") as file:
        return file.read(OUTPUT_LIMIT)
