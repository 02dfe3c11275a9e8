"""The session's side of a held thing: the upper layer of an overlay, a copy of a tree, a copy of a file.

Rule: its names, kinds, links and permission bits are what the command chose. No symlink is followed and no
mount crossed; nothing but regular files is opened for reading. What it closed (chmod 0) is read as
jail.hold.closed does; where something is to be removed, a closed folder gets our bits back, and its own when
all is done, since a mode is something that is listed.
"""

import errno
import os
import stat

from jail.hold import opening
from jail.hold.beneath import IN_THE_WAY, Near, split
from jail.kernel import files
from jail.light import Final, suppress
from jail.plan.held import FILE, Held

RESTORED: Final = 64
"""Closed folders that get their bits back afterwards; each costs an fd meanwhile."""


class Kept(Near):
    """What the session keeps of one thing, opened."""

    def __init__(self, session_folder: str, thing: Held, *, changing: bool) -> None:
        super().__init__(opening.open_top(opening.new_top(session_folder, thing)))
        self.thing = thing
        self._session = session_folder
        self._changing = changing
        self._closed: list[tuple[int, int]] = []

    def place(self, path: str) -> tuple[str, str]:
        """Folder and name of a path of the thing."""
        if not path and self.thing.kind == FILE:
            return "", os.path.basename(self.thing.path)
        folder, _, name = path.rpartition("/")
        return folder, name or "."

    def _open(self, path: str) -> int:
        try:
            fd = super()._open(path)
            # An open folder without its search bit opens nothing in it.
            if not self._changing or os.fstat(fd).st_mode & 0o300 == 0o300:
                return fd
            os.close(fd)
        except PermissionError:
            if not self._changing:
                raise
        return self._regained(path)

    def _regained(self, path: str) -> int:
        here = os.dup(self.root)
        for name in path.split("/"):
            try:
                below = files.openat2(here, name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, files.IN_TREE)
            finally:
                os.close(here)
            here = below
            mode = stat.S_IMODE(os.fstat(here).st_mode)
            if mode & 0o700 != 0o700:
                os.chmod(f"/proc/self/fd/{here}", mode | 0o700)
                if len(self._closed) < RESTORED:
                    self._closed.append((os.dup(here), mode))
        return here

    def look(self, path: str) -> os.stat_result | None:
        """What lies there, a symlink itself; None where nothing does."""
        folder, name = self.place(path)
        try:
            return os.stat(name, dir_fd=self.folder(folder), follow_symlinks=False)
        except OSError as error:
            if error.errno not in IN_THE_WAY:
                raise
            return None  # in place of a folder above is a file, a link, a whiteout

    def is_hidden(self, path: str) -> bool:
        """Whether a file or link of the session is in place of a folder above."""
        while path:
            path, _ = split(path)
            found = self.look(path)
            if found is not None:
                return not stat.S_ISDIR(found.st_mode)
        return False

    def file(self, path: str) -> int:
        """An fd for reading of a regular file. Raises OSError: ESTALE for anything else."""
        folder, name = self.place(path)
        try:
            held = files.openat2(self.folder(folder), name, os.O_PATH | os.O_NOFOLLOW, files.IN_TREE)
            try:
                if not stat.S_ISREG(os.fstat(held).st_mode):
                    raise OSError(errno.ESTALE, "not a regular file any more", name)
                return os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_CLOEXEC)
            finally:
                os.close(held)
        except PermissionError:
            return opening.open_new(self._session, self.thing, path)

    def target(self, path: str) -> bytes:
        """Where a symlink leads. Raises OSError."""
        folder, name = self.place(path)
        try:
            return os.fsencode(os.readlink(name, dir_fd=self.folder(folder)))
        except PermissionError:
            return os.fsencode(opening.link_new(self._session, self.thing, path))

    def close(self) -> None:
        """Close all of it, and give closed folders their bits again."""
        for fd, mode in reversed(self._closed):
            with suppress(OSError):
                os.chmod(f"/proc/self/fd/{fd}", mode)
            os.close(fd)
        self._closed.clear()
        super().close()
