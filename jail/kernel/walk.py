"""Walking a tree that somebody else may be changing, of any depth, without ever following a symlink.

Rule: one loop, no recursion; every step is relative to an open folder, so no path is ever too long (PATH_MAX)
and no rename can lead the walk out. At most `OPEN_LEVELS` + 2 fds are open: folders further up are closed and
found again by `..`, whose device and inode must be those of the way down; where they are not (somebody moved
the folder) the walk goes down again from the start, and gives up the branch that is gone. What vanishes
meanwhile was not there. Names are str with surrogateescape.
"""

import errno
import os
import stat
from itertools import islice

from jail.kernel import files
from jail.light import Callable, Final, Iterator, suppress

OPEN_LEVELS: Final = 32
"""Folders kept open on the way down: ordinary trees are walked without any `..`, and RLIMIT_NOFILE is never
near.
"""
FOLDER_ENTRIES: Final = 1_000_000
"""Names of one folder held in memory at once: about 200 MB."""
DEEPEST: Final = 2048
"""Levels that a path can say (PATH_MAX): git dirs deeper down are not listed."""
DENIED: Final = 100
"""Paths of folders that could not be entered; a path costs what its folder is deep."""
OWN_TRIES: Final = 4
"""How often permission bits are given back to one name that somebody keeps closing."""

_GONE: Final = frozenset([errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE])
_UNREADABLE: Final = _GONE | {errno.EACCES, errno.EXDEV, errno.EIO}
"""What a walk passes over: vanished, not ours to read, another mount, a bad disk."""


_NAME: Final = os.DirEntry.name.__get__
"""The name of an entry; a walk asks for millions, and a lambda takes three times as long."""


class Folder:
    """One folder of a walk: `entries` are its names as os.DirEntry, valid while it is the one that was
    yielded last.

    `whole` is False when not all of its names were listed. `denied` is one list for the whole walk: the paths
    of the first DENIED folders that could not be entered, though they are there.
    """

    __slots__ = ("denied", "depth", "entries", "fd", "identity", "name", "parent", "whole")

    def __init__(self, parent: "Folder | None", name: str, fd: int) -> None:
        self.parent = parent
        self.name = name
        self.fd = fd
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.identity = files.identity(fd)
        self.entries: list[os.DirEntry[str]] = []
        self.whole = True
        self.denied: list[str] = [] if parent is None else parent.denied

    @property
    def path(self) -> str:
        """The path relative to the start of the walk; "" for the start itself."""
        parts: list[str] = []
        here: Folder | None = self
        while here is not None and here.parent is not None:
            parts.append(here.name)
            here = here.parent
        return "/".join(reversed(parts))

    def join(self, name: str) -> str:
        """The relative path of an entry of this folder."""
        return f"{self.path}/{name}" if self.parent is not None else name

    def list_entries(self, *, in_order: bool) -> None:
        """Read the names, at most FOLDER_ENTRIES of them."""
        try:
            with os.scandir(self.fd) as found:
                self.entries = list(islice(found, FOLDER_ENTRIES))
                self.whole = next(found, None) is None
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
            self.whole = error.errno in _GONE
        if in_order:
            self.entries.sort(key=_NAME)

    def close(self) -> None:
        """Close the fd; the walk may open it again."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def folders(
    dirfd: int, *, cross_mounts: bool = False, in_order: bool = False, regain: bool = False
) -> Iterator[Folder]:
    """Every folder beneath and including `dirfd`, each before those in it.

    `in_order`: names sorted by code points. `regain`: a folder of ours that cannot be listed or searched gets
    our permission bits back; one that is not ours is `denied`. A folder taken out of `folder.entries` by the
    one who asks is not entered.
    """
    top = enter(dirfd, ".") if regain else os.open(".", files.FOLDER, dir_fd=dirfd)
    here: Folder | None = Folder(None, "", top)
    levels: list[tuple[Folder, list[str]]] = []
    way_in = _enter_own if regain else _enter_across if cross_mounts else _enter
    try:
        while here is not None:
            here.list_entries(in_order=in_order)
            yield here
            below = [found.name for found in here.entries if found.is_dir(follow_symlinks=False)]
            here.entries = []
            below.reverse()
            levels.append((here, below))
            if len(levels) > OPEN_LEVELS + 1:
                levels[-OPEN_LEVELS - 1][0].close()
            here = _next(levels, way_in)
    finally:
        for level, _ in levels:
            level.close()
        if here is not None:
            here.close()


def kind_of(dirent: os.DirEntry[str]) -> str:
    """The kind of an entry, from what the listing said where it said it; "" when it vanished."""
    if dirent.is_symlink():
        return "symlink"
    if dirent.is_dir(follow_symlinks=False):
        return "folder"
    if dirent.is_file(follow_symlinks=False):
        return "file"
    try:
        return files.kind(dirent.stat(follow_symlinks=False).st_mode)
    except OSError:
        return ""


def _next(levels: list[tuple[Folder, list[str]]], way_in: Callable[[int, str], int]) -> Folder | None:
    while levels:
        level, names = levels[-1]
        if level.fd < 0:
            _down_from_the_start(levels)
            continue
        while names:
            name = names.pop()
            try:
                return Folder(level, name, way_in(level.fd, name))
            except OSError as error:
                if error.errno not in _UNREADABLE:
                    raise
                if error.errno not in _GONE and len(level.denied) < DENIED:
                    level.denied.append(level.join(name))
        levels.pop()
        if levels and levels[-1][0].fd < 0:
            levels[-1][0].fd = _above(level, levels[-1][0])
        level.close()
    return None


def _enter(folder: int, name: str) -> int:
    return files.openat2(folder, name, files.FOLDER, files.IN_TREE)


def _enter_across(folder: int, name: str) -> int:
    return os.open(name, files.FOLDER, dir_fd=folder)


def _enter_own(folder: int, name: str) -> int:
    # Another mount is not ours to change, so it is found before any bit is given back.
    device = os.fstat(folder).st_dev
    if os.stat(name, dir_fd=folder, follow_symlinks=False).st_dev != device:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    fd = _enter_one(folder, name, files.FOLDER)
    found = os.fstat(fd)
    if found.st_dev != device:
        os.close(fd)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    if found.st_mode & 0o500 != 0o500:
        regain_folder(fd)
    return fd


def regain_folder(fd: int) -> bool:
    """Give its owner's bits (u+rwx) back to the folder behind an fd; False where it is not ours to change."""
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISDIR(mode):
            return False
        if mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(mode) | 0o700)
    except OSError:
        return False
    return True


