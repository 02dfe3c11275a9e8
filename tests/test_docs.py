"""README and help are checked against the program."""

import os
import re
from collections.abc import Callable

import click
import pytest

from jail import errors
from jail.cli.group import group
from jail.cli.options import JSON, OPTIONS
from jail.cli.table import COMMANDS
from jail.plan.protected import PROTECTED
from jail.policy.amounts import limit_text, size_text
from jail.policy.value import LOSSES, Policy
from support.composed import LEVELS, made
from support.installed import CHECKOUT, Installed
from support.jails import Jail

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_every_command_that_the_readme_shows_exists() -> None:
    shown = set(re.findall(r"^    \$ jail ([a-z]+)", README, re.MULTILINE))
    assert shown >= {"run", "plan", "sessions", "verify"}
    assert shown <= set(COMMANDS)


def test_every_option_that_the_readme_shows_exists() -> None:
    context = click.Context(group)
    commands = [found for name in COMMANDS if (found := group.get_command(context, name)) is not None]
    known = {option for command in commands for each in command.params for option in each.opts}
    assert known >= {option.flag for option in OPTIONS}
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert shown
    assert shown <= known


def _leaves(command: click.Command, name: str) -> dict[str, click.Command]:
    if not isinstance(command, click.Group):
        return {name: command}
    context = click.Context(command)
    below = [(each, command.get_command(context, each)) for each in command.list_commands(context)]
    return {
        key: leaf
        for each, found in below
        if found is not None
        for key, leaf in _leaves(found, f"{name} {each}".strip()).items()
    }


LEAVES = _leaves(group, "")


def test_json_is_one_option_with_one_text_for_all_that_list_or_judge() -> None:
    found = {
        name: each
        for name, command in LEAVES.items()
        for each in command.params
        if isinstance(each, click.Option) and "--json" in each.opts
    }
    wanted = "plan doctor sessions logs stop gc verify"
    assert set(found) == {*wanted.split(), "policy show", "policy check", "policy list"}
    assert {each.help for each in found.values()} == {JSON}


@pytest.mark.parametrize("name", "run shell exec plan doctor sessions logs stop gc verify".split())
def test_help_lists_the_exit_codes_and_what_a_wrong_command_line_gives(name: str) -> None:
    text = (LEAVES[name].help or "").partition("Exit code")[2]
    assert re.search(r"(?m)^ +2 |: 2,", text), text


def test_every_script_that_the_readme_shows_exists() -> None:
    shown = set(re.findall(r"scripts/[a-z]+", README))
    assert shown
    for script in shown:
        assert (CHECKOUT / script).is_file(), script


def test_every_exit_code_of_the_program_is_in_the_readme() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    text = README.partition("## Exit codes")[2]
    assert {code for code in codes if not re.search(rf"\b{code}\b", text)} == set()


def test_the_protected_names_that_the_readme_lists_are_in_the_table() -> None:
    names = {row.name for row in PROTECTED}
    text = README.partition("In the workspace these are read-only")[2].partition("The table is")[0]
    listed = {name.strip("`/") for name in re.findall(r"`[^`]+`", text)}
    assert "RESEARCH.md" in listed
    assert listed <= names, listed - names


ORDER = ("interactive", "supervised", "overnight", "ci", "offline")
"""From the widest to the strictest; `ci` is narrower than overnight in some things and has its own names."""
VARIABLES = {
    "TERM": "what the terminal can",
    "TERM_PROGRAM": "which it is",
    "LS_COLORS": "colours",
    "GITHUB_SHA": "which build it is",
}
"""A name that stands for others of its kind → the kind."""
START, END = "<!-- levels:", "<!-- /levels -->\n"


