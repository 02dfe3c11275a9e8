"""What git runs by a relative path counts from each work tree: none of them is the command's to fill."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.installed import Installed
from support.jails import Jail, git, make_jail

HOOK = "printf '#!/bin/sh\\ntouch {mark}\\n' > {path}; chmod +x {path}"


def with_a_worktree(workspace: Path) -> Path:
    git(workspace, "worktree", "add", "-q", "wt", "-b", "x")
    return workspace / "wt/tools/hk"


def with_a_nested_one(workspace: Path) -> Path:
    git(workspace, "config", "--unset", "core.hooksPath")
    git(workspace, "init", "-q", "n")
    git(workspace / "n", "config", "core.hooksPath", "tools/hk")
    (workspace / "n/tools/hk").mkdir(parents=True)
    (workspace / "n/tools/hk/README").write_text("x")
    return workspace / "n/tools/hk"


def with_one_that_has_no_folder_yet(workspace: Path) -> Path:
    folder = with_a_nested_one(workspace)
    (folder / "README").unlink()
    folder.rmdir()
    return folder


LAYS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a linked worktree": (with_a_worktree, "wt"),
    "a nested repository": (with_a_nested_one, "n"),
    "a nested repository whose folder of hooks is absent": (with_one_that_has_no_folder_yet, "n"),
}


@pytest.fixture
def jail(installed: Installed, tmp_path: Path) -> Jail:
    made = make_jail(installed, tmp_path)
    git(made.workspace, "init", "-q")
    (made.workspace / "tools/hk").mkdir(parents=True)
    (made.workspace / "tools/hk/README").write_text("x")
    git(made.workspace, "add", "-A")
    git(made.workspace, "commit", "-qm", "one")
    git(made.workspace, "config", "core.hooksPath", "tools/hk")
    return made


def stir(folder: Path) -> None:
    """An ordinary action of a person: the index is written."""
    (folder / "stirred").write_text("x")
    git(folder, "add", "stirred")


@pytest.mark.parametrize("lay", LAYS)
@pytest.mark.parametrize("held", [False, True])
def test_hooks_of_another_work_tree_are_not_planted(jail: Jail, lay: str, held: bool, tmp_path: Path) -> None:
    made, tree = LAYS[lay]
    folder, mark = made(jail.workspace), tmp_path / "mark"
    program = f"mkdir -p {folder}; " + HOOK.format(mark=mark, path=folder / "post-index-change")
    jail.run("sh", "-c", program, options=["--hold"] if held else [])
    jail.call("apply")
    stir(jail.workspace / tree)
    assert not mark.exists()


@pytest.mark.parametrize("lay", LAYS)
def test_control_a_hook_that_a_person_puts_there_runs(jail: Jail, lay: str, tmp_path: Path) -> None:
    made, tree = LAYS[lay]
    folder, mark = made(jail.workspace), tmp_path / "mark"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "post-index-change").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (folder / "post-index-change").chmod(0o755)
    stir(jail.workspace / tree)
    assert mark.exists()


def test_a_worktree_made_inside_does_not_stay_where_hooks_count_from_it(jail: Jail, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    plant = HOOK.format(mark=mark, path="wt/tools/hk/post-index-change")
    jail.run("sh", "-c", f"git worktree add -q wt -b x; {plant}")
    (jail.workspace / "wt/stirred").write_text("x")
    done = jail._call(["/usr/bin/git", "-C", "wt", "add", "stirred"], None, None, None)
    assert not mark.exists(), done.stderr


def test_a_repository_above_the_workspace_runs_nothing_of_it(installed: Installed, tmp_path: Path) -> None:
    jail = make_jail(installed, tmp_path)
    above = jail.workspace
    git(above, "init", "-q")
    (above / "sub/hk").mkdir(parents=True)
    git(above, "config", "core.hooksPath", "sub/hk")
    below = jail._replace(workspace=above / "sub")
    mark = tmp_path / "mark"
    below.run("sh", "-c", HOOK.format(mark=mark, path="hk/post-index-change"))
    stir(above)
    assert not mark.exists()
