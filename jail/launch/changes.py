"""Files that run by themselves and changed during a run: what a person should look at first.

Rule: found by the kernel's change time, which no program can set back, in the whole workspace, `.git` dirs of
nested repositories included; sorted by path; bounded, and what goes past the bound is counted, never silent.
A file that was moved as part of a folder keeps its change time: its folder is listed then where the table
names the folder, else nothing is.
"""

import os

from jail.kernel import trees, walk
from jail.kernel.digest import sha256_hex
from jail.launch import freshgit
from jail.light import Final, Iterator, NamedTuple
from jail.plan import autoexec
from jail.plan.protected import canonical

ROWS: Final = 2000
"""Rows of one list; a person reads tens, a program thousands."""
ENTRIES: Final = 2_000_000
"""Entries that are looked at."""

_STORES: Final = frozenset(["node_modules"])
"""Folders that a package manager fills with thousands of such files: one row each, with their number."""
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Changed(NamedTuple):
    """One changed thing: `path` in the workspace, `kind` as in jail.kernel.files ("more" for a row that only
    counts), `reason`, `digest` of a regular file's content or a link's target, else "".
    """

    path: str
    kind: str
    reason: str
    digest: str


def auto_exec_changes(workspace_fd: int, since_ns: int, rows: int = ROWS) -> Iterator[Changed]:
    """The files of the table of jail.plan.autoexec, and git dirs' parts that run, whose change time is
    `since_ns` or later.

    `since_ns`: ns since the epoch, taken from the file system of the workspace (time stamps are as coarse as
    a jiffy, so a clock reading of the launch must be taken some 10 ms early).
    """
    listed = 0
    more = 0
    looked = 0
    for changed in _changes(workspace_fd, since_ns):
        looked += 1
        if listed >= rows:
            more += 1
            continue
        listed += 1
        yield changed
    if more:
        yield Changed("", "more", f"{more} more such files changed", "")


def _changes(workspace_fd: int, since_ns: int) -> Iterator[Changed]:
    stores: dict[str, int] = {}
    looked = 0
    for folder in walk.folders(workspace_fd, in_order=True):
        looked += len(folder.entries)
        if looked > ENTRIES:
            yield Changed(folder.path, "more", f"not looked at from here on: more than {ENTRIES} entries", "")
            break
        names = {entry.name for entry in folder.entries}
        git_dir = "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)
        parts = [canonical(part) for part in folder.path.split("/")] if folder.parent is not None else []
        store = next((index for index, part in enumerate(parts) if part in _STORES), -1)
        for entry in folder.entries:
            reason = _reason(entry, parts, git_dir=git_dir)
            if not reason or not _is_new(entry, since_ns):
                continue
            if store >= 0:
                path = "/".join(folder.path.split("/")[: store + 1])
                stores[path] = stores.get(path, 0) + 1
            else:
                yield Changed(folder.join(entry.name), walk.kind_of(entry), reason, _digest(folder.fd, entry))
        if git_dir:
            yield from _of_git_dir(folder, since_ns)
    for path, count in sorted(stores.items()):
        yield Changed(
            path,
            "more",
            f"{count} changed files in it that run by themselves, installed by a package manager",
            "",
        )


def _reason(entry: os.DirEntry[str], parts: list[str], *, git_dir: bool) -> str:
    row = autoexec.by_name(entry.name) or autoexec.by_folders([*parts, canonical(entry.name)])
    if entry.is_dir(follow_symlinks=False):
        named = autoexec.by_folders([*parts, canonical(entry.name), ""])
        row = named if row is None else None
    if row is None or (git_dir and row.pattern.startswith(".git/")):
        return ""
    return "" if row.pattern == ".git/hooks/*" else row.reason


def _of_git_dir(folder: walk.Folder, since_ns: int) -> Iterator[Changed]:
    """Parts of a git dir, whatever its name, that would make git run something and are new."""
    for path, reason in freshgit.offences(folder.fd):
        try:
            found = os.stat(path, dir_fd=folder.fd, follow_symlinks=False)
        except OSError:
            continue
        if found.st_ctime_ns >= since_ns:
            yield Changed(folder.join(path), "file", reason, _content_digest(folder.fd, path))


def _is_new(entry: os.DirEntry[str], since_ns: int) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns
    except OSError:
        return False


def _digest(folder: int, entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        try:
            return sha256_hex(os.fsencode(os.readlink(entry.name, dir_fd=folder)))
        except OSError:
            return ""
    return _content_digest(folder, entry.name) if entry.is_file(follow_symlinks=False) else ""


def _content_digest(folder: int, path: str) -> str:
    try:
        fd = os.open(path, _FILE, dir_fd=folder)
    except OSError:
        return ""
    try:
        return trees.digest_tree(fd).hex
    finally:
        os.close(fd)
