"""Where absent protected names are watched, and the names by their components.

Rule: a name is watched from a folder that nobody inside can replace (the workspace, a git dir: their
ancestors are pinned), one component at a time; a folder in between may come, go and be replaced. What stood
at launch is left alone for as long as it is what it was.
"""

import os
import time

from jail.hold import freshgit
from jail.kernel import files, inotify
from jail.launch.quarantine import Taken
from jail.light import Callable, Final, Iterable, NamedTuple
from jail.plan import protected
from jail.plan.facts import Guarded

SHADOWS: Final = "the host's shell, in this folder, would run it in the place of a command"
"""The reason of names in a folder that people work in: only what can be a command is taken away."""


class Place(NamedTuple):
    """One folder (canonical path) that nobody inside can replace, and the names beneath it that were absent:
    (name, reason).

    Names may have slashes. `present`: paths relative to it that existed, exactly as spelt: another spelling
    of an absent name (`claude.md`) that was there before is not swept, and no link on the way to one.
    """

    folder: str
    names: tuple[tuple[str, str], ...]
    present: tuple[str, ...] = ()


class Before(NamedTuple):
    """What was there at launch that the end of the run must know: the `git_dirs` of the written trees, each
    with device and inode, and the trees of which not all of them are known (`cut`). `own`: jail's own
    folders, in which commands fill caches that nobody looks into.
    """

    git_dirs: frozenset[tuple[str, tuple[int, int]]] = frozenset()
    cut: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


def places(
    folders: Iterable[str], absent: Iterable[Guarded], present: Iterable[Guarded]
) -> tuple[Place, ...]:
    """Absent protected paths by the folder in which they are watched: of `folders`, the deepest that each
    lies in.

    `folders`: the workspace, and each git dir of the layout (their ancestors are pinned). Paths in none of
    them are left out.
    """
    deepest = sorted({folder.rstrip("/") for folder in folders}, key=len, reverse=True)
    names: dict[str, list[tuple[str, str]]] = {}
    there: dict[str, list[str]] = {}
    for guard in absent:
        for folder in deepest:
            if guard.path.startswith(f"{folder}/"):
                names.setdefault(folder, []).append((guard.path[len(folder) + 1 :], guard.reason))
                break
    for guard in present:
        for folder in deepest:
            if guard.path.startswith(f"{folder}/"):
                there.setdefault(folder, []).append(guard.path[len(folder) + 1 :])
    return tuple(Place(folder, tuple(found), tuple(there.get(folder, ()))) for folder, found in names.items())


class Node:
    """One component of watched names: `below` by canonical name; `reason` is not "" where a name ends."""

    __slots__ = ("below", "name", "reason")

    def __init__(self, name: str) -> None:
        self.name = name
        self.reason = ""
        self.below: dict[str, Node] = {}

    def at(self, path: str) -> "Node | None":
        """The node of a path relative to this one, in any spelling, or None."""
        node: Node | None = self
        for part in path.split("/"):
            node = node.below.get(protected.canonical(part)) if node is not None else None
        return node


