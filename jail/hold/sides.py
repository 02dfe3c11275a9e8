"""The two sides of a held thing, read for a person's review: what the host has, and what the command left.

Rule: both are somebody else's and may change while they are read; they are opened as jail.hold.opening does
it, and read up to a bound. What cannot be read is None or "", which the tiers take for the graver case.
"""

import os
from collections.abc import Callable
from typing import Final

from jail.hold import freshgit, opening, sources, store
from jail.kernel import files
from jail.plan.held import BASE, Held
from jail.plan.protected import canonical

FOLDERS: Final = 4096
"""Folders whose names are kept in memory: as many repositories as one review could hold, and some more."""


class Sides:
    """jail.hold.ground.Contents of one thing of a session. Paths are relative to it, "" is the thing itself.

    Nothing is open between two questions, so that there may be thousands of them.
    """

    def __init__(self, session_folder: str, thing: Held) -> None:
        self._folder = session_folder
        self._thing = thing
        self._names: dict[str, frozenset[str]] = {}

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

    def had(self, path: str) -> list[str]:
        """The names in a folder of the host."""
        return _listed(opening.host_top(self._thing), path)

    def names(self, path: str) -> frozenset[str]:
        """Of the names that make a git dir, those in a folder as the command left it, and the host's: what
        was deleted counts, since it is there until that is applied.
        """
        found = self._names.get(path)
        if found is None:
            if len(self._names) >= FOLDERS:
                self._names.clear()
            kept = opening.new_top(self._folder, self._thing)
            both = {*_listed(kept, path), *_listed(opening.host_top(self._thing), path)}
            found = freshgit.MAKE_A_GIT_DIR.intersection(map(canonical, both))
            self._names[path] = found
        return found


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
