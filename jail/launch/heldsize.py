"""How much of the host's disk a session takes for what it holds, looked at while the run goes on.

Rule: a look is a walk in slices, none longer than some milliseconds, so that the terminal is relayed between
them, and none before fifty times as long has passed as the last one took: two hundredths of one processor,
however much is held. What copies had when the run began is not counted; who made them knows. Nothing that is
held is changed for it, its permission bits neither: where a folder is closed, all is weighed once more by a
child in a user namespace of its own, which may read what is ours whatever the bits say (jail.hold.closed), at
the same pace.
"""

import os
import select
import time

from jail.kernel import files, libc, namespaces, privileges, walk
from jail.light import Final, Iterable, Iterator, NoReturn, Sequence, signal, suppress
from jail.plan.held import COPY, FILES, OVERLAY, TREE, UPPER, Held

PAUSE: Final = 1.0
"""Seconds between the end of one look and the next."""
SLICE: Final = 0.005
"""Seconds of one slice, but for a single folder that takes longer."""
SHARE: Final = 50
"""A slice comes again only after so many times as long as the last one took."""
_NAMES: Final = 256
"""Entries between two looks at the clock."""
_NICE: Final = 10
"""Of the child: the command is what the person waits for."""


class HeldSize:
    """Of the things `held` in `folder`, the session's; `most` bytes may be added to the `before` that copies
    of trees took when the run began.
    """

    def __init__(self, folder: str, held: Sequence[Held], most: int, before: int = 0) -> None:
        parts = {OVERLAY: UPPER, COPY: TREE}
        roots = [f"{folder}/{thing.name}/{parts[thing.kind]}" for thing in held if thing.kind in parts]
        # Opened before anything inside exists: the command may close its roots.
        self._roots = list(_opened([*roots, f"{folder}/{FILES}"]))
        self._most = most + before
        self._walk: Iterator[int] | None = None
        self._closed = _Closed()
        self._child: _Child | None = None
        self.due = 0.0

    def close(self) -> None:
        """Close what it looks into; a second call does nothing."""
        if self._child is not None:
            self._child.end()
            self._child = None
        while self._roots:
            os.close(self._roots.pop())

    def start(self, now: float) -> None:
        """The command runs from `now` on (time.monotonic)."""
        self.due = now + PAUSE

    def over(self) -> bool:
        """Look a little further; whether more is held than may be. Sets `due`, when to ask again."""
        if self._child is not None:
            return self._told_by_child(self._child)
        began = time.monotonic()
        size, done = self._further(began + SLICE)
        now = time.monotonic()
        self.due = now + max(PAUSE if done else 0.0, (now - began) * SHARE)
        if done and size <= self._most and self._closed.met:
            self._closed.met = False
            self._child = _Child(self._roots, self._most)
            self.due = now + SLICE * SHARE
        return size > self._most

    def _told_by_child(self, child: "_Child") -> bool:
        now = time.monotonic()
        size = child.answer()
        if size < 0:
            self.due = now + SLICE * SHARE
            return False
        self.due = now + max(PAUSE, (now - child.began) * SHARE)
        self._child = None
        return size > self._most

    def _further(self, until: float) -> tuple[int, bool]:
        """Bytes seen in this look, and whether it saw all."""
        if self._walk is None:
            self._walk = _all_of(self._roots, self._closed)
        size = 0
        for size in self._walk:
            if size > self._most:
                break
            if time.monotonic() > until:
                return size, False
        self._walk = None
        return size, True


def copied(folder: str, held: Iterable[Held]) -> int:
    """Bytes on the disk of those of `held` that are copies of trees."""
    total = 0
    for root in _opened(f"{folder}/{thing.name}/{TREE}" for thing in held if thing.kind == COPY):
        total += max(_weighed(root, _Closed()), default=0)
        os.close(root)
    return total


def _opened(paths: Iterable[str]) -> Iterator[int]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield os.open(path, files.FOLDER)


class _Closed:
    """Whether something was met that its permission bits close."""

    met = False


class _Child:
    """A process that weighs all of it, closed or not, up to `most` bytes."""

    def __init__(self, roots: list[int], most: int) -> None:
        self.began = time.monotonic()
        self._told, tell = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        self._pid = libc.named("fork", os.fork)
        if self._pid == 0:
            _weigh(roots, most, tell, parent)
        os.close(tell)

    def answer(self) -> int:
        """Bytes; -1 as long as they are not known. One that failed has seen nothing."""
        poller = select.poll()
        poller.register(self._told, select.POLLIN)
        if not poller.poll(0):
            return -1
        said = os.read(self._told, 64)
        self.end()
        return int(said or b"0")

    def end(self) -> None:
        """End it, done or not."""
        os.kill(self._pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        os.waitpid(self._pid, 0)
        os.close(self._told)


def _weigh(roots: list[int], most: int, tell: int, parent: int) -> NoReturn:
    """Be that process. Nothing is imported after a fork."""
    try:
        uid, gid = os.geteuid(), os.getegid()
        namespaces.unshare(("user",))
        namespaces.map_ids(uid, gid)
        privileges.die_with_parent(parent)
        os.setsid()  # ^C at the terminal is for the command
        files.close_all_but({tell, *roots})
        os.nice(_NICE)
        size = 0
        for size in _all_of(roots, _Closed()):
            if size > most:
                break
        os.write(tell, str(size).encode())
    finally:
        os._exit(0)


def _all_of(roots: list[int], closed: _Closed) -> Iterator[int]:
    total = 0
    for root in roots:
        size = 0
        for size in _weighed(root, closed):
            yield total + size
        total += size


def _weighed(root: int, closed: _Closed) -> Iterator[int]:
    """Bytes on the disk beneath a folder, a running sum; a file with several names counts once."""
    total = entries = 0
    linked: set[int] = set()
    denied: list[str] = []
    try:
        for folder in walk.folders(root):
            denied = folder.denied
            for dirent in folder.entries:
                try:
                    found = dirent.stat(follow_symlinks=False)
                    if found.st_ino not in linked:
                        total += found.st_blocks * 512  # whatever the file system (stat(3type))
                    if found.st_nlink > 1 and not dirent.is_dir(follow_symlinks=False):
                        linked.add(found.st_ino)
                except PermissionError:
                    closed.met = True
                except OSError:
                    continue  # the command goes on meanwhile
                entries += 1
                if entries % _NAMES == 0:
                    yield total
            yield total
    except PermissionError:  # the root itself
        closed.met = True
    closed.met = closed.met or bool(denied)
