"""The table of protected paths, and the comparison of names that everything rests on."""

import pytest

from jail.plan import protected
from jail.plan.protected import PROTECTED, Protected

ROOT_NAMES = [row for row in PROTECTED if row.place == "workspace" and "/" not in row.name]
WHAT_THE_CASES_NAME = [
    ("workspace", "RESEARCH.md"),
    ("workspace", ".agent"),
    ("workspace", ".jail.toml"),
    ("workspace", ".git"),
    ("workspace", ".claude"),
    ("workspace", "CLAUDE.md"),
    ("workspace", "AGENTS.md"),
    ("workspace", ".mcp.json"),
    ("workspace", ".cursor"),
    ("workspace", ".vscode"),
    ("workspace", ".idea"),
    ("workspace", ".envrc"),
    ("workspace", ".github/hooks"),
    ("workspace", ".github/copilot-instructions.md"),
    ("commondir", "hooks"),
    ("commondir", "config"),
    ("commondir", "info/attributes"),
    ("commondir", "info/exclude"),
    ("commondir", "objects/info/alternates"),
    ("gitdir", "config.worktree"),
    ("gitdir", "commondir"),
]


@pytest.mark.parametrize("row", PROTECTED, ids=lambda row: f"{row.place}:{row.name}")
def test_each_row_is_complete_and_found_by_its_own_name(row: Protected) -> None:
    assert row.place in protected.PLACES
    assert row.kind in ("file", "folder", "any")
    assert row.verb == ("hold" if row.name == "config" else "read")
    assert row.reason
    assert not row.name.startswith("/")
    assert ".." not in row.name.split("/")


@pytest.mark.parametrize(("place", "name"), WHAT_THE_CASES_NAME)
def test_the_table_has_what_the_cases_name(place: str, name: str) -> None:
    assert (place, name) in {(row.place, row.name) for row in PROTECTED}


def test_no_two_rows_of_a_place_are_one_name_for_a_forgiving_file_system() -> None:
    keys = [(row.place, protected.components(row.name)) for row in PROTECTED]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("row", ROOT_NAMES, ids=lambda row: row.name)
def test_another_case_a_trailing_dot_and_an_invisible_character_are_the_same_name(row: Protected) -> None:
    for spelt in (
        row.name.upper(),
        row.name.title(),
        row.name + ".",
        row.name + " . ",
        row.name[:2] + "\u200c" + row.name[2:],
        "\ufeff" + row.name,
        row.name + "\u2060\U000e0001",
    ):
        assert protected.is_protected_name(spelt) == row, spelt


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        (".Git", ".git"),
        (".g\u200cit", ".git"),
        (".G\u0131T", None),  # dotless i is no i under case folding
        ("git~1", ".git"),
        ("GIT~1", ".git"),
        ("AGENT\u017f.md", "AGENTS.md"),  # long s folds to s
        (".\u212aIRO", ".kiro"),  # the Kelvin sign folds to k
        ("claude.md", "CLAUDE.md"),
        ("CLAUDE.md.txt", None),
        ("xCLAUDE.md", None),
        (".gitignore", None),
        (".github", None),
        (".git\udcff", None),
        ("", None),
        (".", None),
        ("..", None),
        ("...", None),
    ],
)
def test_which_names_are_one(spelt: str, name: str | None) -> None:
    row = protected.is_protected_name(spelt)
    assert (row.name if row else None) == name


def test_a_listing_is_split_into_what_is_there_and_what_is_not() -> None:
    listings = {"": ["CLAUDE.md", "src", ".github", "agents.md"], ".github": ["hooks", "workflows"]}
    present, absent = protected.split("workspace", listings)
    assert {path for path, _ in present} == {"CLAUDE.md", "agents.md", ".github/hooks"}
    gone = {row.name for row in absent}
    assert "AGENTS.md" in gone, "the table's spelling may still be created beside the other one"
    assert ".github/prompts" in gone
    assert gone.isdisjoint({"CLAUDE.md", ".github/hooks"})


def test_a_split_asks_for_each_folder_that_rows_lie_in() -> None:
    assert protected.folders("workspace") == ("", ".github")
    assert protected.folders("commondir") == ("", "info", "objects", "objects/info")
    assert protected.folders("gitdir") == ("",)


@pytest.mark.parametrize(
    ("place", "path", "name"),
    [
        ("workspace", "CLAUDE.md", "CLAUDE.md"),
        ("workspace", ".claude/deep/er", ".claude"),
        ("workspace", ".github/hooks/x", ".github/hooks"),
        ("workspace", "sub/CLAUDE.md", None),
        ("workspace", ".github", None),
        ("commondir", "hooks/x", "hooks"),
        ("commondir", "objects/info/alternates", "objects/info/alternates"),
        ("commondir", "objects/ab", None),
        ("gitdir", "config.worktree", "config.worktree"),
    ],
)
def test_the_row_of_a_path_is_that_of_the_path_or_of_a_folder_above(
    place: str, path: str, name: str | None
) -> None:
    row = protected.row_of(place, protected.components(path))
    assert (row.name if row else None) == name
