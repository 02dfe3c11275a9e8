"""Changes and contents made by hand: what the review judges and shows, without a run."""

import hashlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from jail.hold import base, review, store, tiers
from jail.hold.change import ABSENT, ADDED, DELETED, RENAMED, Change, State
from jail.hold.ground import Ground
from jail.hold.review import Review
from jail.hold.store import Manifest
from jail.plan.held import OVERLAY, Held
from jail.plan.protected import canonical
from jail.policy.paths import beneath
from support.ledgers import write

WORKSPACE = "/home/someone/work"


def file(content: bytes | str = b"", mode: int = 0o644, mtime_ns: int = 0) -> State:
    raw = content.encode() if isinstance(content, str) else content
    return State("file", mode, len(raw), mtime_ns, hashlib.sha256(raw).hexdigest())


def link(target: str = "x") -> State:
    return State("symlink", 0o777, 0, 0, hashlib.sha256(target.encode()).hexdigest())


FOLDER = State("folder", 0o755)


def tree(path: str = WORKSPACE, name: str = "t0", commands: Collection[str] = (), deliver: str = "") -> Held:
    return Held(name, OVERLAY, path, "the workspace is held", deliver, tuple(commands))


def change(path: str, what: str = ADDED, **parts: object) -> Change:
    """A change that can be applied: the host is as it was."""
    old = parts.pop("old", ABSENT if what == ADDED else file("old"))
    new = parts.pop("new", ABSENT if what == DELETED else file("new"))
    now = parts.pop("now", old if what != RENAMED else ABSENT)
    return Change(str(parts.pop("tree", "t0")), path, what, old, new, now, **parts)  # type: ignore[arg-type]


class Sides:
    """jail.hold.ground.Contents from two mappings: path in `top` → content, or a link's target as str."""

    def __init__(
        self, old: Mapping[str, bytes | str], new: Mapping[str, bytes | str], top: str = WORKSPACE
    ) -> None:
        self._old, self._new = (
            {f"{top}/{path}".rstrip("/"): value for path, value in side.items()} for side in (old, new)
        )
        self._top = top

    def old(self, path: str) -> bytes | None:
        found = self._old.get(path)
        return found if isinstance(found, bytes) else None

    def new(self, path: str) -> bytes | None:
        found = self._new.get(path)
        return found if isinstance(found, bytes) else None

    def target(self, path: str) -> str:
        found = self._new.get(path)
        return found if isinstance(found, str) else ""

    def targets(self, path: str) -> tuple[str, ...]:
        both = (side.get(path) for side in (self._new, self._old))
        return tuple(found for found in both if isinstance(found, str) and found)

    def kind(self, path: str) -> str:
        found = self._old.get(path)
        if found is None:
            return "folder" if self.had(path) else "absent"
        return "file" if isinstance(found, bytes) else "symlink"

    def had(self, folder: str) -> Collection[str]:
        return _names(self._old, folder)

    def names(self, folder: str) -> frozenset[str]:
        return frozenset(canonical(name) for side in (self._old, self._new) for name in _names(side, folder))

    def holds(self, path: str) -> bool:
        return beneath(path, self._top)


def _names(side: Mapping[str, object], folder: str) -> set[str]:
    start = f"{folder}/"
    return {path[len(start) :].split("/")[0] for path in side if path.startswith(start)}


_Side = Mapping[str, bytes | str]


def met(
    found: Change, old: _Side | None = None, new: _Side | None = None, thing: Held | None = None
) -> tuple[str, str]:
    """Tier and reason of a change, where `git` is a command of another folder of PATH."""
    thing = thing or tree()
    host = {f"{WORKSPACE}/.venv/{path}": "/usr/bin/git" for path in ("bin/git", "bin/Git", "link/bin/git")}
    sides = Sides(old or {}, new or {}, thing.path)
    ground = Ground(thing, WORKSPACE, sides, lambda path: host.get(path, ""))
    after = tiers.judged(found, ground)
    assert after._replace(tier="", reason="", waits=False) == found._replace(tier="", reason="")
    return after.tier, after.reason


def spread(top: Path, files: Mapping[str, bytes | str | None]) -> None:
    """Lay files, links (text) and empty folders (None) beneath a folder."""
    top.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)


class Kept(NamedTuple):
    """A session that holds a workspace: its folder, the workspace, and what the command left."""

    folder: Path
    workspace: Path
    upper: Path
    manifest: Manifest

    def review(self, *changes: Change) -> Review:
        return review.judged(str(self.folder), self.manifest, changes)


def kept(
    folder: Path,
    workspace: Path,
    host: Mapping[str, bytes | str | None] = MappingProxyType({}),
    new: Mapping[str, bytes | str | None] = MappingProxyType({}),
    *,
    things: Sequence[Held] = (),
    path: Sequence[str] = (),
) -> Kept:
    """Make such a session, with `t0` the workspace where no `things` are named."""
    spread(workspace, host)
    upper = folder / "held/t0/upper"
    spread(upper, new)
    (folder / "held/base").mkdir(exist_ok=True)
    held = tuple(things) or (tree(str(workspace)),)
    manifest = Manifest(folder.name, str(workspace), 1000, 1000, -1, 0, tuple(path), held)
    store.write_manifest(str(folder / "held"), manifest)
    return Kept(folder, workspace, upper, manifest)


def held_session(
    state: str,
    workspace: Path,
    host: Mapping[str, bytes | str | None],
    new: Mapping[str, bytes | str | None],
    gone: Sequence[str] = (),
) -> Kept:
    """A session of `state` as a run leaves it: base of `host`, and an upper layer with `new` and whiteouts."""
    spread(workspace, host)
    made = kept(write(state)[0], workspace, {}, new)
    for name in gone:
        os.mknod(made.upper / name, stat.S_IFCHR, 0)
    fd = os.open(workspace, os.O_RDONLY)
    base.snapshot(fd, str(made.folder / "held/base/t0"), 1 << 63)
    os.close(fd)
    return made
