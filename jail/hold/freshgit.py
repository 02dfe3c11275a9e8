"""A git dir that was made during the run: what of it may not stay.

Rule: a repository made inside is the agent's work and is delivered, as long as git, run in it by a person,
would run nothing: its `config` has plain keys only (jail.hold.gitconfig), its `hooks` only `*.sample`
files, and none of the files that redirect git exists, but for those of a submodule or a worktree in order
(jail.hold.gitlinks). `info/exclude` may stay: `git init` makes one. A part that cannot be looked at gets our
permission bits back, and where that fails it may not stay.
"""

import errno
import os
import stat
from itertools import islice

from jail.kernel import files, walk
from jail.light import TYPE_CHECKING, Collection, Final, NamedTuple
from jail.plan import protected

if TYPE_CHECKING:
    from jail.hold import gitconfig

HOOK_NAMES: Final = 200
"""Entries of a hooks folder that are judged one by one; a folder with more is taken whole, unread: git makes
some fifteen, and who makes thousands wants us to read them again and again.
"""

_OURS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What is short on our side says nothing of the git dir."""
_NO_FOLDER: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_STAYS: Final = frozenset(["config", "hooks", "info/exclude"])
WATCHED: Final = ("hooks", "info", "objects", "objects/info")
"""The folders of a git dir, beside itself, in which a name can appear that may not stay."""
JUDGED: Final = frozenset(
    [part for row in protected.PROTECTED if row.place != "workspace" for part in row.name.split("/")]
)
"""Names in a git dir made inside whose coming or changing is a reason to look; its index and objects are not.
"""
PARTS: Final = ("HEAD", "commondir", "objects", "refs")
"""The names by which git knows a git dir (its setup.c, is_git_directory)."""
FOLDED: Final = tuple(name.lower() for name in PARTS)
"""The same as jail.plan.protected compares names: where a file system knows no case."""
MAKE_A_GIT_DIR: Final = frozenset(FOLDED)
_WORKTREE: Final = frozenset(["commondir", "gitdir"])
"""The files of a linked worktree's git dir that lead elsewhere."""


class Place(NamedTuple):
    """A git dir: its absolute path, and the trees that it may lead to: absolute path and an fd of each."""

    path: str
    trees: tuple[tuple[str, int], ...]


def is_git_dir(names: Collection[str], *, folded: bool = False) -> bool:
    """Whether git would take a folder with these names for a git dir. `folded`: as FOLDED are, the names are
    canonical.
    """
    head, common, objects, refs = FOLDED if folded else PARTS
    return head in names and (common in names or (objects in names and refs in names))


def offences(gitdir: int, place: Place | None = None) -> list[tuple[str, str]]:
    """What may not stay in the git dir behind an fd: (path relative to it, reason); path "" is the git dir
    itself, which cannot be listed. `place`: where it lies; without it, it may lead nowhere.
    """
    found: list[tuple[str, str]] = []
    for rows in ("commondir", "gitdir"):
        listings: dict[str, list[str]] = {}
        for folder in protected.folders(rows):
            try:
                names = _names(gitdir, folder)
            except OSError as error:
                if error.errno in _OURS:
                    raise
                found.append((folder, "a part of a git dir that cannot be looked at"))
                continue
            if names is None:
                found.append((folder, "a symlink as part of a git dir leads git elsewhere"))
            else:
                listings[folder] = names
        for path, row in protected.split(rows, listings).present:
            if row.name == "config":
                found += _of_config(gitdir, path, row.reason, place)
            elif row.name == "hooks":
                found += _of_hooks(gitdir, path, row.reason)
            elif row.name not in _STAYS:
                found.append((path, row.reason))
    if place is not None and any(path in _WORKTREE for path, _ in found) and _is_worktree(place, gitdir):
        found = [(path, reason) for path, reason in found if path not in _WORKTREE]
    return list(dict.fromkeys(found))


def _is_worktree(place: Place, gitdir: int) -> bool:
    from jail.hold import gitlinks  # most git dirs lead nowhere

    return gitlinks.is_worktree(place, gitdir)


def _is_submodule(place: Place | None, setting: "gitconfig.Setting") -> bool:
    from jail.hold import gitlinks  # most git dirs lead nowhere

    return place is not None and gitlinks.is_submodule(place, setting)


def _names(gitdir: int, folder: str) -> list[str] | None:
    """The names in a folder beneath the git dir; [] when there is none, None when it is a symlink itself.
    Raises OSError where there may be one that cannot be listed.
    """
    try:
        fd = walk.enter(gitdir, folder or ".")
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        return None if _is_link(gitdir, folder) else []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _is_link(gitdir: int, path: str) -> bool:
    try:
        fd = files.openat2(
            gitdir, path, os.O_PATH | os.O_NOFOLLOW, files.RESOLVE_BENEATH | files.RESOLVE_NO_MAGICLINKS
        )
    except OSError:
        return False
    try:
        return stat.S_ISLNK(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def _of_config(gitdir: int, path: str, reason: str, place: Place | None) -> list[tuple[str, str]]:
    from jail.hold import gitconfig  # most runs judge no git dir

    try:
        fd = walk.enter(gitdir, path, files.FILE)
    except FileNotFoundError:
        return []
    except OSError:
        return [(path, "not a regular file")]
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return [(path, "not a regular file")]
        content = os.read(fd, gitconfig.PLAIN_BYTES + 1)
        wrong = gitconfig.offences(content, lambda item: _is_submodule(place, item))
    finally:
        os.close(fd)
    return [(path, f"{reason}: {', '.join(wrong[:3])}")] if wrong else []


def _of_hooks(gitdir: int, path: str, reason: str) -> list[tuple[str, str]]:
    try:
        fd = walk.enter(gitdir, path)
    except FileNotFoundError:
        return []
    except OSError:
        return [(path, reason)]
    try:
        with os.scandir(fd) as found:
            entries = list(islice(found, HOOK_NAMES + 1))
            if len(entries) > HOOK_NAMES:
                return [(path, reason)]
            wrong = [
                entry.name
                for entry in entries
                if not (entry.name.endswith(".sample") and entry.is_file(follow_symlinks=False))
            ]
    finally:
        os.close(fd)
    return [(f"{path}/{name}", reason) for name in wrong]
