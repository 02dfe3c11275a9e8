"""A session that holds one tree, made by hand: what the kernel would leave in an upper layer is laid there,
and the changes are told from both sides.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from jail.hold import base, change, store
from jail.hold.account import Account
from jail.hold.apply import apply, finish
from jail.hold.change import ABSENT, Change, State
from jail.hold.discard import discard
from jail.hold.names import STAGING_PREFIX
from jail.hold.transaction import Applied
from jail.kernel import files
from jail.plan.held import BASE, OVERLAY, TREE, UPPER, Held


def state(path: Path) -> State:
    """What lies at a path, as a list of changes tells it; a whiteout is nothing."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    kind = files.kind(found.st_mode)
    if kind == "special" and found.st_rdev == 0 and stat.S_ISCHR(found.st_mode):
        return ABSENT
    raw = (
        path.read_bytes() if kind == "file" else os.fsencode(os.readlink(path)) if kind == "symlink" else None
    )
    digest = "" if raw is None else hashlib.sha256(raw).hexdigest()
    size = found.st_size if kind == "file" else 0
    return State(kind, stat.S_IMODE(found.st_mode), size, found.st_mtime_ns, digest)


class Holding:
    """`tree`: the host's; `upper`: what the command left; `said`: what the ledger would have."""

    def __init__(self, folder: Path, kind: str = OVERLAY) -> None:
        self.tree = folder / "ws"
        self.session = folder / "session"
        self.thing = Held("t0", kind, str(self.tree), "a test")
        self.held = self.session / store.FOLDER
        self.upper = self.held / "t0" / (UPPER if kind == OVERLAY else TREE)
        self.said: list[tuple[str, str, str]] = []
        self.tree.mkdir()
        self.upper.mkdir(parents=True)
        (self.held / BASE).mkdir()
        (self.session / "lock").touch()
        self.manifest = store.Manifest(
            "s", str(self.tree), os.geteuid(), os.getegid(), -1, 0, (), (self.thing,)
        )

    def begin(self) -> "Holding":
        """What the tree has now is the base."""
        fd = os.open(self.tree, os.O_PATH)
        base.snapshot(fd, base.file_of(str(self.held), "t0"), 1 << 63)
        os.close(fd)
        return self

    def change(self, path: str, what: str = "", source: str = "") -> Change:
        """The change at a path, told from both sides."""
        old, new = state(self.tree / path), state(self.upper / path)
        if source:
            return Change("t0", path, change.RENAMED, state(self.tree / source), new, old, source)
        if not what:
            what = change.ADDED if old == ABSENT else change.DELETED if new == ABSENT else change.MODIFIED
            what = change.TYPE if ABSENT not in (old, new) and old.kind != new.kind else what
            what = change.MODE if old.kind == new.kind == "folder" else what
        return Change("t0", path, what, old, new, old)

    def every(self) -> list[Change]:
        """A change for each path of the upper layer; of what a whiteout or a file of it hides too."""
        found = []
        for path in sorted(self.upper.rglob("*")):
            name = str(path.relative_to(self.upper))
            if state(path).kind != "folder" or not (self.tree / name).is_dir():
                found.append(self.change(name))
            below = self.tree / name
            if state(path).kind != "folder" and below.is_dir() and not below.is_symlink():
                found += [self.change(str(each.relative_to(self.tree))) for each in below.rglob("*")]
        return found

    def whiteout(self, path: str) -> None:
        """As the kernel says that a path was deleted."""
        (self.upper / path).parent.mkdir(parents=True, exist_ok=True)
        os.mknod(self.upper / path, stat.S_IFCHR, 0)

    def opaque(self, path: str) -> None:
        """As it says that a folder was deleted and made again."""
        (self.upper / path).mkdir(parents=True, exist_ok=True)
        os.setxattr(self.upper / path, "user.overlay.opaque", b"y")

    def record(self, kind: str, found: Change) -> None:
        self.said.append((kind, found.path, found.conflict))

    def apply(self, chosen: Sequence[Change] | None = None) -> Applied:
        return apply(
            str(self.session), self.manifest, self.every() if chosen is None else chosen, Account(self.record)
        )

    def finish(self) -> Applied | None:
        return finish(str(self.session), self.manifest, Account(self.record))

    def discard(self, chosen: Sequence[Change]) -> Applied:
        return discard(str(self.session), self.manifest, chosen, self.record)

    def left(self) -> list[str]:
        """What should not be left of an apply: a staging folder, a journal."""
        staged = [name for name in os.listdir(self.tree) if name.startswith(STAGING_PREFIX)]
        return [*staged, *(name for name in os.listdir(self.held) if name == "journal")]


def edited(held: Holding) -> Holding:
    """A tree in which files and folders were changed, deleted, added and put in place of each other."""
    lay(
        held.tree, {"changed": "old", "deleted": "old", "gone/in": "old", "to-file/in": "old", "other/x": "x"}
    )
    held.begin()
    lay(held.upper, {"changed": "new", "new": "new", "to-file": "new", "other/x": "y"})
    held.whiteout("deleted")
    held.whiteout("gone")
    return held


def lay(folder: Path, content: dict[str, str | None]) -> None:
    """Files (text), links (text that begins with →) and folders (None) of a tree."""
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.mkdir(exist_ok=True)
        elif text.startswith("→"):
            path.symlink_to(text[1:])
        else:
            path.write_text(text)


def seen(folder: Path) -> dict[str, str | None]:
    """The same, of what is there."""
    found: dict[str, str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"→{os.readlink(path)}"
        else:
            found[name] = None if path.is_dir() else path.read_text() if path.is_file() else "special"
    return found


def reasons(found: Iterable[Change]) -> dict[str, str]:
    return {each.path: each.conflict for each in found}


def emptied(folder: Path) -> None:
    """Remove what is in a folder."""
    shutil.rmtree(folder)
    folder.mkdir()
