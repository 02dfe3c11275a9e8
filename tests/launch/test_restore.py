"""Which mounts are looked after; that they come back is tried in tests/inside and tests/escape."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from jail.launch import restore
from jail.plan.steps import Step


class Steps:
    """Steps that count how often somebody went through them."""

    def __init__(self, *steps: Step) -> None:
        self._steps = steps
        self.walks = 0

    def __iter__(self) -> Iterator[Step]:
        self.walks += 1
        return iter(self._steps)


@pytest.fixture
def looked_after(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Targets of what a guard takes into its care, without a mount."""
    found: list[str] = []
    monkeypatch.setattr(restore.Guard, "_hold", lambda _, step: found.append(step.target))
    return found


def guard(steps: Steps) -> None:
    restore.Guard(SimpleNamespace(plan=SimpleNamespace(steps=steps), trees={"/w": -1}), None)  # type: ignore[arg-type]  # nothing else is asked


def test_what_is_mounted_in_a_held_tree_comes_and_goes_with_it(looked_after: list[str]) -> None:
    guard(
        Steps(
            Step("overlay", "/w/a", "/w", ("t0",)),
            Step("pin", "/w/a/b", "/w"),
            Step("copy", "/w/a/b/c", "/w", ("t1",)),
            Step("protect", "/w/ab", "/w", ("file",)),
            Step("protect", "/elsewhere/x", "/elsewhere", ("file",)),
        )
    )
    assert looked_after == ["/w/a", "/w/ab"]


def test_what_is_held_is_listed_once_for_all_steps(looked_after: list[str]) -> None:
    steps = Steps(*(Step("protect", f"/w/{name}", "/w", ("file",)) for name in range(100)))
    guard(steps)
    assert len(looked_after) == 100
    assert steps.walks <= 2
