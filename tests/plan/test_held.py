"""What a run holds, from facts alone: rules, PATH trees and stores of hard links; the outermost wins."""

import pytest

from jail.plan.facts import Facts, Repository
from jail.plan.held import COMMANDS, Wanted, store_of, tree_of_commands, wanted
from support.hosts import FACTS, WORKSPACE, file, folder

VENV = f"{WORKSPACE}/.venv"
MODULES = f"{WORKSPACE}/web/node_modules"
WHOLE = folder(WORKSPACE)._replace(given=".")
ELSEWHERE = Repository("/srv/main/.git/worktrees/engine", "/srv/main/.git", "")


def facts(**fields: object) -> Facts:
    return FACTS._replace(**fields)


def paths(found: Facts) -> list[str]:
    return [each.path for each in wanted(found)]


def test_a_run_without_rule_path_tree_or_store_holds_nothing() -> None:
    assert wanted(FACTS) == ()


def test_a_path_tree_in_the_workspace_is_held_and_may_be_delivered() -> None:
    (found,) = wanted(facts(command_trees=((f"{VENV}/bin", VENV),)))
    assert (found.path, found.deliver, found.commands, found.rule) == (
        VENV,
        COMMANDS,
        (f"{VENV}/bin",),
        False,
    )


def test_a_store_of_hard_links_is_held_and_a_single_file_is_not() -> None:
    linked = (
        f"{MODULES}/a/index.js",
        f"{MODULES}/b.js",
        f"{WORKSPACE}/data",
        f"{WORKSPACE}/.git/objects/aa/b",
    )
    (found,) = wanted(facts(hardlinked=linked))
    assert (found.path, found.deliver) == (MODULES, "")


def test_a_held_workspace_holds_all_that_is_in_it_and_knows_its_path_folders() -> None:
    held = facts(hold=(WHOLE,), command_trees=((f"{VENV}/bin", VENV),), hardlinked=(f"{MODULES}/a/b",))
    assert wanted(held) == (Wanted(WORKSPACE, "the workspace", "", (f"{VENV}/bin",), rule=True),)


def test_the_git_folders_of_a_held_workspace_are_held_wherever_they_lie() -> None:
    assert paths(facts(hold=(WHOLE,), repository=ELSEWHERE)) == [WORKSPACE, "/srv/main/.git"]
    assert paths(facts(hold=(folder(f"{WORKSPACE}/docs"),), repository=ELSEWHERE)) == [f"{WORKSPACE}/docs"]


def test_a_part_that_the_person_holds_by_name_is_not_delivered_with_its_tree() -> None:
    (found,) = wanted(facts(command_trees=((f"{VENV}/bin", VENV),), hold=(folder(f"{VENV}/lib"),)))
    assert (found.path, found.deliver) == (VENV, "")


NOT_HELD = {
    "a rule reads it": {"read": (folder(VENV),)},
    "a rule reads what it lies in": {"read": (folder(WORKSPACE + "/x"),), "command_trees": ((f"{WORKSPACE}/x/b", f"{WORKSPACE}/x/b"),)},
    "a rule writes it": {"write": (folder(VENV),)},
    "it is no tree of this run": {"command_trees": (("/srv/bin", "/srv/bin"),)},
    "it is the workspace itself": {"command_trees": ((WORKSPACE, WORKSPACE),)},
}  # fmt: skip


@pytest.mark.parametrize("why", NOT_HELD)
def test_a_path_tree_is_not_held_by_itself_where(why: str) -> None:
    assert wanted(facts(**{"command_trees": ((f"{VENV}/bin", VENV),), **NOT_HELD[why]})) == ()


def test_a_file_can_be_held_by_a_rule() -> None:
    (found,) = wanted(facts(hold=(file(f"{WORKSPACE}/CLAUDE.md"),)))
    assert (found.kind, found.rule) == ("file", True)


@pytest.mark.parametrize(
    ("path", "store"),
    [
        ("node_modules/a/b", "node_modules"),
        ("a/venv/lib/b", "a/venv"),
        (".venv", ""),
        ("a/b", ""),
        (".git/x/node_modules/b", ""),
    ],
)
def test_a_store_is_the_outermost_folder_of_such_a_name(path: str, store: str) -> None:
    found = store_of(f"{WORKSPACE}/{path}", WORKSPACE, FACTS)
    assert found == (f"{WORKSPACE}/{store}" if store else "")


@pytest.mark.parametrize(
    ("folder_of", "environment", "tree"),
    [
        ("/w/.venv/bin", True, "/w/.venv"),
        ("/w/bin", False, "/w/bin"),
        ("/w/node_modules/.bin", False, "/w/node_modules"),
        ("/w/x/.bin", False, "/w/x/.bin"),
    ],
)
def test_the_tree_of_a_path_folder(folder_of: str, environment: bool, tree: str) -> None:
    assert tree_of_commands(folder_of, environment=environment) == tree
