"""`jail man`: the manual page, from the help texts.

Rule: nothing is said here that help does not say. The page is made of every command and option as they are,
so there is no second text to keep.
"""

import click

from jail.cli.roff import page


@click.command(name="man")
@click.pass_context
def command(context: click.Context) -> None:
    """Print the manual page of `jail`.

    \b
      jail man | man -l -                                          read it
      jail man > ~/.local/share/man/man1/jail.1                    keep it for `man jail`
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    click.echo(page(context.find_root().command, "jail"), nl=False)
