"""Lines for a person, on standard output.

Rule: what is shown may hold anything that a program inside has said; it is escaped here and nowhere else, so
no command can forget it. A terminal that cannot show a character gets an escape, never a traceback.
"""

import json
import os
import sys
import time

import click

from jail.cli.options import JSON
from jail.errors import printable


def show(text: str, word: str = "", colour: str = "", *, tabs: bool = False) -> None:
    """Print `text` as one line; its first `word` in `colour` on a terminal, unless NO_COLOR is set. `tabs`
    stay what they are: they move on only, and a text is not to be read without them.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    parts = text.split("\t") if tabs else [text]
    shown = "\t".join(map(printable, parts)).encode(encoding, "backslashreplace").decode(encoding)
    if word and colour and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        shown = shown.replace(word, click.style(word, fg=colour), 1)
    click.echo(shown)


json_option = click.option("--json", "as_json", is_flag=True, help=JSON)
"""--json of a command that is not in the table of options."""


def show_json(value: object) -> None:
    """Print one JSON text: an object, or an array where there may be none or many; each on one line."""
    click.echo(json.dumps(value, sort_keys=True))


def moment(seconds: float) -> str:
    """Seconds since the epoch as `2026-11-30 14:15:02`, in UTC, as the ids of sessions are."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"
