"""PATH in a plan: what can be given is, in its order; the rest leaves it with a reason."""

import pytest

from jail.plan.build import build
from jail.plan.facts import Place, Searched
from jail.plan.steps import Plan, Step
from support.hosts import FACTS, HOME, POLICY, WORKSPACE, absent, folder, link


def plan(**facts: object) -> Plan:
    return build(POLICY, FACTS._replace(**facts), ("true",))


def step(found: Plan, target: str) -> Step:
    return [each for each in found.steps if each.target == target][-1]


def verbs(found: Plan, target: str) -> list[str]:
    return [each.verb for each in found.steps if each.target == target]


BAD_PATH = {
    "an empty entry": Place("", "", "absent", ""),
    "a relative entry": Place("bin", "", "absent", ""),
    "an absent entry": absent("/opt/none/bin"),
    "the home folder": folder(HOME),
    "a folder that holds the home folder": folder("/home"),
    "the workspace itself": folder(WORKSPACE),
    "jail's own folder": folder("/opt/jail/bin"),
    "a folder of credentials": folder(f"{HOME}/.ssh/bin"),
}


@pytest.mark.parametrize("entry", BAD_PATH)
def test_what_cannot_be_given_leaves_path_and_the_plan_says_so(entry: str) -> None:
    found = plan(path=(*FACTS.path, BAD_PATH[entry]))
    assert dict(found.environment)["PATH"] == "/usr/bin:/bin"
    assert any("is left out" in note for note in found.notes)


def test_a_path_folder_outside_is_read_only_and_one_in_the_workspace_is_protected() -> None:
    inside, outside = f"{WORKSPACE}/.venv/bin", f"{HOME}/.local/bin"
    looked_in = (Searched(inside, (inside,), "folder"), Searched(outside, (outside,), "folder"))
    found = plan(path=(folder(inside), folder(outside), *FACTS.path), searched=looked_in)
    assert step(found, outside) == Step("bind", outside, outside, ("ro",), "a PATH folder")
    assert step(found, inside).verb == "protect"
    assert verbs(found, f"{WORKSPACE}/.venv") == ["pin"]
    assert dict(found.environment)["PATH"] == f"{inside}:{outside}:/usr/bin:/bin"


def test_a_neighbour_with_a_longer_name_is_not_in_the_workspace() -> None:
    neighbour = f"{WORKSPACE}-evil/bin"
    assert step(plan(path=(folder(neighbour),)), neighbour).verb == "bind"


def test_an_entry_behind_a_link_is_shown_where_it_really_lies() -> None:
    found = plan(path=(link("/srv/current/bin", "/srv/v1/bin"), *FACTS.path))
    assert dict(found.environment)["PATH"] == "/srv/v1/bin:/usr/bin:/bin"


def test_a_path_without_an_entry_that_can_be_given_is_the_systems() -> None:
    assert dict(plan(path=(absent("/none"),)).environment)["PATH"] == "/usr/bin:/bin"
