"""Files that run by themselves and changed during a run: what a person should look at first.

Rule: found by the kernel's change time, which no program can set back, in the whole workspace, `.git` dirs of
nested repositories included; sorted by path; bounded, and what goes past the bound is counted, never silent.
A file that was moved as part of a folder keeps its change time: its folder is listed then where the table
names the folder, else nothing is. What is asked of a name depends on its folders only through what each hands
to those in it, and a path is built only for a row, so that a deep tree costs what a flat one costs.
Everything that ran inside is dead by then: folders of ours that it closed are opened again to look into them.
"""

import os

from jail.hold import freshgit
from jail.kernel import files, trees, walk
from jail.kernel.digest import sha256_hex
from jail.light import Final, Iterator, NamedTuple
from jail.plan import autoexec
from jail.plan.protected import canonical

ROWS: Final = 2000
"""Rows of one list; a person reads tens, a program thousands."""
ENTRIES: Final = 2_000_000
"""Entries that are looked at."""
DIGEST_BYTES: Final = 256 << 20
"""Content read for all digests of one list, about a second; a file larger than what is left has no digest.
What is made inside decides on the sizes, and sparse files of terabytes cost it nothing.
"""
PATH_BYTES: Final = 4096 - 256
"""A folder whose path is longer has one row for all that is in it: no program could be given the paths
(PATH_MAX and NAME_MAX, <linux/limits.h>), and what is made inside decides how long they are.
"""

_STORES: Final = frozenset(["node_modules"])
"""Folders that a package manager fills with thousands of such files: one row each, with their number."""
_INSTALLED: Final = "{} changed files in it that run by themselves, installed by a package manager"
_DEEP: Final = "{} changed files in it that run by themselves, deeper than a path can say"
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Changed(NamedTuple):
    """One changed thing: `path` in the workspace, `kind` as in jail.kernel.files ("more" for a row that only
    counts), `reason`, `digest` of a regular file's content or a link's target, else "". `offends`: a part of
    a nested git dir (`path` "" is the workspace) that would make git run something, and should be moved away.
    """

    path: str
    kind: str
    reason: str
    digest: str
    offends: bool = False
    tier: str = ""


class _Found(NamedTuple):
    """A `Changed` without what costs: `name` is relative to `folder`, "" for the folder itself."""

    folder: walk.Folder
    name: str
    kind: str
    reason: str
    offends: bool = False
    tier: str = ""


class _Group(NamedTuple):
    """A folder that has one row for all such files in it; `reason` takes their number."""

    folder: walk.Folder
    reason: str


class _Level(NamedTuple):
    """What a folder hands to those in it: what the table says there, the group that they belong to, and the
    bytes of its path.
    """

    within: autoexec.Within
    group: _Group | None
    length: int


def auto_exec_changes(
    workspace_fd: int, since_ns: int, rows: int = ROWS, where: freshgit.Place | None = None
) -> Iterator[Changed]:
    """The files of the table of jail.plan.autoexec, and git dirs' parts that run, whose change time is
    `since_ns` or later.

    What offends has a bound of its own, `rows` too, so that no number of other rows hides it.
    `where`: the path of the workspace, and the trees that a git dir in it may lead to and back from.
    `since_ns`: ns since the epoch, taken from the file system of the workspace (time stamps are as coarse as
    a jiffy, so a clock reading of the launch must be taken some 10 ms early).
    """
    listed = {True: 0, False: 0}
    more = 0
    left = DIGEST_BYTES
    denied: list[str] = []
    for found in _changes(workspace_fd, since_ns, denied, where):
        if listed[found.offends] >= rows:
            more += 1
            continue
        listed[found.offends] += 1
        path = found.folder.join(found.name) if found.name else found.folder.path
        digest, read = _digest(found, left)
        left -= read
        yield Changed(path, found.kind, found.reason, digest, found.offends, found.tier)
    if denied:
        number = f"{len(denied)} or more" if len(denied) >= walk.DENIED else f"{len(denied)}"
        yield Changed("", "more", f"folders that could not be entered, and were not looked at: {number}", "")
    if more:
        yield Changed("", "more", f"{more} more such files changed", "")


