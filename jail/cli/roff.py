r"""A click command as a manual page: man(7), which groff_man(7) and mandoc(1) read.

Rule: text is escaped in one function, so that no word of a help text can be a request: a line that begins
with `.` or `'` gets `\&`, a backslash is `\e`, a hyphen is `\-` (else it is typeset as one that cannot be
pasted into a shell), and what is not ASCII is named by its code point.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Final

import click

from jail import __version__

_KEPT: Final = "\b"
"""click's mark, on a line of its own, of a paragraph that keeps its lines."""
_UNBROKEN: Final = (".nh", ".ad l")
"""No word is broken and no line is stretched: what is shown can be searched for and pasted."""


def page(root: click.Command, name: str) -> str:
    """The manual page of `root`, which is started as `name`, as text."""
    context = click.Context(root, info_name=name, **root.context_settings)
    lines = [f'.TH {name.upper()} 1 "" "{name} {__version__}" "User Commands"', *_UNBROKEN, ".SH NAME"]
    lines += [f"{escaped(name)} \\- {escaped(_summary(root))}", ".SH SYNOPSIS", *_usage(context)]
    lines += [".SH DESCRIPTION", *_paragraphs(root.help or ""), ".SH OPTIONS", *_options(context)]
    lines.append(".SH COMMANDS")
    for below in _subcommands(context):
        lines += [f'.SS "{escaped(below.command_path)}"', *_usage(below)]
        lines += [*_paragraphs(below.command.help or ""), *_options(below)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """`text` as roff prints it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    text = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text)
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _summary(command: click.Command) -> str:
    """The first sentence of the help, as the NAME section has it: no capital, no full stop."""
    first = inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ").removesuffix(".")
    return first[:1].lower() + first[1:]


def _subcommands(context: click.Context) -> Iterator[click.Context]:
    """Every command beneath, each group before what it holds."""
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if found is not None and not found.hidden:
                below = click.Context(found, parent=context, info_name=name)
                yield below
                yield from _subcommands(below)


def _usage(context: click.Context) -> list[str]:
    path, *pieces = escaped(context.command_path), *context.command.collect_usage_pieces(context)
    return [".PP", f"\\fB{path}\\fR {_marked(' '.join(pieces))}"]


def _options(context: click.Context) -> list[str]:
    """Every option with its help; `--help` of subcommands is said once, for all."""
    lines: list[str] = []
    for parameter in context.command.get_params(context):
        asks_for_help = not set(parameter.opts) - set(context.help_option_names)
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is None or (asks_for_help and context.parent is not None):
            continue
        written, help_text = record
        lines += [".TP", f"\\fB{escaped(written)}\\fR", _marked(help_text)]
    return lines


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a help text; those that keep their lines, kept."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        rows = paragraph.split("\n")
        if rows[0].strip() == _KEPT:
            lines += [".PP", ".nf", *map(_marked, rows[1:]), ".fi"]
        else:
            lines += [".PP", _marked(" ".join(row.strip() for row in rows))]
    return lines


def _marked(text: str) -> str:
    """Escaped, with what stands between backquotes bold."""
    return re.sub("`([^`]+)`", r"\\fB\1\\fR", escaped(text))
