"""`.git` files and links: where they may lead git, and where not."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.hold import gitpointers
from jail.hold.freshgit import Place


class Trees(NamedTuple):
    """Two written trees, one place that is none, and the folder in the first in which `.git` lies."""

    work: Path
    other: Path
    elsewhere: Path
    trees: tuple[tuple[str, int], ...]

    def offence(self) -> str:
        folder = self.work / "sub"
        fd = os.open(folder, os.O_RDONLY)
        try:
            kind = "symlink" if (folder / ".git").is_symlink() else "file"
            return gitpointers.offence(Place(str(folder), self.trees), fd, ".git", kind)
        finally:
            os.close(fd)


def git_dir(folder: Path, config: str = "") -> Path:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/x\n")
    (folder / "config").write_text(config)
    return folder


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[Trees]:
    work, other, elsewhere = (tmp_path / name for name in ("work", "other", "elsewhere"))
    for folder in (work / "sub", other, elsewhere):
        folder.mkdir(parents=True)
    fds = [os.open(folder, os.O_RDONLY) for folder in (work, other)]
    yield Trees(work, other, elsewhere, ((str(work), fds[0]), (str(other), fds[1])))
    for fd in fds:
        os.close(fd)


EVIL = "[core]\n\tfsmonitor = x\n"
CASES: dict[str, tuple[str, str]] = {
    "into its own tree": ("../plain", ""),
    "into the other tree": ("{other}/plain", ""),
    "to what is not there yet, in a tree": ("../later", ""),
    "to what is not there yet, elsewhere": ("{elsewhere}/later", gitpointers.ELSEWHERE),
    "elsewhere": ("{elsewhere}/plain", gitpointers.ELSEWHERE),
    "elsewhere, by a link": ("../way/plain", gitpointers.ELSEWHERE),
    "elsewhere, by a link that leads to nothing yet": ("../way/later", gitpointers.ELSEWHERE),
    "out of it by dots": ("../../elsewhere/plain", gitpointers.ELSEWHERE),
    "with something behind the end": ("{elsewhere}/plain\0x", gitpointers.ELSEWHERE),
    "to one that runs something": ("../evil", gitpointers._RUNS),
    "to one that names this folder": ("../back", ""),
}


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_pointer_may_lead_into_what_is_judged_and_nowhere_else(trees: Trees, case: str, link: bool) -> None:
    said, expected = CASES[case]
    for folder in (trees.work, trees.other, trees.elsewhere):
        git_dir(folder / "plain")
    git_dir(trees.work / "evil", EVIL)
    git_dir(trees.work / "back", f"{EVIL}\tworktree = ../sub\n")
    (trees.work / "way").symlink_to(trees.elsewhere)
    said = said.format(other=trees.other, elsewhere=trees.elsewhere)
    marker = trees.work / "sub/.git"
    if link:
        marker.symlink_to(said.partition("\0")[0])
    else:
        marker.write_text(f"gitdir: {said}\r\n")
    assert trees.offence() == expected


@pytest.mark.parametrize("content", ["", "gitdir:/x\n", "anything\n"])
def test_a_file_that_git_does_not_follow_stays(trees: Trees, content: str) -> None:
    (trees.work / "sub/.git").write_text(content)
    assert trees.offence() == ""


def test_a_pipe_does_not_stay_and_is_not_opened(trees: Trees) -> None:
    fd = os.open(trees.work, os.O_RDONLY)
    os.mkfifo(".git", dir_fd=fd)
    assert gitpointers.offence(Place(str(trees.work), trees.trees), fd, ".git", "special")
    os.close(fd)


@pytest.mark.parametrize(
    ("target", "expected"),
    [("{own}", True), ("{own}/later/x", True), ("../own/a", True), ("{own}-not", False), ("/usr", False)],
)
def test_a_link_into_what_jail_keeps_is_known_whether_something_is_there_or_not(
    tmp_path: Path, target: str, expected: bool
) -> None:
    own, folder = tmp_path / "own", tmp_path / "folder"
    own.mkdir()
    folder.mkdir()
    (folder / "link").symlink_to(target.format(own=own))
    fd = os.open(folder, os.O_RDONLY)
    try:
        assert gitpointers.leads_into(fd, lambda: str(folder), "link", "symlink", (str(own),)) is expected
    finally:
        os.close(fd)
