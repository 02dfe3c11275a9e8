"""What happened to the branches, tags and HEADs of git dirs, and to what `git status` passes over.

Rule: a person pushes and checks out by these names, so each that moved is told, with its old and its new
object, wherever it is kept: a ref that was only packed did not move. What a branch carries is not judged. All
of it is hostile: it is parsed by loops that are linear in its length, and what cannot be read is said.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jail.hold.change import ABSENT, DELETED, MODE, SETTINGS, TIME, Change
from jail.hold.ground import Contents
from jail.plan.protected import canonical

OID_CHARACTERS: Final = 12
SHOWN_CHARACTERS: Final = 120
PASSED_OVER: Final = 3
"""Files named that `git status` passes over, then a count."""
_NO_STATUS: Final = "git status may not show all: compare with `jail changes`"
_GONE: Final = "none"
_HEX: Final = frozenset("0123456789abcdef")
_OIDS: Final = (40, 64)
"""Hexadecimal digits of SHA-1 and SHA-256."""


Moved = Mapping[tuple[str, str], tuple[str, ...]]
"""By tree and path of a change, what it moves: a line for each."""


def moved(changes: Iterable[Change], contents: Contents, tops: Mapping[str, str]) -> Moved:
    """What changes move. `tops`: tree → absolute path."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    by_path = {}
    candidates = []
    for change in changes:
        name = change.path.rpartition("/")[2]
        if name in ("HEAD", "packed-refs", "index") or "refs/" in change.path:
            by_path[change.tree, change.path] = change
            if change.source:
                by_path[change.tree, change.source] = _gone(change)
            is_folder = "folder" in (change.new.kind, change.old.kind)
            if change.what not in (SETTINGS, TIME, MODE) and not is_folder:
                candidates.append(change)
    trees = {each.tree for each in candidates}
    told = {tree: _Refs(tree, contents, tops[tree], by_path) for tree in trees}
    for change in candidates:
        lines = tuple(told[change.tree].lines(change))
        if lines:
            found[change.tree, change.path] = lines
    return found


def _gone(change: Change) -> Change:
    """What a rename is to the path that it came from."""
    return change._replace(path=change.source, what=DELETED, new=ABSENT, source="")


