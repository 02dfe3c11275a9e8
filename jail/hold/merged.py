"""jail.hold.ground.Contents of a session: what its things hold and what the host has, by absolute path.

Rule: the deepest held thing that a path lies in answers for it; of what no thing holds there is the host's
side alone, read as jail.hold.opening reads one.
"""

import os
from collections.abc import Callable, Mapping
from typing import Final

from jail.hold import closed, freshgit, opening
from jail.hold.sides import Sides
from jail.kernel import files
from jail.plan.held import FILE, Held
from jail.plan.protected import canonical
from jail.policy.paths import deepest

KEPT: Final = 4096
"""Answers kept in memory of each kind: as many repositories as one review could hold, and some more."""


class Merged:
    """The two sides of all things of a session. Nothing is open between two questions."""

    def __init__(self, things: Mapping[str, Held], sides: Mapping[str, Sides]) -> None:
        self._sides = {thing.path: sides[name] for name, thing in things.items()}
        self._whole = {thing.path for thing in things.values() if thing.kind == FILE}
        self._names: dict[str, frozenset[str]] = {}
        self._targets: dict[str, tuple[str, ...]] = {}

    def _of(self, path: str) -> tuple[Sides | None, str]:
        top = deepest(path, self._sides)
        if not top or (top in self._whole and path != top):
            return None, path
        return self._sides[top], path[len(top) :].strip("/")

    def old(self, path: str) -> bytes | None:
        """A regular file of the host, at most sources.MOST_BYTES; None for all else."""
        side, name = self._of(path)
        return side.old(name) if side is not None else _beside(path).old("")

    def new(self, path: str) -> bytes | None:
        """The same as the command left it; None too where it left none."""
        side, name = self._of(path)
        return side.new(name) if side is not None else None

    def target(self, path: str) -> str:
        """Where a symlink of the command leads; "" where there is none."""
        side, name = self._of(path)
        return side.target(name) if side is not None else ""

    def targets(self, path: str) -> tuple[str, ...]:
        """Where symlinks at a path lead, the command's and the host's."""
        found = self._targets.get(path)
        if found is None:
            side, name = self._of(path)
            both = (side.target(name), side.old_target(name)) if side is not None else ()
            found = tuple(dict.fromkeys(each for each in both if each))
            if len(self._targets) >= KEPT:
                self._targets.clear()
            self._targets[path] = found
        return found

    def kind(self, path: str) -> str:
        """What the host has there: as jail.kernel.files.kind, or "absent"; "unknown" for what may not be
        looked at.
        """
        folder, _, name = path.rpartition("/")
        try:
            fd = _opened(lambda: opening.open_path(folder or "/", name))
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        except OSError:
            return "unknown"
        try:
            return files.kind(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    def had(self, folder: str) -> list[str]:
        """The names in a folder of the host."""
        return _listed(folder)

    def names(self, folder: str) -> frozenset[str]:
        """Of the names that make a git dir, canonical, those in a folder as the command left it, and the
        host's: what was deleted counts, since it is there until that is applied.
        """
        found = self._names.get(folder)
        if found is None:
            side, name = self._of(folder)
            both = {*_listed(folder), *(side.has(name) if side is not None else ())}
            found = freshgit.MAKE_A_GIT_DIR.intersection(map(canonical, both))
            if len(self._names) >= KEPT:
                self._names.clear()
            self._names[folder] = found
        return found

    def holds(self, path: str) -> bool:
        """Whether a path lies in something that the session holds."""
        return self._of(path)[0] is not None


def _beside(path: str) -> Sides:
    return Sides("", Held("", FILE, path, ""))


def _opened(work: Callable[[], int]) -> int:
    try:
        return work()
    except PermissionError:
        return closed.opened(work)


def _listed(folder: str) -> list[str]:
    try:
        fd = _opened(lambda: opening.open_top(folder or "/"))
    except OSError:
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)
