"""Lines for a person, on standard output.

Rule: what is shown may hold anything that a program inside has said; it is escaped here and nowhere else, so
no command can forget it (case C6). A terminal that cannot show a character gets an escape, never a traceback.
"""

import os
import sys
import time

import click

from jail.errors import printable

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def show(text: str, word: str = "", colour: str = "") -> None:
    """Print `text` as one line; its first `word` in `colour` on a terminal, unless NO_COLOR is set."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    if word and colour and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        shown = shown.replace(word, click.style(word, fg=colour), 1)
    click.echo(shown)


def moment(seconds: float) -> str:
    """Seconds since the epoch as `2026-11-30 14:15:02`, in UTC, as the ids of sessions are."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"


def span(seconds: float) -> str:
    """A length of time in its largest unit: `5 s`, `12 min`, `3 h`, `8 d`."""
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            return f"{int(seconds / size)} {unit}"
    return f"{seconds:.0f} s"


def amount(size: int) -> str:
    """Bytes in the largest unit of which there is one: `912 B`, `31 MiB`, `2.5 GiB`."""
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.1f} {unit}" if value < 10 and unit not in ("B", "KiB") else f"{value:.0f} {unit}"
