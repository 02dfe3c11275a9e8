"""The base of a held tree: written and read as a stream, whole or not at all, whatever the names."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.hold import base
from support.overlays import deepen, in_memory

LATER = 1 << 62
ODD = ["-rf", "new\nline", "\udcff\udcfe", " ", "é", "a" * 255, "*", ">0", ".5", "a=b c"]


def anything(_path: str) -> bool:
    return True


def taken(tree: Path, held: Path, started_ns: int = LATER) -> base.Entries:
    snap(tree, held, started_ns)
    return base.read(str(held), "t0", anything)


def snap(tree: Path, held: Path, started_ns: int = LATER) -> None:
    (held / "base").mkdir(parents=True, exist_ok=True)
    fd = os.open(tree, os.O_PATH)
    try:
        base.snapshot(fd, base.file_of(str(held), "t0"), started_ns)
    finally:
        os.close(fd)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def test_each_name_is_there_with_what_is_compared_later(tree: Path, tmp_path: Path) -> None:
    (tree / "d").mkdir(mode=0o750)
    (tree / "d/f").write_text("content")
    os.chmod(tree / "d/f", 0o4711)
    (tree / "link").symlink_to("d/\udcff")
    os.mkfifo(tree / "pipe")
    entries = taken(tree, tmp_path / "held")
    assert entries.complete
    assert {path: entry.kind for path, entry in entries.items()} == {
        "": "folder",
        "d": "folder",
        "d/f": "file",
        "link": "symlink",
        "pipe": "special",
    }
    found = (tree / "d/f").stat()
    assert entries["d/f"] == base.Entry(
        "file", 0o4711, 7, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, "", 0, 0
    )
    assert entries["link"].digest == hashlib.sha256(b"d/\xff").hexdigest()
    assert entries["never was"] == base.ABSENT


@pytest.mark.parametrize("name", ODD)
def test_any_name_comes_back_as_it_was(tree: Path, tmp_path: Path, name: str) -> None:
    os.mkdir(tree / name)
    os.mkdir(tree / name / name)
    (tree / name / name / name).write_text("x")
    assert sorted(taken(tree, tmp_path / "held")) == ["", name, f"{name}/{name}", f"{name}/{name}/{name}"]


def test_only_what_is_wanted_is_kept_and_a_folder_is_asked_for_before_its_content(
    tree: Path, tmp_path: Path
) -> None:
    for name in ("a/b/c", "a-/b", "z"):
        (tree / name).mkdir(parents=True)
    snap(tree, tmp_path / "held")
    asked: list[str] = []

    def wanted(path: str) -> bool:
        asked.append(path)
        return path == "a/b"

    assert list(base.read(str(tmp_path / "held"), "t0", wanted)) == ["a/b"]
    assert sorted(asked) == ["", "a", "a-", "a-/b", "a/b", "a/b/c", "z"]
    assert all(asked.index(path.rpartition("/")[0]) < asked.index(path) for path in asked if path)


def test_what_changed_since_the_run_began_is_unknown(tree: Path, tmp_path: Path) -> None:
    (tree / "old").write_text("x")
    time.sleep(0.02)
    started = time.time_ns()
    time.sleep(0.02)
    (tree / "new").write_text("x")
    entries = taken(tree, tmp_path / "held", started)
    assert entries["old"].kind == "file"
    assert entries["new"] == base.UNKNOWN
    assert entries[""] == base.UNKNOWN


def test_ten_thousand_levels_are_read_and_written() -> None:
    with in_memory() as folder:
        (folder / "tree").mkdir()
        deepen(folder / "tree", 10_000)
        snap(folder / "tree", folder / "held")
        assert (folder / "held/base/t0").stat().st_size < 2_000_000
        deepest = "d/" * 10_000 + "leaf"
        assert list(base.read(str(folder / "held"), "t0", lambda path: path == deepest)) == [deepest]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


def turned(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"f ", b"q "))


def short(path: Path) -> None:
    path.write_bytes(b"\0".join(path.read_bytes().split(b"\0")[:-3]))


def renamed(path: Path) -> None:
    path.rename(path.with_name("t0.new"))


@pytest.mark.parametrize("spoil", [cut, turned, short, renamed, os.unlink, lambda path: os.truncate(path, 0)])
def test_of_a_base_that_is_not_whole_every_entry_is_unknown(
    tree: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    (tree / "f").write_text("x")
    snap(tree, tmp_path / "held")
    spoil(tmp_path / "held/base/t0")
    entries = base.read(str(tmp_path / "held"), "t0", anything)
    assert not entries.complete
    assert dict(entries) == {}
    assert entries["f"] == entries["g"] == base.UNKNOWN


def test_a_snapshot_that_fails_leaves_no_base(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "a").mkdir()
    (tree / "b").mkdir()
    monkeypatch.setattr("jail.kernel.walk.FOLDER_ENTRIES", 1)
    with pytest.raises(OSError, match="cannot all be listed"):
        snap(tree, tmp_path / "held")
    assert not (tmp_path / "held/base/t0").exists()


def test_what_is_pinned_wins_and_the_last_pin_wins(tree: Path, tmp_path: Path) -> None:
    (tree / "f").write_text("x")
    held = tmp_path / "held"
    snap(tree, held)
    base.pin(str(held), "t0", {"f": base.Entry("file", 0o600, 1), "\udcff/new\nname": base.Entry("folder")})
    base.pin(str(held), "t0", {"f": base.ABSENT, "g": base.Entry("file", 0o644, 3, own_ino=5)})
    entries = base.read(str(held), "t0", anything)
    assert entries["f"] == base.ABSENT
    assert entries["g"] == base.Entry("file", 0o644, 3, own_ino=5)
    assert entries["\udcff/new\nname"].kind == "folder"
    assert set(base.read(str(held), "t0", lambda path: path == "g")) == {"g"}
    os.unlink(held / "base/t0")
    alone = base.read(str(held), "t0", anything)
    assert not alone.complete
    assert (alone["g"].size, alone["other"]) == (3, base.UNKNOWN)


def test_a_pin_that_was_cut_short_counts_for_nothing_and_spoils_no_other(tree: Path, tmp_path: Path) -> None:
    held = tmp_path / "held"
    snap(tree, held)
    since = held / "base/t0.since"
    base.pin(str(held), "t0", {"long/name": base.Entry("file", 0o600, 1)})
    for left in range(1, since.stat().st_size):
        since.write_bytes(since.read_bytes()[:left])
        base.pin(str(held), "t0", {"g": base.Entry("file", 0o644, 3)})
        entries = base.read(str(held), "t0", anything)
        assert set(entries) - {"long/name"} == {"", "g"}
        assert entries["long/name"] in (base.ABSENT, base.Entry("file", 0o600, 1))
        since.unlink()
        base.pin(str(held), "t0", {"long/name": base.Entry("file", 0o600, 1)})


def test_folders_that_may_not_be_read_have_no_entries_and_stop_nothing(tree: Path, tmp_path: Path) -> None:
    (tree / "closed/in").mkdir(parents=True)
    (tree / "open").mkdir()
    os.chmod(tree / "closed", 0)
    try:
        entries = taken(tree, tmp_path / "held")
        assert entries.complete
        assert {"closed", "open"} <= set(entries)
        assert (tree / "closed").stat().st_mode & 0o777 == 0
    finally:
        os.chmod(tree / "closed", 0o700)


def test_the_symlinks_of_a_base_are_listed_and_nothing_else(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/l").write_text("l is a file")
    for path in ("top", "a/x", "a/b/y", "z"):
        (tree / path).symlink_to("nowhere")
    (tmp_path / "base").mkdir()
    fd = os.open(tree, os.O_RDONLY)
    try:
        base.snapshot(fd, f"{tmp_path}/base/t0", 1 << 62)
    finally:
        os.close(fd)
    assert set(base.symlinks(str(tmp_path), "t0")) == {"top", "a/x", "a/b/y", "z"}
    assert list(base.symlinks(str(tmp_path), "t1")) == []
