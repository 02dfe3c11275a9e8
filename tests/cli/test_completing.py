"""What is offered for which metavar; tests/cli/test_completion.py has the shells that ask."""

import os
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from jail.cli.completing import DESCRIBED, prepare
from jail.cli.group import group
from jail.cli.table import COMMANDS
from jail.policy.sources import shipped_names
from support.ledgers import state_in, write


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return state_in(tmp_path)


def offered(command: click.Command, *words: str) -> list[tuple[str, str, str | None]]:
    """Type, value and help of what is offered for the last of `words`."""
    found = ShellComplete(command, {}, "jail", "_JAIL_COMPLETE").get_completions([*words[:-1]], words[-1])
    return [(item.type, item.value, item.help) for item in found]


def offered_for(metavar: str, incomplete: str = "") -> list[tuple[str, str]]:
    @click.command
    @click.argument("word", metavar=metavar)
    def command(word: str) -> None: ...

    prepare(command)
    return [(kind, value) for kind, value, _ in offered(command, incomplete)]


def test_the_group_offers_every_command_with_its_line_of_the_table() -> None:
    assert offered(group, "") == [("plain", name, text) for name, text in COMMANDS.items()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_offers_its_options(name: str) -> None:
    context = click.Context(group)
    command = group.get_command(context, name)
    assert command is not None
    if isinstance(command, click.Group):
        assert offered(group, name, "")
        return
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {value for _, value, _ in offered(group, name, "--")} >= options


@pytest.mark.parametrize(
    ("metavar", "expected"),
    [
        ("FILE", [("file", "")]),
        ("PATH", [("file", "")]),
        ("FILE|PATH", [("file", "")]),
        ("FOLDER", [("dir", "")]),
        ("NAME|FILE", [("file", ""), *(("plain", name) for name in shipped_names())]),
        ("[SESSION] [PATH]...", [("file", "")]),
        ("TIME", []),
        ("", []),
    ],
)
def test_the_metavar_tells_what_is_offered(metavar: str, expected: list[tuple[str, str]]) -> None:
    assert offered_for(metavar) == expected


def test_sessions_are_offered_newest_first_and_the_newest_with_their_commands(state: str) -> None:
    assert offered_for("SESSION") == []
    made = [write(state, command=["a\x1b[31m", str(number)])[0].name for number in range(DESCRIBED + 2)]

    @click.command
    @click.argument("word", metavar="SESSION")
    def command(word: str) -> None: ...

    prepare(command)
    assert [value for _, value, _ in offered(command, "")][:2] == ["last", made[-1]]
    described = {value: text for _, value, text in offered(command, "2")}
    assert list(described) == made[::-1]
    assert described[made[-1]] == f"'a\\x1b[31m' {DESCRIBED + 1}"
    assert described[made[0]] is None


@pytest.mark.parametrize("command", ["exec", "stop", "logs", "verify"])
def test_what_needs_a_running_session_is_offered_no_other(state: str, command: str) -> None:
    running, lock = write(state, end=False, keep_lock=True)
    ended = write(state)[0].name
    alone = command in ("exec", "stop")
    found = [value for kind, value, _ in offered(group, command, "") if kind == "plain"]
    assert found == (["-", running.name] if alone else ["last", "-", ended, running.name])
    os.close(lock)
    found = [value for kind, value, _ in offered(group, command, "") if kind == "plain"]
    assert found == ([] if alone else ["last", ended, running.name])


@pytest.mark.parametrize("command", ["run", "shell", "plan"])
def test_what_can_be_resumed_is_what_has_ended_and_holds_something(state: str, command: str) -> None:
    running, lock = write(state, end=False, keep_lock=True)
    older, newer = write(state)[0], write(state)[0]
    for folder in (running, older):
        (folder / "held").mkdir()
        (folder / "held" / "manifest").touch()
    assert [value for _, value, _ in offered(group, command, "--resume", "")] == [older.name]
    (newer / "held").mkdir()
    (newer / "held" / "manifest").touch()
    assert [value for _, value, _ in offered(group, command, "--resume", "")] == [
        *("last", newer.name, older.name)
    ]
    os.close(lock)


def test_sessions_that_cannot_be_listed_are_not_offered_and_nothing_is_said(
    state: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write(state)
    os.chmod(f"{state}/sessions", 0o777)
    assert offered_for("SESSION") == []
    assert capfd.readouterr() == ("", "")


def test_programs_come_from_absolute_folders_of_path_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "here"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"my-{name}").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:here::{tmp_path}/absent")
    assert offered_for("COMMAND", "my") == [("file", "my"), ("plain", "my-bin")]


@pytest.mark.parametrize(
    "name",
    [
        *("my;id>pwned", "my`id`", "my$(id)", "my id", "my*", "my'", 'my"', "my\\", "my#", "my!1", "my&"),
        *("my\nplain,forged", "my\tforged", "my\x1b[1m", "my\u202e", "my:forged", "my=forged", "my{1,2}"),
    ],
)
def test_a_program_whose_name_a_shell_would_not_take_as_one_word_is_not_offered(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (name, "my-x86_64.g++", "-my"):
        (tmp_path / each).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert offered_for("COMMAND", "my") == [("file", "my"), ("plain", "my-x86_64.g++")]
    assert offered_for("COMMAND", "") == [("file", ""), ("plain", "my-x86_64.g++")]


def test_what_a_command_chose_itself_stays() -> None:
    @click.command
    @click.argument("word", metavar="FILE", type=click.Choice(["one", "two"]))
    def command(word: str) -> None: ...

    prepare(command)
    assert offered(command, "t") == [("plain", "two", None)]


def test_subcommands_have_their_words_too() -> None:
    @click.group
    def above() -> None: ...

    @above.command
    @click.option("--policy", metavar="NAME|FILE")
    def below(policy: str) -> None: ...

    prepare(above)
    assert ("plain", "overnight", None) in offered(above, "below", "--policy", "")
