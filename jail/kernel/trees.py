"""Whole trees taken as one thing: removed, copied, digested; by the walk of `jail.kernel.walk`, with its
rules.

Rule: nothing here follows a symlink, opens anything but regular files and folders, crosses a mount, or trusts
that a tree stays as it is; each has a bound and says when it was reached.
"""

import errno
import os
import stat

from jail.kernel import files, walk
from jail.kernel.digest import sha256
from jail.light import Callable, Final, NamedTuple, suppress

DIGEST_BYTES: Final = 1 << 30
"""Content read for one digest, so that a sparse file of terabytes does not hold up the end of a run."""
DIGEST_ENTRIES: Final = 200_000
REMOVE_STEPS: Final = 10_000_000
"""Names removed by one `remove_tree`: somebody who fills the tree as fast as it is emptied must not hold us
for ever.
"""
LOST_NAMES: Final = 100
"""Special files named as lost by one copy."""

_CHUNK: Final = 1 << 20
"""Bytes read at once: few system calls, little memory."""
_Update = Callable[[bytes], object]


def remove_tree(parent_fd: int, name: str, steps: int = REMOVE_STEPS) -> None:
    """Remove `name` beneath `parent_fd` and all in it; nothing when it is not there.

    Folders without permission bits get them back from their owner. Raises OSError: EBUSY at a mount, ESTALE
    when a folder is moved away under it, ENOTEMPTY after `steps` removed names.
    """
    above: list[tuple[str, files.Identity]] = []
    fd = os.dup(parent_fd)
    try:
        current: str | None = name
        while current is not None:
            if _removed(fd, current):
                steps -= 1
            else:
                fd = _entered(fd, current, above)
            if steps <= 0:
                raise OSError(errno.ENOTEMPTY, "somebody fills the tree that is being removed", name)
            current = None
            if above:
                current, steps = _first_folder(fd, steps)
                if current is None:
                    current, expected = above.pop()
                    fd = _step(fd, _up(fd, expected))
    finally:
        os.close(fd)


def _entered(fd: int, name: str, above: list[tuple[str, files.Identity]]) -> int:
    """The fd of the folder `name`, noted in `above`; `fd` itself when somebody put something else in its
    place.
    """
    try:
        below = walk.open_own(fd, name, files.FOLDER)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return fd
        raise
    above.append((name, files.identity(fd)))
    return _step(fd, below)


def _step(old: int, new: int) -> int:
    os.close(old)
    return new


def _removed(fd: int, name: str) -> bool:
    """Whether the name is gone now; False for a folder that has something in it."""
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        # unlink(2) of a folder: EISDIR on Linux, EPERM where the file system says it as POSIX does.
        try:
            return files.remove_empty(fd, name)
        except FileNotFoundError:
            return True
    return True


def _first_folder(fd: int, steps: int) -> tuple[str | None, int]:
    """Remove names until one is a folder that is not empty: that name (None: nothing is left), and the steps
    left.
    """
    with os.scandir(fd) as found:
        for entry in found:
            if steps <= 0 or not _removed(fd, entry.name):
                return entry.name, steps
            steps -= 1
    return None, steps


def _up(fd: int, expected: files.Identity) -> int:
    above = os.open("..", files.FOLDER, dir_fd=fd)
    if files.identity(above) != expected:
        os.close(above)
        raise OSError(errno.ESTALE, "a folder was moved away while it was being removed")
    return above


class Digest(NamedTuple):
    """SHA-256 as hex; `complete` is False when a bound was reached or something could not be read; `read`:
    bytes of content.
    """

    hex: str
    complete: bool
    read: int


def digest_tree(
    fd: int, most_bytes: int = DIGEST_BYTES, most_entries: int = DIGEST_ENTRIES, *, own: bool = False
) -> Digest:
    """One digest of a file's content, or of all names, kinds, permission bits, link targets and contents
    beneath a folder.

    Equal trees have equal digests, whatever the order of their listings; owners and times do not count. `fd`
    is a regular file or a folder, readable. `own`: the tree is ours to change, so permission bits that were
    taken away are given back in order to read it. Not for trees that still change.
    """
    if stat.S_ISREG(os.fstat(fd).st_mode):
        whole = sha256()
        read = _feed(whole.update, os.dup(fd), most_bytes)
        complete = read < most_bytes or os.fstat(fd).st_size <= most_bytes
        return Digest(whole.hexdigest(), complete, read)
    total = sha256(b"tree\0")
    entries, left, complete, denied = 0, most_bytes, True, list[str]()
    for folder in walk.folders(fd, in_order=True, regain=own):
        # Depth and name in this order say the same as whole paths, at a price that does not grow with depth.
        total.update(b"in\0%d\0%s\0" % (folder.depth, os.fsencode(folder.name)))
        complete = complete and folder.whole
        denied = folder.denied
        for dirent in folder.entries:
            entries += 1
            if entries > most_entries:
                return Digest(total.hexdigest(), complete=False, read=most_bytes - left)
            content = sha256()
            size, said = _say(folder.fd, dirent.name, content.update, left, own=own)
            left -= size
            complete = complete and said is not None and left > 0
            total.update(os.fsencode(dirent.name) + b"\0" + (said or b"gone") + b"\0" + content.digest())
    return Digest(total.hexdigest(), complete and not denied, most_bytes - left)


