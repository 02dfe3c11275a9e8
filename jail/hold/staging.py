"""The staging folder of one apply in the root of a tree: made, found again, looked through, removed.

Rule: its name is in the journal before it is made, and nothing is believed of a folder that no journal names.
What lies in it after a kill lay where others of the same account could write, so it is digested again before
it goes anywhere. The host's own things that are in it are removed only when they are what was to be replaced.
"""

import os

from jail.hold import digests, journal, names
from jail.hold.beneath import IN_THE_WAY, Tree
from jail.hold.journal import PUT, TAKE, Intent, Journal
from jail.hold.seen import look, same, target_digest
from jail.kernel import files, trees


def make(tree: Tree, book: Journal) -> int:
    """The folder's fd; made when it is first asked for, and named in the journal before that. Raises
    OSError.
    """
    if tree.slots < 0:
        tree.staging = f"{names.STAGING_PREFIX}{os.urandom(8).hex()}"
        book.add([journal.staging(tree.thing.name, tree.staging, 0)])
        book.reserve()
        os.mkdir(tree.staging, 0o700, dir_fd=tree.root)
        tree.slots = files.openat2(tree.root, tree.staging, files.FOLDER, files.IN_TREE)
        book.add([journal.staging(tree.thing.name, tree.staging, os.fstat(tree.slots).st_ino)])
    return tree.slots


def reopen(tree: Tree, name: str, inode: int) -> None:
    """Open the folder that a journal names; where it is gone, or is another one, there is none. Raises
    OSError.
    """
    try:
        slots = files.openat2(tree.root, name, files.FOLDER, files.IN_TREE)
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        return
    if inode and os.fstat(slots).st_ino != inode:
        os.close(slots)
        return
    tree.slots, tree.staging = slots, name


def spoiled(tree: Tree, intent: Intent) -> bool:
    """Whether what is staged is not what was put there. Raises OSError."""
    made = intent.made
    found = look(tree.slots, intent.slot) if intent.verb == PUT else None
    if made is None or found is None or (found.kind, found.inode) != (made.kind, made.inode):
        return False  # not in its slot any more: nothing that would be moved
    if made.kind == "symlink":
        return target_digest(tree.slots, intent.slot) != intent.digest
    if made.kind == "folder":
        fd = os.open(intent.slot, files.FOLDER, dir_fd=tree.slots)
        with os.scandir(fd) as found_in:
            filled = next(found_in, None) is not None
        os.close(fd)
        return filled
    return found.mode != made.mode or _digest(tree.slots, intent.slot, intent.digest) != intent.digest


def _digest(slots: int, slot: str, like: str) -> str:
    fd = os.open(slot, files.FILE, dir_fd=slots)
    try:
        return digests.of_file(fd, os.fstat(fd).st_size, like)
    finally:
        os.close(fd)


def missing(tree: Tree, intent: Intent) -> bool:
    """Whether the host has not, or no longer, what this swap gave it. Raises OSError."""
    folder, name = tree.place(intent.path)
    try:
        found = look(tree.folder(folder), name)
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        found = None
    if intent.verb == TAKE:
        return intent.out is not None and same(intent.out, found)
    if intent.made is None or found is None:
        return intent.verb == PUT
    return intent.verb == PUT and (found.kind, found.inode) != (intent.made.kind, intent.made.inode)


def remove(tree: Tree, intents: list[Intent]) -> str:
    """Remove the folder with what was replaced, and say, for a person, what of the host's stays in it: "" for
    nothing. Raises OSError.
    """
    if tree.slots < 0:
        if tree.staging:
            trees.remove_tree(tree.root, tree.staging)
        return ""
    for intent in intents:
        if intent.tree == tree.thing.name and intent.out is not None and intent.out.kind == "folder":
            _remove_folder(tree, intent)
    if not tree.kept:
        trees.remove_tree(tree.root, tree.staging)
        return ""
    with os.scandir(tree.slots) as found:
        doomed = [entry.name for entry in found if entry.name not in tree.kept]
    for name in doomed:
        trees.remove_tree(tree.slots, name)
    return (
        f"the host changed things while they were applied; what it had before is kept: "
        f"{', '.join(sorted(tree.kept))} in {tree.thing.path}/{tree.staging}"
    )


def _remove_folder(tree: Tree, intent: Intent) -> None:
    """A folder of the host's that went: where somebody put something in it since, it goes back."""
    there = look(tree.slots, intent.slot)
    if there is None or there.kind != "folder":
        return
    if not files.remove_empty(tree.slots, intent.slot):
        folder, name = tree.place(intent.path)
        try:
            files.rename_noreplace(tree.slots, intent.slot, tree.folder(folder), name)
        except OSError:
            tree.kept.append(intent.slot)
