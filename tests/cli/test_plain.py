"""The plain parser of `run` and click's command are made from one table, and understand each other."""

from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner

from jail.cli import build, plain
from jail.cli.options import OPTIONS
from jail.launch.start import Options

LINES = [
    "true",
    "-- true",
    "-- true --policy x",
    "true -- --write /x",
    "--write /a --write /b -- ls -la",
    "--write=/a --read /c --hide=.env true",
    "--env NAME --env OTHER=a=b -- env",
    "--timeout 45m --policy ./p.toml --workspace /srv/x -- make",
    "--status-file /tmp/s -- sh -c 'exit 3'",
    "--env= -- true",
    "--gpu -- true",
    "--hold -- true",
    "--hold-path lib --hold-path=/srv/x --hold -- true",
    "--resume last -- true",
    "--policy=--odd -- true",
    "--policy -- -- true",
    "-- --policy x",
    "-- -",
    "- true",
]
HANDED_OVER = [
    "",
    "--help",
    "-h",
    "--nothing true",
    "--write",
    "--json -- true",
    "--hold=yes true",
    "-x true",
    "--",
]


def through_click(arguments: list[str]) -> Any:
    """What the click command of `run` would start, or its exit code."""
    seen: list[Any] = []

    @click.command(context_settings={"allow_interspersed_args": False})
    @build.options_of("run")
    @click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
    def command(command: tuple[str, ...], **values: Any) -> None:
        seen.append((Options(**values), command))

    done = CliRunner().invoke(command, arguments)
    return seen[0] if seen else done.exit_code


def words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


@pytest.mark.parametrize("line", LINES)
def test_both_understand_the_same(line: str) -> None:
    found = plain.parse(words(line))
    assert found is not None
    assert found == through_click(words(line))


@pytest.mark.parametrize("line", HANDED_OVER)
def test_what_click_has_to_answer_is_handed_over(line: str) -> None:
    assert plain.parse(words(line)) is None


def options_of(command: str) -> Iterator[str]:
    return (option.name for option in OPTIONS if command in option.commands)


def test_the_table_and_the_values_name_the_same_options() -> None:
    assert {option.name for option in OPTIONS} == set(Options._fields)
    assert set(options_of("run")) == set(Options._fields) - {"json"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_has_a_default_of_its_kind(option: Any) -> None:
    default = Options._field_defaults[option.name]
    assert isinstance(default, tuple) == option.many
    assert isinstance(default, bool) == (not option.metavar)
