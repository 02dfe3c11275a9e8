"""Commands in a held tree that the host took away and made again: what came meanwhile, and is not the host's.

Rule: until the tree is mounted again, a command can write the real one, and through a folder that it opened
then for as long as it runs. What it put into a PATH folder there would run on the host in the place of a
command, so that is moved into the session. What the host makes meanwhile looks the same, but for the links to
the same program of the system, which a virtual environment is made of: those stay. Of the launchers that
ensurepip writes when the tree is back a person is told by name.
"""

import os

from jail.kernel import files
from jail.launch.quarantine import KeptBack, Quarantine, Taken
from jail.launch.watchlist import label
from jail.light import Callable, Final, Iterator, suppress
from jail.plan.held import Held

FOLDER: Final = "swept-restored"
"""Folder of the session for what was moved."""
_SAID: Final = "made while its tree was away, and would run in the place of a command of yours"
_LATER: Final = ("pip", "easy_install", "wheel")
_LEFT: Final = Taken("file", "left", "where it is: it may be yours; look at it before you run it")


def said(path: str, taken: Taken) -> str:
    """What a person is told of it."""
    where = f"{FOLDER}/{taken.kept}" if taken.how in ("moved", "copied") else taken.kept
    return f"{path}: {_SAID}: {taken.how} {where}".rstrip()


class CameBack:
    """Held trees that came back in a run: add to `things`. `since`: when it began, ns since the epoch."""

    def __init__(self, session_folder: str, since: int, kept_back: KeptBack) -> None:
        self._folder = f"{session_folder}/{FOLDER}"
        self._since = since
        self._kept_back = kept_back
        self._keeper: Quarantine | None = None
        self.things: list[Held] = []

    def take(self, *, last: bool) -> Iterator[tuple[str, Taken]]:
        """Move away what changed in the run and shadows a command: its path, and what became of it. `last`:
        the run is over.
        """
        if not self.things:
            return
        from jail.hold.review import commands  # the host takes few trees away

        if self._keeper is None:
            os.mkdir(self._folder, 0o700)
            self._keeper = Quarantine(os.open(self._folder, files.FOLDER), self._kept_back)
        entries = os.environ.get("PATH", "").split(":")
        path = dict.fromkeys(os.path.realpath(entry) for entry in entries if entry.startswith("/"))
        for folder in dict.fromkeys(folder for thing in self.things for folder in thing.commands):
            shadowed = commands([other for other in path if other != folder])
            with suppress(OSError):
                yield from _taken(folder, self._since, self._keeper, shadowed, last=last)
        if last:
            self._keeper.finish()


def _taken(
    folder: str, since: int, keeper: Quarantine, shadowed: Callable[[str], str], *, last: bool
) -> Iterator[tuple[str, Taken]]:
    fd = files.openat2(-1, folder, files.FOLDER, files.RESOLVE_NO_SYMLINKS)
    try:
        for name in sorted(os.listdir(fd)):
            whole = f"{folder}/{name}"
            try:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # it went away meanwhile; at the end nobody takes it away
            other = shadowed(whole)
            if not other or found.st_ctime_ns < since or files.kind(found.st_mode) == "folder":
                continue
            if _is_the_same(whole, other):
                continue
            may_be_theirs = last and name.startswith(_LATER)
            taken = _LEFT if may_be_theirs else keeper.take(fd, name, label(name))
            if taken is not None:
                yield whole, taken
    finally:
        os.close(fd)


def _is_the_same(path: str, other: str) -> bool:
    """Whether a link leads to the program that it shadows, in another version perhaps."""
    if not os.path.islink(path):
        return False
    folder, name = os.path.split(os.path.realpath(path))
    theirs, _ = os.path.split(os.path.realpath(other))
    return folder == theirs and name.startswith(os.path.basename(path).rstrip("0123456789.-"))
