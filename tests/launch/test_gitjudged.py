"""What of a git dir is judged: by when it changed, and by whether it was a git dir at launch."""

import os
import time
from pathlib import Path

import pytest

from jail.hold.freshgit import Place
from jail.kernel import surveys
from jail.launch import changes, gitjudged
from jail.launch.watchlist import Before

EVIL = "[core]\n\tfsmonitor = x\n"


def git_dir(folder: Path, config: str = "") -> None:
    for name in ("objects", "refs", "hooks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "HEAD").write_text("ref: refs/heads/x\n")
    (folder / "config").write_text(config)


def since() -> int:
    time.sleep(0.03)
    now = time.time_ns()
    time.sleep(0.03)
    return now


class Run:
    """A run in a tree, from its launch."""

    def __init__(self, tree: Path, own: tuple[str, ...] = (), *, cut: bool = False) -> None:
        self.fd = os.open(tree, os.O_RDONLY)
        self.tree = str(tree)
        seen = [] if cut else [(f"{tree}/{path}", which) for path, which in surveys.survey(self.fd).git_dirs]
        self.before = Before(frozenset(seen), (str(tree),) if cut else (), own)
        self.since = since()

    def offending(self) -> set[str]:
        place = Place(self.tree, ((self.tree, self.fd),))
        rows = changes.auto_exec_changes(self.fd, self.since, where=place, before=self.before)
        found = {row.path for row in rows if row.offends}
        os.close(self.fd)
        return found


@pytest.mark.parametrize("cut", [False, True])
def test_what_became_a_git_dir_is_judged_whatever_its_age(tmp_path: Path, cut: bool) -> None:
    git_dir(tmp_path / "half", EVIL)
    (tmp_path / "half/hooks/x").write_text("")
    (tmp_path / "half/HEAD").rename(tmp_path / "half/was")
    run = Run(tmp_path, cut=cut)
    (tmp_path / "half/was").rename(tmp_path / "half/HEAD")
    assert run.offending() == {"half/config", "half/hooks/x"}


@pytest.mark.parametrize("cut", [False, True])
def test_what_was_one_keeps_what_the_person_put_there(tmp_path: Path, cut: bool) -> None:
    git_dir(tmp_path / "own", EVIL)
    (tmp_path / "own/hooks/x").write_text("")
    run = Run(tmp_path, cut=cut)
    (tmp_path / "own/objects/new").write_text("")
    assert run.offending() == set()


def test_one_that_has_another_name_now_is_judged_as_a_new_one(tmp_path: Path) -> None:
    git_dir(tmp_path / "sample", EVIL)
    run = Run(tmp_path)
    (tmp_path / "sample").rename(tmp_path / ".git")
    assert run.offending() == {".git/config"}


def test_many_hooks_of_a_new_one_are_one_piece(tmp_path: Path) -> None:
    git_dir(tmp_path / "old")
    run = Run(tmp_path)
    git_dir(tmp_path / "new")
    for number in range(gitjudged.HANDFUL + 1):
        (tmp_path / f"new/hooks/{number}").write_text("")
    for number in range(gitjudged.HANDFUL + 1):
        (tmp_path / f"old/hooks/{number}").write_text("")
    found = run.offending()
    assert "new/hooks" in found
    assert len(found) == 1 + gitjudged.HANDFUL + 1


LINKS = {
    "COMMIT_EDITMSG": True,
    "index": True,
    "logs/HEAD": True,
    "logs/refs/heads/x": True,
    "refs/heads/x": True,
    "rebase-merge/message": True,
    "modules": True,
    "tree/link": False,
    "tree/node_modules/.bin/x": False,
}
"""Path in a git dir, and whether a link there is among git's own files."""


@pytest.mark.parametrize("path", LINKS)
def test_a_link_among_gits_own_files_offends_and_one_in_a_worktree_beside_them_does_not(
    tmp_path: Path, path: str
) -> None:
    git_dir(tmp_path / "bare")
    run = Run(tmp_path)
    (tmp_path / "bare" / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "bare" / path).symlink_to("/tmp/x")
    assert run.offending() == ({f"bare/{path}"} if LINKS[path] else set())


@pytest.mark.parametrize(
    ("target", "offends"), [("refs/heads/x", False), ("refs/../../x", True), ("/refs/x", True), ("x", True)]
)
def test_head_may_be_a_link_to_a_branch(tmp_path: Path, target: str, offends: bool) -> None:
    git_dir(tmp_path / "bare")
    run = Run(tmp_path)
    (tmp_path / "bare/HEAD").unlink()
    (tmp_path / "bare/HEAD").symlink_to(target)
    assert run.offending() == ({"bare/HEAD"} if offends else set())


def test_pipes_offend_where_git_opens_them(tmp_path: Path) -> None:
    git_dir(tmp_path / "bare")
    run = Run(tmp_path)
    for name in ("bare/MERGE_MSG", ".gitignore", "free"):
        os.mkfifo(tmp_path / name)
    assert run.offending() == {"bare/MERGE_MSG", ".gitignore"}


def test_a_link_into_what_jail_keeps_offends_whatever_its_age(tmp_path: Path) -> None:
    tree, own = tmp_path / "tree", tmp_path / "own"
    tree.mkdir()
    (tree / "old").symlink_to("way/own")
    run = Run(tree, own=(str(own),))
    (tree / "way").symlink_to(tmp_path)
    (tree / "new").symlink_to("../own/x")
    (tree / "fine").symlink_to("old-not")
    assert run.offending() == {"new", "old"}


@pytest.mark.parametrize("how", ["moved", "by a link", "untouched"])
def test_a_pointer_of_an_earlier_run_is_judged_where_it_leads_now(tmp_path: Path, how: str) -> None:
    tree, own = tmp_path / "tree", tmp_path / "own"
    git_dir(own / "x")
    git_dir(tmp_path / "other")
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/.git").write_text({"by a link": "gitdir: way/own/x"}.get(how, "gitdir: ../../own/x"))
    (tree / "theirs").mkdir()
    (tree / "theirs/.git").write_text("gitdir: ../../other")
    run = Run(tree, own=(str(own),))
    if how == "moved":
        (tree / "a/b").rename(tree / "c")
    elif how == "by a link":
        (tree / "a/b/way").symlink_to(tmp_path)
    expected = {"moved": {"c/.git"}, "by a link": {"a/b/.git"}, "untouched": set()}
    assert run.offending() == expected[how]
