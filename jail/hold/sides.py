"""The two sides of a held thing, read for a person's review: what the host has, and what the command left.

Rule: both are somebody else's and may change while they are read; they are opened as jail.hold.opening does
it, and read up to a bound. What cannot be read is None or "", which the tiers take for the graver case.
"""

import os
from collections.abc import Callable

from jail.hold import opening, sources, store
from jail.kernel import files
from jail.plan.held import BASE, Held


class Sides:
    """What jail.hold.merged asks of one thing of a session. Paths are relative to it, "" is the thing itself.

    Nothing is open between two questions, so that there may be thousands of them.
    """

    def __init__(self, session_folder: str, thing: Held) -> None:
        self._folder = session_folder
        self._thing = thing

    def old(self, path: str) -> bytes | None:
        """A regular file of the host, at most sources.MOST_BYTES; None for all else."""
        return _read(lambda: opening.open_host(self._thing, path))

    def new(self, path: str) -> bytes | None:
        """The same as the command left it."""
        return _read(lambda: opening.open_new(self._folder, self._thing, path))

    def new_on_disk(self, path: str) -> int:
        """Bytes on the disk of a regular file as the command left it; 0 for what cannot be looked at."""
        try:
            fd = opening.open_new(self._folder, self._thing, path)
        except OSError:
            return 0
        try:
            return os.fstat(fd).st_blocks * 512  # of any file system (stat(3type))
        finally:
            os.close(fd)

    def base(self) -> bytes | None:
        """Of a held file, what it was when the run began."""
        path = f"{store.folder_of(self._folder)}/{BASE}/{self._thing.name}"
        return _read(lambda: os.open(path, files.FILE))

    def target(self, path: str) -> str:
        """Where a symlink of the command leads; "" where there is none."""
        try:
            return opening.link_new(self._folder, self._thing, path)
        except OSError:
            return ""

    def old_target(self, path: str) -> str:
        """The same on the host."""
        try:
            return opening.link_host(self._thing, path)
        except OSError:
            return ""

    def has(self, path: str) -> list[str]:
        """The names in a folder as the command left it; of an upper layer, only what it changed."""
        return _listed(opening.new_top(self._folder, self._thing), path)


def _listed(top: str, path: str) -> list[str]:
    try:
        folder = opening.open_top(top)
        try:
            fd = opening.open_below(folder, path, files.FOLDER)
        finally:
            os.close(folder)
    except OSError:
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _read(opened: Callable[[], int]) -> bytes | None:
    try:
        fd = opened()
    except OSError:
        return None
    try:
        if os.fstat(fd).st_size > sources.MOST_BYTES:
            return None
        pieces: list[bytes] = []
        left = sources.MOST_BYTES + 1
        while left > 0 and (piece := os.read(fd, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces) if left > 0 else None
    except OSError:
        return None
    finally:
        os.close(fd)
