"""Both sides of a held thing, opened so that nothing in them can redirect or hold up the reader.

Rule: from the thing's own folder, beneath it, through no symlink and no mount, by pieces of a path that are
short enough for the kernel; only regular files are opened for reading, and what else there is only as a path.
What the command closed is read as it is (jail.hold.closed).
"""

import errno
import os
import stat

from jail.hold import closed, store
from jail.kernel import files
from jail.light import Callable, Final
from jail.plan.held import COPY, FILE, FILES, TREE, UPPER, Held

_TOP: Final = files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS
_PATH_BYTES: Final = 4000
"""Of one path given to the kernel; PATH_MAX is 4096 (<linux/limits.h>)."""


def new_top(session_folder: str, thing: Held) -> str:
    """The folder in which the command's side of a thing lies; of a file, the one that has it."""
    # What lies above a session is the user's own, links too (a linked home).
    held = os.path.realpath(store.folder_of(session_folder))
    if thing.kind == FILE:
        return f"{held}/{FILES}/{thing.name}"
    return f"{held}/{thing.name}/{TREE if thing.kind == COPY else UPPER}"


def host_top(thing: Held) -> str:
    """The same for the host's side."""
    return os.path.dirname(thing.path) if thing.kind == FILE else thing.path


def name_in(thing: Held, path: str) -> str:
    """A path in a thing as it is called in the thing's folder."""
    return os.path.basename(thing.path) if thing.kind == FILE else path


def open_new(session_folder: str, thing: Held, path: str) -> int:
    """A readable fd of a regular file as the command left it. Raises OSError, ESTALE for what is not one."""
    top = new_top(session_folder, thing)
    return _as_owner(lambda: _regular(top, name_in(thing, path)))


def open_host(thing: Held, path: str) -> int:
    """The same of a file as the host has it now."""
    return _as_owner(lambda: _regular(host_top(thing), name_in(thing, path)))


def link_new(session_folder: str, thing: Held, path: str) -> str:
    """Where a symlink leads that the command left. Raises OSError."""
    top = new_top(session_folder, thing)
    return _target(lambda: open_path(top, name_in(thing, path)))


def link_host(thing: Held, path: str) -> str:
    """The same of a symlink as the host has it now."""
    return _target(lambda: open_path(host_top(thing), name_in(thing, path)))


def open_top(path: str) -> int:
    """A listable fd of an absolute folder without symlinks. Raises OSError."""
    return files.openat2(-1, path, files.FOLDER, _TOP)


def open_below(folder: int, path: str, flags: int) -> int:
    """`path` beneath an open folder, of any length. Raises OSError."""
    here = os.dup(folder)
    try:
        while len(path) > _PATH_BYTES // 4 and len(raw := os.fsencode(path)) > _PATH_BYTES:
            cut = raw.rindex(b"/", 0, _PATH_BYTES)
            below = files.openat2(here, os.fsdecode(raw[:cut]), files.FOLDER, files.IN_TREE)
            os.close(here)
            here, path = below, os.fsdecode(raw[cut + 1 :])
        return files.openat2(here, path or ".", flags, files.IN_TREE)
    finally:
        os.close(here)


def open_path(top: str, path: str) -> int:
    """An O_PATH fd of what is at `path`, a symlink itself included. Raises OSError."""
    folder = open_top(top)
    try:
        return open_below(folder, path, os.O_PATH | os.O_NOFOLLOW)
    finally:
        os.close(folder)


def _regular(top: str, path: str) -> int:
    held = open_path(top, path)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(errno.ESTALE, "it is no regular file", path)
        # The very inode that was looked at: nothing else is ever opened for reading.
        return os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(held)


def _target(work: Callable[[], int]) -> str:
    held = _as_owner(work)
    try:
        return os.readlink("", dir_fd=held)
    finally:
        os.close(held)


def _as_owner(work: Callable[[], int]) -> int:
    try:
        return work()
    except PermissionError:
        return closed.opened(work)
