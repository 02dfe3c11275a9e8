"""How much of the host's disk a session takes for what it holds, looked at while the run goes on.

Rule: a look is a walk in slices, none longer than some milliseconds, so that the terminal is relayed between
them, and none before fifty times as long has passed as the last one took: two hundredths of one processor,
however much is held. What copies had when the run began is not counted; who made them knows. A folder that
cannot be listed is given its owner's permission bits back, else nothing could be weighed that the command
does not want weighed.
"""

import os
import time

from jail.kernel import files, walk
from jail.light import Final, Iterable, Iterator, Sequence, suppress
from jail.plan.held import COPY, FILES, OVERLAY, TREE, UPPER, Held

PAUSE: Final = 1.0
"""Seconds between the end of one look and the next."""
SLICE: Final = 0.005
"""Seconds of one slice, but for a single folder that takes longer."""
SHARE: Final = 50
"""A slice comes again only after so many times as long as the last one took."""
_NAMES: Final = 256
"""Entries between two looks at the clock."""


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
        self.due = 0.0

    def close(self) -> None:
        """Close what it looks into; a second call does nothing."""
        while self._roots:
            os.close(self._roots.pop())

    def start(self, now: float) -> None:
        """The command runs from `now` on (time.monotonic)."""
        self.due = now + PAUSE

    def over(self) -> bool:
        """Look a little further; whether more is held than may be. Sets `due`, when to ask again."""
        began = time.monotonic()
        size, done = self._further(began + SLICE)
        now = time.monotonic()
        self.due = now + max(PAUSE if done else 0.0, (now - began) * SHARE)
        return size > self._most

    def _further(self, until: float) -> tuple[int, bool]:
        """Bytes seen in this look, and whether it saw all."""
        if self._walk is None:
            self._walk = _all_of(self._roots)
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
        total += max(_weighed(root))
        os.close(root)
    return total


def _opened(paths: Iterable[str]) -> Iterator[int]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield os.open(path, files.FOLDER)


def _all_of(roots: list[int]) -> Iterator[int]:
    total = 0
    for root in roots:
        size = 0
        for size in _weighed(root):
            yield total + size
        total += size


def _weighed(root: int) -> Iterator[int]:
    """Bytes on the disk beneath a folder, a running sum; a file with several names counts once."""
    total = entries = 0
    linked: set[int] = set()
    for folder in walk.folders(root, regain=True):
        for dirent in folder.entries:
            with suppress(OSError):
                found = dirent.stat(follow_symlinks=False)
                if found.st_ino not in linked:
                    total += found.st_blocks * 512  # whatever the file system (stat(3type))
                if found.st_nlink > 1 and not dirent.is_dir(follow_symlinks=False):
                    linked.add(found.st_ino)
            entries += 1
            if entries % _NAMES == 0:
                yield total
        yield total
