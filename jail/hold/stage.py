"""What is to be applied, made ready in a folder of its own in the root of the tree.

Rule: the folder `.jail-apply-RANDOM` is on the file system of the tree, so that from there on renames do; it
is closed to others (0700), and every file, link and folder of it is complete before anything of the tree is
touched. What is copied is digested in the same reading, and must be what was listed. Who stands on the host
now must be who was listed; anything else is a conflict of that one path. An error of the disk (ENOSPC, EIO)
is not a conflict: it ends the apply, and the tree was not touched.

Mode bits that nobody gains: jail.hold.seen.NEVER_GAINED. Extended attributes and ACLs are not taken along:
those of the command's are its own claims (`security.*`, `user.overlay.*`), and the file system gives a new
file the default ACL of no folder but its own. Applied by root, a path has the owner of what it replaces, else
of the folder that it comes to.
"""

import errno
import os
import stat

from jail.errors import JailError
from jail.hold import base, drop, names, staging, store
from jail.hold.beneath import IN_THE_WAY, Tree
from jail.hold.change import ABSENT, DELETED, NEVER, RENAMED, SETTINGS, TIME, Change, State
from jail.hold.journal import MODE, PUT, TAKE, Intent, Journal
from jail.hold.kept import Kept
from jail.hold.making import ConflictError, Wanted, make
from jail.hold.seen import Seen, fits, look, mode_for
from jail.kernel import writing
from jail.light import Callable, Final, NamedTuple, suppress
from jail.plan.held import FILE

CHANGED_OUTSIDE: Final = "the host changed it since it was listed"
_CONFLICTS: Final = IN_THE_WAY | {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}


class Instead(NamedTuple):
    """`content`: what the host's file gets; `base`: what the base of a held file is from then on, so that
    what was taken over is not listed again; None: as before.
    """

    content: bytes
    base: bytes | None = None


Content = Callable[[Change], Instead | None]
"""The content that a file gets instead of the session's, for those of which not all is taken over (a git
config); None: the session's.
"""


class GoneError(ConflictError):
    """Not even its folder is there: nothing is left that could be deleted."""


class Stage:
    """Makes the intents of one tree, and what they move."""

    def __init__(
        self, session_folder: str, tree: Tree, kept: Kept, book: Journal, instead: Content | None
    ) -> None:
        self._session = session_folder
        self.tree = tree
        self.kept = kept
        self._book = book
        self._instead = instead
        self._next = 0
        self._owners: dict[str, tuple[int, int]] = {}
        """Folders that are to be made, and whose they will be."""

    def intents(self, number: int, change: Change) -> list[Intent]:
        """The swaps of one change, with all staged; none where the host has it already. Raises ConflictError
        for this change, OSError for all of them.
        """
        _refuse(change)
        if change.what == DELETED:
            return self._take(number, change.path, change.now)
        if change.what == RENAMED:
            taken = self._take(number, change.source, change.old)
            put = self._put(number, change, ABSENT)
            return [*taken, *put]
        return self._put(number, change, change.now)

    def _look(self, path: str) -> tuple[int, str, Seen | None]:
        """The folder of a path on the host, its name there, and what stands there. -1: no such folder yet,
        but one that is staged. Raises ConflictError.
        """
        folder, name = self.tree.place(path)
        try:
            at = self.tree.folder(folder)
            if os.fstat(at).st_dev != self.tree.device:
                raise ConflictError("its folder is on another file system than the tree")
            return at, name, look(at, name)
        except FileNotFoundError:
            if folder in self._owners:
                return -1, name, None
            raise GoneError("its folder is not there, and is not applied with it") from None
        except OSError as error:
            # A file or link that gives way to a folder.
            if folder in self._owners and error.errno in (errno.ENOTDIR, errno.ELOOP):
                return -1, name, None
            if error.errno == errno.ENOTDIR:
                raise GoneError("the host has a file where its folder was") from error
            raise _conflict(error) from error

    def _take(self, number: int, path: str, listed: State) -> list[Intent]:
        try:
            at, name, there = self._look(path)
        except GoneError:
            return []
        if there is None:
            return []
        if listed.kind == "absent" or not fits(listed, there, at, name):
            raise ConflictError(CHANGED_OUTSIDE)
        _may_write(at)
        staging.make(self.tree, self._book)
        return [Intent(number, self.tree.thing.name, path, TAKE, self._slot(), None, there)]

    def _put(self, number: int, change: Change, listed: State) -> list[Intent]:
        at, name, there = self._look(change.path)
        new = change.new
        if there is not None and there.kind == "folder" == new.kind:
            return self._mode(number, change, there)
        if name == ".":
            raise ConflictError("the tree itself cannot be replaced")
        instead = self._content(change)
        if change.what == SETTINGS and instead is None:
            raise ConflictError("nothing of its settings can be taken over")
        if not fits(listed, there, at, name):
            raise ConflictError(CHANGED_OUTSIDE)
        if there is not None and instead is None and _is_there(change, there):
            return []
        if at >= 0:
            _may_write(at)
        wanted = Wanted(change.path, new, self._owner(change.path, at, there), mode_for(new, there), instead)
        slots, slot = staging.make(self.tree, self._book), self._slot()
        made, digest = make(slots, slot, self.kept, wanted)
        if new.kind == "folder":
            self._owners[change.path] = wanted.owner
        return [Intent(number, self.tree.thing.name, change.path, PUT, slot, made, there, digest)]

    def _content(self, change: Change) -> bytes | None:
        found = self._instead(change) if self._instead is not None and change.new.kind == "file" else None
        if found is None:
            return None
        if found.base is not None and self.tree.thing.kind == FILE:
            self._next_base(found.base)
        return found.content

    def _next_base(self, content: bytes) -> None:
        path = base.file_of(store.folder_of(self._session), self.tree.thing.name) + drop.NEXT
        fd = writing.create(path, os.O_TRUNC)
        try:
            with suppress(FileNotFoundError):
                os.fchmod(fd, stat.S_IMODE(os.stat(path.removesuffix(drop.NEXT)).st_mode))
            writing.write_all(fd, content)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _mode(self, number: int, change: Change, there: Seen) -> list[Intent]:
        made = there._replace(mode=mode_for(change.new, there))
        if made.mode == there.mode:
            return []
        if change.now.kind == "folder" and there.mode != change.now.mode:
            raise ConflictError(CHANGED_OUTSIDE)
        return [Intent(number, self.tree.thing.name, change.path, MODE, "", made, there)]

    def _owner(self, path: str, at: int, there: Seen | None) -> tuple[int, int]:
        if there is not None:
            return there.uid, there.gid
        if at < 0:
            return self._owners[self.tree.place(path)[0]]
        found = os.fstat(at)
        return found.st_uid, found.st_gid

    def _slot(self) -> str:
        self._next += 1
        return str(self._next)


