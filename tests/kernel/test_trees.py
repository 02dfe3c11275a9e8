"""Whole trees: removed and digested, while somebody else writes in them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.kernel import trees


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def digest(path: Path, **bounds: int) -> trees.Digest:
    fd = os.open(path, os.O_RDONLY)
    try:
        return trees.digest_tree(fd, bounds.get("most_bytes", 1 << 20), bounds.get("most_entries", 1000))
    finally:
        os.close(fd)


def fill(top: Path, names: list[str]) -> None:
    top.mkdir()
    for name in names:
        (top / name).write_text("content of a" if name == "a" else "other")
    (top / "sub").mkdir()
    (top / "sub2").mkdir()
    (top / "sub/file").write_text("x")
    (top / "link").symlink_to("/etc/shadow")


def test_removing_takes_hostile_names_links_and_locked_folders_but_nothing_that_links_lead_to(
    tmp_path: Path, opened: int
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    top = tmp_path / "-rf"
    top.mkdir()
    for name in ("new\nline", "\udcff", "locked"):
        (top / name).mkdir()
        (top / name / "file").write_text("x")
    (top / "out").symlink_to(tmp_path / "kept")
    os.mkfifo(top / "pipe")
    os.chmod(top / "locked", 0)
    os.chmod(top, 0o500)
    trees.remove_tree(opened, "-rf")
    trees.remove_tree(opened, "not there")
    assert os.listdir(tmp_path) == ["kept"]
    assert (tmp_path / "kept/file").exists()


@pytest.mark.parametrize("kind", ["file", "dangling link", "link to folder", "pipe"])
def test_removing_takes_single_names_too(tmp_path: Path, opened: int, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.write_text("x")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/" if kind == "link to folder" else "/nowhere")
    trees.remove_tree(opened, "x")
    assert os.listdir(tmp_path) == []


def test_a_tree_that_is_filled_as_fast_as_it_is_emptied_is_given_up_after_the_bound(
    tmp_path: Path, opened: int
) -> None:
    (tmp_path / "x").mkdir()
    for number in range(50):
        (tmp_path / "x" / f"{number}").write_text("x")
    with pytest.raises(OSError, match="fills"):
        trees.remove_tree(opened, "x", steps=10)
    trees.remove_tree(opened, "x", steps=100)
    assert os.listdir(tmp_path) == []


def test_removing_wins_against_a_program_that_makes_folders_in_it(tmp_path: Path, opened: int) -> None:
    (tmp_path / "x").mkdir()
    program = """
import os, sys, itertools
fd = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
for number in itertools.count():
    try: os.mkdir(str(number % 7), dir_fd=fd)
    except FileExistsError: pass
    except FileNotFoundError: break
"""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", program, str(tmp_path / "x")], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        trees.remove_tree(opened, "x")
        assert child.wait(10) == 0
    assert os.listdir(tmp_path) == []


def test_equal_trees_have_equal_digests_whatever_the_order_they_were_made_in(tmp_path: Path) -> None:
    fill(tmp_path / "one", ["a", "b", "\udcff"])
    fill(tmp_path / "two", ["\udcff", "b", "a"])
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    assert digest(tmp_path / "one").complete


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "a").write_text("Content of a"),
        lambda top: (top / "a").rename(top / "c"),
        lambda top: os.chmod(top / "a", 0o755),
        lambda top: ((top / "link").unlink(), (top / "link").symlink_to("/etc/passwd")),
        lambda top: (top / "sub/file").rename(top / "file"),
        lambda top: (top / "sub/file").rename(top / "sub2/file"),
        lambda top: (top / "empty").mkdir(),
        lambda top: ((top / "a").unlink(), (top / "a").mkdir()),
    ],
    ids=["content", "name", "bits", "target", "place", "other folder", "folder", "kind"],
)
def test_any_difference_gives_another_digest(tmp_path: Path, change: object) -> None:
    fill(tmp_path / "one", ["a", "b"])
    before = digest(tmp_path / "one")
    change(tmp_path / "one")  # type: ignore[operator]  # one of the lambdas above
    assert digest(tmp_path / "one").hex != before.hex


def test_the_digest_of_a_file_is_that_of_its_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    found = digest(tmp_path / "file")
    assert found.hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4, B.1
    assert found.complete


def test_a_digest_past_its_bound_says_so_and_opens_no_pipe(tmp_path: Path) -> None:
    fill(tmp_path / "one", ["a", "b"])
    os.mkfifo(tmp_path / "one/pipe")
    assert not digest(tmp_path / "one", most_bytes=5).complete
    assert not digest(tmp_path / "one", most_entries=2).complete
    assert not digest(tmp_path / "one/a", most_bytes=5).complete
    assert digest(tmp_path / "one").complete
    (tmp_path / "huge").write_bytes(b"")
    os.truncate(tmp_path / "huge", 1 << 40)
    assert not digest(tmp_path / "huge", most_bytes=1 << 20).complete
