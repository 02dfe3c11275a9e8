"""The manual page: every command and option is on it, and what formats it has no complaint."""

import re
import subprocess

import click
import pytest

from jail.cli.group import group
from jail.cli.roff import escaped, page
from support.installed import Installed
from support.jails import Jail


def formatted(text: str) -> str:
    """The page as man(1) shows it, without bold; no warning of any kind."""
    command = ["/usr/bin/groff", "-mandoc", "-ww", "-Tutf8", "-P-c", "-P-b", "-P-u", "-rLL=150n"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def contexts(above: click.Context) -> list[click.Context]:
    command = above.command
    if not isinstance(command, click.Group):
        return [above]
    found = [above]
    for name in command.list_commands(above):
        below = command.get_command(above, name)
        assert below is not None
        found += contexts(click.Context(below, parent=above, info_name=name))
    return found


@pytest.fixture(scope="module")
def shown(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("man")
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = Jail(installed, folder, folder, environment).call("man")
    assert (done.returncode, done.stderr) == (0, "")
    return formatted(done.stdout)


@pytest.mark.parametrize(
    "context", contexts(click.Context(group, info_name="jail")), ids=lambda context: context.command_path
)
def test_every_command_is_there_with_its_options_and_its_text(context: click.Context, shown: str) -> None:
    # Each command has a section, which the next one or a heading at the margin ends; the first is of jail itself.
    top, *parts = re.split(r"^   (jail .*)\n", shown.rpartition("\n\n\n")[0], flags=re.MULTILINE)
    sections = {"jail": top, **dict(zip(parts[::2], parts[1::2], strict=True))}
    text = " ".join(sections[context.command_path].split())
    for parameter in context.command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            assert record[0] in text
            assert " ".join(record[1].replace("`", "").split()) in text
    assert " ".join((context.command.help or "").replace("\b", "").replace("`", "").split()) in text


def test_control_the_formatter_complains_of_what_is_no_request() -> None:
    with pytest.raises(AssertionError, match="NOSUCH"):
        formatted(".TH A 1\n.NOSUCH\n")


HOSTILE = [
    ".SH not a section",
    "'tis no request",
    "a\\fBb \\n[x] \\*[y]",
    "--flag-with-hyphens",
    '"quoted"',
    "a – dash, an … ellipsis",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_printed_as_it_is(text: str) -> None:
    assert text in formatted(f".TH A 1\n.SH B\n{escaped(text)}\n")


@pytest.mark.parametrize("text", HOSTILE)
def test_help_of_any_text_is_printed_as_it_is(text: str) -> None:
    @click.group(help=f"Summary.\n\n{text}\n\n\b\n{text}\n  {text}")
    @click.option("--option", help=text)
    def command() -> None: ...

    assert formatted(page(command, "a")).count(text) == 4
