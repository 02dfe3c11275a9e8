"""The copy of a tree that no overlay can hold, and its base.

Rule: it is as like the tree as an unprivileged copy can be (names, contents, holes, link targets, all
permission bits, times), so that what differs from it later is the command's doing; names of one inode become
files of their own. The tree is only read: what may not be read is left out and named, as special files are.
No mount is crossed: an empty folder stands where one is. The base says of each copied name which inode it
became and when, so that a look at the copy needs to read only what the command touched.
"""

import errno
import os
import stat

from jail.hold import base
from jail.hold.store import Copied
from jail.kernel import files, sparse, trees, walk, writing
from jail.light import Final
from jail.plan.held import COPY_BYTES, COPY_ENTRIES

LEFT_OUT: Final = 100
"""Names told of what a copy left out; all of it is in the base."""
_NOBODY: Final = (-1, -1)


class _Level:
    """A folder of the copy that is being filled, and what it gets when all in it is there; `made`: folders in
    it that the walk has not entered yet, as it may never do.
    """

    __slots__ = ("fd", "found", "made")

    def __init__(self, fd: int, found: os.stat_result) -> None:
        self.fd = fd
        self.found = found
        self.made: dict[str, os.stat_result] = {}


def make(
    tree_fd: int, target_fd: int, base_file: str, started_ns: int, owner: tuple[int, int] = _NOBODY
) -> Copied:
    """Copy the tree behind `tree_fd` into the empty folder `target_fd` and write its base.

    `started_ns`: what changed at or after this time is unknown in the base. `owner`: uid and gid of the
    copy, for a caller who is root. Raises TooLargeError past COPY_BYTES or COPY_ENTRIES, OSError; the copy
    is half made then and there is no base.
    """
    copy = _Copy(base_file, started_ns, owner)
    try:
        copy.tree(tree_fd, target_fd)
    finally:
        copy.close()
    return Copied(copy.size, tuple(copy.left_out))


