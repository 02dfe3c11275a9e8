"""Does a session still hold something? Asked for lists of sessions, and before one is removed.

Rule: cheap, and never wrong in saying no: an upper layer with a name in it, a copy of a tree, a file that is
not its base, or an apply that was interrupted is a yes. What was applied or discarded is taken out of the
session (hold/drop.py), so that its layers are empty then; a copy stays a yes, as only a walk could tell.
"""

import os
import stat

from jail.errors import JailError
from jail.hold import store
from jail.ledger import place
from jail.light import Final, Iterable, Iterator, suppress
from jail.plan.held import FILE, KEPT_BITS, OVERLAY, TREE, UPPER, Held
from jail.policy.paths import beneath

_JOURNAL: Final = "journal"
LOOKED_AT: Final = 30
"""Sessions, from the newest on, that are asked whether they hold changes."""


def waits(session_folder: str) -> bool:
    """Whether the session may hold changes that nobody applied or discarded. Raises JailError for a manifest
    that cannot be read.
    """
    manifest = store.read_manifest(session_folder)
    return manifest is not None and waits_of(session_folder, manifest)


def waits_of(session_folder: str, manifest: store.Manifest) -> bool:
    """The same of a session whose manifest was read."""
    return interrupted(session_folder) or has_some(store.folder_of(session_folder), manifest.held)


def of_workspace(state: str, folder: str) -> Iterator[tuple[str, store.Manifest]]:
    """Folder and manifest of the sessions with changes of the workspace that a folder lies in, newest first,
    among the newest LOOKED_AT. What cannot be read is passed over.
    """
    real = os.path.realpath(folder)
    for name in place.listing(state)[:LOOKED_AT]:
        session = os.path.join(state, place.SESSIONS, name)
        with suppress(JailError):
            manifest = store.read_manifest(session)
            if manifest is not None and beneath(real, manifest.workspace) and waits_of(session, manifest):
                yield session, manifest


def has_some(held: str, things: Iterable[Held]) -> bool:
    """The same of a `held` folder, once it is known which things it is of."""
    return any(_has_some(held, thing) for thing in things)


def interrupted(session_folder: str) -> bool:
    """Whether an apply was left half done."""
    return os.path.lexists(f"{store.folder_of(session_folder)}/{_JOURNAL}")


def _has_some(held: str, thing: Held) -> bool:
    try:
        if thing.kind == FILE:
            return store.differs(held, thing)
        if thing.kind == OVERLAY:
            upper = f"{held}/{thing.name}/{UPPER}"
            with os.scandir(upper) as found:
                return next(found, None) is not None or _mode(upper) != _mode(thing.path)
        return os.path.lexists(f"{held}/{thing.name}/{TREE}")
    except OSError:
        return True  # who knows


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path, follow_symlinks=False).st_mode) & KEPT_BITS