def is_command(folder: int, name: str) -> bool:
    """Whether a shell would run it, or somebody may make it so without an event in `folder`: it is a link, a
    file with an x bit, or one that has another name.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    if files.kind(found.st_mode) == "symlink":
        return True
    return files.kind(found.st_mode) == "file" and bool(found.st_mode & 0o111 or found.st_nlink > 1)


def tree(names: Iterable[tuple[str, str]]) -> Node:
    """The names, each with its reason, by their components."""
    top = Node("")
    for name, reason in names:
        node = top
        for part in name.split("/"):
            node = node.below.setdefault(protected.canonical(part), Node(part))
        node.reason = reason
    return top


def merge(node: Node, added: Node) -> None:
    """Add the names of one tree to another."""
    for folded, below in added.below.items():
        if folded in node.below:
            merge(node.below[folded], below)
            node.below[folded].reason = below.reason or node.below[folded].reason
        else:
            node.below[folded] = below


class Stood:
    """What was in one folder at launch: the relative paths `present`, and where the links among them led that
    watched names would lie beneath.

    A link counts as the same while its target is the same: a new one may get the inode number of the old one,
    and the host makes it again whenever git switches branches.
    """

    __slots__ = ("_paths", "_targets")

    def __init__(self, folder: int, names: Node, present: Iterable[str]) -> None:
        self._paths = set(present)
        self._targets: dict[str, str] = {}
        for path in self._paths:
            node = names.at(path)
            if node is not None and node.below:
                self._targets[path] = target(folder, path)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def as_link(self, path: str) -> str:
        """The target that the link `path` had at launch; "" when there was none."""
        return self._targets.get(path, "")

    def forget(self, path: str) -> None:
        """It is gone: what stands there from now on is new."""
        self._paths.discard(path)
        self._targets.pop(path, None)


def target(folder: int, path: str) -> str:
    """The target of a symlink beneath an open folder, reached through no other; "" when there is none."""
    try:
        fd = files.openat2(
            folder, path, os.O_PATH | os.O_NOFOLLOW, files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS
        )
    except OSError:
        return ""
    try:
        # An empty path asks for the link behind the fd itself (readlink(2)).
        return os.readlink("", dir_fd=fd)
    except OSError:
        return ""
    finally:
        os.close(fd)


class Spot:
    """One folder that is watched: open, with what to look for in it. `repository`: the git dir made inside
    that it belongs to.
    """

    __slots__ = ("below", "fd", "identity", "node", "path", "relative", "repository", "stood", "watch")

    def __init__(self, fd: int, path: str, relative: str, node: Node, stood: Stood) -> None:
        self.fd = fd
        self.path = path
        self.relative = relative
        self.node = node
        self.stood = stood
        self.identity: files.Identity = files.identity(fd)
        self.repository: Spot | None = None
        self.below: dict[str, Spot] = {}
        self.watch = -1

    @property
    def more(self) -> int:
        """Events that matter here beside those of names: a file becomes a command by its bits."""
        shadows = any(below.reason == SHADOWS for below in self.node.below.values())
        return inotify.IN_ATTRIB if shadows else 0

    def counts(self, name: str, node: Node) -> bool:
        """Whether what stands under the watched name `name` is of the kind that is taken away."""
        return node.reason != SHADOWS or is_command(self.fd, name)

    def inside(self, fd: int, name: str, node: Node) -> "Spot":
        """A folder in this one, not yet in `below`; the fd becomes its."""
        relative = f"{self.relative}/{name}" if self.relative else name
        return Spot(fd, f"{self.path}/{name}", relative, node, self.stood)


def top_of(place: Place) -> Spot:
    """The folder of a place, opened now. Raises OSError."""
    fd = files.openat2(
        -1, place.folder, files.FOLDER, files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS
    )
    names = tree(place.names)
    return Spot(fd, place.folder, "", names, Stood(fd, names, place.present))


class Swept(NamedTuple):
    """What was found under a protected name. `path` where it stood; `when` in ns since the epoch; `taken`
    what became of it.

    `taken.how` may also be "delivered": a repository made inside that was harmless at the end. `digest` is ""
    until `finish`; `complete` says whether it covers all. `times`: for the last record of a run that had too
    many, how many more there were.
    """

    path: str
    reason: str
    when: int
    taken: Taken
    digest: str = ""
    complete: bool = False
    times: int = 1


def swept(path: str, reason: str, taken: Taken, times: int = 1) -> Swept:
    """A record of something taken away now."""
    return Swept(path, reason, time.time_ns(), taken, times=times)


class Wrong(NamedTuple):
    """A name in a watched folder that may not stay, which no row of the table names."""

    name: str
    reason: str


def of_git(spot: Spot, name: str, since_ns: int, names: Callable[[Spot], list[str]]) -> Wrong | None:
    """What the coming of `name` in the folder of a place makes of git there. `since_ns`: when the run began;
    `names`: lists a folder.
    """
    # Without HEAD the workspace is no git dir, and git does not obey a `config` in it.
    may_make_one = protected.canonical(name) in freshgit.MAKE_A_GIT_DIR and ".git" in spot.node.below
    if may_make_one and "HEAD" not in spot.stood and freshgit.is_git_dir(names(spot)):
        return Wrong("HEAD", "makes the workspace itself a git dir")
    # At the end all of a git dir is looked through; a person may commit before.
    reason = _of_kind(spot.fd, name, since_ns)
    return Wrong(name, reason) if reason and freshgit.is_git_dir(names(spot)) else None


def _of_kind(folder: int, name: str, since_ns: int) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return ""
    kind = files.kind(found.st_mode)
    if kind not in ("symlink", "special") or found.st_ctime_ns < since_ns:
        return ""
    if kind == "special":
        return PIPE
    return "" if is_head(folder, name) else LINK


LINK: Final = "a link among git's own files, through which git writes and reads"
PIPE: Final = "git waits for it for ever"
_HEAD: Final = "refs/"


def is_head(folder: int, name: str) -> bool:
    """Whether it is HEAD as a link to a branch, as it was in old repositories."""
    try:
        target = os.readlink(name, dir_fd=folder) if name == "HEAD" else ""
    except OSError:
        return False
    return target.startswith(_HEAD) and ".." not in target.split("/")


def label(name: str) -> str:
    """A name in characters that no listing, shell or file system takes amiss, and not too long."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name[:80]
    )


def delivered(top: Spot) -> list[Swept]:
    """At the end: the git dirs made in a folder that stay, and whether git would run nothing in them."""
    found: list[Swept] = []
    for spot in top.below.values():
        if spot.repository is spot:
            reason, taken = "made inside, runs nothing", Taken("folder", "delivered", "")
            if wrong := freshgit.offences(spot.fd):
                reason, taken = wrong[0][1], Taken("folder", "stuck", f"it still has {wrong[0][0] or '.'}")
            found.append(swept(spot.path, reason, taken))
    return found
