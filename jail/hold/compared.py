"""One path at two times, compared: the base, what the command left, what the host has now.

Rule: what is equal is said here alone, so that the list, its conflicts and what counts as done agree. A file
of the host counts as unchanged while its kind, inode, size, permission bits and modification time are those
of the base (its change time may differ: an apply that was rolled back, or a new hard link, alters that), a
folder while its bits are, a symlink while its target is. What has no digest is equal to nothing.
"""

import os

from jail.hold import base
from jail.hold.change import ADDED, DELETED, MODE, MODIFIED, TIME, TYPE, UNKNOWN, State
from jail.hold.seen import mode_for


def differs(old: State, new: State) -> str:
    """What happened from one state of a path to the next: a word of change.LETTERS, "" for nothing."""
    if old.kind != new.kind:
        return ADDED if old.kind == "absent" else DELETED if new.kind == "absent" else TYPE
    if new.kind in ("file", "symlink") and (
        not new.digest or (old.size, old.digest) != (new.size, new.digest)
    ):
        return MODIFIED
    if old.mode != new.mode and new.kind != "symlink":
        return MODE
    return TIME if new.kind == "file" and old.mtime_ns != new.mtime_ns else ""


def is_done(new: State, now: State) -> bool:
    """Whether a host that has moved off the base has what would be applied; times do not count."""
    kept = new._replace(mode=mode_for(new, now))
    return any(differs(now, each) in ("", TIME) for each in (new, kept))


def as_state(entry: base.Entry, digest: str) -> State:
    """The state that an entry of the base tells of; `digest`: of the host's content, where it is the same."""
    digest = entry.digest or digest
    return UNKNOWN if entry.kind == "unknown" else State(*entry[:4], digest)


def is_base(entry: base.Entry, found: os.stat_result | None, now: State) -> bool:
    """Whether the host has a path as it was in the base."""
    if found is None or entry.kind != now.kind:
        return entry.kind == now.kind
    if entry.kind == "symlink":
        return entry.digest == now.digest
    if entry.kind == "folder":
        return entry.mode == now.mode
    return entry.mode == now.mode and has_content(entry, found, now)


def has_content(entry: base.Entry, found: os.stat_result | None, now: State) -> bool:
    """Whether a file on the host has the content that it had in the base."""
    was = (entry.kind, entry.ino, entry.size, entry.mtime_ns)
    return found is not None and was == (now.kind, found.st_ino, now.size, now.mtime_ns)
