"""What crashes left behind, and sessions and caches that nobody needs any more: `jail gc`.

Rule: a session that runs is never touched: whatever is done to one is done while its lock is held here. All
is relative to the folder of sessions, which is this user's alone; no symlink is followed and no mount
crossed. One that holds changes that nobody applied or discarded is kept, and said to be, unless the caller
wants those to go too. A session goes in two steps: it gets a hidden name, so that no listing ever shows half
of it, then its tree is removed; where that is interrupted the next call goes on. The index above keeps that
it existed, and says that it was removed here.

What a program inside chose is in the folders `swept` and in caches alone: names, depth and content.
"""

import errno
import fcntl
import os
import time
from functools import partial

import jail
from jail.errors import JailError
from jail.hold import waiting
from jail.kernel import cache, files, trees, walk
from jail.launch import leftovers
from jail.launch.leftovers import GOING, HALF_MADE
from jail.ledger import heads, place, writer
from jail.light import Callable, Final, Iterator, NamedTuple, suppress

LEFT_OVER: Final = (place.SOCKET, heads.NEW_HEAD, heads.NEW_REVIEW_HEAD)
"""Names in a session's folder that only a running one needs."""


class Wishes(NamedTuple):
    """Which sessions and caches may go: those that ended, or were last used, more than `older` seconds ago,
    and the oldest of the others until all together have at most `keep` bytes; None: no wish. `held`: also
    those that hold changes.
    """

    older: float | None
    keep: int | None
    dry_run: bool
    held: bool = False


class Found(NamedTuple):
    """One thing that went, or would: what it is, why, its size on disk; `problem` says why it did not, `kept`
    why it was not meant to.
    """

    what: str
    why: str
    size: int
    problem: str = ""
    kept: str = ""


class _Old(NamedTuple):
    """A session or a cache: when it was last used (seconds since the epoch), its bytes on disk, whether it is
    in use, what removes it, and whether it holds changes.
    """

    what: str
    used: float
    size: int
    busy: bool
    remove: Callable[[], None]
    holds: bool = False


HOLDS: Final = "it holds changes that nobody applied or discarded"


def collect(state: str, cache_folder: str, wishes: Wishes) -> Iterator[Found]:
    """Remove what may go, one after another; a thing that cannot be removed does not keep the others. Raises
    JailError when the state folder cannot be used at all.
    """
    sessions, caches = place.open_sessions(state), leftovers.open_caches(cache_folder)
    try:
        if sessions >= 0:
            yield from _leftovers(sessions, wishes)
        for group in leftovers.groups(state):
            found = Found(f"control group {os.path.basename(group)}", "its session was killed", 0)
            yield _tried(found, wishes, partial(os.rmdir, group))
        for name in leftovers.interrupted(caches) if caches >= 0 else ():
            found = Found(f"cache {name}", "its removal was interrupted", _size(caches, name))
            yield _tried(found, wishes, partial(trees.remove_tree, caches, name))
        if wishes.older is not None or wishes.keep is not None:
            every = [*_sessions(sessions, state, wishes), *_caches(caches, state)]
            for old, why in _unwanted(every, wishes):
                found = Found(old.what, why, old.size)
                if old.holds and not wishes.held:
                    yield found._replace(kept=HOLDS)
                else:
                    yield _tried(found, wishes, old.remove)
    finally:
        for fd in (sessions, caches):
            if fd >= 0:
                os.close(fd)
    before = os.stat(os.path.abspath(str(jail.__file__))).st_mtime
    for name in cache.stale(cache_folder, before, time.time() - HALF_MADE):
        found = Found(f"artefact {name}", "of another version of jail, or half written", 0)
        yield _tried(found, wishes, partial(cache.remove, cache_folder, name))


def _tried(found: Found, wishes: Wishes, remove: Callable[[], None]) -> Found:
    if not wishes.dry_run:
        try:
            remove()
        except OSError as error:
            return found._replace(problem=error.strerror or str(error))
        except JailError as error:
            return found._replace(problem=f"{error.message} ({error.where})")
    return found


