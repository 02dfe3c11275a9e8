"""`jail stop`: end sessions that run."""

import os

import click

from jail.cli.show import show
from jail.cli.units import seconds
from jail.errors import JailError, report
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
@click.pass_context
def command(context: click.Context, session: str | None, grace: str, *, every: bool) -> None:
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
    if not folders:
        show("no session is running")
    failed = 0
    for folder in folders:
        try:
            found = stop.stop(folder, wait)
        except JailError as error:
            report(error)
            failed = error.code
            continue
        show(f"{found.session}  {HOW[found.how]}")
    context.exit(failed)
