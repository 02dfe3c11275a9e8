"""The command's side of a held tree: what it left in the upper layer of an overlay, or in a copy.

Rule: only what the kernel makes counts as a deletion: a character device 0:0 in an *upper layer*, and there a
folder with `user.overlay.opaque` "y" (overlayfs.rst, "whiteouts and opaque directories"); overlayfs lets no
one make either through the mount. In a copy both can be made by anybody and mean nothing. The tree is only
read, by fds; a folder whose path is past PATH_BYTES is named and not entered.
"""

import errno
import os
import stat

from jail.errors import JailError
from jail.hold import digests
from jail.hold.change import ABSENT, State
from jail.hold.names import PATH_BYTES
from jail.kernel import files, walk
from jail.light import Callable, Final

_OPAQUE: Final = "user.overlay.opaque"
_WHITEOUT: Final = 0
"""st_rdev of a whiteout: WHITEOUT_DEV of <linux/fs.h>."""
Touched = Callable[[str, os.stat_result], bool]


class Left:
    """What the command left. `states`: path → state, ABSENT for what an upper layer says is deleted; `same`:
    paths that it did not touch; `hiding`: those through which nothing of the base is seen; `beyond`: folders
    that were not entered.
    """

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.same: set[str] = set()
        self.hiding: set[str] = set()
        self.beyond: set[str] = set()

    def concerns(self, path: str) -> bool:
        """Whether an entry of the base is said to be changed or gone: what an upper layer names, and all in
        a folder that it hides. To be asked for a folder first.
        """
        hidden = bool(path) and path.rpartition("/")[0] in self.hiding
        if hidden:
            self.hiding.add(path)
        return hidden or path in self.states


def look(top: int, touched: Touched, *, upper: bool) -> Left:
    """Walk the tree behind the fd `top`. `touched`: whether a name has to be looked at, by path and lstat;
    folders always are. Raises PermissionError for what may not be read, JailError for what cannot be listed.
    """
    left = Left()
    left.states[""] = _folder_state(os.fstat(top))
    denied: list[str] = []
    for folder in walk.folders(top):
        denied = folder.denied
        path = folder.path
        if not folder.whole:
            raise JailError(
                "a held folder has too many names to be looked at",
                where=path,
                hint=f"at most {walk.FOLDER_ENTRIES} names of one folder are looked at",
            )
        if upper and _is_opaque(folder.fd):
            left.hiding.add(path)
        _look_in(folder, f"{path}/" if path else "", left, touched, upper=upper)
    if denied:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), denied[0])
    return left


def _look_in(folder: walk.Folder, prefix: str, left: Left, touched: Touched, *, upper: bool) -> None:
    entered = []
    for dirent in folder.entries:
        path = prefix + dirent.name
        try:
            found = dirent.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                left.states[path] = _folder_state(found)
                if is_too_long(path):
                    left.beyond.add(path)
                else:
                    entered.append(dirent)
                continue
            if upper:
                left.hiding.add(path)
            if upper and stat.S_ISCHR(found.st_mode) and found.st_rdev == _WHITEOUT:
                left.states[path] = ABSENT
            elif touched(path, found):
                left.states[path] = state(folder.fd, dirent.name)
            else:
                left.same.add(path)
        except FileNotFoundError:
            continue  # the run is still going on
    folder.entries = entered


def is_too_long(path: str) -> bool:
    """Whether a path is past PATH_BYTES."""
    return len(path) * 4 > PATH_BYTES and len(os.fsencode(path)) > PATH_BYTES


def _folder_state(found: os.stat_result) -> State:
    return State("folder", stat.S_IMODE(found.st_mode), 0, found.st_mtime_ns)


def state(folder: int, name: str) -> State:
    """The state of one name, with its content's digest. Raises OSError."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind, digest = files.kind(found.st_mode), ""
    if kind == "symlink":
        digest = digests.of_target(os.readlink(name, dir_fd=folder))
    elif kind == "file":
        fd = os.open(name, files.FILE, dir_fd=folder)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            digest = digests.of_file(fd, found.st_size)
        finally:
            os.close(fd)
    size = found.st_size if kind == "file" else 0
    return State(kind, stat.S_IMODE(found.st_mode), size, found.st_mtime_ns, digest)


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return False
        raise
