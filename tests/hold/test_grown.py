"""Each field of a manifest has its rule for a run that goes on from another: what judges only grows."""

from typing import Any

import pytest

from jail.errors import JailError
from jail.hold import grown
from jail.hold.store import Manifest
from jail.plan.held import COMMANDS, FILE, GIT_CONFIG, OVERLAY, Held

TREE = Held("t0", OVERLAY, "/w", "the workspace", COMMANDS, ("/w/.venv/bin",))
CONFIG = Held("f0", FILE, "/x/.git/config", "git", GIT_CONFIG)
OLD = Manifest(
    "old", "/w", 1000, 1000, -1, 7, ("/w/.venv/bin", "/bin"), (TREE, CONFIG), "older", ("t0", "f0")
)
NEW = OLD._replace(session="new", resumed="")
CHANGED: dict[str, tuple[Any, Any, Any]] = {
    "session": ("old", "new", "new"),
    "started_ns": (7, 9, 9),
    "path": (("/w/.venv/bin", "/bin"), ("/bin", "/more"), ("/bin", "/more", "/w/.venv/bin")),
    "resumed": ("older", "", "old"),
    "unasked": (("f0",), ("t0", "f0", "t1"), ("f0", "t1")),
    "guarded": ((("/w/a", "x"), ("/w/b", "y")), (("/w/b", "y"),), (("/w/b", "y"), ("/w/a", "x"))),
    "held": ((TREE,), (TREE._replace(commands=()), CONFIG), (TREE, CONFIG)),
}
"""Of the old run, of the new one, and what it becomes."""
EQUAL = ("workspace", "uid", "gid", "idmap_from")
CHANGED_IN_THING: dict[str, tuple[Any, Any, Any]] = {
    "why": ("a", "b", "b"),
    "deliver": (COMMANDS, "", ""),
    "commands": (("/w/a", "/w/b"), ("/w/b", "/w/c"), ("/w/b", "/w/c", "/w/a")),
}
EQUAL_IN_THING = ("name", "kind", "path")


def test_every_field_has_a_rule_and_a_case() -> None:
    assert sorted(grown.RULES) == sorted(Manifest._fields) == sorted((*CHANGED, *EQUAL))
    assert (
        sorted(grown.RULES_OF_THING) == sorted(Held._fields) == sorted((*CHANGED_IN_THING, *EQUAL_IN_THING))
    )


@pytest.mark.parametrize("name", CHANGED)
def test_a_field_becomes_what_its_rule_says(name: str) -> None:
    old, new, becomes = CHANGED[name]
    found = grown.grown(OLD._replace(**{name: old}), NEW._replace(**{name: new}))
    assert getattr(found, name) == becomes


@pytest.mark.parametrize("name", CHANGED_IN_THING)
def test_a_field_of_a_thing_becomes_what_its_rule_says(name: str) -> None:
    old, new, becomes = CHANGED_IN_THING[name]
    befores = OLD._replace(held=(TREE._replace(**{name: old}),))
    (thing,) = grown.grown(befores, NEW._replace(held=(TREE._replace(**{name: new}),))).held
    assert getattr(thing, name) == becomes


@pytest.mark.parametrize("name", EQUAL)
def test_what_must_be_equal_is(name: str) -> None:
    with pytest.raises(JailError, match=name):
        grown.grown(OLD, NEW._replace(**{name: "another"}))


@pytest.mark.parametrize("words", [("", GIT_CONFIG), (COMMANDS, GIT_CONFIG), (GIT_CONFIG, "")])
def test_a_git_config_stays_one_and_is_delivered_by_nobody_who_was_not_asked_twice(
    words: tuple[str, str],
) -> None:
    old, new = (
        each._replace(held=(CONFIG._replace(deliver=word),))
        for each, word in zip((OLD, NEW), words, strict=True)
    )
    found = grown.grown(old, new)
    assert (found.held[0].deliver, found.unasked) == (GIT_CONFIG, ("t0",))


def test_a_third_run_has_what_the_first_one_had() -> None:
    second = grown.grown(
        OLD, NEW._replace(path=("/bin",), held=(TREE._replace(commands=()), CONFIG), unasked=())
    )
    third = grown.grown(second, NEW._replace(session="third", path=("/bin",)))
    assert set(third.path) == set(OLD.path)
    assert third.held[0].commands == TREE.commands
    assert third.unasked == ()
