"""Real held trees for tests: a program runs over an overlay (or in a copy), and what it left is looked at.

The mounts live in a namespace of a child and are gone with it; the upper layer stays.
"""

import os
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jail.hold import base, copies, store
from jail.kernel import files, mounts, namespaces, trees
from jail.plan.held import BASE, COPY, OVERLAY, TREE, UPPER, WORK, Held


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder for trees of ten thousand levels, which a disk takes half a minute to remove, and pytest
    cannot.
    """
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(dir=memory))
    parent = os.open(folder.parent, os.O_RDONLY)
    try:
        yield folder
    finally:
        trees.remove_tree(parent, folder.name)
        os.close(parent)


def deepen(folder: Path, levels: int) -> None:
    """Put `levels` folders into one another, and a file into the last."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


class Session:
    """A session that holds one tree, `name` t0."""

    def __init__(self, folder: Path, tree: Path, kind: str) -> None:
        self.folder = folder
        self.tree = tree
        self.thing = Held("t0", kind, str(tree), "a test")
        self.held = folder / store.FOLDER
        # What is in the tree was there before; the coarse clock of a file system is some milliseconds late.
        time.sleep(0.02)
        self.started_ns = time.time_ns()
        (self.held / BASE).mkdir(parents=True)
        self.manifest = store.Manifest(
            "s", str(tree), os.geteuid(), os.getegid(), -1, self.started_ns, (), (self.thing,)
        )
        store.write_manifest(str(self.held), self.manifest)
        self.base_file = base.file_of(str(self.held), "t0")
        inside = self.held / "t0"
        self.inside = inside / (TREE if kind == COPY else UPPER)
        self.inside.mkdir(parents=True)
        if kind == OVERLAY:
            (inside / WORK).mkdir()
            found = tree.stat()
            os.chmod(self.inside, found.st_mode & 0o7777)
            os.utime(self.inside, ns=(found.st_atime_ns, found.st_mtime_ns))

    def snapshot(self) -> None:
        """Take the base; of a copy, make the copy too."""
        tree = os.open(self.tree, os.O_PATH | os.O_DIRECTORY)
        try:
            if self.thing.kind == COPY:
                target = os.open(self.inside, files.FOLDER)
                copies.make(tree, target, self.base_file, self.started_ns)
                os.close(target)
            else:
                base.snapshot(tree, self.base_file, self.started_ns)
        finally:
            os.close(tree)

    def run(self, act: str | Callable[[], None]) -> None:
        """A shell program or a function, in the held tree as the command sees it."""
        inside(self, act)


def inside(session: Session, act: str | Callable[[], None]) -> None:
    """Run `act` in the merged tree, its working directory; a failure there is an error here."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if session.thing.kind == OVERLAY:
                _mount(session)
            else:
                os.chdir(session.inside)
            if callable(act):
                act()
                code = 0
            else:
                code = subprocess.run(["/bin/sh", "-euc", act], check=False).returncode
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"what was to be done inside failed: {os.waitstatus_to_exitcode(status)}"


def _mount(session: Session) -> None:
    uid, gid = os.geteuid(), os.getegid()
    namespaces.unshare(("user", "mount"))
    mounts.make_all_private()
    namespaces.map_ids(uid, gid)
    layers = (session.tree, session.inside, session.held / "t0" / WORK)
    lower, upper, work = (os.open(path, os.O_PATH) for path in layers)
    mounts.attach(mounts.overlay(lower, upper, work), lower, "the tree")
    os.chdir(session.tree)
