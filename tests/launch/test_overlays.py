"""Which trees an overlay can hold: tried with the steps of a run, and nothing of it stays."""

import os
from pathlib import Path

import pytest

from jail.launch import overlays
from jail.ledger import place
from jail.plan.facts import Facts
from support.hosts import FACTS, folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder that is not there yet."""
    return tmp_path / "state" / "jail"


def held(tree: Path) -> Facts:
    """Facts of a run that holds a tree of ours."""
    tree.mkdir(exist_ok=True)
    found = folder(str(tree))
    found = found._replace(device=tree.stat().st_dev, inode=tree.stat().st_ino)
    return FACTS._replace(uid=os.geteuid(), gid=os.getegid(), workspace=found, hold=(found,), repository=None)


def test_a_tree_that_can_be_held_has_no_reason_against_it_and_no_trace_is_left(
    tmp_path: Path, state: Path
) -> None:
    tree = tmp_path / "tree"
    facts = held(tree)
    (tree / "file").write_text("x")
    before = tree.stat()
    found = overlays.look(facts, {}, str(state))
    assert (found.no_overlay, found.sizes, found.submounts, found.strange) == ((), (), (), ())
    assert tree.stat() == before
    assert os.listdir(tree) == ["file"]
    assert os.listdir(state / place.SESSIONS) == []


def test_a_tree_that_no_overlay_can_hold_says_why_and_is_weighed(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that is another inode than the survey saw stands in for a file system that refuses."""
    tree = tmp_path / "tree"
    facts = held(tree)
    (tree / "a").mkdir()
    (tree / "a" / "file").write_bytes(b"x" * 10_000)
    monkeypatch.setattr(overlays, "_ATTRIBUTE", "security.jail")  # none that we may set
    ((path, why),) = overlays.look(facts, {}, str(state)).no_overlay
    assert path == str(tree)
    assert str(state) in why
    ((_, size, entries),) = overlays.look(facts, {}, str(state)).sizes
    assert 10_000 <= size < 1 << 20
    assert entries == 2
    assert os.listdir(state / place.SESSIONS) == []


def test_the_kernels_own_words_are_the_reason(tmp_path: Path, state: Path) -> None:
    """Procfs can be the lower layer of no overlay of ours; it stands in for what a host may have."""
    facts = held(tmp_path / "tree")._replace(hold=(folder("/proc/sys"),))
    found = dict(overlays.look(facts, {}, str(state)).no_overlay)
    assert "EINVAL" in found["/proc/sys"]


def test_a_tree_of_somebody_else_is_told(tmp_path: Path, state: Path) -> None:
    facts = held(tmp_path / "tree")
    assert overlays.look(facts._replace(gid=facts.gid + 1), {}, str(state)).strange == (
        str(tmp_path / "tree"),
    )


def test_mounts_in_a_tree_are_found_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = tmp_path / "a tree"
    (tree / "in" / "deep").mkdir(parents=True)
    (tree / "one").write_text("")
    shown = str(tree).replace(" ", "\\040")
    rows = [
        f"1 2 0:1 / {path} rw - tmpfs none rw"
        for path in (shown, f"{shown}/in", f"{shown}/in/deep", f"{shown}/one", f"{shown}x")
    ]
    monkeypatch.setattr(overlays, "_mountinfo", lambda: [*rows, ""])
    found = overlays.look(held(tree), {}, str(tmp_path / "state" / "jail"))
    assert found.submounts == (
        (f"{tree}/in", "folder"),
        (f"{tree}/in/deep", "folder"),
        (f"{tree}/one", "file"),
    )
    assert dict(found.no_overlay).keys() == {str(tree), f"{tree}/in"}
    assert "there are mounts in it" in dict(found.no_overlay)[str(tree)]


def test_weighing_ends_where_a_copy_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlays, "COPY_ENTRIES", 3)
    for name in "abcde":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
    assert overlays.weigh(str(tmp_path))[1] == 5