class _Copy:
    def __init__(self, base_file: str, started_ns: int, owner: tuple[int, int]) -> None:
        self.left_out: list[str] = []
        self.size = 0
        self._out = base.Writer(base_file)
        self._started_ns = started_ns
        self._owner = owner
        self._bounds = trees.Bounds(COPY_BYTES, COPY_ENTRIES)
        self._levels: list[_Level] = []

    def close(self) -> None:
        for level in self._levels:
            if level.fd >= 0:
                os.close(level.fd)
        self._out.close()

    def tree(self, tree_fd: int, target_fd: int) -> None:
        found = os.fstat(tree_fd)
        self._note("", found)
        self._levels.append(_Level(os.open(".", files.FOLDER, dir_fd=target_fd), found))
        denied: list[str] = []
        for folder in walk.folders(tree_fd):
            denied = folder.denied
            if folder.depth:
                self._enter(folder)
            self._bounds.entries -= len(folder.entries)
            if self._bounds.entries < 0 or not folder.whole:
                raise trees.TooLargeError
            self._out.folder(folder.depth, folder.name)
            for dirent in folder.entries:
                self._entry(folder, dirent.name)
        self._leave(0)
        self._leave_out(*(path for path in denied if not _is_mount(tree_fd, path)))
        self._out.finish()

    def _enter(self, folder: walk.Folder) -> None:
        self._leave(folder.depth)
        here = self._levels[-1]
        fd = os.open(folder.name, files.FOLDER, dir_fd=here.fd)
        self._levels.append(_Level(fd, here.made.pop(folder.name)))
        if len(self._levels) > walk.OPEN_LEVELS:
            # Found again by "..": nobody else is in the copy yet.
            above = self._levels[-walk.OPEN_LEVELS]
            os.close(above.fd)
            above.fd = -1

    def _leave(self, depth: int) -> None:
        """Leave the folders at `depth` and below; their bits come last, since they may close them."""
        while len(self._levels) > depth:
            level = self._levels[-1]
            for name, found in level.made.items():
                fd = os.open(name, files.FOLDER, dir_fd=level.fd)
                _dress(fd, found, self._owner)
                self._weigh(os.fstat(fd))
                os.close(fd)
            if len(self._levels) > 1 and self._levels[-2].fd < 0:
                self._levels[-2].fd = os.open("..", files.FOLDER, dir_fd=level.fd)
            _dress(level.fd, level.found, self._owner)
            if len(self._levels) > 1:
                self._weigh(os.fstat(level.fd))
            self._levels.pop()
            os.close(level.fd)

    def _entry(self, folder: walk.Folder, name: str) -> None:
        here = self._levels[-1]
        try:
            found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        kind = files.kind(found.st_mode)
        try:
            if kind == "folder":
                os.mkdir(name, 0o700, dir_fd=here.fd)
                here.made[name] = found
                self._note(name, found)
            elif kind == "symlink":
                self._link(folder.fd, name, here.fd, found)
            elif kind == "file":
                self._file(folder.fd, name, here.fd)
            else:
                self._note(name, found)
                self._leave_out(folder.join(name))
        except PermissionError:
            self._out.entry(name, base.UNKNOWN)
            self._leave_out(folder.join(name))
        except FileNotFoundError:
            return

    def _link(self, source: int, name: str, target: int, found: os.stat_result) -> None:
        leads_to = os.readlink(name, dir_fd=source)
        os.symlink(leads_to, name, dir_fd=target)
        if self._owner != _NOBODY:
            os.chown(name, *self._owner, dir_fd=target, follow_symlinks=False)
        os.utime(name, ns=_times(found), dir_fd=target, follow_symlinks=False)
        own = os.stat(name, dir_fd=target, follow_symlinks=False)
        self._weigh(own)
        self._note(name, found, leads_to, own)

    def _file(self, source: int, name: str, target: int) -> None:
        fd = os.open(name, files.FILE, dir_fd=source)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(name)
            # 512: the unit of st_blocks, whatever the file system (stat(3type)).
            self._bounds.bytes -= min(found.st_size, found.st_blocks * 512)
            if self._bounds.bytes < 0:
                raise trees.TooLargeError
            out = writing.create(name, folder=target)
            try:
                sparse.copy(fd, out, found.st_size)
                _dress(out, found, self._owner)
                own = os.fstat(out)
                self._weigh(own)
            finally:
                os.close(out)
            whole = os.fstat(fd).st_ctime_ns == found.st_ctime_ns
            self._note(name, found, "", own, whole=whole)
        finally:
            os.close(fd)

    def _note(
        self,
        name: str,
        found: os.stat_result,
        target: str = "",
        own: os.stat_result | None = None,
        *,
        whole: bool = True,
    ) -> None:
        entry = base.entry_of(found, target, own)
        if not whole or entry.ctime_ns >= self._started_ns:
            entry = entry._replace(kind="unknown")
        self._out.entry(name, entry)

    def _weigh(self, own: os.stat_result) -> None:
        self.size += own.st_blocks * 512  # whatever the file system (stat(3type))

    def _leave_out(self, *paths: str) -> None:
        self.left_out += paths[: LEFT_OUT - len(self.left_out)]


def _is_mount(tree_fd: int, path: str) -> bool:
    """Whether a folder was not entered because a mount begins there, which is given or held by itself."""
    try:
        os.close(files.openat2(tree_fd, path, files.FOLDER, files.IN_TREE))
    except OSError as error:
        return error.errno == errno.EXDEV
    return False


def _dress(fd: int, found: os.stat_result, owner: tuple[int, int]) -> None:
    """Owner, permission bits and times, in this order: each would undo what comes after it."""
    if owner != _NOBODY:
        os.fchown(fd, *owner)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.utime(fd, ns=_times(found))


def _times(found: os.stat_result) -> tuple[int, int]:
    return found.st_atime_ns, found.st_mtime_ns
