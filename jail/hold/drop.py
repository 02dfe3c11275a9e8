"""What was applied, taken out of the session: a second list does not have it, and a resume sees the host's.

Rule: only after the host has it on its disk. From an upper layer the path goes, and the host shows; a copy
keeps it, since it is the same; in both the base says from now on what the host has. Doing it twice changes
nothing.
"""

import os
import stat

from jail.hold import base, closed, opening, store
from jail.hold.beneath import IN_THE_WAY, Tree
from jail.hold.change import DELETED, RENAMED, SETTINGS, Change
from jail.hold.kept import Kept
from jail.hold.layer import Layer, above
from jail.hold.store import Manifest
from jail.kernel import files, sparse, trees, writing
from jail.light import Final, Iterable, suppress
from jail.plan.held import FILE, OVERLAY, UPPER

NEXT: Final = ".next"
"""After the name of a held file's base: what it becomes when its apply is done."""


def paths(change: Change) -> tuple[str, ...]:
    """The paths of a change that the host has another way now."""
    return (change.source, change.path) if change.what == RENAMED else (change.path,)


def drop(session_folder: str, tree: Tree, changes: list[Change]) -> None:
    """Take the applied changes of one thing out of a session. Raises OSError."""
    held = store.folder_of(session_folder)
    if tree.thing.kind == FILE:
        _file(session_folder, tree, changes)
        return
    kept = Kept(session_folder, tree.thing, changing=True)
    tree.forget()
    try:
        pin(held, tree, kept, [path for change in changes for path in paths(change)])
        if tree.thing.kind == OVERLAY:
            _from_layer(Layer(kept, tree, held, folders_of(changes)), changes)
    finally:
        kept.close()


def _file(session_folder: str, tree: Tree, changes: list[Change]) -> None:
    """The base of a held file is what was applied of it: what the stage wrote, else all of the session's."""
    path = base.file_of(store.folder_of(session_folder), tree.thing.name)
    if any(change.new.kind == "absent" for change in changes):
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    if not os.path.exists(path + NEXT) and all(change.what != SETTINGS for change in changes):
        source = opening.open_new(session_folder, tree.thing, "")
        try:
            out = writing.create(path + NEXT, os.O_TRUNC)
            try:
                found = os.fstat(source)
                os.fchmod(out, stat.S_IMODE(found.st_mode) & 0o777 | 0o400)
                sparse.copy(source, out, found.st_size)
            finally:
                os.close(out)
        finally:
            os.close(source)
    with suppress(FileNotFoundError):
        os.replace(path + NEXT, path)


def empty(session_folder: str, manifest: Manifest) -> None:
    """Empty the upper layers of a session of which the caller knows that it holds nothing any more, but for
    settings that were taken over: of these the session may have another spelling than the host. Raises
    OSError.
    """
    held = store.folder_of(session_folder)
    tops = [f"{held}/{each.name}/{UPPER}" for each in manifest.held if each.kind == OVERLAY]
    tops = [top for top in tops if os.path.isdir(top)]  # the run may not have come so far
    for top in tops:
        fd = os.open(top, files.FOLDER)
        try:
            for name in os.listdir(fd):
                trees.remove_tree(fd, name)
        finally:
            os.close(fd)


def _from_layer(layer: Layer, changes: list[Change]) -> None:
    layer.open()
    for change in reversed(changes):
        for path in paths(change):
            if path and not (change.new.kind == "folder" and path == change.path) and not _stays(change):
                layer.remove(path)
    layer.prune({change.path for change in changes if change.new.kind == "folder"})


def _stays(change: Change) -> bool:
    """Whether the session's file has more in it than was applied: settings are taken over one by one."""
    return change.what == SETTINGS


def folders_of(changes: Iterable[Change]) -> set[str]:
    """The folders that changes lie in, and those that they are."""
    listed = list(changes)
    found = above(path for change in listed for path in paths(change))
    return found | {change.path for change in listed if change.new.kind == "folder" or change.what == DELETED}


def pin(held_folder: str, tree: Tree, kept: Kept, names: Iterable[str]) -> None:
    """Say in the base of a tree that these paths are what the host has now. Raises OSError."""
    listed = list(names)
    try:
        entries = [_entry(tree, kept, path) for path in listed]
    except PermissionError:
        # A folder that the command had closed, and that is closed on the host now.
        found = closed.answer(lambda: [tuple(_entry(tree, kept, path)) for path in listed])
        entries = [base.Entry._make(each) for each in found]
    if listed:
        base.pin(held_folder, tree.thing.name, dict(zip(listed, entries, strict=True)))


def _entry(tree: Tree, kept: Kept, path: str) -> base.Entry:
    folder, name = tree.place(path)
    try:
        at = tree.folder(folder)
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        target = os.readlink(name, dir_fd=at) if files.kind(found.st_mode) == "symlink" else ""
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        return base.ABSENT
    return base.entry_of(found, target, None if tree.thing.kind == OVERLAY else kept.look(path))
