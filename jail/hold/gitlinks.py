"""Git dirs that lead to a folder which leads back: what `git submodule add` and `git worktree add` make.

Rule: a git dir that was made inside may name the folder that it belongs to, where that folder lies in a tree
that was given for writing and its `.git` file names this git dir; a worktree's may name the git dir that it
is a part of, where that is one whose own files are judged. Whatever else redirects git may not stay. Nothing
is followed: paths are read as text, `..` counts at the front alone, and what they name is opened one
component at a time, through no symlink (gitrepository-layout(5), git-worktree(1)).
"""

import os
import stat

from jail.hold import gitconfig, gitprograms
from jail.hold.freshgit import Place, is_git_dir
from jail.kernel import files, walk
from jail.light import Callable, Final
from jail.policy.paths import beneath, deepest

POINTER_BYTES: Final = 8192
"""`.git`, `gitdir` and `commondir` hold one path: PATH_MAX and a prefix."""
_WORKTREES: Final = "worktrees"


Line = Callable[[str], str]
"""The absolute path of a file → the one line that it holds, "" for none."""


def is_submodule(place: Place, setting: gitconfig.Setting) -> bool:
    """Whether a setting of the git dir is a core.worktree that leads to a folder which leads back."""
    return bool(worktree_of(place.path, setting, lambda path: _line(place, path)))


def worktree_of(gitdir: str, setting: gitconfig.Setting, line: Line) -> str:
    """The folder that a setting of a git dir leads to, if it is a core.worktree and that folder leads back;
    else "".
    """
    if setting.key != "core.worktree" or setting.subsection or not setting.value:
        return ""
    tree = _named(gitdir, gitconfig.as_text(setting.value))
    return tree if tree and pointed(tree, line(f"{tree}/.git")) == gitdir else ""


def is_worktree(place: Place, gitdir: int) -> bool:
    """Whether a git dir is that of a linked worktree in order: part of one that is judged itself, and of a
    folder which leads back.
    """

    def line(path: str) -> str:
        own = path.rpartition("/")[0] == place.path
        return _read(gitdir, path[len(place.path) + 1 :]) if own else _line(place, path)

    marker, common = linked(place.path, line)
    return bool(marker) and _is_in_order(place, common)


def _is_in_order(place: Place, common: str) -> bool:
    """Whether a shared git dir is one that is judged itself, and its work trees are not what git runs."""
    try:
        fd = _open(place, common, files.FOLDER)
    except OSError:
        return False
    try:
        return is_git_dir(os.listdir(fd)) and not _runs_in_work_trees(fd)
    finally:
        os.close(fd)


def _runs_in_work_trees(gitdir: int) -> bool:
    """Whether a repository's configuration has git run something by a path that counts from the work tree:
    in a new one that is a file which the command made.
    """
    try:
        settings = _settings(gitdir)
    except FileNotFoundError:
        return False
    except (OSError, gitconfig.ConfigError):
        return True
    return any(_is_relative(word) for item in settings for word in _paths_of(item))


def _settings(gitdir: int) -> tuple[gitconfig.Setting, ...]:
    """The settings of a git dir's config. Raises OSError, ConfigError."""
    fd = walk.enter(gitdir, "config", files.FILE)
    try:
        return gitconfig.parse(os.read(fd, gitconfig.CONFIG_BYTES + 1))
    finally:
        os.close(fd)


def _paths_of(item: gitconfig.Setting) -> list[str]:
    hooks = [gitconfig.as_text(item.value)] if item.key == "core.hookspath" and item.value else []
    return [*hooks, *gitprograms.paths(item)]


def _is_relative(word: str) -> bool:
    return not word.startswith(("/", "~"))


def linked(gitdir: str, line: Line) -> tuple[str, str]:
    """The `.git` file and the shared git dir of a linked worktree, by its git dir; "" and "" where that is
    none, or the file does not lead back.
    """
    folder, _, name = gitdir.rpartition("/")
    common, _, worktrees = folder.rpartition("/")
    if worktrees != _WORKTREES or not name or line(f"{gitdir}/commondir") != "../..":
        return "", ""
    marker = _named(gitdir, line(f"{gitdir}/gitdir"))
    tree, _, last = marker.rpartition("/")
    return (marker, common) if last == ".git" and pointed(tree, line(marker)) == gitdir else ("", "")


def pointed(folder: str, said: str) -> str:
    """The absolute path that the line of a `.git` file in `folder` leads to, "" for none."""
    return _named(folder, said.removeprefix("gitdir: ")) if said.startswith("gitdir: ") else ""


def leads_to(place: Place, gitdir: int, tree: str) -> bool:
    """Whether the git dir says itself that it belongs to the folder `tree`: as a submodule's does in its
    config, and a linked worktree's in its file gitdir.
    """
    if _named(place.path, _read(gitdir, "gitdir")) == f"{tree}/.git":
        return True
    try:
        settings = _settings(gitdir)
    except (OSError, gitconfig.ConfigError):
        return False
    named = [item for item in settings if item.key == "core.worktree" and not item.subsection and item.value]
    return bool(named) and _named(place.path, gitconfig.as_text(named[-1].value or "")) == tree


def _line(place: Place, path: str) -> str:
    folder, _, name = path.rpartition("/")
    try:
        fd = _open(place, folder, files.FOLDER)
    except OSError:
        return ""
    try:
        return _read(fd, name)
    finally:
        os.close(fd)


def _named(base: str, said: str) -> str:
    """The absolute path that `said` means from the folder `base`, by its text; "" for none, and where a `..`
    stands behind a name, which a symlink could bend.
    """
    parts = said.split("/")
    if said.startswith("/"):
        here, parts = "", parts[1:]
    else:
        here = base
        while parts and parts[0] == "..":
            here, parts = here.rpartition("/")[0], parts[1:]
    if not all(part and part not in (".", "..") for part in parts) or not (here or parts):
        return ""
    return "/".join([here, *parts])


def _open(place: Place, path: str, flags: int) -> int:
    """An fd of an absolute path in one of the trees. Raises OSError, too where it lies in none."""
    root = deepest(path, [root for root, _ in place.trees])
    if not root or not beneath(path, root):
        raise FileNotFoundError(path)
    return walk.enter(dict(place.trees)[root], path[len(root) :].strip("/") or ".", flags)


def _read(folder: int, name: str) -> str:
    """The one line of a regular file in a folder, as text; "" where there is none."""
    try:
        fd = walk.enter(folder, name, files.FILE)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        said = os.read(fd, POINTER_BYTES + 1)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return line_of(said)


def line_of(content: bytes | None) -> str:
    """The one line of a file's content, as text; "" for none, or for more."""
    if content is None or len(content) > POINTER_BYTES:
        return ""
    line = os.fsdecode(content.removesuffix(b"\n"))
    return "" if {"\n", "\r", "\0"} & {*line} else line
