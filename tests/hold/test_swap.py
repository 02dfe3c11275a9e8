"""A swap and what the host does meanwhile: its side stays, wherever it comes in, and that path is a conflict."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jail.hold import names, swap
from jail.hold.transaction import Transaction
from support.holding import Holding, edited, lay, reasons, seen, state


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def edit(path: Path) -> None:
    path.write_text("the host's")


def replace(path: Path) -> None:
    path.with_name(".saved").write_text("the host's")
    path.with_name(".saved").replace(path)


HOST_ACTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "an edit in place": ("changed", edit),
    "an editor's rename": ("changed", replace),
    "a removal": ("changed", Path.unlink),
    "a change of mode": ("changed", lambda path: path.chmod(0o600)),
    "another file where one is added": ("new", edit),
    "a symlink where one is added": ("new", lambda path: path.symlink_to("changed")),
    "an edit of what is deleted": ("deleted", edit),
    "a file in a folder that is deleted": ("gone/more", edit),
    "a file in a folder that becomes a file": ("to-file/more", edit),
    "a folder where a file was": ("changed", lambda path: (path.unlink(), path.mkdir())),
}


@pytest.mark.parametrize("act", HOST_ACTS)
@pytest.mark.parametrize("when", ["after the list", "while it is applied"])
def test_what_the_host_changed_stays_and_is_a_conflict_of_that_path_alone(
    held: Holding, monkeypatch: pytest.MonkeyPatch, act: str, when: str
) -> None:
    path, do = HOST_ACTS[act]
    chosen = edited(held).every()
    if when == "after the list":
        do(held.tree / path)
    else:
        real = swap.forward
        pending = [lambda: do(held.tree / path)]

        def forward(*arguments: Any) -> None:
            while pending:
                pending.pop()()
            real(*arguments)

        monkeypatch.setattr(swap, "forward", forward)
    applied = held.apply(chosen)
    top = path.partition("/")[0]
    assert {each.path for each in applied.conflicts} == {top}, seen(held.tree)
    assert seen(held.tree)["other/x"] == "y"
    if do in (edit, replace):
        assert (held.tree / path).read_text() == "the host's"
    assert held.left() == []
    if top in seen(held.upper):
        assert state(held.upper / top) == next(each.new for each in chosen if each.path == top)


def test_a_late_write_through_an_open_file_goes_back_to_its_place(
    held: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = edited(held).every()
    file = (held.tree / "changed").open("r+")
    real = swap.completed

    def late(*arguments: Any) -> None:
        file.write("late")
        file.flush()
        real(*arguments)

    lay(held.upper, {"folder/x": "x"})
    monkeypatch.setattr(swap, "completed", late)
    applied = held.apply([*chosen, held.change("folder"), held.change("folder/x")])
    file.close()
    assert {each.path for each in applied.conflicts} == {"changed"}
    assert (held.tree / "changed").read_text() == "late"
    assert held.left() == []


@pytest.mark.parametrize("when", ["after the list", "while it is applied"])
def test_a_symlink_in_place_of_a_parent_leads_nowhere(
    held: Holding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    outside = tmp_path / "outside"
    lay(outside, {"x": "outside", "sub/x": "outside"})
    chosen = edited(held).every()

    def swapped() -> None:
        (held.tree / "other").rename(tmp_path / "moved")
        (held.tree / "other").symlink_to(outside)

    if when == "after the list":
        swapped()
    else:
        commit = Transaction.commit
        monkeypatch.setattr(Transaction, "commit", lambda work: (swapped(), commit(work)))
    applied = held.apply(chosen)
    assert {each.path for each in applied.conflicts} == {"other/x"}
    assert seen(outside) == {"sub": None, "sub/x": "outside", "x": "outside"}


def test_a_folder_that_may_not_be_written_is_a_conflict(held: Holding) -> None:
    lay(held.tree, {"shut/file": "old", "open": "old"})
    os.chmod(held.tree / "shut", 0o500)
    held.begin()
    lay(held.upper, {"shut/file": "new", "open": "new"})
    applied = held.apply([held.change("shut/file"), held.change("open")])
    assert reasons(applied.conflicts) == {"shut/file": "you may not write its folder on the host"}
    assert seen(held.tree) == {"shut": None, "shut/file": "old", "open": "new"}
    os.chmod(held.tree / "shut", 0o700)


def linked(slot: Path) -> None:
    os.link(slot, slot.parent.parent.parent / f"second-{slot.name}")


def written_with_its_old_time(slot: Path) -> None:
    found = slot.stat()
    slot.write_text("evil")
    os.utime(slot, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize("touch", [linked, written_with_its_old_time])
def test_what_somebody_touched_while_it_was_staged_is_taken_back(
    held: Holding, monkeypatch: pytest.MonkeyPatch, touch: Callable[[Path], None]
) -> None:
    """Another session that writes the tree can, as the same user."""
    lay(held.tree, {"changed": "old"})
    held.begin()
    lay(held.upper, {"changed": "good", "new": "good", "other": "good"})
    forward = Transaction.forward

    def after(work: Transaction) -> None:
        (staging,) = held.tree.glob(f"{names.STAGING_PREFIX}*")
        for intent in work.intents:
            if intent.path != "other":
                touch(staging / intent.slot)
        forward(work)

    monkeypatch.setattr(Transaction, "forward", after)
    applied = held.apply()
    assert reasons(applied.conflicts) == {"changed": swap.TOUCHED, "new": swap.TOUCHED}
    assert seen(held.tree) == {"changed": "old", "other": "good"}
    assert held.left() == []
