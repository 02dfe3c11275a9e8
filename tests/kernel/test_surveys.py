"""The survey of a tree that is given for writing: ends of sockets, second names, git dirs."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.kernel import files, surveys


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_a_survey_finds_sockets_and_links_whose_other_name_lies_outside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(inside / "deep")
    listener.bind("s\udcff.sock")
    os.chdir(here)
    (outside / "store").write_text("x")
    os.link(outside / "store", inside / "deep/shared")
    (inside / "one").write_text("x")
    os.link(inside / "one", inside / "deep/two")
    (inside / "link").symlink_to("../out/store")
    fd = os.open(inside, os.O_RDONLY)
    try:
        found = surveys.survey(fd)
    finally:
        os.close(fd)
        listener.close()
    assert found.sockets == ("deep/s\udcff.sock",)
    assert found.hardlinked == ("deep/shared",)
    assert found.entries == 6
    assert found.complete


def test_a_survey_says_when_it_did_not_see_everything(tmp_path: Path, opened: int) -> None:
    for number in range(20):
        (tmp_path / f"{number}").write_text("x")
    assert not surveys.survey(opened, limit=10).complete
    assert surveys.survey(opened, limit=20).complete


def test_a_survey_costs_about_what_a_plain_lstat_walk_costs(tmp_path: Path, opened: int) -> None:
    for folder in range(20):
        os.mkdir(tmp_path / f"{folder}")
        for number in range(100):
            os.close(os.open(tmp_path / f"{folder}" / f"{number}", os.O_CREAT))

    def plain() -> None:
        for path, _, names in os.walk(tmp_path):
            for name in names:
                os.lstat(os.path.join(path, name))

    def price(work: object) -> float:
        def once() -> float:
            begin = time.perf_counter()
            work()  # type: ignore[operator]  # either of the two closures here
            return time.perf_counter() - begin

        return min(once() for _ in range(7))

    assert price(lambda: surveys.survey(opened)) < 2 * price(plain)


def test_a_survey_knows_the_git_dirs_and_which_folder_each_is(tmp_path: Path, opened: int) -> None:
    for folder, names in {
        "a/.git": "HEAD objects refs",
        "bare": "HEAD objects refs",
        "a/.git/worktrees/w": "HEAD commondir",
        "half": "HEAD objects",
        "none": "objects refs commondir",
    }.items():
        for name in names.split():
            (tmp_path / folder / name).mkdir(parents=True)
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").write_text("gitdir: x")
    found = surveys.survey(opened)
    assert {path for path, _ in found.git_dirs} == {"a/.git", "a/.git/worktrees/w", "bare", "w/.git"}
    inode = (tmp_path / "bare").stat()
    assert dict(found.git_dirs)["bare"] == files.Identity(inode.st_dev, inode.st_ino)
    assert not found.cut
    assert surveys.survey(opened, limit=3).cut
