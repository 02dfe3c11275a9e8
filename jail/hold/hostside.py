"""The host's side of a held tree, asked for one path after the other.

Rule: beneath the tree's root, through no symlink and no mount, so that what the host's side is called and
what is looked at are one; nothing is changed. Paths are best asked for in their order: the folder of the last
one stays open, and of one that is not there nothing is asked again.
"""

import os
import stat

from jail.hold import digests, opening
from jail.hold.change import ABSENT, State
from jail.kernel import files, walk
from jail.light import Final, Iterator

_NONE: Final = "/"
"""No path of a tree begins so."""
_MOST_KEPT: Final = 8
"""Folders kept open: those above the last one asked for."""


class HostSide:
    """One held tree as the host has it. `strict`: what may not be read is a PermissionError, else it has no
    digest.
    """

    def __init__(self, top: str, *, strict: bool) -> None:
        self._strict = strict
        self._open: list[tuple[str, int]] = []
        self._missing = _NONE
        try:
            self._root = opening.open_top(top)
        except (FileNotFoundError, NotADirectoryError):
            self._root = -1

    def close(self) -> None:
        """Close all that is open."""
        for _, fd in self._open:
            os.close(fd)
        if self._root >= 0:
            os.close(self._root)

    def folder(self, path: str) -> int:
        """An fd of a folder, open until other folders are asked for; -1 where there is none."""
        if self._root < 0 or not path:
            return self._root
        if f"{path}/".startswith(self._missing):
            return -1
        while self._open and not f"{path}/".startswith(f"{self._open[-1][0]}/"):
            os.close(self._open.pop()[1])
        if self._open and self._open[-1][0] == path:
            return self._open[-1][1]
        above, start = self._open[-1] if self._open else ("", self._root)
        below = path[len(above) + 1 :] if above else path
        try:
            fd = opening.open_below(start, below, files.FOLDER)
        except OSError as error:
            if self._strict and isinstance(error, PermissionError):
                raise
            self._missing = f"{path}/"
            return -1
        if len(self._open) == _MOST_KEPT:
            os.close(self._open.pop(0)[1])
        self._open.append((path, fd))
        return fd

    def stat(self, path: str) -> os.stat_result | None:
        """The lstat of a path, None where nothing is; mounts on the way count as nothing."""
        folder, _, name = path.rpartition("/")
        fd = self.folder(folder)
        if fd < 0:
            return None
        try:
            return os.stat(name or ".", dir_fd=fd, follow_symlinks=False)
        except PermissionError:
            if self._strict:
                raise
            return None
        except FileNotFoundError:
            self._missing = f"{path}/"
            return None

    def state(self, path: str, found: os.stat_result | None, content_of: State) -> State:
        """The state of what `stat` found; a file's content is read where `content_of` is one too, in the form
        of its digest where the sizes are equal.
        """
        if found is None:
            return ABSENT
        kind = files.kind(found.st_mode)
        digest = ""
        if kind == "symlink":
            digest = self._target(path)
        elif kind == "file" and content_of.kind == "file":
            digest = self.digest(path, content_of.digest if content_of.size == found.st_size else "")
        size = found.st_size if kind == "file" else 0
        return State(kind, stat.S_IMODE(found.st_mode), size, found.st_mtime_ns, digest)

    def digest(self, path: str, like: str) -> str:
        """The digest of a regular file's content in the form of `like`; "" where it is gone or may not be
        read.
        """
        folder, _, name = path.rpartition("/")
        try:
            fd = os.open(name, files.FILE, dir_fd=self.folder(folder))
        except PermissionError:
            if self._strict:
                raise
            return ""
        except OSError:
            return ""
        try:
            found = os.fstat(fd)
            return digests.of_file(fd, found.st_size, like) if stat.S_ISREG(found.st_mode) else ""
        finally:
            os.close(fd)

    def _target(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        try:
            return digests.of_target(os.readlink(name, dir_fd=self.folder(folder)))
        except OSError:
            return ""

    def names(self, path: str) -> list[str]:
        """The names in a folder; [] where there is none. Raises PermissionError."""
        fd = self.folder(path)
        return os.listdir(fd) if fd >= 0 else []

    def paths(self) -> Iterator[str]:
        """Every path of the tree, a folder before what lies in it; "" first."""
        if self._root < 0:
            return
        yield ""
        for folder in walk.folders(self._root):
            prefix = f"{folder.path}/" if folder.depth else ""
            for dirent in folder.entries:
                yield prefix + dirent.name
