"""Things taken away from a workspace during a run, kept in the session.

Rule: what stands under a protected name is gone from that name at once, in one rename, whatever it is and
however often it comes back; its content is kept, and nothing of it is followed, opened as a device or run.

On one file system the rename goes straight into the quarantine folder. Across file systems (EXDEV) it first
goes to a name of ours beside it, is copied from there without following links, and is then removed; what is
too large to copy while the run goes on stays there until its end. A moved folder may still be written through
fds that the agent holds (`..` leads nowhere from there: the folder is no longer beneath the root of the
agent's mount, path_connected() in fs/namei.c), so digests are taken in `finish`, when all that ran inside is
dead.
"""

import errno
import os
import stat

from jail.kernel import files, trees, walk
from jail.kernel.digest import sha256_hex
from jail.light import Final, NamedTuple, suppress

KEPT: Final = 1000
"""Pieces kept in one run; somebody who makes a protected name in a loop gets the rest counted and removed."""
LIVE_BYTES: Final = 8 << 20
LIVE_ENTRIES: Final = 500
"""What is copied across file systems while the run goes on: at most some 0.1 s, during which the terminal is
not relayed.
"""
COPY_BYTES: Final = 2 << 30
COPY_ENTRIES: Final = 200_000
"""What is copied at the end; larger things stay in the workspace under their neutral name."""
DIGEST_BYTES: Final = 1 << 30
"""Content read for all digests of one run, some seconds; past it a digest is of a beginning only."""
LIVE_REMOVALS: Final = 1000
LOST_NAMES: Final = 100

_CHUNK: Final = 1 << 20


class Taken(NamedTuple):
    """One thing taken away. `kind` as in jail.kernel.files.kind.

    `how`: "moved" or "copied" into the quarantine as `kept`; "left" in its folder under the neutral name
    `kept`, too large to copy; "counted": removed, the quarantine was full; "stuck": the kernel refused,
    `kept` says why. `lost`: sockets, pipes and devices that no copy can hold.
    """

    kind: str
    how: str
    kept: str
    lost: tuple[str, ...] = ()


class _Left(NamedTuple):
    folder: int
    name: str
    slot: str


