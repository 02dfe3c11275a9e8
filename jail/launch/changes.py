"""Files that run by themselves and changed during a run: what a person should look at first.

Rule: found by the kernel's change time, which no program can set back, in the whole workspace, `.git` dirs of
nested repositories included; sorted by path; bounded, and what goes past the bound is counted, never silent.
A file that was moved as part of a folder keeps its change time: its folder is listed then where the table
names the folder, else nothing is. What is asked of a name depends on its folders only through what each hands
to those in it, and a path is built only for a row, so that a deep tree costs what a flat one costs.
Everything that ran inside is dead by then: folders of ours that it closed are opened again to look into them.
What makes git run something or leads it elsewhere (jail.launch.gitjudged) has no bound: neither their number,
nor that of other files, nor the depth lets one stay.
"""

import os

from jail.hold import freshgit
from jail.kernel import trees, walk
from jail.kernel.digest import sha256_hex
from jail.launch.gitjudged import Ground, Offence
from jail.launch.watchlist import Before
from jail.light import Final, Iterator, NamedTuple
from jail.plan import autoexec
from jail.plan.protected import canonical

ROWS: Final = 2000
"""Rows of one list; a person reads tens, a program thousands."""
ENTRIES: Final = 2_000_000
"""Entries that are looked at for the list; beyond it only what offends is looked for."""
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
_GIT: Final = ".git"
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Changed(NamedTuple):
    """One changed thing: `path` in the workspace, `kind` as in jail.kernel.files ("more" for a row that only
    counts), `reason`, `digest` of a regular file's content or a link's target, else "". `offends`: it would
    make git run something or leads git elsewhere, and should be moved away before the next is asked for: it
    is `name`, relative to the open folder `folder`, at any depth.
    """

    path: str
    kind: str
    reason: str
    digest: str
    offends: bool = False
    tier: str = ""
    folder: int = -1
    name: str = ""


class _Found(NamedTuple):
    """A `Changed` without what costs: `name` is relative to `folder`, "" for the folder itself. `shown`: the
    folder above it that a path can say, where it lies deeper.
    """

    folder: walk.Folder
    name: str
    kind: str
    reason: str
    offends: bool = False
    tier: str = ""
    shown: walk.Folder | None = None

    @property
    def path(self) -> str:
        if self.shown is not None:
            return f"{self.shown.path}/…/{self.name}"
        return self.folder.join(self.name) if self.name else self.folder.path


class _Group(NamedTuple):
    """A folder that has one row for all such files in it; `reason` takes their number."""

    folder: walk.Folder
    reason: str


class _Level(NamedTuple):
    """What a folder hands to those in it: what the table says there, the group that they belong to, and the
    bytes of its path; `deep`: the first folder above that is deeper than a path can say; `scratch`: from when
    on links count in it, -1 where it is not git's own, and whether it `is_git_dir` itself.
    """

    within: autoexec.Within
    group: _Group | None
    length: int
    deep: walk.Folder | None = None
    scratch: int = -1
    is_git_dir: bool = False


def auto_exec_changes(
    workspace_fd: int,
    since_ns: int,
    rows: int = ROWS,
    where: freshgit.Place | None = None,
    before: Before | None = None,
) -> Iterator[Changed]:
    """The files of the table of jail.plan.autoexec, and git dirs' parts that run, whose change time is
    `since_ns` or later.

    What offends comes whatever its number, past `rows` of them without a digest. `where`: the path of the
    workspace, and the trees that a git dir in it may lead to and back from; `before`: what was there at
    launch. `since_ns`: ns since the epoch, taken from the file system of the workspace (time stamps are as
    coarse as a jiffy, so a clock reading of the launch must be taken some 10 ms early).
    """
    listed = {True: 0, False: 0}
    more = 0
    left = DIGEST_BYTES
    denied: list[str] = []
    for found in _changes(workspace_fd, Ground(since_ns, where, before), denied):
        listed[found.offends] += 1
        past = listed[found.offends] > rows
        if past and not found.offends:
            more += 1
            continue
        digest, read = _digest(found, left) if not past else ("", 0)
        left -= read
        row = Changed(found.path, found.kind, found.reason, digest, found.offends, found.tier)
        yield row._replace(folder=found.folder.fd, name=found.name) if found.offends else row
    if denied:
        number = f"{len(denied)} or more" if len(denied) >= walk.DENIED else f"{len(denied)}"
        yield Changed("", "more", f"folders that could not be entered, and were not looked at: {number}", "")
    if more:
        yield Changed("", "more", f"{more} more such files changed", "")


