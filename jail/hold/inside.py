"""The command's side of a held tree: what it left in the upper layer of an overlay, or in a copy.

Rule: only what the kernel makes counts as a deletion: the marks of an *upper layer* (jail.hold.marks), which
overlayfs lets no one make through the mount. In a copy they can be made by anybody and mean nothing. The tree
is only read, by fds; a folder whose path is past names.PATH_BYTES is named, and nothing in it is.
"""

import errno
import os
import stat

from jail.errors import JailError
from jail.hold import digests, marks, names
from jail.hold.change import ABSENT, State
from jail.kernel import files, walk
from jail.light import Callable, Final

LEFT_BYTES: Final = 2 << 30
"""Memory for the names of one held tree, about: a million changes, or fewer with long paths."""
_EACH: Final = 2000
"""What a change takes beside its path."""
_UPPER: Final = -1
"""For when a copy was made: the tree is no copy but an upper layer."""
Touched = Callable[[str, os.stat_result], bool]


class Left:
    """What the command left. `states`: path → state, ABSENT for what an upper layer says is deleted; `same`:
    paths that it did not touch; `hiding`: those through which nothing of the base is seen; `beyond`: folders
    of which nothing is named, and of these `stirred`: what is in them may have changed; `room`: bytes that
    are left of LEFT_BYTES.
    """

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.same: set[str] = set()
        self.hiding: set[str] = set()
        self.beyond: set[str] = set()
        self.stirred: set[str] = set()
        self.room = LEFT_BYTES

    def concerns(self, path: str) -> bool:
        """Whether an entry of the base is said to be changed or gone: what an upper layer names, and all in
        a folder that it hides. To be asked for a folder first.
        """
        hidden = bool(path) and path.rpartition("/")[0] in self.hiding
        if hidden:
            self.hiding.add(path)
        return hidden or path in self.states


def look(top: int, touched: Touched, made_ns: int = _UPPER) -> Left:
    """Walk the tree behind the fd `top`. `touched`: whether a name has to be looked at, by path and lstat;
    folders always are. `made_ns`: of a copy, when it was finished. Raises PermissionError for what may not be
    read, JailError for what cannot be listed.
    """
    left = Left()
    left.states[""] = _folder_state(os.fstat(top))
    denied: list[str] = []
    for folder in walk.folders(top):
        denied = folder.denied
        path = folder.path
        if not folder.whole:
            raise _too_many(f"more than {walk.FOLDER_ENTRIES} names in one folder: {path or '.'}")
        if made_ns == _UPPER and marks.is_opaque(folder.fd):
            left.hiding.add(path)
        _look_in(folder, f"{path}/" if path else "", left, touched, made_ns)
    if denied:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), denied[0])
    return left


def _too_many(where: str) -> JailError:
    return JailError(
        "the command left too many names for a list of them",
        where=where,
        hint="copy what you need out of the session's folder; `jail gc --held` throws such sessions away",
    )


def _look_in(folder: walk.Folder, prefix: str, left: Left, touched: Touched, made_ns: int) -> None:
    upper = made_ns == _UPPER
    entered = []
    for dirent in folder.entries:
        path = prefix + dirent.name
        left.room -= len(path) + _EACH
        if left.room < 0:
            raise _too_many(f"more than {LEFT_BYTES} bytes of memory for what was left, at {prefix or '.'}")
        try:
            found = dirent.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                left.states[path] = _folder_state(found)
                if names.is_too_long(path):
                    left.beyond.add(path)
                    if upper or _is_stirred(folder.fd, dirent.name, made_ns):
                        left.stirred.add(path)
                else:
                    entered.append(dirent)
                continue
            if upper:
                left.hiding.add(path)
            if upper and marks.is_whiteout(found):
                left.states[path] = ABSENT
            elif touched(path, found):
                left.states[path] = state(folder.fd, dirent.name, found)
            else:
                left.same.add(path)
        except FileNotFoundError:
            continue  # the run is still going on
    folder.entries = entered


def _is_stirred(parent: int, name: str, made_ns: int) -> bool:
    """Whether anything in a folder of a copy changed since the copy was made."""
    fd = os.open(name, files.FOLDER, dir_fd=parent)
    try:
        for folder in walk.folders(fd):
            if os.fstat(folder.fd).st_ctime_ns > made_ns or not folder.whole:
                return True
            if any(each.stat(follow_symlinks=False).st_ctime_ns > made_ns for each in folder.entries):
                return True
        return False
    finally:
        os.close(fd)


def _folder_state(found: os.stat_result) -> State:
    return State("folder", stat.S_IMODE(found.st_mode), 0, found.st_mtime_ns)


def state(folder: int, name: str, found: os.stat_result | None = None) -> State:
    """The state of one name, with its content's digest; `found`: its lstat, where it was taken. Raises
    OSError.
    """
    found = found or os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind, digest = files.kind(found.st_mode), ""
    if kind == "symlink":
        digest = digests.of_target(os.readlink(name, dir_fd=folder))
    elif kind == "file":
        try:
            fd = os.open(name, files.FILE, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):
                raise
            raise _gone(name) from error
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise _gone(name)
            digest = digests.of_file(fd, found.st_size)
        finally:
            os.close(fd)
    size = found.st_size if kind == "file" else 0
    return State(kind, stat.S_IMODE(found.st_mode), size, found.st_mtime_ns, digest)


def _gone(name: str) -> FileNotFoundError:
    # Another thing is in its place now: the run is still going on.
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
