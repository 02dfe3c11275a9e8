"""How much a session holds: weighed in slices, whatever the command does to hide it."""

import os
import time
from pathlib import Path

import pytest

from jail.launch import heldsize
from jail.launch.heldsize import HeldSize
from jail.plan.held import COPY, OVERLAY, Held

MIB = 1 << 20


def held(folder: Path, kind: str) -> tuple[Path, tuple[Held, ...]]:
    """A session's folder with one tree, and where that is."""
    root = folder / "t0" / ("upper" if kind == OVERLAY else "tree")
    root.mkdir(parents=True)
    return root, (Held("t0", kind, "/srv/x", ""),)


def over(size: HeldSize) -> bool:
    """The answer of a whole look."""
    size.start(time.monotonic())
    for _ in range(10_000):
        found = size.over()
        if found or size.due - time.monotonic() > heldsize.PAUSE / 2:
            return found
    raise AssertionError("a look without end")


@pytest.mark.parametrize("kind", [OVERLAY, COPY])
def test_what_was_there_before_does_not_count_and_what_comes_does(tmp_path: Path, kind: str) -> None:
    root, things = held(tmp_path, kind)
    if kind == COPY:
        (root / "before").write_bytes(b"x" * 2 * MIB)
    size = HeldSize(str(tmp_path), things, MIB, heldsize.copied(str(tmp_path), things))
    assert not over(size)
    (root / "a").mkdir()
    (root / "a" / "new").write_bytes(b"x" * 2 * MIB)
    assert over(size)


@pytest.mark.parametrize("mode", [0, 0o300, 0o400])
def test_a_folder_that_was_closed_is_weighed_too_and_stays_closed(tmp_path: Path, mode: int) -> None:
    root, things = held(tmp_path, OVERLAY)
    size = HeldSize(str(tmp_path), things, MIB)
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "new").write_bytes(b"x" * (MIB // 2))
    (root / "a" / "b").chmod(0)
    (root / "a").chmod(mode)
    root.chmod(mode)
    assert not over(size)
    root.chmod(0o700)
    (root / "other").write_bytes(b"x" * (MIB // 2 + 4096))
    root.chmod(mode)
    assert over(size)
    modes = [root.stat().st_mode & 0o777]
    for path in (root, root / "a", root / "a" / "b"):
        path.chmod(0o700)
        modes += [(path / name).stat().st_mode & 0o777 for name in ("a", "b") if (path / name).is_dir()]
    assert modes == [mode, mode, 0]


def test_a_file_counts_once_and_a_hole_not(tmp_path: Path) -> None:
    root, things = held(tmp_path, OVERLAY)
    size = HeldSize(str(tmp_path), things, MIB)
    (root / "new").write_bytes(b"x" * (MIB // 2 + 1))
    for name in "abc":
        os.link(root / "new", root / name)
    os.truncate(root / "a", 1 << 40)
    assert not over(size)


def test_held_files_count(tmp_path: Path) -> None:
    _, things = held(tmp_path, OVERLAY)
    (tmp_path / "files" / "f0").mkdir(parents=True)
    size = HeldSize(str(tmp_path), things, MIB)
    (tmp_path / "files" / "f0" / "config").write_bytes(b"x" * 2 * MIB)
    assert over(size)


def test_a_look_is_taken_in_slices_that_wait_for_as_long_as_they_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, things = held(tmp_path, OVERLAY)
    for name in range(20):
        (root / str(name)).mkdir()
    size = HeldSize(str(tmp_path), things, MIB)
    clock = iter(range(10_000))
    monkeypatch.setattr(heldsize.time, "monotonic", lambda: float(next(clock)))
    before = float(next(clock))
    assert not size.over()
    took = next(clock) - before
    assert size.due - before > heldsize.SHARE * (took - 2) > 0
