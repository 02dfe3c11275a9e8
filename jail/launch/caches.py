"""Where the private caches lie on the host: one folder for each workspace, kept from run to run
as long as that folder itself is.

Rule: jail never reads, runs or parses what is in them; it makes the folder, looks at whose it is, binds it,
and `jail gc` counts and removes it (leftovers.py). Each holds `files`, which is what the command sees, and
beside it `workspace`, which says whose it is and whose time says when it was last used; the command reaches
`files` alone, so it can put no link in the way of a later run.
"""

import os
import stat

from jail.errors import JailError
from jail.kernel import files
from jail.kernel.digest import sha256_hex
from jail.light import Final, suppress
from jail.policy.paths import beneath

FOLDER: Final = "caches"
FILES: Final = "files"
WORKSPACE: Final = "workspace"
_NAME: Final = 32
"""Hex digits of a folder's name: 128 bits of a digest."""
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_PERMISSIONS: Final = 0o7777
_PRIVATE: Final = 0o700
LONGEST_PATH: Final = 4096
"""PATH_MAX of <linux/limits.h>."""


def place(cache: str, workspace: str, uid: int) -> str:
    """The folder that holds the cache of `workspace` for commands of `uid`, "" where none can be kept.

    `cache` is jail's cache folder. Asks only; `prepare` makes it. A folder that was made at the same path
    later is another workspace: what a command left for the first must not run in the second.
    """
    above = os.path.realpath(os.path.dirname(cache))
    there = f"{above}/{os.path.basename(cache)}"
    whose = f"{workspace}\0{_incarnation(workspace)}\0{uid}"
    name = sha256_hex(whose.encode("utf-8", "surrogateescape"))[:_NAME]
    holder = f"{there}/{FOLDER}/{name}"
    return f"{holder}/{FILES}" if _is_usable(holder, there) else ""


def is_name(text: str) -> bool:
    """Whether `text` has the form of the name of one cache's folder."""
    return len(text) == _NAME and all(char in "0123456789abcdef" for char in text)


def _incarnation(folder: str) -> str:
    """What tells a folder from one that was there before: when it was made, where the file system knows.

    Not the device, whose number may change from boot to boot, nor the inode alone, which the next folder
    often gets.
    """
    try:
        made = files.birth(folder)
        return f"made {made}" if made else f"inode {os.stat(folder).st_ino}"
    except OSError:
        return ""


def _is_usable(folder: str, top: str) -> bool:
    """Whether `folder` is, or could be made, one that nobody else writes; jail's own begin with `top`."""
    while True:
        try:
            found = os.lstat(folder)
        except FileNotFoundError:
            folder = os.path.dirname(folder)
            continue
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        if beneath(folder, top):
            return _is_own(found)
        ours = found.st_uid in (0, os.geteuid()) and not found.st_mode & stat.S_IWOTH
        return ours and os.access(folder, os.W_OK | os.X_OK)


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS


def prepare(folder: str, workspace: str, owner: tuple[int, int]) -> files.Identity:
    """Make the folder of `place` where it is missing, note its use, and say which inode it is.

    `owner`: uid and gid of who writes it, -1 to leave it to the caller. Raises JailError where it is not the
    caller's own.
    """
    try:
        return _prepare(folder, workspace, owner)
    except OSError as error:
        hint = "look at what is in it and who may write it, then remove it: a cache can be made again"
        raise JailError(
            "the folder of the private cache cannot be used",
            where=f"{folder}: {error.strerror or error}",
            hint=hint,
        ) from error


def _prepare(folder: str, workspace: str, owner: tuple[int, int]) -> files.Identity:
    holder = os.path.dirname(folder)
    caches = os.path.dirname(holder)
    os.makedirs(os.path.dirname(caches), 0o700, exist_ok=True)
    above = open_own(-1, os.path.dirname(caches))
    caches_fd = _make(above, os.path.basename(caches))
    holder_fd = _make(caches_fd, os.path.basename(holder))
    try:
        _note(holder_fd, workspace)
        with suppress(FileExistsError):
            os.mkdir(FILES, 0o700, dir_fd=holder_fd)
        if owner[0] >= 0:
            os.chown(FILES, *owner, dir_fd=holder_fd, follow_symlinks=False)
        fd = os.open(FILES, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=holder_fd)
        try:
            if os.fstat(fd).st_mode & _PERMISSIONS != _PRIVATE:
                # An earlier command may have closed it; through the fd, as chmod(2) follows a link.
                os.chmod(f"/proc/self/fd/{fd}", _PRIVATE)
            return files.identity(fd)
        finally:
            os.close(fd)
    finally:
        for fd in (above, caches_fd, holder_fd):
            os.close(fd)


def _make(folder_fd: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder_fd)
    return open_own(folder_fd, name)


def open_own(folder_fd: int, name: str) -> int:
    """A folder that is the caller's alone to write."""
    fd = os.open(name, _OPEN, dir_fd=None if folder_fd < 0 else folder_fd)
    found = os.fstat(fd)
    if not _is_own(found):
        os.close(fd)
        raise PermissionError(f"{name} belongs to uid {found.st_uid} or can be written by others")
    return fd


def _note(holder_fd: int, workspace: str) -> None:
    text = workspace.encode("utf-8", "surrogateescape")
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(WORKSPACE, flags, 0o600, dir_fd=holder_fd)
    try:
        if os.read(fd, LONGEST_PATH + 1) != text:
            os.ftruncate(fd, 0)
            os.pwrite(fd, text, 0)
        os.utime(fd)
    finally:
        os.close(fd)
