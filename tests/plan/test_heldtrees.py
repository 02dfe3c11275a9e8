"""Held trees in a plan: what is mounted, what stays protected in them, and what is lost."""

from typing import Any

import pytest

from jail.errors import JailError
from jail.plan.build import build
from jail.plan.facts import Facts, Guarded, Repository
from jail.plan.held import COPY, COPY_BYTES, COPY_ENTRIES, OVERLAY
from jail.plan.steps import Plan, Step
from support import hosts
from support.hosts import HOME, POLICY, WORKSPACE, absent, folder

FACTS = hosts.FACTS._replace(
    guarded=tuple(guarded for guarded in hosts.FACTS.guarded if not guarded.path.endswith("config"))
)
VENV = f"{WORKSPACE}/.venv"
WHOLE: dict[str, Any] = {"hold": (folder(WORKSPACE)._replace(given="."),)}
ACTIVATED: dict[str, Any] = {
    "path": (*FACTS.path, folder(f"{VENV}/bin")),
    "command_trees": ((f"{VENV}/bin", VENV),),
}
GIT = tuple(guarded._replace(git=True) for guarded in hosts.FACTS.guarded if ".git" in guarded.path)


def plan(**fields: Any) -> Plan:
    return build(POLICY, FACTS._replace(**fields), ("true",))


def steps(found: Plan, target: str) -> list[tuple[str, ...]]:
    return [(each.verb, *each.options) for each in found.steps if each.target == target]


def no_overlay(path: str, size: int = 1, entries: int = 1) -> dict[str, Any]:
    return {"no_overlay": ((path, "EINVAL"),), "sizes": ((path, size, entries),)}


def test_a_held_workspace_is_read_only_beneath_its_overlay() -> None:
    found = plan(**WHOLE)
    assert steps(found, WORKSPACE) == [("bind", "ro"), ("overlay", "t0")]
    assert [(thing.name, thing.kind, thing.path) for thing in found.held] == [("t0", OVERLAY, WORKSPACE)]
    assert WORKSPACE in found.writable


def test_in_a_held_workspace_gits_names_are_held_and_the_others_stay_read_only() -> None:
    rest = tuple(guarded for guarded in FACTS.guarded if ".git" not in guarded.path)
    found = plan(**WHOLE, guarded=(*rest, *GIT))
    assert not [each for each in found.steps if each.target.startswith(f"{WORKSPACE}/.git")]
    assert steps(found, f"{WORKSPACE}/RESEARCH.md") == [("protect", "file")]
    assert found.watched == ()


def test_a_protected_name_is_held_where_a_rule_names_it() -> None:
    memory = f"{WORKSPACE}/.claude"
    guarded = Guarded(memory, "folder", "settings of an agent")
    found = plan(guarded=(guarded,), hold=(folder(memory),))
    assert steps(found, memory) == [("overlay", "t0")]
    found = plan(guarded=(guarded,), hold=(*WHOLE["hold"], folder(memory)))
    assert steps(found, memory) == []


def test_a_name_that_is_not_there_yet_may_be_held_in_a_held_workspace_and_nowhere_else() -> None:
    later = absent(f"{WORKSPACE}/CLAUDE.md")
    assert plan(hold=(*WHOLE["hold"], later)).held
    with pytest.raises(JailError, match="is absent"):
        plan(hold=(later,))


def test_a_path_tree_is_held_over_the_written_workspace_and_its_ancestors_are_pinned() -> None:
    tree = f"{WORKSPACE}/tools/venv"
    found = plan(path=(folder(f"{tree}/bin"),), command_trees=((f"{tree}/bin", tree),))
    assert steps(found, WORKSPACE) == [("keep", "ro"), ("bind", "rw")]
    assert steps(found, f"{WORKSPACE}/tools") == [("pin",)]
    assert steps(found, tree) == [("overlay", "t0")]
    assert steps(found, f"{tree}/bin") == []
    (held,) = found.held
    assert (held.deliver, held.commands) == ("commands", (f"{tree}/bin",))
    assert found.writable[0] == WORKSPACE
    assert tree not in found.writable
    assert dict(found.environment)["PATH"] == f"{tree}/bin"


def test_an_absent_path_folder_is_dropped_and_watched_as_before() -> None:
    bin_folder = f"{VENV}/bin"
    found = plan(path=(absent(bin_folder),), absent=(Guarded(bin_folder, "absent", "a PATH folder"),))
    assert found.held == ()
    assert (bin_folder, "a PATH folder") in found.watched


def test_where_no_overlay_can_be_had_a_small_tree_is_copied() -> None:
    found = plan(**ACTIVATED, **no_overlay(VENV, COPY_BYTES, COPY_ENTRIES))
    assert steps(found, VENV) == [("copy", "t0")]
    assert found.held[0].kind == COPY
    assert any("EINVAL" in note and VENV in note for note in found.notes)


