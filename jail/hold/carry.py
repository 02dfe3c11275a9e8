"""What a session holds, carried over to a session that goes on from it.

Rule: the folder `held` moves by one rename, so that it always lies in exactly one of both. Before that the
old session's review ledger says who takes it; after it the manifest is of the new one. Who finds it in a
session takes it from there, whatever is written elsewhere.

The base of what is in an upper layer stays what the command saw when it changed it: it is pinned before the
new run lists its trees, for all that the layer covers. So a file that the host changed between both runs is a
conflict if the command had changed it before, and the new base if not.
"""

import os

from jail.hold import base, marks, store
from jail.hold.store import Manifest
from jail.kernel import files, trees, walk
from jail.ledger.failure import failure
from jail.ledger.review import Review
from jail.light import Callable, Final, Iterator, NamedTuple, suppress
from jail.plan.held import OVERLAY, Held

_AGAIN: Final = ".again"
_WITHIN: Final = files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_XDEV


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
        review = Review.open(old_folder, manifest.session)
        try:
            review.append("resumed", by=new_session)
        finally:
            review.close()
        os.rename(held, store.folder_of(new_folder))
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else held
        raise failure("take over what that session holds", where, error) from error


class _Covered(NamedTuple):
    """What an upper layer has: `paths`, and of these the `closed`: nothing of the tree shows beneath them."""

    paths: set[str]
    closed: set[str]


def _pin_covered(held: str, thing: Held) -> None:
    """Let the base of all that the upper layer covers be what it is now, and of nothing else."""
    upper = os.open(f"{held}/{thing.name}/{store.UPPER}", files.FOLDER)
    try:
        covered = _covered(upper)
    finally:
        os.close(upper)
    found = base.read(held, thing.name, _asked(covered))
    pinned = {path: found[path] for path in covered.paths} | dict(found)
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


def _covered(upper: int) -> _Covered:
    paths, closed = {""}, set()
    denied: list[str] = []
    for folder in walk.folders(upper):
        prefix = f"{folder.path}/" if folder.depth else ""
        if folder.depth and marks.is_opaque(folder.fd):
            closed.add(prefix[:-1])
        for dirent in folder.entries:
            paths.add(prefix + dirent.name)
            if not dirent.is_dir(follow_symlinks=False):
                closed.add(prefix + dirent.name)
        denied = folder.denied
    return _Covered(paths, closed | set(denied))


def _asked(covered: _Covered) -> Callable[[str], bool]:
    """Whether a path of the base is covered; folders are asked for before what lies in them."""
    closed = set(covered.closed)

    def asked(path: str) -> bool:
        if path and path.rpartition("/")[0] in closed:
            closed.add(path)
            return True
        return path in covered.paths

    return asked


def _news(thing: Held, covered: _Covered, known: dict[str, base.Entry]) -> Iterator[str]:
    """Paths that the host has now, that no base knows, and that the layer covers unseen: what the command
    removed a folder of, it did not see the additions to.
    """
    tree = files.open_path(thing.path)
    try:
        for path in covered.closed:
            if path.rpartition("/")[0] in covered.closed or known[path].kind != "folder":
                continue
            for name in _names_in(tree, path):
                if f"{path}/{name}" not in known:
                    yield f"{path}/{name}"
    finally:
        os.close(tree)


def _names_in(tree: int, path: str) -> Iterator[str]:
    """All that is in a folder of a tree, relative to it; nothing where it is no folder (any more)."""
    try:
        top = files.openat2(tree, path, files.FOLDER, _WITHIN)
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
        trees.remove_tree(fd, store.WORK)
        os.mkdir(store.WORK, 0o700, dir_fd=fd)
        if os.geteuid() == 0:
            os.chown(store.WORK, manifest.uid, manifest.gid, dir_fd=fd)
    finally:
        os.close(fd)
