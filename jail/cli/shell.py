"""`jail shell`: the person's shell inside the walls, with a mark in its prompt."""

import os
from typing import Any

import click

from jail.cli.build import options_of
from jail.launch import shell
from jail.launch.start import Options, run


@click.command(name="shell", context_settings={"allow_interspersed_args": False})
@options_of("shell")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] [ARGUMENT]...")
@click.pass_context
def command(context: click.Context, /, arguments: tuple[str, ...], **values: Any) -> None:
    """Open your shell ($SHELL where it is one of the system's, else bash, else sh) inside the walls.

    \b
    The prompt begins with `(jail)`; your own settings of the shell are not there.
    ARGUMENTS go to the shell. The options are those of `jail run`.

    \b
    Exit code: the shell's own, or as of `jail run`: 2, 78, 124 to 127, 137, 128+n
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    options = Options(**values)
    words, prompt = shell.choose(os.environ, arguments)
    if prompt:
        options = options._replace(env=(f"PS1={prompt}", *options.env))
    context.exit(run(options, words))
