"""What is taken out of git dirs at the end of a run, and of what else changed the end speaks.

Rule: each thing is taken by the open folder that it lies in, while the walk that found it stands there, so
that no depth keeps it; past what a session keeps it is removed, and counted.
"""

import os

from jail.kernel import walk
from jail.launch import changes, quarantine, watchlist
from jail.light import Final
from jail.plan.autoexec import REFUSED, TODO

NESTED: Final = "swept-nested"
"""Folder of the session for what would make git run something, or leads it elsewhere."""


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
