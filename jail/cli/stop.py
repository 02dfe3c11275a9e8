"""`jail stop`: end sessions that run."""

import os
from typing import NamedTuple

import click

from jail.cli.show import json_option, show, show_json
from jail.cli.units import seconds
from jail.errors import EXIT_JAIL, JailError, report
from jail.launch import reach, stop, wire

HOW = {
    stop.ASKED: "stopped",
    stop.SIGNALLED: "stopped; it did not answer, and its supervisor was sent SIGTERM",
    stop.KILLED: "killed; it did not answer, so its ledger has no end",
}


@click.command(name="stop")
@click.argument("session", required=False, metavar="[SESSION]")
@click.option("--all", "every", is_flag=True, help="Stop every session of this user that runs.")
@click.option(
    "--grace", default="10s", metavar="TIME", help="From SIGTERM to SIGKILL: 90s, 5m. Default: 10s."
)
@json_option
@click.pass_context
def command(context: click.Context, session: str | None, grace: str, *, every: bool, as_json: bool) -> None:
    """End SESSION: SIGTERM for its command, and SIGKILL for all of it when TIME is over.

    SESSION is an id or the beginning of one, `last`, or `-` for the newest session that runs. It returns when
    nothing of the session is left. The session's ledger says that it was stopped.

    \b
    Exit code:
      0    nothing of it is left; with --all, also when none ran
      2    no such session, or it has ended
      125  it could not be ended
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    if every == (session is not None):
        raise click.UsageError("Name one SESSION, or give --all.")
    state = reach.state_of(os.environ)
    wait = seconds("--grace", grace, "10s", wire.GRACE_LIMIT)
    if session is None:
        folders = reach.running_sessions(state)
    else:
        folders = [reach.session_named(state, session, running=True)]
    if not folders and not as_json:
        show("no session is running")
    rows = []
    for folder in folders:
        found = _stop(folder, wait)
        rows.append(found)
        if found.how and not as_json:
            show(f"{found.session}  {HOW[found.how]}")
    if as_json:
        show_json([each._asdict() for each in rows])
    context.exit(EXIT_JAIL if any(each.problem for each in rows) else 0)


class _Row(NamedTuple):
    """A session, how it was ended (a key of HOW), and what kept it from being ended."""

    session: str
    how: str | None
    problem: str | None


def _stop(folder: str, grace: float) -> _Row:
    try:
        return _Row(*stop.stop(folder, grace), None)
    except JailError as error:
        report(error)
        return _Row(os.path.basename(folder), None, error.message)
