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
"""What is copied across file systems in one run, all pieces together and holes not counted; what goes past it
stays in the workspace under its neutral name.
"""
OPEN_FOLDERS: Final = 64
"""Folders kept open for pieces that stay in the workspace until the end, and as many for pieces that are to
be removed there: past it a piece is removed at once as far as LIVE_REMOVALS goes, and counted, so that nobody
makes us run out of file descriptors.
"""
RENAME_TRIES: Final = 4
"""How often a folder is opened again that somebody closes to keep a name in it."""
DIGEST_BYTES: Final = 1 << 30
"""Content read for all digests of one run, some seconds; past it a digest is of a beginning only."""
LIVE_REMOVALS: Final = 1000
WEIGHED: Final = 20_000
"""Entries of the session looked at to say how much it keeps, some 50 ms."""


class KeptBack:
    """How much the session keeps of what was taken away, against the `most` bytes that it may keep.

    Copies stop at it, and the piece stays in the workspace under its neutral name. What is moved takes no new
    room, but who holds an fd of it can make it grow, so it is weighed while the run goes on. Nothing that is
    kept is ever removed for it: the run is ended instead.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.copied = 0
        self.refused = False

    def full(self, folder: int) -> bool:
        """Whether more than may be kept is beneath `folder`, the quarantine, or a copy had to be refused."""
        return self.refused or walk.disk_usage(folder, self.most, WEIGHED) > self.most


class Taken(NamedTuple):
    """One thing taken away. `kind` as in jail.kernel.files.kind.

    `how`: "moved" or "copied" into the quarantine as `kept`; "left" in its folder under the neutral name
    `kept`, not copied (too large, or an error); "counted": removed, the quarantine was full; "stuck": the
    kernel refused, `kept` says why. `lost`: sockets, pipes and devices that no copy can hold.
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

    def __init__(self, fd: int, kept_back: KeptBack | None = None) -> None:
        self._fd = fd
        self._kept_back = KeptBack(COPY_BYTES) if kept_back is None else kept_back
        self._next = 0
        self._kept = 0
        self._spent_entries = 0
        self._left: list[_Left] = []
        self._doomed: list[tuple[int, str]] = []
        self._unread = DIGEST_BYTES
        self.counted = 0

    def take(self, folder: int, name: str, label: str) -> Taken | None:
        """Take away whatever stands under `name` in `folder`; None when there is nothing. `label` ends the
        name it is kept under. No error of the kernel ends the run: what it refuses is "stuck".
        """
        kind = "special"
        self._next += 1
        slot = f"{self._next:04d}-{label.replace('/', '_')}"
        try:
            kind = files.kind(_look(folder, name).st_mode)
            taken = self._moved(folder, name, slot)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            return Taken(kind, "stuck", f"{error}")
        if taken.how == "moved" and self._kept >= KEPT:
            return self._count(taken.kind, self._fd, slot)
        self._kept += taken.how != "counted"
        return taken

    def _count(self, kind: str, folder: int, name: str) -> Taken:
        self.counted += 1
        self._remove(folder, name)
        return Taken(kind, "counted", "")

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
        # From here on the name is free, so what fails now leaves the piece under the neutral one.
        kind = files.kind(_look(folder, neutral).st_mode)
        if self._kept >= KEPT:
            return self._count(kind, folder, neutral)
        taken = self._copied(_Left(folder, neutral, slot), kind, LIVE_BYTES, LIVE_ENTRIES)
        if taken.how == "left":
            if len(self._left) >= OPEN_FOLDERS:
                return self._count(kind, folder, neutral)
            try:
                self._left.append(_Left(os.dup(folder), neutral, slot))
            except OSError:
                return self._count(kind, folder, neutral)
        return taken

    def _copied(self, left: _Left, kind: str, most_bytes: int, most_entries: int) -> Taken:
        kept_back = self._kept_back
        bytes_left = max(0, min(most_bytes, COPY_BYTES - kept_back.copied, kept_back.most - kept_back.copied))
        entries_left = max(0, min(most_entries, COPY_ENTRIES - self._spent_entries))
        bounds = trees.Bounds(bytes_left, entries_left)
        try:
            lost = trees.copy(left.folder, left.name, self._fd, left.slot, bounds)
        except FileNotFoundError:
            self._remove(self._fd, left.slot)
            return Taken("absent", "counted", "")
        except (trees.TooLargeError, OSError) as error:
            short = bytes_left < most_bytes and kept_back.most <= COPY_BYTES
            kept_back.refused = kept_back.refused or (short and isinstance(error, trees.TooLargeError))
            self._remove(self._fd, left.slot)
            return Taken(kind, "left", left.name)
        finally:
            kept_back.copied += bytes_left - bounds.bytes
            self._spent_entries += entries_left - bounds.entries
        self._remove(left.folder, left.name)
        return Taken(kind, "copied", left.slot, lost)

    def _remove(self, folder: int, name: str) -> None:
        try:
            trees.remove_tree(folder, name, LIVE_REMOVALS)
        except OSError:
            if folder == self._fd:
                self._doomed.append((folder, name))
            elif sum(held != self._fd for held, _ in self._doomed) < OPEN_FOLDERS:
                with suppress(OSError):
                    self._doomed.append((os.dup(folder), name))

    def finish(self) -> dict[str, Taken]:
        """Once all that ran inside is dead: copy what was left, remove what was to go. By neutral name, what
        became of it. An error in one piece leaves that piece.
        """
        became: dict[str, Taken] = {}
        waiting, self._left = self._left, []
        for left in waiting:
            try:
                kind = files.kind(_look(left.folder, left.name).st_mode)
                became[left.name] = self._copied(left, kind, COPY_BYTES, COPY_ENTRIES)
            except FileNotFoundError:
                became[left.name] = Taken("absent", "counted", "")
            except OSError:
                became[left.name] = Taken("special", "left", left.name)
        doomed, self._doomed = self._doomed, []
        for folder, name in doomed:
            with suppress(OSError):
                trees.remove_tree(folder, name)
        for folder in (*(left.folder for left in waiting), *(folder for folder, _ in doomed)):
            if folder != self._fd:
                os.close(folder)
        return became

    def digest(self, taken: Taken) -> trees.Digest:
        """The digest of a piece that was moved or copied: of a file's content, a folder's tree, a symlink's
        target; "" where it has none or cannot be read.
        """
        try:
            return self._digest(taken)
        except OSError:
            return trees.Digest("", complete=False, read=0)

    def _digest(self, taken: Taken) -> trees.Digest:
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
    """RENAME_NOREPLACE; where its owner closed the folder above, or the folder that is moved (its `..` must
    be written), that gets its bits back first.
    """
    for last in (False,) * (RENAME_TRIES - 1) + (True,):
        try:
            return files.rename_noreplace(folder, name, new_folder, new)
        except OSError as error:
            if last or error.errno not in (errno.EACCES, errno.EPERM):
                raise
        if stat.S_ISDIR(_look(folder, name).st_mode):
            with suppress(PermissionError):
                os.close(walk.open_own(folder, name, files.FOLDER))
        walk.regain_folder(folder)
    return None


def _look(folder: int, name: str) -> os.stat_result:
    """lstat, in a folder that may have lost its bits."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except PermissionError:
        walk.regain_folder(folder)
    return os.stat(name, dir_fd=folder, follow_symlinks=False)