def _changes(
    workspace_fd: int, since_ns: int, denied: list[str], where: freshgit.Place | None
) -> Iterator[_Found]:
    """What changed; at the end `denied` has the first folders that could not be entered."""
    levels: list[_Level] = []
    counts: dict[_Group, int] = {}
    looked = 0
    for folder in walk.folders(workspace_fd, in_order=True, regain=True):
        del levels[folder.depth :]
        level = _level(levels[-1], folder) if levels else _Level(autoexec.TOP, None, 0)
        levels.append(level)
        looked += len(folder.entries)
        if looked > ENTRIES:
            shown = level.group.folder if level.group and level.length > PATH_BYTES else folder
            yield _Found(shown, "", "more", f"not looked at from here on: more than {ENTRIES} entries")
            break
        for found, in_git_dir in _in_folder(folder, level.within, since_ns, where):
            if level.group is None or (in_git_dir and level.length <= PATH_BYTES):
                yield found
            else:
                counts[level.group] = counts.get(level.group, 0) + 1
    denied += folder.denied
    for group, count in counts.items():
        yield _Found(group.folder, "", "more", group.reason.format(count))


def _level(above: _Level, folder: walk.Folder) -> _Level:
    folded = canonical(folder.name)
    length = above.length + len(os.fsencode(folder.name)) + 1
    group = above.group
    if group is None and folded in _STORES:
        group = _Group(folder, _INSTALLED)
    elif group is None and length > PATH_BYTES:
        group = _Group(folder, _DEEP)
    return _Level(autoexec.enter(above.within, folded), group, length)


def _in_folder(
    folder: walk.Folder, within: autoexec.Within, since_ns: int, where: freshgit.Place | None
) -> Iterator[tuple[_Found, bool]]:
    """What is new in one folder, and whether the table has it or a git dir makes it so."""
    names = {entry.name for entry in folder.entries}
    git_dir = freshgit.is_git_dir(names)
    for entry in folder.entries:
        row = _row(entry, within, git_dir=git_dir)
        if row is not None and _is_new(entry, since_ns):
            yield _Found(folder, entry.name, walk.kind_of(entry), row.reason, tier=row.tier), False
    if git_dir:
        for found in _of_git_dir(folder, since_ns, where):
            yield found, True


def _row(entry: os.DirEntry[str], within: autoexec.Within, *, git_dir: bool) -> autoexec.AutoExec | None:
    folded = canonical(entry.name)
    if within.row is None and not autoexec.is_spoken_of(folded):
        return None
    row = autoexec.row_of(within, folded)
    if entry.is_dir(follow_symlinks=False):
        row = autoexec.enter(within, folded).row if row is None else None
    if row is None or (git_dir and row.pattern.startswith(".git/")):
        return None
    return None if row.pattern == ".git/hooks/*" else row


def _of_git_dir(folder: walk.Folder, since_ns: int, where: freshgit.Place | None) -> Iterator[_Found]:
    """Parts of a git dir, whatever its name, that would make git run something and are new."""
    place = where._replace(path=f"{where.path}/{folder.path}".rstrip("/")) if where else None
    for path, reason in freshgit.offences(folder.fd, place):
        try:
            found = os.stat(path or ".", dir_fd=folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError:
            yield _Found(folder, path, "special", reason, offends=True, tier=autoexec.REFUSED)
            continue
        if found.st_ctime_ns >= since_ns:
            yield _Found(folder, path, files.kind(found.st_mode), reason, offends=True, tier=autoexec.REFUSED)


def _is_new(entry: os.DirEntry[str], since_ns: int) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns
    except OSError:
        return False


def _digest(found: _Found, most: int) -> tuple[str, int]:
    """The digest and how much was read for it; "" where there is none, or more than `most` to read."""
    if found.kind == "symlink":
        try:
            return sha256_hex(os.fsencode(os.readlink(found.name, dir_fd=found.folder.fd))), 0
        except OSError:
            return "", 0
    return _content_digest(found.folder.fd, found.name, most) if found.kind == "file" else ("", 0)


def _content_digest(folder: int, path: str, most: int) -> tuple[str, int]:
    try:
        fd = os.open(path, _FILE, dir_fd=folder)
    except OSError:
        return "", 0
    try:
        size = os.fstat(fd).st_size
        return (trees.digest_tree(fd, size + 1).hex, size) if size <= most else ("", 0)
    finally:
        os.close(fd)
