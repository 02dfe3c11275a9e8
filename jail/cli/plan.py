"""`jail plan`: print what `jail run` would do, and do nothing."""

import os
from typing import Any

import click

from jail.cli.build import options_of
from jail.cli.show import show, show_json
from jail.errors import EXIT_CANNOT_ISOLATE
from jail.launch.start import Options, prepare, refused
from jail.plan import text


@click.command(name="plan", context_settings={"allow_interspersed_args": False})
@options_of("plan")
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGUMENT]..."
)
@click.pass_context
def command(context: click.Context, /, command: tuple[str, ...], **values: Any) -> None:
    """Print every step that `jail run` would take for COMMAND, and every loss, without taking one.

    \b
    Exit code:
      0   the run would be started
      2   the command line or the policy is wrong
      78  it would be refused: a wall is missing that the policy does not do without
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    options = Options(**values)
    prepared = prepare(options, command, os.environ)
    if options.json:
        show_json(text.values(prepared.plan, prepared.policy.accept))
    else:
        for line in text.lines(prepared.plan, prepared.policy.accept):
            show(line)
    context.exit(0 if refused(prepared) is None else EXIT_CANNOT_ISOLATE)
