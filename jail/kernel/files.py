"""Files opened and moved so that nobody can redirect it: openat2(2), renameat2(2), close_range(2)."""

import ctypes
import errno
import os
import stat
import sys

from jail.kernel import libc
from jail.kernel.syscalls import number
from jail.light import Final, NamedTuple, suppress

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags for a folder that somebody else may be changing."""
FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""The same for a file: a FIFO or terminal that was put in its place neither holds us up nor becomes ours."""

RESOLVE_NO_XDEV: Final = 0x01
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
RESOLVE_IN_ROOT: Final = 0x10
"""<linux/openat2.h>"""
IN_TREE: Final = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV
"""For a path in a tree that somebody else may be changing: nothing leads out of it, or onto another mount."""

RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2
"""<linux/fs.h>"""
CLOSE_RANGE_CLOEXEC: Final = 4
"""<linux/close_range.h>"""


class _OpenHow(ctypes.Structure):
    """struct open_how of <linux/openat2.h>."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def content(path: str) -> str:
    """All of a small file of proc(5) or of a control group; "" where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        pieces = []
        while piece := os.read(fd, _PIECE):
            pieces.append(piece)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return os.fsdecode(b"".join(pieces))


_PIECE: Final = 1 << 20


class Identity(NamedTuple):
    """Which inode a path led to: device and inode number."""

    device: int
    inode: int


def openat2(folder: int, path: str, flags: int, resolve: int, mode: int = 0) -> int:
    """An fd of `path` beneath `folder`; RESOLVE_* bits say what may be crossed on the way (openat2(2)).

    Raises KernelError; EAGAIN (a rename raced with the look-up of `..`) is tried again a few times.
    """
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    for attempt in range(_RACE_ATTEMPTS):
        try:
            return libc.syscall(f"openat2({path})", number("openat2"), folder, path, how, ctypes.sizeof(how))
        except libc.KernelError as error:
            if error.errno != errno.EAGAIN or attempt == _RACE_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


_RACE_ATTEMPTS: Final = 16
"""openat2(2) asks callers to retry EAGAIN; somebody who renames in a loop must not hold us for ever."""


def open_path(path: str, expected: Identity | None = None) -> int:
    """An O_PATH fd of an absolute path without symlinks; refused when it is not the inode `expected`.

    A path that became another inode since the survey was swapped under us: OSError ESTALE.
    """
    fd = openat2(-1, path, os.O_PATH | os.O_NOFOLLOW, RESOLVE_NO_MAGICLINKS | _no_links_before_the_last(path))
    if expected is not None and identity(fd) != expected:
        os.close(fd)
        raise libc.KernelError(errno.ESTALE, f"open({path}), which changed since it was looked at")
    return fd


def _no_links_before_the_last(path: str) -> int:
    # RESOLVE_NO_SYMLINKS with O_PATH|O_NOFOLLOW still opens a trailing symlink itself (openat2(2)).
    return RESOLVE_NO_SYMLINKS if path.startswith("/") else RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH


def identity(fd: int) -> Identity:
    """Device and inode behind an fd."""
    found = os.fstat(fd)
    return Identity(found.st_dev, found.st_ino)


_AT_FDCWD: Final = -100
_STATX_BTIME: Final = 0x800
"""<linux/fcntl.h>, <linux/stat.h>; struct statx has 256 bytes, its mask first, and stx_btime at 80."""


def birth(path: str) -> int:
    """When what `path` leads to was made, in nanoseconds since the epoch; 0 where its file system does not
    say (statx(2)).
    """
    buffer = ctypes.create_string_buffer(256)
    libc.syscall(f"statx({path})", number("statx"), _AT_FDCWD, path, 0, _STATX_BTIME, buffer)
    mask, seconds, nanoseconds = (
        int.from_bytes(buffer.raw[at : at + size], sys.byteorder) for at, size in ((0, 4), (80, 8), (88, 4))
    )
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else 0


def make_folders(root: int, path: str, mode: int = 0o755) -> int:
    """An O_PATH fd of the folder `path` beneath `root`, with what is missing made on the way; symlinks are
    refused.
    """
    flags, resolve = os.O_PATH | os.O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
    # Most are there already, and then one call does.
    with suppress(FileNotFoundError):
        return openat2(root, path.strip("/") or ".", flags, resolve)
    here = os.dup(root)
    for name in path.split("/"):
        if name in ("", "."):
            continue
        try:
            os.mkdir(name, mode, dir_fd=here)
        except FileExistsError:
            pass
        try:
            below = openat2(here, name, flags, resolve)
        finally:
            os.close(here)
        here = below
    return here


def make_file(root: int, path: str) -> int:
    """An fd, to mount on, of the file `path` beneath `root`, made empty when missing, with its folders."""
    head, _, name = path.rpartition("/")
    folder = make_folders(root, head)
    try:
        try:
            return os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC, 0o444, dir_fd=folder)
        except FileExistsError:
            return openat2(folder, name, os.O_PATH | os.O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
    finally:
        os.close(folder)


def close_on_exec_from(first: int) -> None:
    """Every fd from `first` upwards closes at exec, whichever fds there are (close_range(2))."""
    libc.syscall(f"close_range({first})", number("close_range"), first, 0xFFFFFFFF, CLOSE_RANGE_CLOEXEC)


def remove_empty(folder: int, name: str) -> bool:
    """Remove a folder beneath an open one; False, with nothing done, where something is in it. Raises
    OSError.
    """
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        # rmdir(2): either of both, as the file system likes.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def rename_noreplace(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Move a name, never over another one and never through a symlink (renameat2(2), RENAME_NOREPLACE)."""
    libc.syscall(f"renameat2({old})", number("renameat2"), old_folder, old, new_folder, new, RENAME_NOREPLACE)


def exchange(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Let two names of one file system change places, in one step: each is always there, and no symlink is
    followed (renameat2(2), RENAME_EXCHANGE).
    """
    libc.syscall(f"renameat2({old})", number("renameat2"), old_folder, old, new_folder, new, RENAME_EXCHANGE)


def sync(fd: int) -> None:
    """All of the file system behind an fd is on its disk (syncfs(2)): once for many files, where fsync(2)
    would wait for each.
    """
    libc.syscall("syncfs", number("syncfs"), fd)


def kind(mode: int) -> str:
    """`file`, `folder`, `symlink`, `socket`, or `special` of an st_mode."""
    return _KINDS.get(stat.S_IFMT(mode), "special")


_KINDS: Final = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "symlink",
    stat.S_IFSOCK: "socket",
}


PROC_SUPER_MAGIC: Final = 0x9FA0
"""<linux/magic.h>"""


def require_procfs(fd: int, what: str) -> None:
    """Refuse an fd that is not a file of a procfs: a map or a limit written elsewhere would leave a wall open
    (CVE-2019-19921).
    """
    buffer = ctypes.create_string_buffer(256)
    libc.syscall(f"fstatfs({what})", number("fstatfs"), fd, buffer)
    if int.from_bytes(buffer.raw[:8], "little") != PROC_SUPER_MAGIC:
        raise libc.KernelError(errno.EINVAL, f"{what}: not on a procfs")


def close_all_but(kept: set[int]) -> None:
    """Close every open fd that is not in `kept` (close_range(2)), whoever opened it."""
    first = 0
    for fd in sorted(kept):
        if fd > first:
            libc.syscall(f"close_range({first}, {fd - 1})", number("close_range"), first, fd - 1, 0)
        first = fd + 1
    libc.syscall(f"close_range({first})", number("close_range"), first, 0xFFFFFFFF, 0)
