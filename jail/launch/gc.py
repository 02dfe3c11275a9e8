"""What crashes left behind, and sessions that nobody needs any more: `jail gc`.

Rule: a session that runs is never touched: whatever is done to one is done while its lock is held here. All
is relative to the folder of sessions, which is this user's alone; no symlink is followed and no mount
crossed. A session goes in two steps: it gets a hidden name, so that no listing ever shows half of it, then
its tree is removed; where that is interrupted the next call goes on. The index above keeps that it existed,
and says that it was removed here.

What a program inside chose is in the folders `swept` alone: names, depth and content, and nothing else here.
"""

import errno
import fcntl
import os
import stat
import time

import jail
from jail.errors import JailError
from jail.kernel import cache, files, trees, walk
from jail.ledger import heads, place, writer
from jail.light import Callable, Final, Iterator, NamedTuple, suppress

GOING: Final = ".gone-"
"""Before the id of a session that is being removed."""
HALF_MADE: Final = 60.0
"""Seconds after which what is half made (a hidden session, half an artefact) has no maker any more."""
LEFT_OVER: Final = (place.SOCKET, heads.NEW_HEAD)
"""Names in a session's folder that only a running one needs."""


class Wishes(NamedTuple):
    """Which sessions may go: those that ended more than `older` seconds ago, and the oldest of the others
    until all together have at most `keep` bytes; None: no wish.
    """

    older: float | None
    keep: int | None
    dry_run: bool


class Found(NamedTuple):
    """One thing that went, or would: what it is, why, its size on disk; `problem` says why it did not."""

    what: str
    why: str
    size: int
    problem: str = ""


class _Old(NamedTuple):
    """A session that has ended: its id, when (seconds since the epoch), and its bytes on disk."""

    name: str
    ended: float
    size: int


def collect(state: str, cache_folder: str, wishes: Wishes) -> Iterator[Found]:
    """Remove what may go, one after another; a thing that cannot be removed does not keep the others. Raises
    JailError when the state folder cannot be used at all.
    """
    sessions = place.open_sessions(state)
    if sessions >= 0:
        try:
            yield from _leftovers(sessions, wishes)
            for name, why, size in _unwanted(sessions, wishes):
                yield _tried(Found(f"session {name}", why, size), wishes, _remove, sessions, name)
        finally:
            os.close(sessions)
    before = os.stat(os.path.abspath(str(jail.__file__))).st_mtime
    for name in cache.stale(cache_folder, before, time.time() - HALF_MADE):
        found = Found(f"cache {name}", "of another version of jail, or half written", 0)
        yield _tried(found, wishes, cache.remove, cache_folder, name)


def _tried(found: Found, wishes: Wishes, remove: Callable[..., None], *arguments: object) -> Found:
    if not wishes.dry_run:
        try:
            remove(*arguments)
        except OSError as error:
            return found._replace(problem=error.strerror or str(error))
        except JailError as error:
            return found._replace(problem=f"{error.message} ({error.where})")
    return found


def _leftovers(sessions: int, wishes: Wishes) -> Iterator[Found]:
    for name in sorted(os.listdir(sessions)):
        if name.startswith(GOING) and place.is_id(name.removeprefix(GOING)):
            why, remove = "its removal was interrupted", _finish
        elif name.startswith(place.NEW) and place.is_id(name.removeprefix(place.NEW)):
            if _age(sessions, name) < HALF_MADE or _locked(sessions, name):
                continue
            why, remove = "half made by a jail that was killed", _remove_tree
        else:
            if place.is_id(name):
                yield from _stale_files(sessions, name, wishes)
            continue
        yield _tried(Found(name, why, _size(sessions, name)), wishes, remove, sessions, name)


def _stale_files(sessions: int, name: str, wishes: Wishes) -> Iterator[Found]:
    """The socket of a supervisor that was killed, and a head that it had not put in place yet."""
    lock = folder = -1
    try:
        folder = os.open(name, files.FOLDER, dir_fd=sessions)
        found = [left for left in LEFT_OVER if _exists(folder, left)]
        lock = _take(folder) if found else -1
        for left in found if lock >= 0 else ():
            yield _tried(Found(f"{name}/{left}", "its session was killed", 0), wishes, _unlink, folder, left)
    except OSError:
        return  # no folder, or gone meanwhile
    finally:
        for fd in (lock, folder):
            if fd >= 0:
                os.close(fd)