def _leftovers(sessions: int, wishes: Wishes) -> Iterator[Found]:
    remove: Callable[[int, str], None]
    for name in sorted(os.listdir(sessions)):
        if name.startswith(GOING) and place.is_id(name.removeprefix(GOING)):
            why, remove = "its removal was interrupted", _finish
        elif name.startswith(place.NEW) and place.is_id(name.removeprefix(place.NEW)):
            if _age(sessions, name) < HALF_MADE or _locked(sessions, name):
                continue
            why, remove = "half made by a jail that was killed", trees.remove_tree
        else:
            if place.is_id(name):
                yield from _stale_files(sessions, name, wishes)
            continue
        yield _tried(Found(name, why, _size(sessions, name)), wishes, partial(remove, sessions, name))


def _stale_files(sessions: int, name: str, wishes: Wishes) -> Iterator[Found]:
    """The socket of a supervisor that was killed, and a head that it had not put in place yet."""
    lock = folder = -1
    try:
        folder = os.open(name, files.FOLDER, dir_fd=sessions)
        found = [left for left in LEFT_OVER if _exists(folder, left)]
        lock = _take(folder) if found else -1
        for left in found if lock >= 0 else ():
            stale = Found(f"{name}/{left}", "its session was killed", 0)
            yield _tried(stale, wishes, partial(os.unlink, left, dir_fd=folder))
    except OSError:
        return  # no folder, or gone meanwhile
    finally:
        for fd in (lock, folder):
            if fd >= 0:
                os.close(fd)


def _sessions(sessions: int, state: str, wishes: Wishes) -> Iterator[_Old]:
    for name in os.listdir(sessions) if sessions >= 0 else ():
        if place.is_id(name):
            facts = _ended(sessions, name), _size(sessions, name), _locked(sessions, name)
            folder = os.path.join(state, place.SESSIONS, name)
            remove = partial(_remove, sessions, name, "" if wishes.held else folder)
            yield _Old(f"session {name}", *facts, remove, _holds(folder))


def _holds(folder: str) -> bool:
    try:
        return waiting.waits(folder)
    except (JailError, OSError):
        return True  # who knows


def _caches(folder: int, state: str) -> Iterator[_Old]:
    in_use = leftovers.InUse(state)
    for found in leftovers.listing(folder) if folder >= 0 else ():
        remove = partial(leftovers.remove_cache, folder, found, state)
        what = f"cache of {found.workspace or found.name}"
        yield _Old(what, found.used, found.size, in_use.has(found.workspace), remove)


def _unwanted(every: list[_Old], wishes: Wishes) -> Iterator[tuple[_Old, str]]:
    """What the wishes are about, oldest first, and why it goes."""
    now = time.time()
    total = sum(old.size for old in every)
    for old in sorted(every, key=lambda old: old.used):
        if old.busy:
            continue
        if wishes.older is not None and now - old.used > wishes.older:
            why = "older than asked for"
        elif wishes.keep is not None and total > wishes.keep:
            why = "the oldest, and all together are larger than asked for"
        else:
            continue
        if wishes.held or not old.holds:
            total -= old.size
        yield old, why


def _remove(sessions: int, name: str, unless_held: str) -> None:
    """Remove a session; `unless_held`: its path, where it must not hold anything, else ""."""
    folder = os.open(name, files.FOLDER, dir_fd=sessions)
    lock = -1
    try:
        lock = _take(folder)
        if lock < 0:
            raise OSError(errno.EBUSY, "it runs, or another `jail` is at it")
        if unless_held and _holds(unless_held):
            raise OSError(errno.EBUSY, HOLDS)
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
    for file in (heads.HEAD, writer.LEDGER, heads.REVIEW_HEAD, place.LOCK, ""):
        with suppress(OSError):
            found = os.stat(f"{name}/{file}" if file else name, dir_fd=sessions, follow_symlinks=False)
            last = max(last, found.st_mtime)
    return last


def _size(folder: int, name: str) -> int:
    """Bytes on disk of a tree."""
    try:
        fd = os.open(name, files.FOLDER, dir_fd=folder)
    except OSError:
        return 0
    try:
        return walk.disk_usage(fd)
    except OSError:
        return 0
    finally:
        os.close(fd)