class Quarantine:
    """The folder behind `fd`, on any file system, empty at the start. The fd stays the caller's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._next = 0
        self._left: list[_Left] = []
        self._doomed: list[tuple[int, str]] = []
        self._unread = DIGEST_BYTES
        self.counted = 0

    def take(self, folder: int, name: str, label: str) -> Taken | None:
        """Take away whatever stands under `name` in `folder`; None when there is nothing. `label` ends the
        name it is kept under.
        """
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        self._next += 1
        slot = f"{self._next:04d}-{label.replace('/', '_')}"
        try:
            taken = self._moved(folder, name, slot)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            return Taken(files.kind(mode), "stuck", f"{error}")
        if self._next > KEPT and taken.how in ("moved", "copied"):
            self.counted += 1
            self._remove(self._fd, slot)
            return taken._replace(how="counted", kept="")
        return taken

    def _moved(self, folder: int, name: str, slot: str) -> Taken:
        try:
            _rename(folder, name, self._fd, slot)
            # What was renamed may be another thing than the look before it met.
            moved = os.stat(slot, dir_fd=self._fd, follow_symlinks=False)
            return Taken(files.kind(moved.st_mode), "moved", slot)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        neutral = f".jail-swept-{os.urandom(8).hex()}"
        _rename(folder, name, folder, neutral)
        return self._copied(_Left(os.dup(folder), neutral, slot), LIVE_BYTES, LIVE_ENTRIES)

    def _copied(self, left: _Left, most_bytes: int, most_entries: int) -> Taken:
        kind = files.kind(os.stat(left.name, dir_fd=left.folder, follow_symlinks=False).st_mode)
        try:
            lost = copy(left.folder, left.name, self._fd, left.slot, most_bytes, most_entries)
        except TooLargeError:
            self._remove(self._fd, left.slot)
            self._left.append(left)
            return Taken(kind, "left", left.name)
        self._remove(left.folder, left.name)
        os.close(left.folder)
        return Taken(kind, "copied", left.slot, lost)

    def _remove(self, folder: int, name: str) -> None:
        try:
            trees.remove_tree(folder, name, LIVE_REMOVALS)
        except OSError:
            self._doomed.append((os.dup(folder), name))

    def finish(self) -> dict[str, Taken]:
        """Once all that ran inside is dead: copy what was left, remove what was to go. By neutral name, what
        became of it.
        """
        became: dict[str, Taken] = {}
        waiting, self._left = self._left, []
        for left in waiting:
            try:
                became[left.name] = self._copied(left, COPY_BYTES, COPY_ENTRIES)
            except FileNotFoundError:
                became[left.name] = Taken("absent", "counted", "")
        for folder, name in self._doomed:
            trees.remove_tree(folder, name)
            os.close(folder)
        self._doomed.clear()
        for left in self._left:
            os.close(left.folder)
        self._left.clear()
        return became

    def digest(self, taken: Taken) -> trees.Digest:
        """The digest of a piece that was moved or copied: of a file's content, a folder's tree, a symlink's
        target.
        """
        if taken.kind == "symlink":
            target = os.readlink(taken.kept, dir_fd=self._fd)
            return trees.Digest(sha256_hex(os.fsencode(target)), complete=True, read=0)
        if taken.kind not in ("file", "folder"):
            return trees.Digest("", complete=False, read=0)
        fd = walk.open_own(self._fd, taken.kept, files.FILE)
        try:
            found = trees.digest_tree(fd, self._unread, own=True)
            self._unread = max(0, self._unread - found.read)
            return found
        finally:
            os.close(fd)


def _rename(folder: int, name: str, new_folder: int, new: str) -> None:
    """RENAME_NOREPLACE; a folder that its owner made read-only gets its bits back first (its `..` must be
    written).
    """
    try:
        files.rename_noreplace(folder, name, new_folder, new)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM) or not _is_folder(folder, name):
            raise
        os.close(walk.open_own(folder, name, files.FOLDER))
        files.rename_noreplace(folder, name, new_folder, new)


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


class TooLargeError(Exception):
    """A tree that is past the bounds of a copy."""


def copy(
    folder: int, name: str, new_folder: int, new: str, most_bytes: int, most_entries: int
) -> tuple[str, ...]:
    """Copy a file, symlink or whole tree that somebody may still be changing; returns the special files that
    were not copied.

    Permission bits without setuid, setgid and sticky; no owners, times, xattrs. Raises TooLargeError with the
    copy half made.
    """
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        return (name,) if _copied_entry(folder, name, new_folder, new, most_bytes) < 0 else ()
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
            most_entries -= len(here.entries)
            for entry in here.entries:
                if walk.kind_of(entry) == "folder":
                    continue
                size = _copied_entry(here.fd, entry.name, target, entry.name, most_bytes)
                most_bytes -= max(size, 0)
                if size < 0 and len(lost) < LOST_NAMES:
                    lost.append(here.join(entry.name))
            if most_entries < 0 or not here.whole:
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


def _copied_entry(folder: int, name: str, target: int, new: str, most: int) -> int:
    """Bytes copied; 0 for what vanished; -1 for what cannot be copied."""
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
        return _content(fd, target, new, most)
    finally:
        os.close(fd)


def _content(fd: int, target: int, new: str, most: int) -> int:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        return -1
    if found.st_size > most:
        raise TooLargeError
    try:
        out = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=target
        )
    except FileExistsError:
        return -1
    copied = 0
    try:
        while chunk := os.pread(fd, _CHUNK, copied):
            copied += len(chunk)
            if copied > most:
                raise TooLargeError
            while chunk:
                chunk = chunk[os.write(out, chunk) :]
        os.fchmod(out, stat.S_IMODE(found.st_mode) & 0o777 | 0o400)
    finally:
        os.close(out)
    return copied
