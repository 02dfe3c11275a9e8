"""`jail verify`: is this ledger what jail wrote, and is it all of it?

Rule: the first word of the first line is the answer, and the exit code says the same.
"""

import os
from typing import Any, Final

import click

from jail.cli.show import json_option, moment, show, show_json
from jail.errors import JailError
from jail.hold import waiting
from jail.launch import reach
from jail.ledger import place
from jail.ledger.reader import Result, verify
from jail.ledger.reviewed import Reviewed
from jail.report.words import command_text

EXIT_CODES: Final = {"intact": 0, "broken": 1, "incomplete": 3, "removed": 4}
_HEADLINES: Final = {
    "intact": "intact: every entry from start to end is as jail wrote it",
    "broken": "BROKEN: this ledger is not as jail wrote it",
    "incomplete": "incomplete: what is there is as jail wrote it, but it has no end",
    "removed": "removed: `jail gc` took this session away, with its ledger",
}

_INTERRUPTED: Final = "incomplete: an apply was interrupted"
_APPLIED_NOW: Final = "incomplete: changes that this session holds are being applied now"


@click.command(name="verify")
@click.argument("what", metavar="SESSION|PATH")
@json_option
@click.pass_context
def command(context: click.Context, what: str, *, as_json: bool) -> None:
    """Check that a session's ledger, and the one of its review, are whole and unchanged.

    SESSION is an id or the beginning of one, `last`, or `-` for the newest session that runs; PATH is a
    session's folder or a ledger file.

    \b
    Exit code:
      0  intact: whole and unchanged, from its start to its end
      1  broken: changed, cut or missing; where is printed
      2  no such session
      3  incomplete: unchanged so far, but without an end: the session
         runs, or it crashed, or the end was cut off; or an apply of
         what it held was interrupted
      4  removed by `jail gc`: nothing is left to check

    A copy of the ledger file alone can be checked too; then nothing beside it tells whether its end was cut
    off. A process of your own user outside of any jail can make a whole new ledger that verifies; nothing
    inside a jail can reach it.
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    path = _resolve(what)
    result = verify(path)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if place.is_id(os.path.basename(os.path.abspath(folder))) and waiting.interrupted(folder):
        result = result._replace(interrupted=True)
    if as_json:
        show_json(as_object(result))
    else:
        for line in as_lines(result):
            show(line)
    context.exit(EXIT_CODES[result.state])


def as_object(result: Result) -> dict[str, Any]:
    """`result` as the object that --json prints."""
    return {
        "state": result.state,
        "running": result.running,
        "interrupted": result.interrupted,
        "removed": result.removed or None,
        "session": result.session,
        "entries": result.entries,
        "last": result.last,
        "problems": [{"line": line, "what": what} for line, what in result.problems],
        "problem_count": result.problem_count,
        "remarks": list(result.remarks),
        "start": None if result.start is None else {"time": result.start.time, **result.start.fields},
        "end": None if result.end is None else {"time": result.end.time, **result.end.fields},
        "review": None if result.review is None else _review_object(result.review),
    }


def _review_object(found: Reviewed) -> dict[str, Any]:
    return {
        "entries": found.entries,
        "last": found.last,
        "problems": [{"line": line, "what": what} for line, what in found.problems],
        "problem_count": found.problem_count,
        "remarks": list(found.remarks),
    }


def _faults(found: Result | Reviewed, where: str) -> list[str]:
    """What is wrong with one ledger; `where` stands before it."""
    shown = [f"  {where}line {line}: {what}" if line else f"  {where}{what}" for line, what in found.problems]
    if found.problem_count > len(found.problems):
        shown.append(f"  {where}and {found.problem_count - len(found.problems)} more")
    return [*shown, *(f"  {where}note: {remark}" for remark in found.remarks)]


def as_lines(result: Result) -> list[str]:
    """`result` for a person: the answer, what is wrong, what the session was."""
    still = " yet: the session is running" if result.running and result.state == "incomplete" else ""
    headline = _HEADLINES[result.state] + still
    if result.state == "incomplete" and result.complete:
        headline = (
            _APPLIED_NOW if result.running else f"{_INTERRUPTED}; `jail apply {result.session}` finishes it"
        )
    shown = [headline]
    if result.interrupted and not result.complete:
        shown.append(f"  note: an apply was interrupted; `jail apply {result.session}` finishes it")
    shown += _faults(result, "")
    shown += _faults(result.review, "review: ") if result.review is not None else []
    shown.append(f"session    {result.session or '?'}")
    if result.removed:
        return [*shown, f"removed    {moment(result.removed)} UTC"]
    shown.append(f"entries    {result.entries}{_of_review(result.review)}")
    if result.start is not None:
        fields = result.start.fields
        shown.append(f"started    {moment(result.start.time)} UTC")
        shown.append(f"command    {command_text(fields.get('command'))}")
        shown.append(f"workspace  {fields.get('workspace')}")
        shown.append(f"policy     {fields.get('policy')}  {fields.get('policy_digest')}")
    if result.end is not None:
        fields = result.end.fields
        how = f"exit {fields.get('exit')}, {fields.get('reason')}"
        shown.append(f"ended      {moment(result.end.time)} UTC, {how}")
    return shown


def _of_review(found: Reviewed | None) -> str:
    return "" if found is None else f", and {found.entries} of its review"


def _resolve(what: str) -> str:
    """The path that SESSION|PATH means: a path if it has a slash, else a session, else a file that is
    here.
    """
    if "/" in what or what in {".", ".."}:
        return what
    state = reach.state_of(os.environ)
    try:
        return reach.session_named(state, what)
    except JailError:
        gone = reach.gone(state, what)
        if gone:
            return os.path.join(state, place.SESSIONS, gone[0])
        if os.path.lexists(what):
            return what
        raise