def _is_there(change: Change, there: Seen) -> bool:
    """Whether the host has it already: it was applied before, or somebody did the same."""
    new, now = change.new, change.now
    alike = (new.kind, new.digest, mode_for(new, there)) == (now.kind, now.digest, there.mode)
    return bool(new.digest) and alike and (change.what != TIME or new.mtime_ns == there.mtime_ns)


def _refuse(change: Change) -> None:
    """What no list should have offered."""
    if change.tier == NEVER:
        raise ConflictError(change.reason or "it can never be applied")
    if change.conflict:
        raise ConflictError(change.conflict)
    if change.new.kind not in ("file", "folder", "symlink", "absent") or change.now.kind == "unknown":
        raise ConflictError(f"a {change.new.kind} is never applied")
    for path in (change.path, change.source):
        parts = path.split("/") if path else []
        if {"", ".", ".."} & set(parts) or (parts and parts[0].startswith(names.STAGING_PREFIX)):
            raise ConflictError("no path of a tree")


def _may_write(folder: int) -> None:
    if not os.access(f"/proc/self/fd/{folder}", os.W_OK | os.X_OK, effective_ids=True):
        raise ConflictError("you may not write its folder on the host")


def _conflict(error: OSError) -> Exception:
    """What a look at the host says of this path alone; another errno ends the apply."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return ConflictError("the host has a symbolic link or a file where its folder was")
    if error.errno == errno.EXDEV:
        return ConflictError("its folder is on another mount than the tree")
    if error.errno in _CONFLICTS:
        return ConflictError(f"the host does not let us look at it: {error.strerror}")
    return error


def failed(doing: str, tree: str, error: OSError) -> JailError:
    """An error of the disk, for a person."""
    to_do = {errno.ENOSPC: "free space on this file system", errno.EDQUOT: "free space within your quota"}
    first = to_do.get(error.errno or 0, "look at this file system")
    return JailError(
        f"cannot {doing}: {error.strerror}",
        where=f"{tree} ({errno.errorcode.get(error.errno or 0, error.errno)})",
        hint=f"nothing was changed: {first}, then apply again",
    )