class _Refs:
    """The refs of the git dirs in one tree."""

    def __init__(
        self, tree: str, contents: Contents, top: str, changes: Mapping[tuple[str, str], Change]
    ) -> None:
        self._tree, self._contents, self._changes = tree, contents, changes
        self._top = top.rstrip("/")
        self._git_dirs: dict[str, str | None] = {}
        self._packed: dict[tuple[str, bool], dict[str, str]] = {}

    def lines(self, change: Change) -> Iterator[str]:
        """What a change moves."""
        if change.source:
            yield from self.lines(_gone(change))
        folder, _, name = change.path.rpartition("/")
        git_dir = self._git_dir_of(folder, name)
        if git_dir is None:
            return
        ref = change.path[len(git_dir) :].lstrip("/")
        if ref == "index":
            yield from self._passed_over(change)
        elif ref == "packed-refs":
            old, new = self._all_packed(git_dir, new=False), self._all_packed(git_dir, new=True)
            for each in (*old, *(each for each in new if each not in old)):
                if old.get(each) != new.get(each):
                    yield from self._move(git_dir, each, of_packed=True)
        else:
            yield from self._move(git_dir, ref)

    def _git_dir_of(self, folder: str, name: str) -> str | None:
        """The git dir whose ref lies in a folder; None where it is none of a git dir."""
        if name in ("HEAD", "packed-refs", "index") and self._is_git_dir(folder):
            return folder
        if folder not in self._git_dirs:
            parts = folder.split("/")
            tops = ("/".join(parts[:depth]) for depth, part in enumerate(parts) if part == "refs")
            self._git_dirs[folder] = next((top for top in tops if self._is_git_dir(top)), None)
        return self._git_dirs[folder]

    def _is_git_dir(self, folder: str) -> bool:
        if canonical(f"{self._top}/{folder}".rstrip("/").rpartition("/")[2]) == ".git":
            return True
        names = self._contents.names(f"{self._top}/{folder}".rstrip("/"))
        return "head" in names and ("commondir" in names or {"objects", "refs"} <= names)

    def _move(self, git_dir: str, ref: str, *, of_packed: bool = False) -> Iterator[str]:
        path = f"{git_dir}/{ref}".lstrip("/")
        change = self._changes.get((self._tree, path))
        if of_packed and change is not None and change.what != DELETED:
            return  # told by the change of its own file
        old = _value(self._contents.old(f"{self._top}/{path}"))
        if change is None:
            new = old
        else:
            new = f"a {change.new.kind}" if change.new.kind not in ("file", "absent") else ""
            new = new or (
                _value(self._contents.new(f"{self._top}/{path}")) if change.new.kind == "file" else ""
            )
        old = old or self._all_packed(git_dir, new=False).get(ref, _GONE)
        new = new or self._all_packed(git_dir, new=True).get(ref, _GONE)
        if old != new:
            yield f"{ref[:SHOWN_CHARACTERS]} {_short(old)} → {_short(new)}"

    def _all_packed(self, git_dir: str, *, new: bool) -> Mapping[str, str]:
        """The refs in packed-refs (git-pack-refs(1)) by name."""
        found = self._packed.get((git_dir, new))
        if found is None:
            path = f"{git_dir}/packed-refs".lstrip("/")
            change = self._changes.get((self._tree, path))
            content = (
                self._contents.new(f"{self._top}/{path}")
                if new and change is not None
                else self._contents.old(f"{self._top}/{path}")
            )
            found = {}
            for line in (content or b"").decode("utf-8", "surrogateescape").split("\n"):
                oid, space, ref = line.partition(" ")
                if space and _HEX.issuperset(oid):
                    found[ref] = oid
            self._packed[git_dir, new] = found
        return found

    def _passed_over(self, change: Change) -> Iterator[str]:
        now: set[str] | None = set()
        if change.new.kind != "absent":
            now = _flagged(self._contents.new(f"{self._top}/{change.path}"))
        was = _flagged(self._contents.old(f"{self._top}/{change.path}")) or set()
        if now is None:
            yield f"its flags cannot be read: {_NO_STATUS}"
        elif names := sorted(now - was):
            more = f" and {len(names) - PASSED_OVER} more" if len(names) > PASSED_OVER else ""
            told = ", ".join(name[:SHOWN_CHARACTERS] for name in names[:PASSED_OVER])
            yield f"marked as unchanged: {told}{more}: {_NO_STATUS}"


def _value(content: bytes | None) -> str:
    """What a file of a ref says; "" for none."""
    return "" if content is None else content.decode("utf-8", "surrogateescape").strip() or "empty"


def _short(value: str) -> str:
    is_oid = len(value) in _OIDS and _HEX.issuperset(value)
    return value[:OID_CHARACTERS] if is_oid else value[:SHOWN_CHARACTERS]


def _flagged(content: bytes | None) -> set[str] | None:
    """The paths in an index of version 2 or 3 with the bit assume-valid or skip-worktree
    (gitformat-index(5)); None where it cannot be read, of version 4 neither.
    """
    if content is None or content[:8] not in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3"):
        return None
    found = set()
    at = 12
    for _ in range(int.from_bytes(content[8:12], "big")):
        flags = int.from_bytes(content[at + 60 : at + 62], "big")
        extended = int.from_bytes(content[at + 62 : at + 64], "big") if flags & 0x4000 else 0
        start = at + (64 if flags & 0x4000 else 62)
        end = content.find(b"\0", start)
        if end < 0:
            return None
        if flags & 0x8000 or extended & 0x4000:
            found.add(content[start:end].decode("utf-8", "surrogateescape"))
        at += (end - at) // 8 * 8 + 8
    return found
