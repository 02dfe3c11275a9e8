"""Sockets, pipes and second names in the trees that are given.

Rule: a read-only mount keeps nobody from connecting to a socket or writing into a pipe that lies in it, so
the ends that programs of the host hold there are hidden. Trees of the person (workspace, `write`, `read`,
PATH and its toolchains) are walked; for the system's own, too large for that at each start, the kernel's list
of bound sockets (proc_net_unix(5)) says which there are in this network namespace.
"""

import os
import stat

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.kernel import files, surveys, walk
from jail.kernel.files import Identity
from jail.light import Collection, Final, Iterable, NamedTuple
from jail.plan.facts import Place
from jail.policy.paths import deepest

MOST: Final = 500_000
"""Entries looked at in one read-only tree: some seconds. What lies beyond is told in the plan."""


class Found(NamedTuple):
    """Absolute paths: `sockets` and pipes to hide, `hardlinked` files, trees that were not seen whole;
    `git_dirs` of the writable ones, each with its inode, and of which of them not all are known (`cut`).
    """

    sockets: tuple[str, ...]
    hardlinked: tuple[str, ...]
    unseen: tuple[str, ...]
    git_dirs: tuple[tuple[str, Identity], ...] = ()
    cut: tuple[str, ...] = ()


def look(writable: Iterable[Place], readable: Iterable[Place], system: Iterable[Place]) -> Found:
    """What the given trees hold. Raises JailError for a writable tree that cannot be read."""
    sockets: list[str] = []
    hardlinked: list[str] = []
    unseen: list[str] = []
    git_dirs: list[tuple[str, Identity]] = []
    cut: list[str] = []
    trees = [place for place in writable if place.real_kind == "folder"]
    for place in trees:
        fd = _open_writable(place.real)
        try:
            found = surveys.survey(fd)
        finally:
            os.close(fd)
        sockets += [f"{place.real}/{path}" for path in found.sockets]
        hardlinked += [f"{place.real}/{path}" for path in found.hardlinked]
        unseen += [place.real] * (not found.complete)
        git_dirs += [(f"{place.real}/{path}".rstrip("/"), which) for path, which in found.git_dirs]
        cut += [place.real] * found.cut
    given = [place.real for place in trees]
    walked: list[str] = []
    system_trees = [place.real for place in system if place.real]
    for path in sorted({place.real for place in readable if place.real_kind == "folder"}):
        if deepest(path, given) or deepest(path, walked) or deepest(path, system_trees):
            continue
        walked.append(path)
        unseen += [path] * (not _ends_in(path, sockets))
    sockets += _bound(system_trees)
    ends = tuple(dict.fromkeys(sockets))
    return Found(ends, tuple(hardlinked), tuple(unseen), tuple(git_dirs), tuple(cut))


def git_dirs_beyond(folders: Iterable[str], trees: Collection[str]) -> list[tuple[str, Identity]]:
    """The git dirs in those git folders of the repository that lie in none of the trees."""
    found: list[tuple[str, Identity]] = []
    for path in dict.fromkeys(folders):
        if path and os.path.isdir(path) and not deepest(path, trees):
            fd = _open_writable(path)
            try:
                seen = surveys.survey(fd).git_dirs
            finally:
                os.close(fd)
            found += [(f"{path}/{below}".rstrip("/"), which) for below, which in seen]
    return found


def _open_writable(path: str) -> int:
    fd = files.open_path(path)
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    except PermissionError as error:
        hint = "give yourself the permission"
        message = f"the folder {path} cannot be read"
        raise JailError(message, where=str(error), hint=hint, code=EXIT_CANNOT_ISOLATE) from error
    finally:
        os.close(fd)


def _ends_in(path: str, found: list[str]) -> bool:
    """Add the sockets and pipes beneath `path`; False when not all of it was seen."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True  # what we cannot list, the command cannot list; a name that it knows is still read-only
    entries, denied = 0, list[str]()
    try:
        for folder in walk.folders(fd, cross_mounts=True):
            denied = folder.denied
            entries += len(folder.entries)
            if entries > MOST:
                return False
            found += [f"{path}/{folder.join(entry.name)}" for entry in folder.entries if _is_end(entry)]
    finally:
        os.close(fd)
    return not denied


def _is_end(entry: "os.DirEntry[str]") -> bool:
    if entry.is_symlink() or entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
        return False
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _bound(trees: list[str]) -> list[str]:
    """Sockets of this network namespace that are bound to a name in one of `trees`."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as listing:
            names = [line.rstrip("\n").split(" ", 7)[-1] for line in listing]
    except OSError:
        return []
    real = [os.path.realpath(name) for name in names if name.startswith("/")]
    return [name for name in real if deepest(name, trees) and files.kind(_mode(name)) == "socket"]


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def names_of(identities: set[Identity], trees: Iterable[str]) -> list[str]:
    """Every name beneath `trees` of the inodes `identities`: a hidden file is hidden under each of them."""
    found: list[str] = []
    for path in trees:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            for folder in walk.folders(fd, cross_mounts=True):
                found += [
                    f"{path}/{folder.join(entry.name)}"
                    for entry in folder.entries
                    if entry.is_file(follow_symlinks=False) and _identity(entry) in identities
                ]
        finally:
            os.close(fd)
    return found


def _identity(entry: "os.DirEntry[str]") -> Identity:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return Identity(0, 0)
    return Identity(found.st_dev, found.st_ino)
