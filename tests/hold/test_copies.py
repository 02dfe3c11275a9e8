"""The copy of a held tree: as like the tree as it can be, within bounds, and the tree is only read."""

import os
import time
from pathlib import Path

import pytest

from jail.hold import base, copies
from jail.kernel import mounts, trees, walk
from jail.plan.held import OVERLAY
from support.overlays import Session, deepen, in_memory

LATER = 1 << 62


def made(tree: Path, tmp_path: Path, started_ns: int = LATER) -> tuple[Path, tuple[str, ...]]:
    target = tmp_path / "held/t0/tree"
    target.mkdir(parents=True)
    (tmp_path / "held/base").mkdir()
    fds = os.open(tree, os.O_PATH), os.open(target, os.O_RDONLY)
    try:
        return target, copies.make(*fds, base.file_of(str(tmp_path / "held"), "t0"), started_ns).left_out
    finally:
        for fd in fds:
            os.close(fd)


def entries(tmp_path: Path) -> base.Entries:
    return base.read(str(tmp_path / "held"), "t0", lambda _: True)


def told(top: Path) -> dict[str, tuple[object, ...]]:
    """All that two equal trees have in common: bits, times, contents, targets."""
    found = {}
    for folder, folders, names in os.walk(top):
        for name in [".", *folders, *names]:
            path = Path(folder, name)
            seen = path.lstat()
            held = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            found[os.path.relpath(path, top)] = (seen.st_mode, seen.st_mtime_ns, seen.st_size, held)
            if path.is_dir() and not path.is_symlink():
                found[os.path.relpath(path, top)] = (seen.st_mode, seen.st_mtime_ns)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def test_names_bits_times_targets_and_contents_are_those_of_the_tree(tree: Path, tmp_path: Path) -> None:
    for name in ("-rf", "new\nline", "\udcff", "a" * 255):
        (tree / "d" / name).mkdir(parents=True)
        (tree / "d" / name / name).write_text(name, errors="surrogateescape")
    (tree / "set").write_text("x")
    os.chmod(tree / "set", 0o6755)
    (tree / "shared").mkdir()
    os.chmod(tree / "shared", 0o3775)
    (tree / "dangling").symlink_to("/nowhere")
    os.utime(tree / "dangling", ns=(5, 7), follow_symlinks=False)
    (tree / "tight/in").mkdir(parents=True)
    (tree / "tight/in/file").write_text("x")
    for name in ("tight/in/file", "tight/in", "tight", "d", ""):
        os.chmod(tree / name, 0o555)
        os.utime(tree / name, ns=(10**9, 10**18 + 1))
    target, left_out = made(tree, tmp_path)
    assert left_out == ()
    assert told(target) == told(tree)
    for name in ("", "d", "tight", "tight/in"):
        os.chmod(tree / name, 0o700)
        os.chmod(target / name, 0o700)


def test_holes_stay_holes_and_names_of_one_inode_become_two_files(tree: Path, tmp_path: Path) -> None:
    with open(tree / "sparse", "wb") as file:
        file.truncate(8 << 40)
        file.seek(1 << 40)
        file.write(b"data")
    (tree / "one").write_text("x")
    (tree / "two").hardlink_to(tree / "one")
    target, _ = made(tree, tmp_path)
    found = (target / "sparse").stat()
    assert (found.st_size, found.st_blocks * 512 < 1 << 20) == (8 << 40, True)
    assert (target / "one").stat().st_nlink == 1
    assert (target / "two").read_text() == "x"


def test_the_base_has_the_inodes_of_both_sides(tree: Path, tmp_path: Path) -> None:
    (tree / "d").mkdir()
    (tree / "d/f").write_text("x")
    (tree / "d/l").symlink_to("f")
    target, _ = made(tree, tmp_path)
    noted = entries(tmp_path)
    assert noted.complete
    assert sorted(noted) == ["", "d", "d/f", "d/l"]
    for path in ("d/f", "d/l"):
        host, own, entry = (tree / path).lstat(), (target / path).lstat(), noted[path]
        assert (entry.ino, entry.ctime_ns, entry.own_ino, entry.own_ctime_ns) == (
            host.st_ino,
            host.st_ctime_ns,
            own.st_ino,
            own.st_ctime_ns,
        )


