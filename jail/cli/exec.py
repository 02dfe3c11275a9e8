"""`jail exec`: run one more command in a session that runs."""

import os

import click

from jail.launch import join, reach


@click.command(name="exec", context_settings={"allow_interspersed_args": False})
@click.argument("session", metavar="SESSION")
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGUMENT]..."
)
@click.pass_context
def command(context: click.Context, /, session: str, command: tuple[str, ...]) -> None:
    """Run COMMAND in SESSION, which runs, behind exactly the same walls as its first command.

    SESSION is an id or the beginning of one, `last`, or `-` for the newest session that runs. COMMAND starts
    in the folder and with the environment of the session, on your terminal or pipes, and is in its ledger. It
    ends with the session, and with this process.

    \b
    Exit code: the command's own, or
      128+n  the command was ended by signal n
      125    the session ended first, or jail itself failed
      126    COMMAND is there but cannot be executed
      127    COMMAND was not found inside
      78     a wall did not hold around COMMAND; it did not run
      2      no such session, or it has ended
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    words = command[command[0] == "--" :]
    if not words:
        raise click.UsageError("Missing argument 'COMMAND'.")
    folder = reach.session_named(reach.state_of(os.environ), session, running=True)
    context.exit(join.join(folder, words, os.environ.get("TERM", "")))
