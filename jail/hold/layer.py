"""The upper layer of an overlay that nobody has mounted, changed so that less of it differs from the host.

Rule: what a later mount would show changes by nothing but the path that was asked for. A path that goes from
the layer lets the host's show, unless a folder above hides all that the host has (it is opaque: somebody
removed it and made it again inside). Such a folder is taken apart first: it stops being opaque, and each name
of the host that it hid gets a whiteout of its own, or the mark goes on to the folder of that name. What the
host has made there since the run began was never hidden on purpose, and shows.

A whiteout is a character device 0:0, which anybody may make (mknod(2), since Linux 5.8); the kernel allows
such changes between mounts where neither index, metacopy, xino nor redirect_dir is in use
(Documentation/filesystems/overlayfs.rst, "Changes to underlying filesystems").
"""

import errno
import os
import stat

from jail.hold import base, marks
from jail.hold.beneath import IN_THE_WAY, Tree, split
from jail.hold.kept import Kept
from jail.kernel import files
from jail.light import Final, Iterable

_NOT_SEEN: Final = IN_THE_WAY | {errno.EACCES}


class Layer:
    """The upper layer of one tree and the host's side of it; `folders`: those that may be looked into, with
    all above them.
    """

    def __init__(self, kept: Kept, tree: Tree, held_folder: str, folders: set[str]) -> None:
        self._kept = kept
        self._tree = tree
        self._held = held_folder
        self._folders = folders
        self._base: base.Entries | None = None

    def open(self, *, deleted: bool = False) -> None:
        """Let the host show through every folder of ours, each before those in it. `deleted`: those that are
        deleted as a whole too, so that something in them can come back.
        """
        for path in sorted(self._folders):
            found = self._kept.look(path)
            if found is None:
                continue
            if deleted and marks.is_whiteout(found):
                if not self._deleted_one_by_one(path):
                    continue
            elif not stat.S_ISDIR(found.st_mode):
                continue
            self._show_through(path)

    def _deleted_one_by_one(self, path: str) -> bool:
        """A folder that is deleted becomes one that hides all; `_show_through` does the rest. False where the
        host has no folder there: a whiteout of anything else has nothing in it.
        """
        mode = self._host_mode(path)
        if mode < 0:
            return False
        folder, name = split(path)
        at = self._kept.folder(folder)
        os.unlink(name, dir_fd=at)
        os.mkdir(name, 0o700, dir_fd=at)
        made = self._kept.folder(path)
        marks.hide(made)
        os.chmod(f"/proc/self/fd/{made}", mode)
        return True

    def _show_through(self, path: str) -> None:
        if not marks.is_opaque(self._kept.folder(path)):
            return
        try:
            host = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._tree.folder(path))
        except OSError as error:
            if error.errno in _NOT_SEEN:
                return  # nothing of the host's to show, or a folder that it closed
            raise
        upper = os.dup(self._kept.folder(path))
        try:
            with os.scandir(host) as names:
                for entry in names:
                    self._keep_hidden(upper, path, entry)
            marks.show(upper)
        finally:
            os.close(host)
            os.close(upper)

    def _keep_hidden(self, upper: int, path: str, entry: "os.DirEntry[str]") -> None:
        try:
            found = os.stat(entry.name, dir_fd=upper, follow_symlinks=False)
        except FileNotFoundError:
            if self._was_there(f"{path}/{entry.name}" if path else entry.name):
                marks.make_whiteout(upper, entry.name)
            return
        if stat.S_ISDIR(found.st_mode) and entry.is_dir(follow_symlinks=False):
            below = f"{path}/{entry.name}" if path else entry.name
            marks.hide(self._kept.folder(below))

    def _was_there(self, path: str) -> bool:
        """Whether the host had it when the run began, as far as anybody knows."""
        if self._base is None:
            self._base = base.read(
                self._held, self._tree.thing.name, lambda each: split(each)[0] in self._folders
            )
        return self._base[path].kind != "absent"

    def remove(self, path: str) -> None:
        """Take a path out of the layer: a file, a link, something special, a whiteout. Where the layer has no
        such folder, it has nothing of what was in it.
        """
        found = self._kept.look(path)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            folder, name = split(path)
            os.unlink(name, dir_fd=self._kept.folder(folder))

    def removed(self, path: str) -> bool:
        """Take a folder out of the layer whose name the host has not, or has for something else; False where
        something is in it.
        """
        found = self._kept.look(path)
        if found is None or not stat.S_ISDIR(found.st_mode) or self._host_mode(path) >= 0:
            return True
        folder, name = split(path)
        return files.remove_empty(self._kept.folder(folder), name)

    def prune(self, settled: set[str]) -> None:
        """Remove folders of ours that have nothing of their own any more; those in `settled` get the mode of
        the host's where they stay.
        """
        for path in sorted(self._folders, reverse=True):
            found = self._kept.look(path)
            mode = self._host_mode(path)
            if found is None or not stat.S_ISDIR(found.st_mode) or mode < 0:
                continue
            alike = stat.S_IMODE(found.st_mode) == mode
            if not alike and path not in settled:
                continue
            if path and not marks.is_opaque(self._kept.folder(path)):
                folder, name = split(path)
                if files.remove_empty(self._kept.folder(folder), name):
                    continue
            if not alike:
                os.chmod(f"/proc/self/fd/{self._kept.folder(path)}", mode)

    def _host_mode(self, path: str) -> int:
        """The mode of the host's folder; -1 where it has none."""
        try:
            return stat.S_IMODE(os.fstat(self._tree.folder(path)).st_mode)
        except OSError as error:
            if error.errno in _NOT_SEEN:
                return -1
            raise


def above(paths: Iterable[str]) -> set[str]:
    """Every folder on the way to these paths, and the tree itself."""
    found = {""}
    for path in paths:
        folder = split(path)[0]
        while folder not in found:
            found.add(folder)
            folder = split(folder)[0]
    return found