def test_what_changed_since_the_run_began_is_unknown_and_copied(tree: Path, tmp_path: Path) -> None:
    (tree / "old").write_text("x")
    time.sleep(0.02)
    started = time.time_ns()
    time.sleep(0.02)
    (tree / "new").write_text("x")
    target, _ = made(tree, tmp_path, started)
    noted = entries(tmp_path)
    assert noted["old"].kind == "file"
    assert (noted["new"].kind, noted["new"].own_ino) == ("unknown", (target / "new").stat().st_ino)


def test_specials_and_what_may_not_be_read_are_left_out_named_and_not_touched(
    tree: Path, tmp_path: Path
) -> None:
    os.mkfifo(tree / "pipe")
    (tree / "file").write_text("secret")
    (tree / "closed/in").mkdir(parents=True)
    os.chmod(tree / "file", 0)
    os.chmod(tree / "closed", 0)
    target, left_out = made(tree, tmp_path)
    try:
        assert sorted(left_out) == ["closed", "file", "pipe"]
        assert os.listdir(target) == ["closed"]
        assert {(tree / name).stat().st_mode & 0o777 for name in ("file", "closed")} == {0}
        assert (target / "closed").stat().st_mode & 0o777 == 0
        noted = entries(tmp_path)
        assert {path: entry.own_ino for path, entry in noted.items() if path} == {
            "pipe": 0,
            "file": 0,
            "closed": 0,
        }
    finally:
        os.chmod(tree / "closed", 0o700)
        os.chmod(target / "closed", 0o700)


def test_a_mount_in_the_tree_is_not_told_as_left_out(tree: Path, tmp_path: Path) -> None:
    (tree / "mount").mkdir()
    os.mkfifo(tree / "pipe")
    (tmp_path / "other").mkdir()

    def act() -> None:
        kept = os.open(tree / "mount", os.O_PATH)
        mounts.attach(mounts.new_filesystem("tmpfs", {}, mounts.ATTR_NOSUID), kept, "a mount in the tree")
        target, left_out = made(tree, tmp_path)
        assert os.listdir(target) == ["mount"]
        assert left_out == ("pipe",)

    Session(tmp_path / "session", tmp_path / "other", OVERLAY).run(act)


def test_a_tree_deeper_than_any_path_is_copied_with_few_fds() -> None:
    with in_memory() as folder:
        (folder / "tree").mkdir()
        deepen(folder / "tree", 3_000)
        before = len(os.listdir("/proc/self/fd"))
        target, left_out = made(folder / "tree", folder)
        assert left_out == ()
        assert len(os.listdir("/proc/self/fd")) == before
        fd = os.open(target, os.O_RDONLY)
        *_, last = walk.folders(fd)
        assert last.depth == 3_000
        os.close(fd)


@pytest.mark.parametrize(("bound", "most"), [("COPY_BYTES", 8000), ("COPY_ENTRIES", 2)])
def test_a_tree_past_a_bound_is_not_copied_and_has_no_base(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    for name in "abc":
        (tree / name).write_bytes(b"x" * 4000)
    monkeypatch.setattr(copies, bound, most)
    with pytest.raises(trees.TooLargeError):
        made(tree, tmp_path)
    assert not entries(tmp_path).complete


def test_a_copy_says_what_it_takes_on_the_disk(tmp_path: Path) -> None:
    tree, target, bases = tmp_path / "tree", tmp_path / "target", tmp_path / "base"
    (tree / "a/b").mkdir(parents=True)
    for folder in (target, bases, tree / "empty"):
        folder.mkdir()
    (tree / "a/large").write_bytes(b"x" * (3 << 20))
    (tree / "a/b/link").symlink_to("x" * 200)
    os.link(tree / "a/large", tree / "a/again")
    with (tree / "hole").open("wb") as file:
        file.truncate(1 << 30)
    fds = [os.open(folder, os.O_RDONLY) for folder in (tree, target)]
    size = copies.make(fds[0], fds[1], str(bases / "t0"), LATER).size
    for fd in fds:
        os.close(fd)
    assert size == sum(path.lstat().st_blocks * 512 for path in target.rglob("*")) > 6 << 20