def _say(folder: int, name: str, update: _Update, most: int, *, own: bool) -> tuple[int, bytes | None]:
    """Feed content or link target; returns bytes read, and kind with permission bits (None: gone or not
    readable).
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        size = found.st_size if stat.S_ISREG(found.st_mode) else 0
        said = f"{files.kind(found.st_mode)} {stat.S_IMODE(found.st_mode):o} {size}"
        if stat.S_ISLNK(found.st_mode):
            update(os.fsencode(os.readlink(name, dir_fd=folder)))
        elif stat.S_ISREG(found.st_mode):
            fd = walk.open_own(folder, name, files.FILE) if own else os.open(name, files.FILE, dir_fd=folder)
            return _feed(update, fd, most), said.encode()
    except OSError:
        return 0, None
    return 0, said.encode()


def _feed(update: _Update, fd: int, most: int) -> int:
    read = 0
    try:
        while read < most:
            chunk = os.pread(fd, min(_CHUNK, most - read), read)
            if not chunk:
                break
            update(chunk)
            read += len(chunk)
    finally:
        os.close(fd)
    return read


class Bounds:
    """What a copy may still take; it counts down, also in a copy that fails."""

    __slots__ = ("bytes", "entries")

    def __init__(self, most_bytes: int, most_entries: int) -> None:
        self.bytes = most_bytes
        self.entries = most_entries


class TooLargeError(Exception):
    """A tree that is past the bounds of a copy."""


def copy(folder: int, name: str, new_folder: int, new: str, bounds: Bounds) -> tuple[str, ...]:
    """Copy a file, symlink or whole tree that somebody may still be changing; returns the special files that
    were not copied.

    Permission bits without setuid, setgid and sticky; no owners, times, xattrs. Raises TooLargeError with the
    copy half made.
    """
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        return (name,) if _copied_entry(folder, name, new_folder, new, bounds) < 0 else ()
    lost: list[str] = []
    os.mkdir(new, 0o700, dir_fd=new_folder)
    source = walk.open_own(folder, name, files.FOLDER)
    target = os.open(new, files.FOLDER, dir_fd=new_folder)
    depth = 0
    try:
        for here in walk.folders(source, regain=True):
            if here.parent is not None:
                target = _descended(target, depth - here.depth + 1, here.name)
            depth = here.depth
            bounds.entries -= len(here.entries)
            for entry in here.entries:
                if walk.kind_of(entry) == "folder":
                    continue
                size = _copied_entry(here.fd, entry.name, target, entry.name, bounds)
                if size < 0 and len(lost) < LOST_NAMES:
                    lost.append(here.join(entry.name))
            if bounds.entries < 0 or not here.whole:
                raise TooLargeError
    finally:
        os.close(source)
        os.close(target)
    return tuple(lost)


def _descended(target: int, up: int, name: str) -> int:
    """From one folder of the copy to the next in the order of the walk: `up` levels up, then into `name`,
    made now.
    """
    for step in ("..",) * up:
        target = _stepped(target, step)
    # It exists when the walk met it twice: somebody moved it meanwhile.
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=target)
    return _stepped(target, name)


def _stepped(fd: int, name: str) -> int:
    below = os.open(name, files.FOLDER, dir_fd=fd)
    os.close(fd)
    return below


def _copied_entry(folder: int, name: str, target: int, new: str, bounds: Bounds) -> int:
    """0 for what was copied and for what vanished; -1 for what cannot be copied."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(name, dir_fd=folder), new, dir_fd=target)
            return 0
        if not stat.S_ISREG(mode):
            return -1
        fd = walk.open_own(folder, name, files.FILE)
    except FileNotFoundError:
        return 0
    except FileExistsError:
        return -1
    try:
        return _content(fd, target, new, bounds)
    finally:
        os.close(fd)


def _content(fd: int, target: int, new: str, bounds: Bounds) -> int:
    from jail.kernel import sparse, writing  # most runs copy nothing

    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        return -1
    # 512: the unit of st_blocks, whatever the file system (stat(3type)).
    if min(found.st_size, found.st_blocks * 512) > bounds.bytes:
        raise TooLargeError
    try:
        out = writing.create(new, folder=target)
    except FileExistsError:
        return -1
    try:
        for at, length in sparse.pieces(fd, found.st_size):
            chunk = os.pread(fd, length, at)
            bounds.bytes -= len(chunk)
            if bounds.bytes < 0:
                raise TooLargeError
            sparse.write(out, chunk, at)
        os.ftruncate(out, max(os.fstat(out).st_size, found.st_size))
        os.fchmod(out, stat.S_IMODE(found.st_mode) & 0o777 | 0o400)
    finally:
        os.close(out)
    return 0
