"""One new thing made in a slot of the staging folder: a file, a symlink or an empty folder.

Rule: it is complete in its slot (content, owner, mode, times) but for a folder, which is closed to others
until it has all that comes into it; a file's content is digested while it is copied and must be what was
listed.
"""

import errno
import os

from jail.hold import content
from jail.hold.change import State
from jail.hold.kept import Kept
from jail.hold.seen import Seen, of
from jail.kernel import sparse
from jail.kernel.digest import sha256_hex
from jail.light import Final, NamedTuple

CHANGED_INSIDE: Final = "it was changed in the session since it was listed"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ANOTHER: Final = frozenset(
    [
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.ESTALE,
        errno.EXDEV,
        errno.EACCES,
        errno.EPERM,
        errno.EINVAL,
    ]
)
"""What opening and readlink(2) say when something else is there; any other errno is the disk's."""


class ConflictError(Exception):
    """One path cannot be applied, for the reason that the message has; the others can."""


class Wanted(NamedTuple):
    """`path` in the session; what it is there; whose it will be, with which mode; `instead`: the content of a
    file where that is not the session's.
    """

    path: str
    new: State
    owner: tuple[int, int]
    mode: int
    instead: bytes | None


def make(slots: int, slot: str, kept: Kept, wanted: Wanted) -> tuple[Seen, str]:
    """What was made, with the mode that it ends with, and its digest. Raises ConflictError for a path that is
    not what was listed, OSError for what the disk refuses.
    """
    if wanted.new.kind == "folder":
        os.mkdir(slot, 0o700, dir_fd=slots)
        _own(slot, slots, wanted.owner)
        made = of(os.stat(slot, dir_fd=slots, follow_symlinks=False))
        return made._replace(mode=wanted.mode, mtime_ns=wanted.new.mtime_ns), ""
    if wanted.new.kind == "symlink":
        return _symlink(slots, slot, kept, wanted), wanted.new.digest
    if wanted.instead is not None:
        fd = os.open(slot, _FLAGS, 0o600, dir_fd=slots)
        try:
            sparse.write(fd, wanted.instead, 0)
            return _complete(fd, wanted), sha256_hex(wanted.instead)
        finally:
            os.close(fd)
    return _file(slots, slot, kept, wanted), wanted.new.digest


def _file(slots: int, slot: str, kept: Kept, wanted: Wanted) -> Seen:
    try:
        source = kept.file(wanted.path)
    except OSError as error:
        raise _changed(error) from error
    try:
        fd = os.open(slot, _FLAGS, 0o600, dir_fd=slots)
        try:
            if content.copy(source, fd, wanted.new.digest) != wanted.new.digest:
                raise ConflictError(CHANGED_INSIDE)
            return _complete(fd, wanted)
        finally:
            os.close(fd)
    finally:
        os.close(source)


def _complete(fd: int, wanted: Wanted) -> Seen:
    _own(fd, None, wanted.owner)
    os.fchmod(fd, wanted.mode)
    if wanted.instead is None:
        os.utime(fd, ns=(wanted.new.mtime_ns, wanted.new.mtime_ns))
    return of(os.fstat(fd))


def _symlink(slots: int, slot: str, kept: Kept, wanted: Wanted) -> Seen:
    try:
        target = kept.target(wanted.path)
    except OSError as error:
        raise _changed(error) from error
    if sha256_hex(target) != wanted.new.digest:
        raise ConflictError(CHANGED_INSIDE)
    os.symlink(target, os.fsencode(slot), dir_fd=slots)
    _own(slot, slots, wanted.owner)
    os.utime(slot, ns=(wanted.new.mtime_ns, wanted.new.mtime_ns), dir_fd=slots, follow_symlinks=False)
    return of(os.stat(slot, dir_fd=slots, follow_symlinks=False))


def _own(what: int | str, slots: int | None, owner: tuple[int, int]) -> None:
    """Root gives away what it makes; anybody else can at most give the group of the place."""
    root = os.geteuid() == 0
    if not root and owner[1] == os.getegid():
        return
    try:
        if slots is None:
            os.chown(what, owner[0] if root else -1, owner[1])
        else:
            os.chown(what, owner[0] if root else -1, owner[1], dir_fd=slots, follow_symlinks=False)
    except PermissionError:
        if root:
            raise
        return  # not a group of ours


def _changed(error: OSError) -> Exception:
    return ConflictError(f"{CHANGED_INSIDE} ({error.strerror})") if error.errno in _ANOTHER else error