def _unlink(folder: int, name: str) -> None:
    os.unlink(name, dir_fd=folder)


def _unwanted(sessions: int, wishes: Wishes) -> Iterator[tuple[str, str, int]]:
    """Name, reason and size of the sessions that the wishes are about, oldest first."""
    if wishes.older is None and wishes.keep is None:
        return
    now = time.time()
    left: list[_Old] = []
    total = 0
    for name in os.listdir(sessions):
        if not place.is_id(name):
            continue
        size = _size(sessions, name)
        total += size
        if not _locked(sessions, name):
            left.append(_Old(name, _ended(sessions, name), size))
    for old in sorted(left, key=lambda old: old.ended):
        if wishes.older is not None and now - old.ended > wishes.older:
            why = "older than asked for"
        elif wishes.keep is not None and total > wishes.keep:
            why = "the oldest, and all together are larger than asked for"
        else:
            continue
        total -= old.size
        yield old.name, why, old.size


def _remove(sessions: int, name: str) -> None:
    folder = os.open(name, files.FOLDER, dir_fd=sessions)
    lock = -1
    try:
        lock = _take(folder)
        if lock < 0:
            raise OSError(errno.EBUSY, "it runs, or another `jail gc` is at it")
        files.rename_noreplace(sessions, name, sessions, GOING + name)
        _finish(sessions, GOING + name)
    finally:
        for fd in (lock, folder):
            if fd >= 0:
                os.close(fd)


def _finish(folder: int, name: str) -> None:
    """Remove the tree of a session that has its hidden name, and say in the index that it went."""
    told = False
    with suppress(JailError):  # a full disk takes the line when the tree is gone
        heads.add_removal(folder, name.removeprefix(GOING))
        told = True
    trees.remove_tree(folder, name)
    if not told:
        heads.add_removal(folder, name.removeprefix(GOING))


def _remove_tree(folder: int, name: str) -> None:
    trees.remove_tree(folder, name)


def _take(folder: int) -> int:
    """The lock of the session in `folder`, held by us; -1 where somebody else has it."""
    try:
        lock = os.open(place.LOCK, files.FILE, dir_fd=folder)
    except FileNotFoundError:
        # Removed by hand, or not made yet: who runs there would hold it. The folder is as good for two of us.
        lock = os.dup(folder)
    except OSError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return -1
    return lock


def _locked(sessions: int, name: str) -> bool:
    """Whether it runs; what is no folder counts as if it did, since nothing may be done to it."""
    try:
        folder = os.open(name, files.FOLDER, dir_fd=sessions)
    except OSError:
        return True
    try:
        lock = _take(folder)
    finally:
        os.close(folder)
    if lock < 0:
        return True
    os.close(lock)
    return False


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _age(sessions: int, name: str) -> float:
    try:
        return time.time() - os.stat(name, dir_fd=sessions, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _ended(sessions: int, name: str) -> float:
    """When something was last written there by jail."""
    last = 0.0
    for file in (heads.HEAD, writer.LEDGER, place.LOCK, ""):
        with suppress(OSError):
            found = os.stat(f"{name}/{file}" if file else name, dir_fd=sessions, follow_symlinks=False)
            last = max(last, found.st_mtime)
    return last


def _size(sessions: int, name: str) -> int:
    """Bytes on disk of a session's tree, as far as it can be entered: nothing is changed for it."""
    total = 0
    try:
        fd = os.open(name, files.FOLDER, dir_fd=sessions)
    except OSError:
        return 0
    try:
        for folder in walk.folders(fd):
            for entry in folder.entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    # A file with several names is as large for each of them, and may be kept by one.
                    total += found.st_blocks * 512 // (1 if stat.S_ISDIR(found.st_mode) else found.st_nlink)
    except OSError:
        return total
    finally:
        os.close(fd)
    return total
