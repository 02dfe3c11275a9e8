"""`jail run`: run a command inside the walls."""

from typing import Any

import click

from jail.cli.build import options_of
from jail.launch.start import Options, run


@click.command(name="run", context_settings={"allow_interspersed_args": False})
@options_of("run")
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGUMENT]..."
)
@click.pass_context
def command(context: click.Context, /, command: tuple[str, ...], **values: Any) -> None:
    """Run COMMAND inside the walls: it may write the current folder (the workspace; with --hold that
    waits until you apply it), read the system, and nothing else.

    \b
    Exit code: the command's own, or
      128+n  the command was ended by signal n
      124    its time was over (--timeout)
      137    another limit ended it (memory, output, …); the last line and --status-file say which
      125    jail itself failed; whatever ran inside is dead
      126    COMMAND is there but cannot be executed
      127    COMMAND was not found inside
      78     this host or this policy cannot isolate here; nothing ran
      2      the command line or the policy is wrong; nothing ran
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    context.exit(run(Options(**values), command))
