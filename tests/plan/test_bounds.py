"""Limits of a plan: narrowed to what the host and the caller have, and who keeps memory within them."""

import pytest

from jail.plan import bounds, text
from jail.plan.build import build
from support.hosts import FACTS, POLICY

GROUP = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice"
GIB = 1 << 30


@pytest.mark.parametrize(
    ("allowed", "present", "bound"),
    [
        (8 * GIB, 64 * GIB, 8 * GIB),
        (16 * GIB, 16 * GIB, 12 * GIB),
        (16 * GIB, (16 << 30) - 12345, (12 << 30) - (1 << 20)),  # whole MiB
        (16 * GIB, 512 << 20, 384 << 20),
        (16 * GIB, 0, 16 * GIB),  # the host does not tell
    ],
)
def test_memory_is_the_lesser_of_the_policys_and_three_quarters_of_the_hosts(
    allowed: int, present: int, bound: int
) -> None:
    policy, facts = POLICY._replace(memory_bytes=allowed), FACTS._replace(memory_most=present)
    plan = build(policy, facts, ("true",))
    assert dict(plan.limits)["memory_bytes"] == bound
    assert any("memory is bounded by 3/4" in note for note in plan.notes) == (bound < allowed)


def test_the_callers_own_hard_limits_are_not_passed() -> None:
    found = dict(bounds.limits(POLICY, FACTS._replace(processes_hard=100, open_files_hard=-1)))
    assert (found["processes"], found["open_files"]) == (100, POLICY.open_files)


def test_with_a_control_group_nothing_is_lost_and_the_plan_says_by_what() -> None:
    plan = build(POLICY, FACTS._replace(cgroup=GROUP, no_cgroup=""), ("true",))
    assert not [loss for loss in plan.losses if loss.name == "limits-memory"]
    assert plan.cgroup == GROUP
    assert "8 GiB of memory, by a control group" in "\n".join(text.lines(plan, POLICY.accept))


def test_without_one_jail_watches_and_memory_is_a_loss_with_its_reason() -> None:
    plan = build(POLICY, FACTS, ("true",))
    (loss,) = [loss for loss in plan.losses if loss.name == "limits-memory"]
    assert FACTS.no_cgroup in loss.what
    assert "watched by jail" in "\n".join(text.lines(plan, POLICY.accept))


def test_a_group_that_could_not_be_made_gives_the_plan_of_a_host_without_one() -> None:
    facts = FACTS._replace(cgroup=GROUP, no_cgroup="")
    tried = bounds.watched_instead(build(POLICY, facts, ("true",)), "mkdir: No space left on device")
    assert tried == build(
        POLICY, FACTS._replace(cgroup="", no_cgroup="mkdir: No space left on device"), ("true",)
    )
