"""What git runs in the other work trees: of nested repositories, of linked worktrees, of a repository above.

Rule: a relative core.hooksPath, and a program that a configuration names by a relative path, count from the
work tree that git stands in (git-config(1), githooks(5)). So each git dir that lies in a written tree at
launch is asked with its own work tree, and the repository that the workspace is a part of with its; what they
lead to in the workspace is guarded as the workspace's own is.
"""

import os

from jail.launch import gitlayout
from jail.light import Iterable, Iterator
from jail.plan.facts import Guarded
from jail.plan.trees import refusal


def guards(
    workspace: str, home: str, hooks_path: str, git_dirs: Iterable[str], enclosing: str
) -> Iterator[Guarded]:
    """The guards of all work trees but the workspace itself; `hooks_path`: the person's core.hooksPath;
    `enclosing`: the folder of a repository above, "" for none. Raises JailError.
    """
    above = [f"{enclosing}/.git"] if enclosing else []
    try:
        for path in (*above, *git_dirs):
            for base, configs in _work_trees(path):
                if base == workspace:
                    continue
                for config in configs:
                    yield from gitlayout.of_config(workspace, home, config, base)
                if hooks_path and base:
                    yield from gitlayout.of_hooks(workspace, home, hooks_path, base)
    except (gitlayout.UntrustedError, OSError) as error:
        what = f"a repository in the workspace cannot be judged: {error}"
        raise refusal(what, f"workspace {workspace}", "look at its configuration, or move it away") from error


def _work_trees(path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A work tree of a git dir, and the configurations that git obeys there."""
    folder, _, name = path.rpartition("/")
    common, _, last = folder.rpartition("/")
    if last == "worktrees" and os.path.lexists(f"{path}/commondir"):
        marker = gitlayout.pointer(f"{path}/gitdir") if os.path.isfile(f"{path}/gitdir") else ""
        if marker:
            yield os.path.dirname(marker), (f"{common}/config", f"{path}/config.worktree")
    elif name == ".git" and os.path.isdir(path):
        yield folder, (f"{path}/config", f"{path}/config.worktree")
    elif name == ".git" and os.path.isfile(path):
        yield from ((folder, configs) for _, configs in _work_trees(gitlayout.pointer(path, "gitdir: ")))
    else:
        # Of a submodule core.worktree says where it is; a bare one has none but itself.
        yield "" if "/modules/" in path else path, (f"{path}/config",)
