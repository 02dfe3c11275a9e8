"""The walk: any depth, any name, symlinks never followed, trees that change meanwhile."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.kernel import trees, walk

HOSTILE = ["-rf", "new\nline", "\udcff\udcfe", " ", "é", "a" * 255, "*", "$(id)"]


class Entry(NamedTuple):
    """One name that a walk met."""

    path: str
    name: str
    kind: str
    dirfd: int


def walked(dirfd: int, *, cross_mounts: bool = False) -> Iterator[Entry]:
    """Every entry beneath `dirfd`, as the callers of `folders` see them."""
    for folder in walk.folders(dirfd, cross_mounts=cross_mounts):
        for found in folder.entries:
            if kind := walk.kind_of(found):
                yield Entry(folder.join(found.name), found.name, kind, folder.fd)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def make_deep(top: int, levels: int, name: str) -> None:
    fd = os.dup(top)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("leaf", os.O_CREAT, dir_fd=fd))
    os.close(fd)


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_disk_usage_counts_each_file_once_and_no_more_than_asked(tmp_path: Path, opened: int) -> None:
    assert walk.disk_usage(opened) == 0
    for name in ("one", "two", "three"):
        (tmp_path / name).write_bytes(b"x" * (64 << 10))
    each = (tmp_path / "one").stat().st_blocks * 512
    assert walk.disk_usage(opened) == 3 * each >= 3 * (64 << 10)
    (tmp_path / "again").hardlink_to(tmp_path / "one")
    (tmp_path / "link").symlink_to("/usr")
    os.truncate(tmp_path / "two", 1 << 30)  # a hole takes nothing
    assert 3 * each <= walk.disk_usage(opened) < 4 * each
    assert walk.disk_usage(opened, most_entries=1) <= each
    assert each < walk.disk_usage(opened, most_bytes=each) <= 2 * each
    (tmp_path / "closed").mkdir(0)
    assert walk.disk_usage(opened) >= 3 * each
    assert (tmp_path / "closed").stat().st_mode & 0o777 == 0


def test_each_entry_is_met_once_with_its_path_and_kind_whatever_its_name(tmp_path: Path, opened: int) -> None:
    for name in HOSTILE:
        os.makedirs(tmp_path / "d" / name)
        (tmp_path / "d" / name / name).write_text("x")
    (tmp_path / "link").symlink_to("/")
    os.mkfifo(tmp_path / "pipe")
    met = {entry.path: entry.kind for entry in walked(opened)}
    expected = {"d": "folder", "link": "symlink", "pipe": "special"}
    expected |= {f"d/{name}": "folder" for name in HOSTILE}
    expected |= {f"d/{name}/{name}": "file" for name in HOSTILE}
    assert met == expected


def test_an_entry_can_be_opened_from_the_fd_of_its_folder(tmp_path: Path, opened: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("content")
    for entry in walked(opened):
        if entry.kind == "file":
            fd = os.open(entry.name, os.O_RDONLY, dir_fd=entry.dirfd)
            assert os.read(fd, 100) == b"content"
            os.close(fd)


def test_symlinks_to_folders_are_not_entered(tmp_path: Path, opened: int) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("x")
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "up").symlink_to("..")
    assert {entry.path for entry in walked(opened)} == {"real", "real/file", "alias", "up"}


@pytest.mark.parametrize(("levels", "name"), [(3_000, "d"), (40, "n" * 255)])
def test_a_tree_deeper_than_any_path_is_walked_and_removed_with_few_fds(
    memory: Path, levels: int, name: str
) -> None:
    opened = os.open(memory, os.O_RDONLY | os.O_DIRECTORY)
    make_deep(opened, levels, name)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = open_fds()
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + walk.OPEN_LEVELS + 8, hard))
    try:
        last = None
        count = 0
        for entry in walked(opened):
            last = entry
            count += 1
        assert count == levels + 1
        assert last is not None
        assert last.path == "/".join([name] * levels + ["leaf"])
        assert trees.digest_tree(opened).complete
        trees.remove_tree(opened, name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(memory) == []
    assert open_fds() == before
    os.close(opened)


@pytest.mark.usefixtures("emptied")
def test_wide_levels_above_deep_ones_are_all_met_on_the_way_back(tmp_path: Path, opened: int) -> None:
    fd = os.dup(opened)
    for _ in range(200):
        for name in ("a-file-side", "d", "z-side"):
            os.mkdir(name, dir_fd=fd)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert sum(1 for _ in walked(opened)) == 600


def test_a_folder_moved_away_during_the_walk_leads_it_neither_out_nor_astray(
    tmp_path: Path, opened: int
) -> None:
    deep = tmp_path / "tree"
    for level in range(60):
        deep = deep / f"{level}"
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
    (tmp_path / "tree/other").mkdir()
    (tmp_path / "tree/other/file").write_text("x")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    for number in range(20):
        (outside / f"side{number}").mkdir(parents=True)
        (outside / f"side{number}/secret").write_text("x")
        (tmp_path / f"tree/0/1/side{number}").mkdir()
        (tmp_path / f"tree/0/1/side{number}/plain").write_text("x")
    met = set()
    for entry in walked(opened):
        met.add(entry.path)
        if entry.path.endswith("/59"):
            os.rename(tmp_path / "tree/0/1/2", outside / "moved")
    assert "tree/other/file" in met
    assert {f"tree/0/1/side{number}/plain" for number in range(20)} <= met
    assert not any("secret" in path for path in met)


@pytest.mark.parametrize("across", [False, True])
def test_a_folder_swapped_for_a_symlink_during_the_walk_is_not_followed(
    tmp_path: Path, opened: int, across: bool
) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    outside.mkdir()
    (outside / "secret").write_text("x")
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "inner").mkdir()
    for entry in walked(opened, cross_mounts=across):
        assert entry.name != "secret"
        for name in "abc":
            if (tmp_path / name).is_symlink():
                continue
            os.rename(tmp_path / name, tmp_path / f"old-{name}")
            (tmp_path / name).symlink_to(outside)


def test_what_vanishes_during_the_walk_is_passed_over(tmp_path: Path, opened: int) -> None:
    for number in range(50):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "file").write_text("x")
    seen = 0
    for entry in walked(opened):
        seen += 1
        if seen == 1:
            for number in range(50):
                if f"{number}" != entry.name:
                    trees.remove_tree(opened, f"{number}")
    assert 50 <= seen <= 52


def test_of_folders_that_may_not_be_entered_only_the_first_are_named(
    tmp_path: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: int, name: str) -> int:
        raise PermissionError(13, "Permission denied", name)

    for number in range(5):
        (tmp_path / f"{number}").mkdir()
    monkeypatch.setattr(walk, "_enter", refuse)
    monkeypatch.setattr(walk, "DENIED", 3)
    (top,) = list(walk.folders(opened, in_order=True))
    assert top.denied == ["0", "1", "2"]


@pytest.mark.usefixtures("emptied")
def test_a_walk_that_is_given_up_leaves_no_fd_open(tmp_path: Path, opened: int) -> None:
    make_deep(opened, 100, "d")
    before = open_fds()
    for entry in walked(opened):
        if entry.path.count("/") == 50:
            break
    del entry
    assert open_fds() == before


@pytest.mark.root
def test_a_mount_is_not_entered_unless_told_even_of_the_same_file_system(tmp_path: Path) -> None:
    program = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[2])
from jail.kernel import walk
def walked(fd, across):
    return [f.join(e.name) for f in walk.folders(fd, cross_mounts=across) for e in f.entries]
os.chdir(sys.argv[1])
for name in ("bound", "other/inner"): os.makedirs(name)
open("other/inner/file", "w").close()
subprocess.run(["/usr/bin/mount", "--bind", "other", "bound"], check=True)
fd = os.open(".", os.O_RDONLY)
for across in (False, True): print(sorted(walked(fd, across)))
"""
    source = str(Path(walk.__file__).parents[2])
    done = subprocess.run(
        ["/usr/bin/unshare", "-m", sys.executable, "-c", program, str(tmp_path), source],
        capture_output=True,
        text=True,
        check=True,
    )
    without, across = done.stdout.splitlines()
    assert without == "['bound', 'other', 'other/inner', 'other/inner/file']"
    assert "bound/inner/file" in across


def test_closed_folders_are_entered_by_their_owner_and_only_through_folders(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    top = os.open(tmp_path, os.O_RDONLY)
    os.chmod(tmp_path / "a/b", 0)
    os.chmod(tmp_path / "a", 0o600)
    os.chmod(tmp_path, 0)
    os.close(walk.enter(top, "a/b"))
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        walk.enter(top, "link/b")
    os.close(top)


def test_regaining_leaves_folders_alone_that_can_be_read(tmp_path: Path, opened: int) -> None:
    (tmp_path / "read-only").mkdir(mode=0o555)
    (tmp_path / "closed/in").mkdir(parents=True)
    os.chmod(tmp_path / "closed", 0o600)
    assert {folder.path for folder in walk.folders(opened, regain=True)} == {
        "",
        "read-only",
        "closed",
        "closed/in",
    }
    assert (tmp_path / "read-only").stat().st_mode & 0o777 == 0o555
