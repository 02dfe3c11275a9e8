"""From a plan to a run: the control group that the plan names is made, or the plan is changed and said again."""

from pathlib import Path

import pytest

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.launch import places, start
from jail.launch.survey import Caller
from jail.ledger.place import Session
from jail.plan.build import build
from jail.plan.held import COPY, FILE, OVERLAY, Held
from jail.plan.steps import Loss
from jail.policy.flags import CHANGES
from support.hosts import FACTS, POLICY, folder


def prepared(group: str, *, accept: tuple[str, ...]) -> start.Prepared:
    policy = POLICY._replace(accept=accept)
    plan = build(policy, FACTS._replace(cgroup=group, no_cgroup=""), ("true",))
    return start.Prepared(policy, plan, places.Own("", "", ""), {}, ())


@pytest.mark.parametrize(
    ("losses", "person", "said"),
    [
        ((), True, ""),
        (("limits-memory",), True, "without limits-memory, which policy"),
        (("limits-memory",), False, ""),
        (("limits-memory", "landlock"), False, "without landlock, which policy"),
        (("limits-memory", "landlock"), True, "without limits-memory, landlock, which policy"),
    ],
)
def test_losses_are_named_and_what_jail_watches_itself_to_a_person_alone(
    losses: tuple[str, ...],
    person: bool,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = prepared("", accept=losses)
    plan = given.plan._replace(losses=tuple(Loss(name, "lost", "mend") for name in losses))
    monkeypatch.setattr(start.os, "isatty", lambda fd: person and fd == 2)
    start._show_losses(given._replace(plan=plan))
    shown = capsys.readouterr().err
    assert said in shown
    assert bool(shown) == bool(said)


SESSION = Session("20260101-000000-abcdefgh", "/nowhere", -1)


def test_without_a_delegated_group_none_is_made() -> None:
    given = prepared("", accept=("limits-memory",))
    assert start._grouped(given, SESSION) == (given, "")


def test_a_group_that_cannot_be_made_leaves_memory_to_jails_own_watch_and_the_plan_says_so(
    tmp_path: Path,
) -> None:
    given = prepared(str(tmp_path / "gone"), accept=("limits-memory",))
    found, group = start._grouped(given, SESSION)
    assert group == ""
    assert found.plan.cgroup == ""
    assert [loss.name for loss in found.plan.losses] == ["limits-memory"]
    assert "cgroup.subtree_control" in found.plan.losses[0].what, "the call that failed"


def test_where_the_policy_does_not_accept_that_nothing_runs(tmp_path: Path) -> None:
    given = prepared(str(tmp_path / "gone"), accept=())
    assert start.refused(given) is None
    with pytest.raises(JailError, match="limits-memory") as caught:
        start._grouped(given, SESSION)
    assert caught.value.code == EXIT_CANNOT_ISOLATE


def test_what_is_held_counts_as_written_for_the_runs_to_come() -> None:
    """A link that the command lays there reaches the host when the change is applied."""
    plan = build(POLICY, FACTS._replace(write=(folder("/srv/out"),)), ("true",))
    work = FACTS.workspace.real
    things = (
        Held("t0", OVERLAY, "/srv/lib", "hold"),
        Held("t1", COPY, f"{work}/.venv", "PATH"),
        Held("f0", FILE, "/srv/git/config", "its keys make git run programs"),
    )
    written = start._written_trees(plan._replace(held=things))
    assert sorted(written) == [work, "/srv/lib", "/srv/out"], "what lies in a written tree is known already"


PATHS = {"write": ("/w",), "hold_path": ("/c",), "read": ("/r",), "hide": ("/h",)}
OPTIONS = {**PATHS, "hold": True, "env": ("A=1",), "timeout": "0", "gpu": True}
CALLER = Caller({}, "/home/ada", "/", "/home/ada/src")


@pytest.mark.parametrize("option", CHANGES)
def test_each_option_of_the_policy_alone_changes_it(option: str) -> None:
    options = start.Options()._replace(**{option: OPTIONS[option]})
    assert start.with_options(POLICY, options, CALLER) != POLICY


def test_other_options_leave_the_policy_as_it_is() -> None:
    options = start.Options(policy="x", workspace="/y", status_file="z", json=True, resume="last")
    assert start.with_options(POLICY, options, CALLER) is POLICY


def test_a_timeout_that_is_empty_is_a_fault_and_not_none() -> None:
    with pytest.raises(JailError, match="the command line has a fault"):
        start.with_options(POLICY, start.Options(timeout=""), CALLER)