def enter(folder: int, path: str, flags: int = files.FOLDER) -> int:
    """Open `path` beneath `folder`, one component at a time and through no symlink; bits that are missing on
    the way are given back by their owner, and only where the kernel refuses.

    Raises PermissionError where they are not ours, or are taken away again as fast as they are given.
    """
    here = os.dup(folder)
    try:
        *above, last = path.split("/")
        for part in above:
            below = _enter_one(here, part, files.FOLDER)
            os.close(here)
            here = below
        return _enter_one(here, last, flags)
    finally:
        os.close(here)


def _enter_one(folder: int, name: str, flags: int) -> int:
    for _ in range(OWN_TRIES):
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except PermissionError:
            regain_folder(folder)
        with suppress(PermissionError):
            return open_own(folder, name, flags)
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def open_own(folder: int, name: str, flags: int) -> int:
    """Open a name that may have lost its permission bits: its owner gives them back first (u+rwx of a folder,
    u+r of a file).

    Only the inode that O_PATH|O_NOFOLLOW found is changed, by /proc/self/fd, so that no symlink can redirect
    the chmod.
    """
    held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(held).st_mode
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o400
        if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and mode & wanted != wanted:
            try:
                os.chmod(f"/proc/self/fd/{held}", stat.S_IMODE(mode) | wanted)
            except OSError as error:
                # EPERM: not ours; EROFS: nobody's. What that leaves closed is closed.
                raise PermissionError(errno.EACCES, f"{error.strerror}, chmod", name) from error
    finally:
        os.close(held)
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _above(left: Folder, expected: Folder) -> int:
    """The folder above `left` by `..`, if it still is the one that the walk came from; else -1."""
    try:
        fd = os.open("..", files.FOLDER, dir_fd=left.fd)
    except OSError:
        return -1
    if files.identity(fd) == expected.identity:
        return fd
    os.close(fd)
    return -1


def _down_from_the_start(levels: list[tuple[Folder, list[str]]]) -> None:
    """Go down again as far as the folders are where they were; the rest is given up: somebody moved it."""
    fd = os.dup(levels[0][0].fd)
    reached = 0
    for level, _ in levels[1:]:
        try:
            below = os.open(level.name, files.FOLDER, dir_fd=fd)
        except OSError:
            break
        if files.identity(below) != level.identity:
            os.close(below)
            break
        os.close(fd)
        fd = below
        reached += 1
    for level, _ in levels[max(reached, 1) :]:
        level.close()
    del levels[reached + 1 :]
    if reached:
        levels[reached][0].fd = fd
    else:
        os.close(fd)


def disk_usage(dirfd: int, most_bytes: int = 1 << 62, most_entries: int = 1 << 62) -> int:
    """Bytes on the disk beneath an open folder, as far as it can be entered, without what lies past
    `most_bytes` or `most_entries`. A file with several names counts once.
    """
    total = entries = 0
    linked: set[int] = set()
    for folder in folders(dirfd):
        for dirent in folder.entries:
            entries += 1
            with suppress(OSError):
                found = dirent.stat(follow_symlinks=False)
                if found.st_ino not in linked:
                    total += found.st_blocks * 512  # whatever the file system (stat(3type))
                if found.st_nlink > 1 and not dirent.is_dir(follow_symlinks=False):
                    linked.add(found.st_ino)
            if total > most_bytes or entries >= most_entries:
                return total
    return total