@pytest.mark.parametrize(("size", "entries"), [(COPY_BYTES + 1, 1), (1, COPY_ENTRIES + 1)])
def test_a_larger_tree_is_read_only_which_is_a_loss(size: int, entries: int) -> None:
    found = plan(**ACTIVATED, **no_overlay(VENV, size, entries))
    assert steps(found, VENV) == [("protect", "folder")]
    assert found.held == ()
    (loss,) = [loss for loss in found.losses if loss.name == "hold"]
    assert VENV in loss.what
    assert "EINVAL" in loss.what
    assert "XDG_STATE_HOME" in loss.remedy
    found = plan(**WHOLE, **no_overlay(WORKSPACE, size, entries))
    assert steps(found, WORKSPACE) == [("bind", "ro")]
    assert WORKSPACE not in found.writable
    assert [loss.name for loss in found.losses].count("hold") == 1


def test_each_mount_in_a_held_tree_is_held_apart() -> None:
    data, one = f"{WORKSPACE}/data", f"{WORKSPACE}/one"
    found = plan(
        **WHOLE,
        **no_overlay(WORKSPACE),
        submounts=((data, "folder"), (one, "file")),
        sockets=(f"{data}/sock",),
    )
    assert steps(found, WORKSPACE) == [("bind", "ro"), ("copy", "t0")]
    assert steps(found, data) == [("bind", "ro"), ("overlay", "t1")]
    assert steps(found, one) == [("bind", "ro")]
    assert steps(found, f"{data}/sock") == [("hide", "socket")]
    (loss,) = [loss for loss in found.losses if loss.name == "hold"]
    assert f"{one} is read-only inside" in loss.what
    assert "mounts" in loss.remedy


def test_what_a_copy_may_not_have_is_hidden_only_if_it_is_there() -> None:
    found = plan(**WHOLE, **no_overlay(WORKSPACE), sockets=(f"{WORKSPACE}/sock",))
    assert steps(found, f"{WORKSPACE}/sock") == [("hide", "if-there")]


def test_what_is_read_or_written_by_name_in_a_held_workspace_is_the_real_thing() -> None:
    out, docs = f"{WORKSPACE}/out/deep", f"{WORKSPACE}/docs"
    found = plan(
        **WHOLE, write=(folder(out),), read=(folder(docs),), absent=(Guarded(f"{out}/x", "absent", "y"),)
    )
    assert steps(found, f"{WORKSPACE}/out") == [("pin",)]
    assert steps(found, out) == [("keep", "ro"), ("bind", "rw")]
    assert steps(found, docs) == [("protect", "folder")]
    order = [each.target for each in found.steps]
    assert order.index(out) > len(order) - 1 - order[::-1].index(WORKSPACE)
    assert found.watched == ((f"{out}/x", "y"),)


def test_a_tree_outside_is_given_and_held_by_one_rule() -> None:
    found = plan(hold=(folder("/srv/notes"),))
    assert steps(found, "/srv/notes") == [("bind", "ro"), ("overlay", "t0")]
    assert "/srv/notes" in found.writable
    with pytest.raises(JailError, match="credentials"):
        plan(hold=(folder(f"{HOME}/.ssh"),))


def test_the_git_folder_of_a_held_worktree_is_held() -> None:
    repository = Repository("/srv/main/.git/worktrees/engine", "/srv/main/.git", "")
    found = plan(**WHOLE, repository=repository)
    assert steps(found, "/srv/main/.git") == [("bind", "ro"), ("overlay", "t1")]


def test_what_is_not_the_commands_own_is_told() -> None:
    note = next(note for note in plan(**WHOLE, strange=(WORKSPACE,)).notes if "EOVERFLOW" in note)
    assert WORKSPACE in note


def test_the_readme_inside_says_what_is_held() -> None:
    def readme(found: Plan) -> str:
        return next(each.source for each in found.steps if each.target == "/run/jail/README")

    assert "EXDEV" in readme(plan(**WHOLE))
    assert "EXDEV" not in readme(plan())


def test_every_held_thing_has_its_step_and_every_step_its_thing() -> None:
    facts: Facts = FACTS._replace(
        **WHOLE, **no_overlay(WORKSPACE), submounts=((f"{WORKSPACE}/data", "folder"),)
    )
    found = build(POLICY, facts, ("true",))
    named = [
        (each.options[0], each.verb, each.target) for each in found.steps if each.verb in (OVERLAY, COPY)
    ]
    assert sorted(named) == sorted((thing.name, thing.kind, thing.path) for thing in found.held)
    assert isinstance(found.steps[0], Step)
