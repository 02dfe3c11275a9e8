"""Submodules and worktrees made inside: real ones stay, and whatever leads elsewhere does not."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jail.hold import freshgit
from jail.hold.freshgit import Place, is_git_dir
from jail.plan.protected import canonical

GIT = "/usr/bin/git"


def git(*arguments: str | Path, cwd: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    options = ["-c", "user.name=N", "-c", "user.email=e@x", "-c", "protocol.file.allow=always"]
    subprocess.run([GIT, *options, *arguments], cwd=cwd, env=env, check=True, capture_output=True)


class Ground:
    """A workspace with a submodule `libs/sub` and a worktree `tree`, in a folder with more."""

    def __init__(self, folder: Path) -> None:
        self.outer = folder
        self.workspace = folder / "ws"
        library = folder / "library"
        git("init", "-q", library, cwd=folder)
        git("commit", "-q", "--allow-empty", "-m", "one", cwd=library)
        git("init", "-q", self.workspace, cwd=folder)
        git("commit", "-q", "--allow-empty", "-m", "one", cwd=self.workspace)
        git("submodule", "add", "-q", library, "libs/sub", cwd=self.workspace)
        git("worktree", "add", "-q", "tree", cwd=self.workspace)
        self.module = self.workspace / ".git/modules/libs/sub"
        self.linked = self.workspace / ".git/worktrees/tree"

    def offences(self, gitdir: Path, *, known: bool = True) -> set[str]:
        trees = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY)
        fd = os.open(gitdir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            place = Place(str(gitdir), ((str(self.workspace), trees),))
            return {path for path, _ in freshgit.offences(fd, place if known else None)}
        finally:
            os.close(fd)
            os.close(trees)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("links"))


@pytest.fixture
def ground(made: Ground, tmp_path: Path) -> Iterator[Ground]:
    """The same at its own path, as it holds absolute ones, and put back afterwards."""
    shutil.copytree(made.workspace, tmp_path / "kept", symlinks=True)
    yield made
    shutil.rmtree(made.workspace)
    shutil.copytree(tmp_path / "kept", made.workspace, symlinks=True)


GIT_DIRS = ["HEAD commondir", "HEAD objects refs", "HEAD commondir objects refs config"]
NO_GIT_DIRS = ["", "HEAD", "HEAD objects", "HEAD refs", "commondir", "objects refs", "config hooks"]


@pytest.mark.parametrize("names", [*GIT_DIRS, *NO_GIT_DIRS])
def test_a_git_dir_is_known_by_its_names_as_they_are_or_where_no_case_counts(names: str) -> None:
    expected = names in GIT_DIRS
    assert is_git_dir(names.split()) == expected
    assert is_git_dir(set(map(canonical, names.swapcase().split())), folded=True) == expected
    assert not is_git_dir(names.lower().split()), "git knows case"


def test_what_git_itself_makes_may_stay(ground: Ground) -> None:
    assert ground.offences(ground.module) == set()
    assert ground.offences(ground.linked) == set()


def test_without_a_place_to_lead_to_nothing_that_leads_may_stay(ground: Ground) -> None:
    assert ground.offences(ground.module, known=False) == {"config"}
    assert ground.offences(ground.linked, known=False) == {"commondir", "gitdir"}


def test_relative_pointers_of_a_worktree_are_as_good(ground: Ground) -> None:
    (ground.linked / "gitdir").write_text("../../../tree/.git\n")
    (ground.workspace / "tree/.git").write_text("gitdir: ../.git/worktrees/tree\n")
    assert ground.offences(ground.linked) == set()


def to_module(ground: Ground, value: str) -> None:
    git("config", "--file", ground.module / "config", "core.worktree", value, cwd=ground.outer)


def marker(ground: Ground) -> Path:
    return ground.workspace / "libs/sub/.git"


def behind_a_link(ground: Ground) -> None:
    (ground.workspace / "libs").rename(ground.workspace / "real")
    (ground.workspace / "libs").symlink_to("real")


def as_a_link(path: Path) -> None:
    path.rename(f"{path}.real")
    path.symlink_to(f"{path}.real")


def as_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


MODULE: dict[str, Callable[[Ground], object]] = {
    "it leads out of the workspace": lambda at: to_module(at, str(at.outer / "library")),
    "it leads out by dots": lambda at: to_module(at, "../../../../../../library"),
    "it leads to the root folder": lambda at: to_module(at, "/"),
    "it leads to the workspace itself": lambda at: to_module(at, "../../../.."),
    "it leads to a folder without .git": lambda at: to_module(at, "../../../../libs"),
    "it leads to another's folder": lambda at: to_module(at, "../../../../tree"),
    "it leads to nothing": lambda at: to_module(at, "../../../../none"),
    "it leads there through dots behind a name": lambda at: to_module(at, "../../../../tree/../libs/sub"),
    "the folder leads elsewhere": lambda at: marker(at).write_text("gitdir: ../../.git\n"),
    "the folder leads outside": lambda at: marker(at).write_text("gitdir: /etc\n"),
    "the folder says two things": lambda at: marker(at).write_text(f"{marker(at).read_text()}\nx"),
    "the folder says too much": lambda at: marker(at).write_text("gitdir: " + "/" * 9000),
    "the folder has no words": lambda at: marker(at).write_text("../../.git/modules/libs/sub\n"),
    "the folder has a link": lambda at: as_a_link(marker(at)),
    "the folder has a pipe": lambda at: as_a_pipe(marker(at)),
    "the folder is gone": lambda at: shutil.rmtree(marker(at).parent),
    "the folder is reached through a link": behind_a_link,
    "a program as well": lambda at: git(
        "config", "--file", at.module / "config", "core.fsmonitor", "x", cwd=at.outer
    ),
    "two worktrees, one of them outside": lambda at: git(
        "config", "--file", at.module / "config", "--add", "core.worktree", "/etc", cwd=at.outer
    ),
}


@pytest.mark.parametrize("how", MODULE)
def test_the_config_of_a_submodule_that_is_not_in_order_may_not_stay(how: str, ground: Ground) -> None:
    MODULE[how](ground)
    assert ground.offences(ground.module) == {"config"}


def write(path: Path, text: str) -> None:
    path.write_text(text)


def no_git_dir_above(ground: Ground) -> None:
    """git reads config and hooks of a commondir that has no HEAD, as its worktrees have one."""
    (ground.workspace / ".git/HEAD").unlink()


def elsewhere(ground: Ground) -> None:
    """The same folder beneath another name than `worktrees`."""
    (ground.workspace / ".git/worktrees").rename(ground.workspace / ".git/forest")
    ground.linked = ground.workspace / ".git/forest/tree"
    (ground.workspace / "tree/.git").write_text(f"gitdir: {ground.linked}\n")


LINKED: dict[str, Callable[[Ground], object]] = {
    "commondir leads outside": lambda at: write(at.linked / "commondir", f"{at.outer}/library/.git\n"),
    "commondir leads further up": lambda at: write(at.linked / "commondir", "../../..\n"),
    "commondir leads into the work": lambda at: write(at.linked / "commondir", "../../../evil\n"),
    "commondir is the same in other words": lambda at: write(at.linked / "commondir", "../x/../..\n"),
    "commondir is a link": lambda at: as_a_link(at.linked / "commondir"),
    "gitdir leads outside": lambda at: write(at.linked / "gitdir", f"{at.outer}/library/.git\n"),
    "gitdir leads to the workspace": lambda at: write(at.linked / "gitdir", f"{at.workspace}/.git\n"),
    "gitdir names no .git": lambda at: write(at.linked / "gitdir", f"{at.workspace}/tree/git\n"),
    "gitdir leads to nothing": lambda at: write(at.linked / "gitdir", f"{at.workspace}/none/.git\n"),
    "gitdir is a pipe": lambda at: as_a_pipe(at.linked / "gitdir"),
    "gitdir is empty": lambda at: write(at.linked / "gitdir", ""),
    "the folder leads elsewhere": lambda at: write(at.workspace / "tree/.git", "gitdir: ../.git\n"),
    "the folder is gone": lambda at: shutil.rmtree(at.workspace / "tree"),
    "what is above is no git dir": no_git_dir_above,
    "it lies elsewhere": elsewhere,
}


@pytest.mark.parametrize("how", LINKED)
def test_a_worktree_that_is_not_in_order_may_not_stay(how: str, ground: Ground) -> None:
    linked = ground.linked
    LINKED[how](ground)
    try:
        assert ground.offences(ground.linked) == {"commondir", "gitdir"}
    finally:
        ground.linked = linked


def test_a_gitdir_file_alone_may_not_stay(ground: Ground) -> None:
    (ground.linked / "commondir").unlink()
    assert ground.offences(ground.linked) == {"gitdir"}


def test_hooks_and_a_config_of_its_own_are_judged_in_a_worktree_too(ground: Ground) -> None:
    (ground.linked / "hooks").mkdir()
    (ground.linked / "hooks/post-checkout").write_text("#!/bin/sh\n")
    (ground.linked / "config.worktree").write_text("[core]\n\tfsmonitor = x\n")
    assert ground.offences(ground.linked) == {"hooks/post-checkout", "config.worktree"}


def test_what_belongs_to_a_folder_in_another_given_tree_is_in_order(ground: Ground) -> None:
    beside = ground.outer / "beside"
    git("worktree", "add", "-q", "--detach", beside, cwd=ground.workspace)
    gitdir = ground.workspace / ".git/worktrees/beside"
    assert ground.offences(gitdir) == {"commondir", "gitdir"}
    fds = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in (ground.workspace, beside, gitdir)]
    try:
        trees = ((str(ground.workspace), fds[0]), (str(beside), fds[1]))
        assert freshgit.offences(fds[2], Place(str(gitdir), trees)) == []
    finally:
        for fd in fds:
            os.close(fd)
        shutil.rmtree(beside)
