"""`.git` files, and links, that lead git to a git dir elsewhere.

Rule: one that appeared during a run must lead into a tree that was given for writing, since all git dirs in
those are judged when the run has ended, and nothing else that a command fills is: caches, what is held, what
was taken away. Where it leads to is asked of the kernel, from the folder that it lies in, as git asks
(gitrepository-layout(5), setup.c read_gitfile_gently); links on the way are part of the answer. A git dir
that lay there before, with a config or hooks of its own, is led to only by the folder that it names itself.
"""

import errno
import os

from jail.hold import freshgit
from jail.hold.freshgit import Place, is_git_dir
from jail.hold.gitlinks import leads_to
from jail.kernel import files, walk
from jail.light import Callable, Final, Iterable
from jail.policy.paths import beneath, deepest

_PREFIX: Final = b"gitdir: "
_BYTES: Final = 8192
"""PATH_MAX and the prefix: the kernel takes no longer path from git either."""
_PATH_ONLY: Final = os.O_PATH | os.O_CLOEXEC
_NOWHERE: Final = (errno.ENOENT, errno.ENOTDIR)
ELSEWHERE: Final = "leads git to a git dir that nobody looks into"
_RUNS: Final = "leads git to a git dir that makes it run something"
KEPT: Final = "a link into what jail keeps, which nobody looks into"


def offence(place: Place, folder: int, name: str, kind: str) -> str:
    """Why a `.git` that is no folder may not stay, "" where it may. `place.path`: the folder behind `folder`,
    in which it lies; `kind` as in jail.kernel.files.
    """
    if kind not in ("file", "symlink"):
        return "" if kind == "socket" else "git waits for it for ever"
    said = os.fsencode(name) if kind == "symlink" else _said(folder, name)
    if not said:
        return ""  # no pointer: git ends there
    try:
        fd = os.open(said, _PATH_ONLY | os.O_DIRECTORY, dir_fd=folder)
    except OSError as error:
        text = _link_text(folder, name) if kind == "symlink" else os.fsdecode(said)
        there = os.path.realpath(os.path.join(place.path, text))
        led = error.errno in _NOWHERE and _tree_of(place, there) is not None
        return "" if led else ELSEWHERE
    try:
        return _of_target(place, fd)
    finally:
        os.close(fd)


def leads_into(folder: int, path: Callable[[], str], name: str, kind: str, own: Iterable[str]) -> bool:
    """Whether the symlink or `.git` file `name` in the folder behind an fd leads into one of the folders
    `own`, be there something or not. `path`: asked for the path of that folder, "" where it is too deep to
    have one.
    """
    said = name if kind == "symlink" else os.fsdecode(_said(folder, name))
    if not said:
        return False
    try:
        fd = os.open(said, _PATH_ONLY, dir_fd=folder)
    except OSError:
        target = _link_text(folder, name) if kind == "symlink" else said
        above = path()
        there = os.path.realpath(os.path.join(above, target)) if above or target.startswith("/") else ""
    else:
        try:
            there = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:  # longer than a page
            return True
        finally:
            os.close(fd)
    return any(beneath(there, top) for top in own)


def _said(folder: int, name: str) -> bytes:
    """The path in a `.git` file, as git reads it: the line ends at its end are none of it, a NUL ends it."""
    try:
        fd = walk.enter(folder, name, files.FILE)
    except OSError:
        return b"/"  # what cannot be read leads nowhere good
    try:
        content = os.read(fd, _BYTES)
    finally:
        os.close(fd)
    if not content.startswith(_PREFIX):
        return b""
    return content.removeprefix(_PREFIX).rstrip(b"\r\n").partition(b"\0")[0]


def _link_text(folder: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return "/"


def _of_target(place: Place, fd: int) -> str:
    try:
        there = os.readlink(f"/proc/self/fd/{fd}")
        tree = _tree_of(place, there)
        if tree is None or os.fstat(tree).st_dev != os.fstat(fd).st_dev:
            return ELSEWHERE  # what is mounted in a tree is not walked
        gitdir = walk.enter(fd, ".")
    except OSError:
        return ELSEWHERE
    try:
        target = place._replace(path=there)
        if not is_git_dir(os.listdir(gitdir)) or leads_to(target, gitdir, place.path):
            return ""
        return _RUNS if freshgit.offences(gitdir, target) else ""
    finally:
        os.close(gitdir)


def _tree_of(place: Place, path: str) -> int | None:
    root = deepest(path, [root for root, _ in place.trees])
    return dict(place.trees)[root] if root and beneath(path, root) else None
