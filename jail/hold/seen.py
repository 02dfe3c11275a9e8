"""What stands under a name on the host, as far as a look without reading its content can tell.

Rule: inode number, size and modification time are taken before a swap and compared after it; who writes a
file changes one of them (the kernel's clock ticks every few milliseconds, and a base is older than that). A
rename changes the ctime, so that cannot serve. Of a folder only the inode counts: its times change with
everything in it.
"""

import os
import stat

from jail.hold.change import State
from jail.kernel import files
from jail.kernel.digest import sha256_hex
from jail.light import Final, NamedTuple

NEVER_GAINED: Final = 0o7002
"""Mode bits that nothing gets by being applied. setuid, setgid: the program of somebody inside would run as
the one who applies, or as their group, for whoever starts it. Sticky: means nothing for a file, and decides
in a folder who may rename. o+w: lets every other account change what was just reviewed.
"""


class Seen(NamedTuple):
    """One name at one time; `kind` as jail.kernel.files.kind, `mode` as jail.hold.change.State."""

    kind: str
    inode: int
    mode: int
    size: int
    mtime_ns: int
    uid: int = -1
    gid: int = -1


def look(folder: int, name: str) -> Seen | None:
    """What stands under a name in an open folder, a symlink itself; None where nothing does."""
    try:
        return of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def of(found: os.stat_result) -> Seen:
    """The same of what is open already."""
    kind = files.kind(found.st_mode)
    size = found.st_size if kind == "file" else 0
    mode = stat.S_IMODE(found.st_mode)
    return Seen(kind, found.st_ino, mode, size, found.st_mtime_ns, found.st_uid, found.st_gid)


def same(before: Seen, after: Seen | None) -> bool:
    """Whether nobody changed or replaced it meanwhile."""
    if after is None or (before.kind, before.inode) != (after.kind, after.inode):
        return False
    if before.kind == "folder":
        return True
    return (before.mode, before.size, before.mtime_ns) == (after.mode, after.size, after.mtime_ns)


def fits(listed: State, found: Seen | None, folder: int, name: str) -> bool:
    """Whether the host has under `name` of `folder` what the list of changes says that it has."""
    if found is None or listed.kind == "absent":
        return found is None and listed.kind == "absent"
    if listed.kind != found.kind:
        return False
    if found.kind == "folder":
        return True
    if found.kind == "symlink":
        return not listed.digest or listed.digest == target_digest(folder, name)
    return (listed.mode, listed.size, listed.mtime_ns) == (found.mode, found.size, found.mtime_ns)


def target_digest(folder: int, name: str) -> str:
    """The digest of where a symlink leads."""
    return sha256_hex(os.fsencode(os.readlink(name, dir_fd=folder)))


def mode_for(new: State, there: Seen | State | None) -> int:
    """The permission bits that a path gets: those of the session, without NEVER_GAINED, but for those of them
    that the host's own file (o+w) or folder (setgid, sticky, o+w) has already.
    """
    kept = 0
    if there is not None and there.kind == new.kind:
        kept = there.mode & (0o3002 if new.kind == "folder" else 0o002)
    return new.mode & (0o7777 & ~NEVER_GAINED | kept)
