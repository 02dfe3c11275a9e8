"""What lies beside the sessions and may go: private caches by their last use, control groups of the dead.

Rule: what a running session may use stays. Which workspaces have one is asked of the ledgers, again after a
cache got a hidden name: a run takes its lock before it looks for its cache, so it is seen, and gets its cache
back, or makes a new one. A control group has no lock: the id in its name says which session it is of, and how
old it is. What is in a cache is the command's own: names, depth and content, closed folders too.
"""

import calendar
import errno
import os
import time

from jail.kernel import cgroups, files, trees, walk
from jail.launch import caches, reach
from jail.ledger import place
from jail.ledger.reader import glance
from jail.light import Final, Iterator, NamedTuple, suppress

GOING: Final = ".gone-"
"""Before the name of a session or a cache that is being removed."""
HALF_MADE: Final = 60.0
"""Seconds after which what is half made (a hidden session, half an artefact, an empty group) has no maker any
more.
"""
_NAME: Final = len("20261130-141502")


class Cache(NamedTuple):
    """One workspace's cache: its name, whose it is ("" when that cannot be read), bytes on disk, and seconds
    since the epoch of its last use.
    """

    name: str
    workspace: str
    size: int
    used: float


def open_caches(cache: str) -> int:
    """A descriptor of the folder of caches in jail's cache folder; -1 where there is none of our own."""
    above = -1
    try:
        above = caches.open_own(-1, cache)
        return caches.open_own(above, caches.FOLDER)
    except OSError:
        return -1
    finally:
        if above >= 0:
            os.close(above)


def listing(folder: int) -> Iterator[Cache]:
    """Every cache in the folder of `open_caches`; what cannot be read of one has no workspace or no bytes."""
    for name in sorted(os.listdir(folder)):
        if caches.is_name(name):
            yield _look(folder, name)


def interrupted(folder: int) -> list[str]:
    """Names in there of caches whose removal was begun."""
    names = [name for name in os.listdir(folder) if name.startswith(GOING)]
    return sorted(name for name in names if caches.is_name(name.removeprefix(GOING)))


def _look(folder: int, name: str) -> Cache:
    workspace, used, size = "", 0.0, 0
    with suppress(OSError):
        fd = os.open(f"{name}/{caches.WORKSPACE}", files.FILE, dir_fd=folder)
        try:
            workspace = os.fsdecode(os.read(fd, caches.LONGEST_PATH))
            used = os.fstat(fd).st_mtime
        finally:
            os.close(fd)
    with suppress(OSError):
        fd = os.open(name, files.FOLDER, dir_fd=folder)
        try:
            size = walk.disk_usage(fd)
        finally:
            os.close(fd)
    return Cache(name, workspace, size, used)


class InUse:
    """The workspaces of the sessions that run now."""

    def __init__(self, state: str) -> None:
        starts = [glance(folder)[0] for folder in reach.running_sessions(state)]
        # One that has no entry yet may be of any workspace.
        self._workspaces = [None if start is None else start.fields.get("workspace") for start in starts]

    def has(self, workspace: str) -> bool:
        """Whether a session may use the cache of `workspace`; "": of an unknown one."""
        return any(found in (None, workspace) or not workspace for found in self._workspaces)


def remove_cache(folder: int, found: Cache, state: str) -> None:
    """Remove one in the folder of `open_caches`. Raises OSError, EBUSY where a session began to use it."""
    files.rename_noreplace(folder, found.name, folder, GOING + found.name)
    if InUse(state).has(found.workspace):
        files.rename_noreplace(folder, GOING + found.name, folder, found.name)
        raise OSError(errno.EBUSY, "a session runs that may use it")
    trees.remove_tree(folder, GOING + found.name)


def groups(state: str) -> list[str]:
    """Control groups that supervisors which were killed left, as folders; nobody is in them, nor will be."""
    return [
        group for group in cgroups.leftovers() if _is_ours(group) and _is_left(os.path.basename(group), state)
    ]


def _is_ours(group: str) -> bool:
    try:
        return os.stat(group).st_uid == os.geteuid()
    except OSError:
        return False


def _is_left(group: str, state: str) -> bool:
    name = group.removeprefix(cgroups.PREFIX)
    if place.is_id(name):
        try:
            made = calendar.timegm(time.strptime(name[:_NAME], "%Y%m%d-%H%M%S"))
        except ValueError:
            return False
        old = time.time() - made > HALF_MADE
        return old and not place.running(os.path.join(state, place.SESSIONS, name))
    pid = name.removeprefix(cgroups.ASIDE)
    return pid != name and pid.isdecimal() and not os.path.exists(f"/proc/{pid}")
