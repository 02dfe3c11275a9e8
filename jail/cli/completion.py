"""`jail completion`: the lines that make a shell complete the words of `jail`.

Rule: click writes the lines and answers them; jail only says what a word may be (completing.py). Nothing is
started to write them: click would run whatever `bash` PATH leads to, for its version.
"""

from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from jail.errors import bug

SHELLS: Final = ("bash", "zsh", "fish")
ASKED: Final = "_JAIL_COMPLETE"
"""The variable by which the lines ask `jail` for words; click's own choice for a program of that name."""


@click.command(name="completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print what SHELL needs to complete commands, options, policies, sessions and files of `jail`.

    \b
      bash, in ~/.bashrc:   eval "$(jail completion bash)"
      zsh, in ~/.zshrc:     eval "$(jail completion zsh)"    after compinit
      fish, once:           jail completion fish > ~/.config/fish/completions/jail.fish
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    found = get_completion_class(shell)
    if found is None:
        raise bug(f"click has no completion for {shell}")
    root = context.find_root()
    click.echo(ShellComplete.source(found(root.command, {}, "jail", ASKED)), nl=False)
