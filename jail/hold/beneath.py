"""Folders beneath an open one, opened so that nobody can lead us out, and the host's side of a held thing.

Rule: no symlink is followed and no mount is crossed on the way from the root of a held tree to what is
applied there (openat2(2): RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV), however deep it lies: paths
are opened in pieces, so PATH_MAX is no bound. What the host put in the way meanwhile is an OSError here and a
conflict for who asked.
"""

import errno
import os

from jail.errors import JailError
from jail.hold import opening
from jail.kernel import files
from jail.light import Final
from jail.plan.held import Held

_PATH: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW

IN_THE_WAY: Final = frozenset([errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.ENOENT, errno.ESTALE])
"""What openat2(2) says of a folder that is none any more, or not ours to go through."""


def split(path: str) -> tuple[str, str]:
    """The folder of a path in a tree, and the name there."""
    folder, _, name = path.rpartition("/")
    return folder, name


class Near:
    """Folders beneath an open one; the last one asked for stays open, as a sorted list asks for it again."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._path = ""
        self._fd = -1

    def folder(self, path: str) -> int:
        """An O_PATH fd of the folder, ours until the next call. Raises OSError."""
        if not path:
            return self.root
        if path != self._path or self._fd < 0:
            fd = self._open(path)
            self.forget()
            self._path, self._fd = path, fd
        return self._fd

    def _open(self, path: str) -> int:
        return opening.open_below(self.root, path, _PATH)

    def forget(self) -> None:
        """Look again, the next time."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Close all of it, the root too."""
        self.forget()
        os.close(self.root)


class Tree(Near):
    """The host's side of a held thing: of a tree its root, of a file the folder that it lies in.

    `slots`: the folder for what is staged and what is taken away (jail.hold.stage); -1 while there is none.
    """

    def __init__(self, thing: Held) -> None:
        path = opening.host_top(thing)
        try:
            super().__init__(opening.open_top(path))
        except OSError as error:
            raise JailError(
                "the folder of what is held is not there as it was when the run began",
                where=f"{path}: {error.strerror}",
                hint="put it back under that name; what is held stays in the session",
            ) from error
        self.thing = thing
        self.device = os.fstat(self.root).st_dev
        self.slots = -1
        self.staging = ""
        self.kept: list[str] = []
        self._file = opening.name_in(thing, "")

    def place(self, path: str) -> tuple[str, str]:
        """Folder and name of a path of the thing; ("", ".") for the root of a tree."""
        if path:
            return split(path)
        return "", self._file or "."

    def look(self, path: str) -> str:
        """The kind of what the host has there; "" for nothing. Raises OSError."""
        folder, name = self.place(path)
        try:
            found = os.stat(name, dir_fd=self.folder(folder), follow_symlinks=False)
        except OSError as error:
            if error.errno not in IN_THE_WAY:
                raise
            return ""
        return files.kind(found.st_mode)

    def close(self) -> None:
        """Close all of it."""
        if self.slots >= 0:
            os.close(self.slots)
        super().close()
