"""What a session holds, taken out of it without being applied.

Rule: as jail.hold.drop has it, the host shows again where the path was, and a later list does not have it.
Nothing of the host is written. A copy gets the host's own file back; a held file its first content.
"""

import os
import stat

from jail.errors import JailError
from jail.hold import base, store
from jail.hold.account import REFUSED, Record
from jail.hold.beneath import IN_THE_WAY, Tree, split
from jail.hold.change import DELETED, NEVER, Change
from jail.hold.drop import folders_of, paths, pin
from jail.hold.kept import Kept
from jail.hold.layer import Layer
from jail.hold.store import Manifest
from jail.hold.transaction import Applied
from jail.kernel import files, sparse, trees, writing
from jail.light import Final, Sequence, suppress
from jail.plan.held import COPY, FILE, Held

DISCARDED: Final = "discarded"
NOT_EMPTY: Final = "something is in it that was not discarded"
HIDDEN: Final = "something else is in place of its folder: that has to be discarded first"


def discard(session_folder: str, manifest: Manifest, chosen: Sequence[Change], record: Record) -> Applied:
    """Discard changes of a session whose lock is held, as jail.hold.look listed them; a folder with all that
    is in it. `record` is called with "discarded" or "refused". Raises JailError, with some of it discarded:
    the rest is still listed.
    """
    done: list[Change] = []
    left: list[Change] = []
    for thing in manifest.held:
        changes = sorted((each for each in chosen if each.tree == thing.name), key=lambda each: each.path)
        if not changes:
            continue
        try:
            resisting = _discarded(session_folder, thing, changes)
        except OSError as error:
            raise JailError(
                f"cannot discard what is held of {thing.path}: {error.strerror}",
                where=session_folder,
                hint="what was not discarded is still listed: `jail changes`",
            ) from error
        for change in changes:
            if change.path in resisting:
                left.append(change._replace(conflict=HIDDEN if change.what == DELETED else NOT_EMPTY))
                record(REFUSED, left[-1])
            else:
                record(DISCARDED, change)
                done.append(change)
    return Applied(tuple(done), tuple(left))


def _discarded(session_folder: str, thing: Held, changes: list[Change]) -> set[str]:
    held = store.folder_of(session_folder)
    kept = Kept(session_folder, thing, changing=True)
    try:
        if thing.kind == FILE:
            _file_back(held, thing, kept)
            return set()
        tree = Tree(thing)
        try:
            if thing.kind == COPY:
                return _from_copy(held, kept, tree, changes)
            return _from_layer(held, kept, tree, changes)
        finally:
            tree.close()
    finally:
        kept.close()


def _from_layer(held: str, kept: Kept, tree: Tree, changes: list[Change]) -> set[str]:
    layer = Layer(kept, tree, held, folders_of(changes))
    layer.open(deleted=True)
    for change in reversed(changes):
        for path in paths(change):
            if path and change.tier == NEVER and change.new.kind == "folder":
                folder, name = split(path)
                trees.remove_tree(kept.folder(folder), name)
            elif path:
                layer.remove(path)
    folders = {change.path for change in changes if change.new.kind == "folder"}
    resisting = {path for path in sorted(folders, reverse=True) if not layer.removed(path)}
    layer.prune(folders)
    resisting |= {change.path for change in changes if change.what == DELETED and kept.is_hidden(change.path)}
    pin(held, tree, kept, [path for change in changes for path in paths(change) if path not in resisting])
    return resisting


def _from_copy(held: str, kept: Kept, tree: Tree, changes: list[Change]) -> set[str]:
    """Take what the command made out of a copy, the deepest first, then give it the host's."""
    resisting = {
        change.path
        for change in reversed(changes)
        for path in reversed(paths(change))
        if not _cleared(kept, tree, path)
    }
    names = sorted(path for change in changes if change.path not in resisting for path in paths(change))
    for path in names:
        for missing in reversed(_missing_above(kept, path)):
            _copied_back(tree, kept, missing)
        _copied_back(tree, kept, path)
    kept.forget()
    resisting |= {change.path for change in changes if change.what == DELETED and kept.is_hidden(change.path)}
    pin(held, tree, kept, [path for path in names if path not in resisting])
    return resisting


def _cleared(kept: Kept, tree: Tree, path: str) -> bool:
    """Remove what the copy has there; False for a folder with something in it."""
    found = kept.look(path)
    if found is None or not path:
        return True
    folder, name = split(path)
    if files.kind(found.st_mode) != "folder":
        os.unlink(name, dir_fd=kept.folder(folder))
        return True
    if tree.look(path) == "folder":
        return True  # it gets the host's bits back
    return files.remove_empty(kept.folder(folder), name)


def _missing_above(kept: Kept, path: str) -> list[str]:
    """The folders above a path that the copy has not: they were deleted whole. The deepest first."""
    missing = []
    while path := split(path)[0]:
        if kept.look(path) is not None:
            break
        missing.append(path)
    return missing


def _copied_back(tree: Tree, kept: Kept, path: str) -> None:
    """What the host has there, into the copy, whose owner it gets. What the host has not needs nothing."""
    folder, name = tree.place(path)
    try:
        source = tree.folder(folder)
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        target = kept.folder(folder)
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        return
    kind = files.kind(found.st_mode)
    if kind == "symlink":
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif kind == "folder":
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=target)
    elif kind == "file":
        _content_back(source, target, name)
    else:
        return
    owner = os.fstat(kept.root)
    os.chown(name, owner.st_uid, owner.st_gid, dir_fd=target, follow_symlinks=False)
    if kind != "symlink":
        os.chmod(name, stat.S_IMODE(found.st_mode), dir_fd=target)
    os.utime(name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def _content_back(source: int, target: int, name: str) -> None:
    fd = os.open(name, files.FILE, dir_fd=source)
    try:
        out = writing.create(name, folder=target)
        try:
            sparse.copy(fd, out, os.fstat(fd).st_size)
        finally:
            os.close(out)
    finally:
        os.close(fd)


def _file_back(held: str, thing: Held, kept: Kept) -> None:
    """A held file has its first content again, under a new inode, with the mode that it had."""
    _, name = kept.place("")
    source = os.open(base.file_of(held, thing.name), files.FILE)
    try:
        partial = f"{name}.new"
        with suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=kept.root)
        out = writing.create(partial, folder=kept.root)
        try:
            sparse.copy(source, out, os.fstat(source).st_size)
            owner = os.fstat(kept.root)
            os.fchown(out, owner.st_uid, owner.st_gid)
            there = kept.look("")
            if there is not None and stat.S_ISREG(there.st_mode):
                os.fchmod(out, stat.S_IMODE(there.st_mode) | 0o600)
        finally:
            os.close(out)
        os.replace(partial, name, src_dir_fd=kept.root, dst_dir_fd=kept.root)
    finally:
        os.close(source)