def table_of_levels() -> str:
    """What each level allows, a row for each thing in which two of them differ, in GitHub's Markdown."""
    policies = [made(level).policy for level in ORDER]

    def row(what: str, *cells: str) -> str:
        return f"| {' | '.join([what, *cells])} |\n"

    def cells(what: str, text: Callable[[Policy], str]) -> str:
        return row(what, *map(text, policies))

    def sizes(field: str) -> Callable[[Policy], str]:
        return lambda policy: size_text(getattr(policy, field))

    return "".join(
        (
            row("", *(f"`{level}`" for level in ORDER)),
            row("---", *["---"] * len(ORDER)),
            row(
                "for",
                "each command watched",
                "somebody looks in",
                "nobody watches",
                "build servers",
                "data that must not leave",
            ),
            cells("your toolchains, read-only", lambda policy: "yes" if policy.toolchains else "no"),
            cells("GPU", lambda policy: "yes" if policy.gpu else "no"),
            cells("terminal", lambda policy: ", ".join(policy.terminal) or "nothing"),
            cells(
                "variables handed on: language, time, and",
                lambda policy: ", ".join(
                    what for name, what in VARIABLES.items() if name in policy.pass_names
                ),
            ),
            cells("time", lambda policy: limit_text(policy.timeout)),
            cells("memory", sizes("memory_bytes")),
            cells("each private folder in memory", sizes("tmp_bytes")),
            cells("kept back on disk", sizes("held_bytes")),
            cells("output", sizes("output_bytes")),
            cells("processes", lambda policy: str(policy.processes)),
            cells("open files", lambda policy: str(policy.open_files)),
            *(
                cells(
                    f"without `{loss}`",
                    lambda policy, loss=loss: "runs" if loss in policy.accept else "refused",
                )
                for loss in LOSSES
            ),
        )
    )


def test_the_table_of_levels_is_what_the_policies_say() -> None:
    before, _, rest = README.partition(START)
    line, _, table = rest.partition("\n")
    found, _, after = table.partition(END)
    if os.environ.get("JAIL_GOLDEN") == "write":
        text = f"{before}{START}{line}\n{table_of_levels()}{END}{after}"
        (CHECKOUT / "README.md").write_text(text, encoding="utf-8")
        found = table_of_levels()
    assert set(ORDER) == set(LEVELS)
    assert found == table_of_levels()


def test_the_policy_files_that_the_readme_shows_are_taken() -> None:
    blocks = {
        name: text.replace("\n    ", "\n")
        for name, text in re.findall(
            r"^    # (~/\.config/jail/policy\.toml|\.jail\.toml)((?:\n    .+)+)", README, re.MULTILINE
        )
    }
    found = made(user=blocks["~/.config/jail/policy.toml"], project=blocks[".jail.toml"]).policy
    assert (found.name, found.read, found.hide) == ("supervised", ("~/datasets", "schemas"), (".env",))
    assert (found.toolchains, found.accept) == (("python",), ("limits-memory", "landlock-rights"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(jail: Jail, command: str) -> None:
    done = jail.call(command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: jail ")
    assert COMMANDS[command].rstrip(".").split()[0].lower() in done.stdout.lower()


def test_help_lists_every_command_and_loads_none(jail: Jail) -> None:
    done = jail.call("--help")
    assert done.returncode == 0, done.stderr
    assert all(f"  {name}" in done.stdout for name in COMMANDS)


def test_version_is_the_packages(jail: Jail, installed: Installed) -> None:
    from jail import __version__

    assert jail.call("--version").stdout == f"jail {__version__}\n"
    assert installed.command.name == "jail"


WRONG = {
    "an unknown command": (["nonsense"], "No such command"),
    "an unknown option": (["run", "--nonsense", "--", "true"], "No such option"),
    "no command to run": (["run", "--"], "Missing argument"),
    "an unknown policy": (["run", "--policy", "nonsense", "--", "true"], "there is no shipped policy"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_says_what_is_wrong_and_what_to_do(jail: Jail, case: str) -> None:
    arguments, expected = WRONG[case]
    done = jail.call(*arguments)
    assert done.returncode == errors.EXIT_USAGE
    assert expected.lower() in done.stderr.lower()
    assert "to do:" in done.stderr
    assert "Traceback" not in done.stderr
