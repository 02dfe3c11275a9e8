"""One swap on the host, done or taken back, judged by what stands where and never by what was remembered.

Rule: what is staged is known by its inode number, so a swap can be asked for any number of times: `forward`
does what is not done yet, `back` undoes what is. What comes out of the tree must be what stood there when it
was staged; where the host changed it in between, it goes back at once, and that path is a conflict. Nothing
of the host's is ever removed here: it moves between its place and the slot.
"""

import errno
import os
import stat

from jail.hold import closed, digests
from jail.hold.beneath import IN_THE_WAY, Tree
from jail.hold.journal import MODE, PUT, TAKE, Intent
from jail.hold.making import ConflictError
from jail.hold.seen import Seen, look, same
from jail.kernel import files
from jail.light import Final

CHANGED: Final = "the host changed it while it was applied"
GONE: Final = "its folder on the host went away while it was applied"
FILLED: Final = "the host has something new in this folder"
TOUCHED: Final = "somebody changed or linked it while it was applied"
LOST: Final = "what was staged for it is gone, and the host does not have it"


_NOT_MOVED: Final = frozenset([errno.EXDEV, errno.EEXIST, errno.EACCES, errno.EPERM])
"""What rename(2) says of a folder that only rmdir(2) takes: a lower folder where the host is an overlay
itself; one that its owner may not write, since `..` in it changes; and where a stand-in waits already.
"""


def forward(tree: Tree, intent: Intent) -> None:
    """Do it, unless it is done. Raises ConflictError, with the host's side as it was, or OSError."""
    if intent.verb == MODE:
        return _mode(tree, intent)
    try:
        folder, name = _place(tree, intent)
    except OSError as error:
        if error.errno in IN_THE_WAY:
            raise ConflictError(GONE) from error
        raise
    return (_take if intent.verb == TAKE else _put)(tree, intent, folder, name)


def _place(tree: Tree, intent: Intent) -> tuple[int, str]:
    folder, name = tree.place(intent.path)
    return tree.folder(folder), name


def _put(tree: Tree, intent: Intent, folder: int, name: str) -> None:
    made = _made(intent)
    if not _is(look(tree.slots, intent.slot), made):
        if not _is(look(folder, name), made):
            raise ConflictError(LOST)
    elif intent.out is None:
        try:
            files.rename_noreplace(tree.slots, intent.slot, folder, name)
        except FileExistsError as error:
            there = look(folder, name)
            # A folder that the host made meanwhile does as well; what goes into it is looked at one by one.
            if made.kind != "folder" or there is None or there.kind != "folder":
                raise ConflictError(CHANGED) from error
        return
    else:
        try:
            files.exchange(tree.slots, intent.slot, folder, name)
        except FileNotFoundError as error:
            raise ConflictError(CHANGED) from error
        except OSError as error:
            if _folder(intent) and error.errno in _NOT_MOVED:
                raise ConflictError(f"the folder that is there cannot be moved: {error.strerror}") from error
            raise
    verify(tree, intent)


def verify(tree: Tree, intent: Intent) -> None:
    """What came out is what stood there when it was staged; else it goes back. Raises ConflictError."""
    if intent.out is None or intent.verb == MODE:
        return
    out = look(tree.slots, intent.slot)
    if out is None and intent.verb == TAKE:
        return
    # Which empty folder it was does not matter, and may be a stand-in's inode.
    alike = out is not None and out.kind == "folder" if _folder(intent) else same(intent.out, out)
    if alike and not (_folder(intent) and not _empty(tree.slots, intent.slot)):
        return
    folder, name = _place(tree, intent)
    if intent.verb == TAKE:
        _give_back(tree, intent, folder, name)
    else:
        _exchange_back(tree, intent, folder, name)
    raise ConflictError(FILLED if alike else CHANGED)


def prove(tree: Tree, intent: Intent) -> None:
    """What was put is what was reviewed: a single name, with the content that was staged. Else it is taken
    back: whoever may write the tree could open or link it while it was staged. Raises ConflictError, OSError.
    """
    if intent.verb != PUT or _made(intent).kind != "file":
        return
    made = _made(intent)
    folder, name = _place(tree, intent)
    if not _is(look(folder, name), made):
        return  # the host has another one there already
    fd = _opened(folder, name)
    try:
        found = os.fstat(fd)
        alike = (found.st_nlink, found.st_size, stat.S_IMODE(found.st_mode)) == (1, made.size, made.mode)
        if alike and digests.of_file(fd, found.st_size, intent.digest) == intent.digest:
            return
    finally:
        os.close(fd)
    back(tree, intent)
    raise ConflictError(TOUCHED)


def _opened(folder: int, name: str) -> int:
    try:
        return os.open(name, files.FILE, dir_fd=folder)
    except PermissionError:
        return closed.opened(lambda: os.open(name, files.FILE, dir_fd=folder))


def _exchange_back(tree: Tree, intent: Intent, folder: int, name: str) -> None:
    try:
        files.exchange(tree.slots, intent.slot, folder, name)
    except FileNotFoundError:
        _give_back(tree, intent, folder, name)
        return
    if not _is(look(tree.slots, intent.slot), _made(intent)):
        # Between the two the host put a newer one there: that one stays, and so does the one before.
        files.exchange(tree.slots, intent.slot, folder, name)
        tree.kept.append(intent.slot)


