"""README, the pages of docs/ and help are checked against the program."""

import os
import re
from collections.abc import Callable

import click
import pytest

from jail import errors
from jail.cli.group import group
from jail.cli.options import JSON, OPTIONS
from jail.cli.table import COMMANDS
from jail.hold.change import REFUSED, WARNED
from jail.launch import answers, kept, limits, outcome, survey
from jail.plan import autoexec, bounds, caches
from jail.plan.autoexec import AUTO_EXEC
from jail.plan.protected import PROTECTED, canonical
from jail.policy.amounts import limit_text, size_text
from jail.policy.draft import KEYS
from jail.policy.value import DELIVERIES, LOSSES, TERMINAL, TOOLCHAINS, Policy
from support.composed import LEVELS, made
from support.installed import CHECKOUT, Installed
from support.jails import Jail

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
PAGES = {
    str(path.relative_to(CHECKOUT)): path.read_text(encoding="utf-8")
    for path in (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md")))
}
WIDTH = 118
"""Columns of a line of prose; a row of a table is one line."""
MOST_LINES = 200
"""Of the README: what does not fit belongs in docs/."""
pages = pytest.mark.parametrize("page", PAGES)


def known(command: click.Command) -> set[str]:
    """Its options, and those of what is below it."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return {option for each in command.params for option in each.opts}.union(*map(known, below))


@pytest.fixture(scope="module")
def commands() -> dict[str, click.Command]:
    context = click.Context(group)
    return {name: found for name in COMMANDS if (found := group.get_command(context, name)) is not None}


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
    wanted = "plan doctor sessions logs stop gc verify changes apply discard"
    assert set(found) == {*wanted.split(), "policy show", "policy check", "policy list"}
    assert {each.help for each in found.values()} == {JSON}


@pytest.mark.parametrize(
    "name", "run shell exec plan doctor sessions logs stop changes apply discard gc verify".split()
)
def test_help_lists_the_exit_codes_and_what_a_wrong_command_line_gives(name: str) -> None:
    text = (LEAVES[name].help or "").partition("Exit code")[2]
    assert re.search(r"(?m)^ +2 |: 2,", text), text


@pages
def test_every_command_that_a_page_shows_exists_with_its_options(
    page: str, commands: dict[str, click.Command]
) -> None:
    shown = re.findall(
        r"^    (?:\$ |scripts/)jail ([a-z]+)(.*?)(?: -- .*|  #.*)?$", PAGES[page], re.MULTILINE
    )
    inline = re.findall(r"`(?:\(?jail) ([a-z]+)((?: [^`]*)?)`", PAGES[page])
    for name, rest in shown + [each for each in inline if each[0] != "run"]:
        assert name in commands, f"jail {name}"
        words = re.split(r" (?:--|\|) ", rest)[0].split()
        if isinstance(found := commands[name], click.Group) and words and not words[0].startswith("-"):
            assert words[0] in found.commands, f"jail {name} {words[0]}"
        used = {word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1}
        assert used <= known(found) | {"--help"}, f"jail {name}{rest}"


def test_the_pages_show_every_command(commands: dict[str, click.Command]) -> None:
    text = "\n".join(PAGES.values())
    assert {name for name in commands if f"jail {name}" not in text} == set()


@pages
def test_every_option_that_a_page_names_exists(page: str, commands: dict[str, click.Command]) -> None:
    options = set().union(*map(known, commands.values()))
    assert options >= {option.flag for option in OPTIONS}
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGES[page]))
    assert shown <= options | {"--help"}


@pages
def test_everything_that_a_page_leads_to_is_there(page: str) -> None:
    text, folder = PAGES[page], (CHECKOUT / page).parent
    for script in set(re.findall(r"scripts/[a-z]+", text)):
        assert (CHECKOUT / script).is_file(), script
    for file in set(re.findall(r"`((?:jail|policies|tests|docs)/[^`]*)`", text)):
        assert (CHECKOUT / file).exists(), file
    for link in re.findall(r"\]\(([^)]+)\)", text):
        file, _, place = link.partition("#")
        target = (folder / file).resolve()
        assert target.is_file(), link
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert not place or place in {heading.lower().replace(" ", "-") for heading in headings}, link


def test_the_readme_leads_to_every_page() -> None:
    assert {page for page in PAGES if page != "README.md" and f"({page})" not in README} == set()


@pages
def test_a_page_is_easy_to_read_in_an_editor(page: str) -> None:
    lines = PAGES[page].splitlines()
    assert [line for line in lines if len(line) > WIDTH and not line.startswith(("|", "<!--"))] == []
    assert page != "README.md" or len(lines) <= MOST_LINES
    assert PAGES[page].count("```") == 0, "code is indented, as tests read it"


def test_nothing_is_said_twice() -> None:
    """A sentence that stands in two places is true in one of them only, one day."""
    seen: dict[str, str] = {}
    for page, text in PAGES.items():
        prose = " ".join(
            line.strip() for line in text.splitlines() if not line.startswith(("|", "    ", "<!--"))
        )
        for sentence in re.split(r"(?<=[.:]) ", prose):
            if len(sentence) > 60:
                assert sentence not in seen, f"{page} and {seen[sentence]}: {sentence}"
                seen[sentence] = page


def test_every_exit_code_of_the_program_is_in_the_readme() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")} | {limits.EXIT_LIMIT}
    text = README.partition("## Exit codes")[2].partition("\n## ")[0]
    assert {code for code in codes if not re.search(rf"\b{code}\b", text)} == set()


def test_the_protected_names_that_are_listed_are_in_the_table() -> None:
    names = {row.name for row in PROTECTED}
    text = PAGES["docs/workspace.md"].partition("In a written workspace these are read-only")[2]
    listed = {name.strip("`/") for name in re.findall(r"`[^`]+`", text.partition("The table is")[0])}
    assert "RESEARCH.md" in listed
    assert listed <= names, listed - names


COUNTS = {
    4 << 20: "4 MiB",
    10.0: "ten seconds",
    0.5: "half a second",
    (3, 4): "three quarters",
}
SAID = {
    # what a page says in words: the page, the figure of the program
    "the grace before SIGKILL": ("docs/limits.md", limits.GRACE),
    "the share of memory": ("docs/limits.md", bounds.SHARE),
    "the wait for answers": ("docs/terminal.md", answers.ANSWER_WAIT),
    "the output that is kept": ("docs/sessions.md", kept.HALF),
}


@pytest.mark.parametrize("what", SAID)
def test_a_figure_in_words_is_that_of_the_program(what: str) -> None:
    page, figure = SAID[what]
    text = " ".join(PAGES[page].split()).replace("4 to 8 MiB", "4 MiB")
    assert COUNTS[figure] in text


def test_names_in_the_pages_are_those_of_the_program() -> None:
    rooms = re.search(r"rooms are `([^`]+)`", PAGES["docs/design.md"])
    assert rooms is not None
    there = {path.name for path in (CHECKOUT / "jail").iterdir() if (path / "__init__.py").is_file()}
    assert set(rooms[1].split(" → ")) == there
    used = PAGES["docs/toolchains.md"].partition("[toolchains] use`")[2].partition("\n## ")[0]
    assert re.findall(r"`([a-z]+)`", used) == [*TOOLCHAINS]
    assert f"uid {survey.STRANGER} over" in PAGES["docs/workspace.md"]
    assert caches.INSIDE in PAGES["docs/toolchains.md"]


def test_every_limit_of_a_policy_has_a_row() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \|", PAGES["docs/limits.md"].partition("\n\nThe figures")[0], re.MULTILINE
    )
    words = {
        "memory": "memory of",
        "processes": "processes",
        "open_files": "open files of each process",
        "tmp": "each private folder",
        "held": "kept back",
        "output": "what is printed",
        "timeout": "time",
    }
    assert {path[1] for path in KEYS.values() if path[0] == "limits"} == set(words)
    assert [word for word in words.values() if not any(word in row for row in rows)] == []
    assert any("open files of the whole host" in row for row in rows), outcome.FILES


ORDER = ("interactive", "supervised", "overnight", "ci", "offline")
"""From the widest to the strictest; `ci` is narrower than overnight in some things and has its own names."""
VARIABLES = {
    "TERM": "what the terminal can",
    "TERM_PROGRAM": "which it is",
    "LS_COLORS": "colours",
    "GITHUB_SHA": "which build it is",
}
"""A name that stands for others of its kind → the kind."""


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
            cells("held, delivered unasked", lambda policy: ", ".join(policy.deliver) or "nothing"),
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


def table_of_commands() -> str:
    """Every command with its line of `jail --help`."""
    rows = "".join(f"| `jail {name}` | {line} |\n" for name, line in COMMANDS.items())
    return f"| command | |\n| --- | --- |\n{rows}"


def table_of_losses() -> str:
    """Every loss that a policy can accept."""
    rows = "".join(f"| `{name}` | {what} |\n" for name, what in LOSSES.items())
    return f"| loss | what is lost |\n| --- | --- |\n{rows}"


def table_of_deliveries() -> str:
    """Every word of `hold.deliver`."""
    rows = "".join(f"| `{name}` | {what} |\n" for name, what in DELIVERIES.items())
    return f"| word | what is delivered |\n| --- | --- |\n{rows}"


def table_of_tiers() -> str:
    """What is refused until it is named, then what is warned of: a row for each reason in the two tables."""
    of_git = {f".git/{row.name}" for row in PROTECTED if row.place != "workspace"}
    rows = [
        (row.tier, row.reason, row.pattern)
        for row in AUTO_EXEC
        if row.pattern.removesuffix("/*") not in of_git
    ]
    rows += [
        (REFUSED, row.reason, row.name if row.place == "workspace" else f".git/{row.name}")
        for row in PROTECTED
        if row.place != "workspace" or not _is_in_the_other_table(row.name)
    ]
    found: dict[tuple[str, str], dict[str, None]] = {}
    for tier, reason, name in rows:
        found.setdefault((tier, reason), {})[f"`{name}`"] = None
    lines = [
        f"| {tier} | {reason} | {' '.join(names)} |\n"
        for wanted in (REFUSED, WARNED)
        for (tier, reason), names in found.items()
        if tier == wanted
    ]
    return "".join(("| tier | because | names |\n| --- | --- | --- |\n", *lines))


def _is_in_the_other_table(path: str) -> bool:
    *folders, name = map(canonical, path.split("/"))
    above = autoexec.TOP
    for folder in folders:
        above = autoexec.enter(above, folder)
    return (autoexec.row_of(above, name) or autoexec.enter(above, name).row) is not None


TABLES = {
    "tiers": ("docs/hold.md", table_of_tiers),
    "levels": ("README.md", table_of_levels),
    "commands": ("README.md", table_of_commands),
    "losses": ("docs/limits.md", table_of_losses),
    "deliveries": ("docs/policies.md", table_of_deliveries),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_program_says(name: str) -> None:
    page, made_now = TABLES[name]
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    before, start, rest = text.partition(f"<!-- {name}:")
    line, _, table = rest.partition("\n")
    found, end, after = table.partition(f"<!-- /{name} -->\n")
    assert start
    assert end
    if os.environ.get("JAIL_GOLDEN") == "write":
        (CHECKOUT / page).write_text(f"{before}{start}{line}\n{made_now()}{end}{after}", encoding="utf-8")
        found = made_now()
    assert set(ORDER) == set(LEVELS)
    assert found == made_now()


def blocks(page: str) -> dict[str, str]:
    """The indented policy files of a page, by the name in their first line."""
    return {
        name: text.replace("\n    ", "\n")
        for name, text in re.findall(r"^    # (~?[./]\S+\.toml)((?:\n    .+)+)", PAGES[page], re.MULTILINE)
    }


def test_the_policy_files_that_the_pages_show_are_taken() -> None:
    shown = blocks("docs/policies.md")
    found = made(user=shown["~/.config/jail/policy.toml"], project=shown[".jail.toml"]).policy
    assert (found.name, found.read, found.hide) == ("supervised", ("~/datasets", "schemas"), (".env",))
    assert found.hold == ("lib",)
    (lines,) = re.findall(r"^    (\[files\]\n    hold .+\n    .+)$", PAGES["docs/policies.md"], re.MULTILINE)
    held = made(user=lines.replace("\n    ", "\n")).policy
    assert (held.hold, held.write) == ((".", "~/lib"), ("build",))
    assert (found.toolchains, found.accept) == (("python",), ("limits-memory", "landlock-rights"))
    (lines,) = re.findall(r"^    (\[terminal\]\n    .+)$", PAGES["docs/terminal.md"], re.MULTILINE)
    assert made(user=lines.replace("\n    ", "\n")).policy.terminal == tuple(TERMINAL), "all that there is"


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
