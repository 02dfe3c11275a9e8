"""The staging folder of an apply: one that nobody made is left alone, and what is forged in ours goes nowhere."""

from pathlib import Path

import pytest

from jail.hold import journal
from jail.hold.change import Change
from support import steps
from support.holding import Holding, edited, lay, seen


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def test_a_planted_staging_folder_is_nobodys(held: Holding) -> None:
    lay(held.tree, {".jail-apply-0123456789abcdef/1": "planted"})
    held.begin()
    lay(held.upper, {"file": "x"})
    assert held.finish() is None
    held.apply([held.change("file")])
    assert seen(held.tree) == {
        ".jail-apply-0123456789abcdef": None,
        ".jail-apply-0123456789abcdef/1": "planted",
        "file": "x",
    }


def test_what_was_staged_and_then_forged_is_never_applied(held: Holding) -> None:
    """Whoever writes the workspace after a kill can write the staging folder too."""
    chosen = edited(held).every()
    assert any(left_committed(held, chosen, number) for number in range(1, 400))
    (folder,) = held.tree.glob(".jail-apply-*")
    for slot in folder.iterdir():
        if slot.is_file():
            slot.write_text("forged")
    applied = held.finish()
    assert applied is not None
    assert "forged" not in seen(held.tree).values()
    assert {each.conflict for each in applied.conflicts} == {"what was staged for it was changed"}


def left_committed(held: Holding, chosen: list[Change], at: int) -> bool:
    """Whether a kill at this call leaves an apply that has committed; one that has not is tidied up."""
    with steps.unsynced():
        steps.failing(lambda: held.apply(chosen), at, steps.KILL)
    if journal.state(str(held.session)) == journal.COMMITTED:
        return True
    held.finish()
    return False