def _changes(workspace_fd: int, ground: Ground, denied: list[str]) -> Iterator[_Found]:
    """What changed; at the end `denied` has the first folders that could not be entered."""
    levels: list[_Level] = []
    counts: dict[_Group, int] = {}
    looked = 0
    for folder in walk.folders(workspace_fd, in_order=True, regain=True):
        del levels[folder.depth :]
        names = {entry.name for entry in folder.entries}
        level = _level(levels[-1] if levels else None, folder, names, ground)
        levels.append(level)
        if not folder.whole and folder.entries:
            yield _Found(folder, "", "more", f"of its names only {len(folder.entries)} were looked at")
        if looked <= ENTRIES < looked + len(folder.entries):
            shown = level.group.folder if level.group and level.length > PATH_BYTES else folder
            yield _Found(shown, "", "more", f"not listed from here on: more than {ENTRIES} entries")
        looked += len(folder.entries)
        for found in _in_folder(folder, level, ground, listed=looked <= ENTRIES):
            if found.offends:
                yield found._replace(shown=level.deep)
            elif level.group is None:
                yield found
            else:
                counts[level.group] = counts.get(level.group, 0) + 1
    denied += folder.denied
    for group, count in counts.items():
        yield _Found(group.folder, "", "more", group.reason.format(count))


def _level(above: _Level | None, folder: walk.Folder, names: set[str], ground: Ground) -> _Level:
    is_git_dir = freshgit.is_git_dir(names)
    if above is None:
        scratch = ground.since(folder) if is_git_dir else -1
        return _Level(autoexec.TOP, None, 0, None, scratch, is_git_dir)
    folded = canonical(folder.name)
    length = above.length + len(os.fsencode(folder.name)) + 1
    group, deep = above.group, above.deep
    if deep is None and length > PATH_BYTES:
        deep = folder
    if group is None and folded in _STORES:
        group = _Group(folder, _INSTALLED)
    elif group is None and deep is not None:
        group = _Group(folder, _DEEP)
    if is_git_dir:
        scratch = ground.since(folder)
    else:
        scratch = ground.scratch(folder, above.scratch, of_git_dir=above.is_git_dir)
        if folded == _GIT:  # no git dir yet: what was laid there now would count from then on
            is_git_dir, scratch = True, ground.since_ns
    return _Level(autoexec.enter(above.within, folded), group, length, deep, scratch, is_git_dir)


def _in_folder(folder: walk.Folder, level: _Level, ground: Ground, *, listed: bool) -> Iterator[_Found]:
    """What is new in one folder, and what a git dir makes of it."""
    for entry in folder.entries:
        folded = canonical(entry.name)
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder:
            wrong = ground.of_entry(folder, entry, folded, level.scratch)
            if wrong is not None:
                yield _offending(folder, wrong)
                continue
        row = _row(folded, level, is_folder=is_folder) if listed else None
        if row is not None and _is_new(entry, ground.since_ns):
            yield _Found(folder, entry.name, walk.kind_of(entry), row.reason, tier=row.tier)
    if level.is_git_dir:
        for wrong in ground.of_git_dir(folder, level.scratch):
            yield _offending(folder, wrong)


def _offending(folder: walk.Folder, found: Offence) -> _Found:
    return _Found(folder, found.name, found.kind, found.reason, offends=True, tier=autoexec.REFUSED)


def _row(folded: str, level: _Level, *, is_folder: bool) -> autoexec.AutoExec | None:
    within = level.within
    if within.row is None and not autoexec.is_spoken_of(folded):
        return None
    row = autoexec.row_of(within, folded)
    if is_folder:
        row = autoexec.enter(within, folded).row if row is None else None
    if row is None or (level.is_git_dir and row.pattern.startswith(".git/")):
        return None
    return None if row.pattern == ".git/hooks/*" else row


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
