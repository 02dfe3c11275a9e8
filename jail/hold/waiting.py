"""Does a session still hold something? Asked for lists of sessions, and before one is removed.

Rule: cheap, and never wrong in saying no: an upper layer with a name in it, a copy of a tree, a file that is
not its base, or an apply that was interrupted is a yes. What was applied or discarded is taken out of the
session (hold/drop.py), so that its layers are empty then; a copy stays a yes, as only a walk could tell.
"""

import os

from jail.hold import store
from jail.kernel import files
from jail.light import Final
from jail.plan.held import FILE, OVERLAY, Held

_JOURNAL: Final = "journal"


def waits(session_folder: str) -> bool:
    """Whether the session may hold changes that nobody applied or discarded. Raises JailError for a manifest
    that cannot be read.
    """
    manifest = store.read_manifest(session_folder)
    if manifest is None:
        return False
    held = store.folder_of(session_folder)
    return os.path.lexists(f"{held}/{_JOURNAL}") or any(_has_some(held, thing) for thing in manifest.held)


def _has_some(held: str, thing: Held) -> bool:
    try:
        if thing.kind == FILE:
            name = thing.path.rpartition("/")[2]
            return _content(f"{held}/{store.FILES}/{thing.name}/{name}") != _content(
                f"{held}/{store.BASE}/{thing.name}"
            )
        if thing.kind == OVERLAY:
            with os.scandir(f"{held}/{thing.name}/{store.UPPER}") as found:
                return next(found, None) is not None
        return os.path.lexists(f"{held}/{thing.name}/{store.TREE}")
    except OSError:
        return True  # who knows


def _content(path: str) -> bytes | None:
    try:
        fd = os.open(path, files.FILE)
    except FileNotFoundError:
        return None
    try:
        return os.read(fd, _FILE_BYTES)
    finally:
        os.close(fd)


_FILE_BYTES: Final = 4 << 20
"""Of a held file: a git config is far smaller (jail.hold.gitconfig.CONFIG_BYTES)."""
