"""What is taken out of git dirs at the end of a run, and of what else changed the end speaks.

Rule: each thing is taken by the open folder that it lies in, while the walk that found it stands there, so
that no depth keeps it; past what a session keeps it is removed, and counted.
"""

import os

from jail.kernel import files, walk
from jail.launch import changes, quarantine, watchlist
from jail.light import Final, suppress
from jail.plan.autoexec import REFUSED, TODO
from jail.policy.paths import deepest

NESTED: Final = "swept-nested"
"""Folder of the session for what would make git run something, or leads it elsewhere."""


def mounted_in(trees: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """What other file systems are mounted in those trees, opened: a walk stays on one, and a command writes
    in them too, since binds are recursive (proc_pid_mountinfo(5)). What is no folder of ours is left out.
    """
    devices = {path: os.fstat(fd).st_dev for path, fd in trees}
    found: list[tuple[str, int]] = []
    for line in files.content("/proc/self/mountinfo").split("\n"):
        point = _unescaped(line.split(" ", 5)[4]) if line.count(" ") > 4 else ""
        above = deepest(point, devices)
        if not above or above == point:
            continue
        with suppress(OSError):
            fd = files.openat2(-1, point, files.FOLDER, files.RESOLVE_NO_SYMLINKS)
            device = os.fstat(fd).st_dev
            if device == devices[above]:
                os.close(fd)
                continue
            found.append((point, fd))
            devices[point] = device
    return found


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


class Nested:
    """One end of a run. `folder`: the fd of that folder, which becomes its; `rows`: how many of them the
    ledger names as changed.
    """

    def __init__(self, folder: int, kept_back: quarantine.KeptBack) -> None:
        self._folder = folder
        self._keeper = quarantine.Quarantine(folder, kept_back)
        self.rows = 0

    def take(self, changed: changes.Changed) -> quarantine.Taken | None:
        """Take away what offends; None when it is gone."""
        folder, _, name = changed.name.rpartition("/")
        if not name:
            return quarantine.Taken(changed.kind, "stuck", "a git dir that cannot be looked at")
        try:
            where = walk.enter(changed.folder, folder or ".")
        except FileNotFoundError:
            return None
        except OSError as error:
            return quarantine.Taken(changed.kind, "stuck", f"{error}")
        try:
            return self._keeper.take(where, name, watchlist.label(name))
        finally:
            os.close(where)

    def finish(self) -> int:
        """After the last: how many were removed, because too many were kept."""
        self._keeper.finish()
        os.close(self._folder)
        return self._keeper.counted


def is_told(changed: changes.Changed) -> bool:
    """Whether the end of the run speaks of a file that runs by itself: where nobody expects a change."""
    return changed.tier == REFUSED or os.path.basename(changed.path) == TODO
