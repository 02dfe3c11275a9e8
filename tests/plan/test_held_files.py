"""Held files in a plan: which are, and when a rule of the policy goes before."""

import pytest

from jail.plan.build import build
from jail.plan.held import FILE, GIT_CONFIG, Held
from jail.plan.steps import Plan, Step
from support.hosts import FACTS, POLICY, WORKSPACE, file, folder

CONFIG = f"{WORKSPACE}/.git/config"
REASON = "its keys make git run programs"


def plan(**facts: object) -> Plan:
    return build(POLICY, FACTS._replace(**facts), ("true",))


def on(found: Plan, path: str) -> list[Step]:
    return [step for step in found.steps if step.target == path]


def test_a_git_config_is_held_by_a_link_that_leads_to_its_copy() -> None:
    found = plan()
    assert found.held == (Held("f0", FILE, CONFIG, REASON, GIT_CONFIG),)
    (step,) = on(found, CONFIG)
    assert (step.verb, step.source, step.options) == ("held-file", WORKSPACE, ("f0",))
    assert [link.source for link in on(found, "/run/jail/links/f0")] == ["/run/jail/held/f0/config"]
    assert on(found, "/run/jail/held")[0].verb == "held-files"
    assert "/run/jail/held" in found.writable


def test_every_config_of_the_repository_has_a_copy_of_its_own() -> None:
    module = FACTS.guarded[0]._replace(path=f"{WORKSPACE}/.git/modules/m/config", verb="hold")
    found = plan(guarded=(*FACTS.guarded, module))
    assert [(held.name, held.path) for held in found.held] == [("f0", CONFIG), ("f1", module.path)]


def test_without_a_held_file_nothing_is_laid_for_one() -> None:
    found = plan(guarded=tuple(guard._replace(verb="read") for guard in FACTS.guarded))
    assert found.held == ()
    assert "/run/jail/held" not in found.writable
    assert not [step for step in found.steps if step.verb.startswith("held")]
    assert on(found, CONFIG)[0].verb == "protect"


RULES: dict[str, tuple[dict[str, object], list[str]]] = {
    "the file is read-only by a rule": ({"read": (file(CONFIG),)}, ["protect"]),
    "the file is hidden": ({"hide": (file(CONFIG),)}, ["hide"]),
    "its folder is hidden": ({"hide": (folder(f"{WORKSPACE}/.git"),)}, []),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_of_the_policy_goes_before(name: str) -> None:
    facts, verbs = RULES[name]
    found = plan(**facts)
    assert [step.verb for step in on(found, CONFIG)] == verbs
    assert found.held == ()


def test_nothing_is_mounted_beneath_a_hidden_folder() -> None:
    found = plan(hide=(folder(f"{WORKSPACE}/.git"),))
    assert [step.target for step in found.steps if step.target.startswith(f"{WORKSPACE}/.git/")] == []
    assert [step.verb for step in on(found, f"{WORKSPACE}/.git")] == ["hide"]
