"""What a session holds, carried over to a session that goes on from it.

Rule: the folder `held` moves by one rename, so that it always lies in exactly one of both. Before that the
old session's review ledger says who takes it; after it the manifest is of the new one. Who finds it in a
session takes it from there, whatever is written elsewhere.

The base of what is in an upper layer stays what the command saw when it changed it: it is pinned before the
new run lists its trees, for all that the layer covers. So a file that the host changed between both runs is a
conflict if the command had changed it before, and the new base if not.
"""

import os

from jail.hold import base, closed, inside, store
from jail.hold.change import UNKNOWN
from jail.hold.store import Manifest
from jail.kernel import files, trees, walk
from jail.ledger.failure import failure
from jail.ledger.review import ReviewLedger
from jail.light import Final, Iterator, suppress
from jail.plan.held import OVERLAY, UPPER, WORK, Held

_AGAIN: Final = ".again"


def carry(old_folder: str, manifest: Manifest, new_folder: str, new_session: str) -> None:
    """Take what the session in `old_folder` holds into the one in `new_folder`; the caller holds the locks of
    both and has looked for an apply that is not finished. Raises JailError; then it is where it was.
    """
    held = store.folder_of(old_folder)
    try:
        for thing in manifest.held:
            if thing.kind == OVERLAY:
                _pin_covered(held, thing)
                _renew_work(held, thing, manifest)
        review = ReviewLedger.open(old_folder, manifest.session)
        try:
            review.append("resumed", by=new_session)
        finally:
            review.close()
        os.rename(held, store.folder_of(new_folder))
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else held
        raise failure("take over what that session holds", where, error) from error


def _pin_covered(held: str, thing: Held) -> None:
    """Let the base of all that the upper layer covers be what it is now, and of nothing else."""
    covered = _covered(f"{held}/{thing.name}/{UPPER}")
    found = base.read(held, thing.name, covered.concerns)
    pinned = {path: found[path] for path in covered.states} | dict(found)
    for path in _news(thing, covered, pinned):
        pinned[path] = found[path]
    file = base.file_of(held, thing.name)
    again = f"{thing.name}{_AGAIN}"
    with suppress(FileNotFoundError):
        os.unlink(base.file_of(held, again) + base.SINCE)
    base.pin(held, again, pinned)
    os.replace(base.file_of(held, again) + base.SINCE, file + base.SINCE)
    with suppress(FileNotFoundError):
        os.unlink(file)  # of no use but for what is pinned; the run that comes takes a new one


def _covered(upper: str) -> inside.Left:
    """What the upper layer has; `states` has all its paths, but says nothing of what is no folder. Raises
    JailError past the bounds of jail.hold.inside: what is not seen would get another base.
    """
    try:
        paths, hiding = _seen(upper)
    except PermissionError:
        paths, hiding = closed.answer(lambda: _seen(upper))
    covered = inside.Left()
    covered.states = dict.fromkeys(paths, UNKNOWN)
    covered.hiding = set(hiding)
    return covered


def _seen(upper: str) -> tuple[list[str], list[str]]:
    """As marshal takes it: all paths, and those through which nothing of the tree is seen."""
    top = os.open(upper, files.FOLDER)
    try:
        left = inside.look(top, lambda *_: False)
    finally:
        os.close(top)
    return [*left.states, *left.same], [*left.hiding]


def _news(thing: Held, covered: inside.Left, known: dict[str, base.Entry]) -> Iterator[str]:
    """Paths that the host has now, that no base knows, and that the layer covers unseen: what the command
    removed a folder of, it did not see the additions to.
    """
    tree = files.open_path(thing.path)
    try:
        for path in covered.hiding:
            if path.rpartition("/")[0] in covered.hiding or known[path].kind != "folder":
                continue
            for name in _names_in(tree, path):
                if f"{path}/{name}" not in known:
                    yield f"{path}/{name}"
    finally:
        os.close(tree)


def _names_in(tree: int, path: str) -> Iterator[str]:
    """All that is in a folder of a tree, relative to it; nothing where it is no folder (any more)."""
    try:
        top = files.openat2(tree, path, files.FOLDER, files.IN_TREE)
    except OSError:
        return
    try:
        for folder in walk.folders(top):
            for dirent in folder.entries:
                yield folder.join(dirent.name)
    finally:
        os.close(top)


def _renew_work(held: str, thing: Held, manifest: Manifest) -> None:
    """The folder in which the kernel prepares what goes into the upper layer must be empty."""
    fd = os.open(f"{held}/{thing.name}", files.FOLDER)
    try:
        trees.remove_tree(fd, WORK)
        os.mkdir(WORK, 0o700, dir_fd=fd)
        if os.geteuid() == 0:
            os.chown(WORK, manifest.uid, manifest.gid, dir_fd=fd)
    finally:
        os.close(fd)
