"""The private caches in a plan: one mount, variables of the parts in use, nothing where no toolchain is used."""

import pytest

from jail.plan import caches
from jail.plan.build import build
from jail.plan.steps import Plan, Step
from jail.policy.value import TOOLCHAINS
from support.hosts import FACTS, HOME, POLICY, folder

KEPT = f"{HOME}/.cache/jail/caches/0f/files"


def plan(parts: tuple[str, ...] = tuple(TOOLCHAINS), **facts: object) -> Plan:
    found = FACTS._replace(cache=KEPT)._replace(**facts)
    return build(POLICY._replace(toolchains=parts), found, ("true",))


def steps(found: Plan, verb: str, target: str) -> list[Step]:
    return [step for step in found.steps if (step.verb, step.target) == (verb, target)]


def test_it_is_mounted_writable_and_told() -> None:
    found = plan()
    (step,) = steps(found, "cache", caches.INSIDE)
    assert (step.source, step.options) == (KEPT, ("rw",))
    assert caches.INSIDE in found.writable
    assert any(KEPT in note for note in found.notes)
    assert steps(found, "link", f"{HOME}/.cache")[0].source == caches.INSIDE


def test_jails_own_folder_is_seen_nowhere_else() -> None:
    found = plan()
    sources = [step.source for step in found.steps if step.source.startswith(f"{HOME}/.cache/jail")]
    assert sources == [KEPT]


def test_each_part_has_its_variables_and_no_other() -> None:
    assert set(caches.VARIABLES) == set(TOOLCHAINS)
    found = dict(plan(parts=("rust",)).environment)
    assert found["CARGO_HOME"] == f"{caches.INSIDE}/cargo"
    assert found["XDG_CACHE_HOME"] == caches.INSIDE
    assert not {"GOPATH", "npm_config_cache", "MAVEN_OPTS"} & set(found)


def test_every_variable_names_a_place_in_it() -> None:
    for name, value in caches.environment(TOOLCHAINS, KEPT).items():
        assert caches.INSIDE in value or name == "UV_LINK_MODE"


def test_without_a_folder_there_is_neither_mount_nor_variable() -> None:
    found = plan(cache="")
    assert not [step for step in found.steps if step.verb == "cache"]
    assert "XDG_CACHE_HOME" not in dict(found.environment)
    assert any("not kept" in note for note in found.notes)
    assert caches.INSIDE not in found.writable


def test_the_policys_own_value_goes_first() -> None:
    policy = POLICY._replace(toolchains=("go",), set_values=(("GOPATH", "/elsewhere"),))
    found = build(policy, FACTS._replace(cache=KEPT), ("true",))
    assert dict(found.environment)["GOPATH"] == "/elsewhere"


@pytest.mark.parametrize("given", [f"{HOME}/.cache/torch", f"{HOME}/.cache"])
def test_a_given_folder_in_the_usual_place_stays_there(given: str) -> None:
    found = plan(read=(folder(given),))
    assert not steps(found, "link", f"{HOME}/.cache")
    assert steps(found, "cache", caches.INSIDE)


def test_a_settings_file_is_written_for_the_part_that_needs_it_unless_its_folder_is_given() -> None:
    path = f"{HOME}/.config/pnpm/rc"
    assert steps(plan(), "file", path)[0].source == f"store-dir={caches.INSIDE}/pnpm\n"
    assert not steps(plan(parts=("go",)), "file", path)
    assert not steps(plan(read=(folder(f"{HOME}/.config"),)), "file", path)
