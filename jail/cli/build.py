"""click options made from the table of options.py."""

from collections.abc import Callable
from typing import Any

import click

from jail.cli.options import OPTIONS, Option
from jail.launch.start import Options

_Decorated = Callable[..., Any]


def options_of(command: str) -> Callable[[_Decorated], _Decorated]:
    """A decorator that gives a click command the options that `command` has in the table."""

    def decorate(function: _Decorated) -> _Decorated:
        for option in reversed(OPTIONS):
            if command in option.commands:
                function = _option(option)(function)
        return function

    return decorate


def _option(option: Option) -> Callable[[_Decorated], _Decorated]:
    if not option.metavar:
        return click.option(option.flag, option.name, is_flag=True, help=option.help)
    if option.many:
        return click.option(option.flag, option.name, multiple=True, metavar=option.metavar, help=option.help)
    default = Options._field_defaults[option.name]
    return click.option(option.flag, option.name, default=default, metavar=option.metavar, help=option.help)
