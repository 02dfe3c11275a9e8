"""The click group: commands from the table, loaded when called."""

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from jail import __version__
from jail.cli.table import COMMANDS


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"jail.cli.{cmd_name}").command
        if ctx.resilient_parsing:  # a shell asks for words
            from jail.cli.completing import prepare

            prepare(found)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands with their lines of the table, then the options: no command is loaded."""
        named = {name: text for name, text in COMMANDS.items() if name.startswith(incomplete)}
        found = [CompletionItem(name, help=text) for name, text in named.items()]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="jail", message="%(prog)s %(version)s")
def group(**values: Any) -> None:
    """Run programs, AI coding agents above all, inside walls that the Linux kernel keeps.

    \b
      jail run -- COMMAND     the current folder is written (with --hold, once you apply it), the
                              system readable, the rest absent
      jail plan -- COMMAND    print every step of that, and do nothing
      jail doctor             what this host can give, and how to mend the rest
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