def _take(tree: Tree, intent: Intent, folder: int, name: str) -> None:
    taken = look(tree.slots, intent.slot)
    stand_in = taken is not None and _folder(intent) and not same(_out(intent), taken)
    if taken is None or (stand_in and look(folder, name) is not None):
        try:
            files.rename_noreplace(folder, name, tree.slots, intent.slot)
        except FileNotFoundError:
            return
        except OSError as error:
            if not _folder(intent) or error.errno not in _NOT_MOVED:
                raise
            _rmdir(tree, intent, folder, name)
            return
    verify(tree, intent)


def _folder(intent: Intent) -> bool:
    return intent.out is not None and intent.out.kind == "folder"


def _rmdir(tree: Tree, intent: Intent, folder: int, name: str) -> None:
    """Where a folder cannot be renamed: it is removed, and a stand-in waits in the slot to be put back."""
    there = look(folder, name)
    if there is None:
        return
    if look(tree.slots, intent.slot) is None:
        os.mkdir(intent.slot, 0o700, dir_fd=tree.slots)
        os.chown(intent.slot, there.uid, there.gid, dir_fd=tree.slots)
        os.chmod(intent.slot, there.mode, dir_fd=tree.slots)
        os.utime(intent.slot, ns=(there.mtime_ns, there.mtime_ns), dir_fd=tree.slots)
    gone = False
    try:
        gone = files.remove_empty(folder, name)
    finally:
        if not gone:
            os.rmdir(intent.slot, dir_fd=tree.slots)
    if not gone:
        raise ConflictError(FILLED)


def _mode(tree: Tree, intent: Intent) -> None:
    if intent.out is not None and not _changed_mode(tree, intent, intent.out.mode, _made(intent).mode):
        raise ConflictError(CHANGED)


def _changed_mode(tree: Tree, intent: Intent, before: int, after: int) -> bool:
    """Change the mode of a folder from one to another; False where it is another one, or no folder."""
    folder, name = tree.place(intent.path)
    try:
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
        fd = files.openat2(tree.folder(folder), name, flags, files.IN_TREE)
    except OSError as error:
        if error.errno in IN_THE_WAY:
            return False
        raise
    try:
        mode = os.fstat(fd).st_mode & 0o7777
        if mode == before != after:
            os.chmod(f"/proc/self/fd/{fd}", after)
        return mode in (before, after)
    finally:
        os.close(fd)


def completed(tree: Tree, intent: Intent) -> None:
    """A new folder that has all of its own: its mode and time. Raises OSError."""
    made = _made(intent)
    folder, name = _place(tree, intent)
    there = look(folder, name)
    if there is None or not _is(there, made):
        return
    _changed_mode(tree, intent, there.mode, made.mode)
    os.utime(name, ns=(made.mtime_ns, made.mtime_ns), dir_fd=folder, follow_symlinks=False)


def reopened(tree: Tree, intent: Intent) -> None:
    """The same folder, before what is in it is taken back."""
    folder, name = _place(tree, intent)
    if _is(look(folder, name), _made(intent)):
        _changed_mode(tree, intent, _made(intent).mode, 0o700)


def back(tree: Tree, intent: Intent) -> None:
    """Undo it, where it is done. What the host did to the path since stays. Raises OSError."""
    if intent.verb == MODE:
        if intent.out is not None:
            _changed_mode(tree, intent, _made(intent).mode, intent.out.mode)
        return
    try:
        folder, name = _place(tree, intent)
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        if intent.out is not None and same(intent.out, look(tree.slots, intent.slot)):
            tree.kept.append(intent.slot)
        return
    if intent.verb == TAKE:
        if look(tree.slots, intent.slot) is not None:
            _give_back(tree, intent, folder, name)
        return
    made = _made(intent)
    if not _is(look(folder, name), made):
        return
    if intent.out is not None:
        files.exchange(folder, name, tree.slots, intent.slot)
    else:
        files.rename_noreplace(folder, name, tree.slots, intent.slot)
        if made.kind == "folder" and not _empty(tree.slots, intent.slot):
            # The host put something in it meanwhile.
            files.rename_noreplace(tree.slots, intent.slot, folder, name)


def _give_back(tree: Tree, intent: Intent, folder: int, name: str) -> None:
    try:
        files.rename_noreplace(tree.slots, intent.slot, folder, name)
    except FileExistsError:
        # The host has made another one there: both stay.
        tree.kept.append(intent.slot)


def _made(intent: Intent) -> Seen:
    assert intent.made is not None
    return intent.made


def _out(intent: Intent) -> Seen:
    assert intent.out is not None
    return intent.out


def _is(found: Seen | None, made: Seen) -> bool:
    return found is not None and (found.kind, found.inode) == (made.kind, made.inode)


def _empty(folder: int, name: str) -> bool:
    try:
        fd = os.open(name, files.FOLDER, dir_fd=folder)
    except PermissionError:
        return False  # closed by its owner: what is in it nobody knows
    try:
        with os.scandir(fd) as found:
            return next(found, None) is None
    finally:
        os.close(fd)
