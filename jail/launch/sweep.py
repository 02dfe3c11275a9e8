"""Protected names that did not exist at launch: watched, and taken away as soon as they appear.

Rule: an absent protected path gets no stub, so it can be created; what appears under such a name is moved
into the session at once (jail.launch.quarantine), by whomever it was made: the kernel does not say who.
Between creation and move there is a window of about a millisecond in which a program on the host could read
it; that is stated, and the record has the time. Every look goes through folders opened at launch, one
component at a time, never through a symlink. When events were lost, everything is looked at again.

A `.git` folder that appears stays while it is harmless (jail.launch.freshgit). Its `config` may be changed
through a memory map without any event: `finish`, when all that ran inside is dead, has the last word on
everything.
"""

import errno
import os
import time

from jail.kernel import files, inotify
from jail.launch import freshgit
from jail.launch.quarantine import Quarantine, Taken
from jail.launch.watchlist import Node, Place, Spot, Stood, merge, places, target, tree
from jail.light import Final, Iterable, NamedTuple, Sequence
from jail.plan import protected

__all__ = ["Place", "Swept", "Watch", "places"]

READS: Final = 16
"""Reads of the event queue in one `handle`, so that a loop of creations inside does not keep the terminal
waiting.
"""
TRIES: Final = 64
"""How often one name is taken in a row before the other work of the supervisor has its turn; the next event
brings it back.
"""
STUCK: Final = 1000
"""Paths of which it is recorded, once each, that they could not be taken away."""

_APPEARS: Final = inotify.IN_CREATE | inotify.IN_MOVED_TO | inotify.IN_MOVED_FROM
_CHANGES: Final = _APPEARS | inotify.IN_MODIFY | inotify.IN_CLOSE_WRITE
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.EACCES)


class Swept(NamedTuple):
    """What was found under a protected name. `path` where it stood; `when` in ns since the epoch; `taken`
    what became of it.

    `taken.how` may also be "delivered": a repository made inside that was harmless at the end. `digest` is ""
    until `finish`; `complete` says whether it covers all. `times`: for the last record of a run that had too
    many, how many more there were.
    """

    path: str
    reason: str
    when: int
    taken: Taken
    digest: str = ""
    complete: bool = False
    times: int = 1


_GIT: Final = ".git"
_JUDGED: Final = frozenset(
    [part for row in protected.PROTECTED if row.place != "workspace" for part in row.name.split("/")]
)
"""Names in a git dir made inside whose coming or changing is a reason to look; its index and objects are not.
"""
_MAKE_A_GIT_DIR: Final = frozenset(["head", "objects", "refs", "commondir"])


class Watch:
    """Watches absent protected names and takes away what appears under them.

    `quarantine_fd` is a folder of the session, open; it stays the caller's. Made before the command starts,
    and looks once. Raises OSError where a folder cannot be opened or watched. `stirred`: a name came or went
    in a watched folder since this was last set to False; a protected mount may have gone away with it.
    """

    def __init__(self, places: Sequence[Place], quarantine_fd: int) -> None:
        self._quarantine = Quarantine(quarantine_fd)
        self._inotify = inotify.Inotify()
        self._stopped = False
        self.stirred = False
        self._spots: dict[int, Spot] = {}
        self._tops: list[Spot] = []
        self._records: list[Swept] = []
        self._new: list[Swept] = []
        self._stuck: set[str] = set()
        for place in places:
            fd = files.openat2(
                -1, place.folder, _FOLDER, files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS
            )
            names = tree(place.names)
            top = Spot(fd, place.folder, "", names, Stood(fd, names, place.present))
            self._tops.append(top)
            self._watch(top, _APPEARS)
        self._look_everywhere()

    def fileno(self) -> int:
        """For poll(2): readable when `handle` has something to do."""
        return self._inotify.fileno()

    def add(self, folder: str, name: str, reason: str) -> None:
        """Watch one name more: a protected path that was there at launch and is gone now. ValueError where no
        folder above it is watched.
        """
        path = f"{folder.rstrip('/')}/{name}"
        above = [spot for spot in self._tops if path.startswith(f"{spot.path}/")]
        if not above:
            raise ValueError(f"{path} is not watched")
        # From the workspace, a name in its git dir would make that dir one that was made inside.
        top = max(above, key=lambda spot: len(spot.path))
        relative = path[len(top.path) + 1 :]
        top.stood.forget(relative)
        node = top.node.at(relative)
        if node is None or not node.below:  # else it is a way to watched names, and may come back as a folder
            merge(top.node, tree([(relative, reason)]))
        self._look_around(top)

    def also(self, folders: Iterable[str]) -> None:
        """Notice, in `stirred`, when names come and go in these folders too; what is gone is passed by."""
        for folder in dict.fromkeys(folders):
            try:
                fd = files.openat2(-1, folder, _FOLDER, files.RESOLVE_NO_SYMLINKS)
            except OSError as error:
                if error.errno in _GONE:
                    continue
                raise
            try:
                self._inotify.add(fd, _APPEARS | inotify.IN_MASK_ADD)
            finally:
                os.close(fd)

    def handle(self) -> list[Swept]:
        """Look where something happened; returns what was taken away now."""
        for _ in range(READS):
            events = self._inotify.read()
            if not events:
                break
            self.stirred = True
            if any(event.overflow for event in events):
                self._look_everywhere()
                continue
            for watch, name in dict.fromkeys((event.watch, event.name) for event in events):
                spot = self._spots.get(watch)
                if spot is not None and name:
                    self._look(spot, name)
        return self._said()

    def stop(self) -> None:
        """Everything inside has ended or is ending: no event matters any more, `finish` looks at everything.

        The kernel frees watches some ten milliseconds later, and a close before that waits for it.
        """
        self._stopped = True
        for watch in self._spots:
            self._inotify.remove(watch)
        self._spots.clear()

    def finish(self) -> list[Swept]:
        """Once all that ran inside is dead: the last look, then every record of the run with its digest."""
        self._look_everywhere()
        self._said()
        became = self._quarantine.finish()
        records = [self._final(record, became) for record in self._records]
        for top in self._tops:
            repository = next(
                (spot for name, spot in top.below.items() if protected.canonical(name) == _GIT), None
            )
            if repository is not None:
                records.append(
                    _swept(repository.path, "made inside, runs nothing", Taken("folder", "delivered", ""))
                )
        if self._quarantine.counted:
            more = Taken("absent", "counted", "")
            records.append(_swept("", "protected names made again and again", more, self._quarantine.counted))
        return records

    def close(self) -> None:
        """Close all folders and end all watches."""
        # The instance first: the kernel then waits for its readers once, not once for each watch.
        self._inotify.close()
        self._spots.clear()
        for top in self._tops:
            self._forget(top)
        self._tops.clear()

    def _said(self) -> list[Swept]:
        new, self._new = self._new, []
        self._records += new
        return new

    def _final(self, record: Swept, became: dict[str, Taken]) -> Swept:
        taken = became.get(record.taken.kept, record.taken) if record.taken.how == "left" else record.taken
        if taken.how not in ("moved", "copied"):
            return record._replace(taken=taken)
        digest = self._quarantine.digest(taken)
        return record._replace(taken=taken, digest=digest.hex, complete=digest.complete)

    def _watch(self, spot: Spot, mask: int) -> None:
        if self._stopped:
            return
        spot.watch = self._inotify.add(spot.fd, mask)
        self._spots[spot.watch] = spot

    def _forget(self, spot: Spot) -> None:
        for below in spot.below.values():
            self._forget(below)
        spot.below.clear()
        if self._spots.get(spot.watch) is spot:
            del self._spots[spot.watch]
            self._inotify.remove(spot.watch)
        os.close(spot.fd)

    def _look_everywhere(self) -> None:
        for top in self._tops:
            self._look_around(top)

    def _look_around(self, spot: Spot) -> None:
        if spot.repository is not None:
            self._judge(spot.repository)
            return
        for name in {*os.listdir(spot.fd), *spot.below}:
            self._look(spot, name)

    def _look(self, spot: Spot, name: str) -> None:
        folded = protected.canonical(name)
        if spot.repository is not None:
            if folded in _JUDGED or spot.relative == "hooks":
                self._judge(spot.repository)
            return
        node = spot.node.below.get(folded)
        if node is None:
            if folded in _MAKE_A_GIT_DIR and _GIT in spot.node.below and not spot.relative:
                self._look_for_a_bare_repository(spot)
            return
        relative = f"{spot.relative}/{name}" if spot.relative else name
        if node.reason:
            if relative in spot.stood or (folded == _GIT and self._enter(spot, name, node)):
                return
            self._sweep(spot.fd, name, f"{spot.path}/{name}", node.reason, node.name)
        elif not self._enter(spot, name, node):
            link = target(spot.fd, name)
            if link and link != spot.stood.as_link(relative):
                reason = "a link where protected names would lie"
                self._sweep(spot.fd, name, f"{spot.path}/{name}", reason, node.name)

    def _enter(self, spot: Spot, name: str, node: Node) -> bool:
        """Watch the folder `name` in `spot`, which may be another one than last time; False when it is no
        folder.
        """
        try:
            fd = files.openat2(spot.fd, name, _FOLDER, files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            fd = -1
        old = spot.below.get(name)
        if old is not None and (fd < 0 or old.identity != files.identity(fd)):
            self._forget(spot.below.pop(name))
        if fd < 0:
            return False
        if name in spot.below:
            os.close(fd)
        else:
            relative = f"{spot.relative}/{name}" if spot.relative else name
            below = Spot(fd, f"{spot.path}/{name}", relative, node, spot.stood)
            below.repository = below if protected.canonical(name) == _GIT else None
            spot.below[name] = below
            self._watch(below, _APPEARS if below.repository is None else _CHANGES)
        self._look_around(spot.below[name])
        return True

    def _judge(self, repository: Spot) -> None:
        """Take out of a git dir made inside what may not stay, and watch its folders."""
        self._watch_parts(repository)
        for _ in range(TRIES):
            offences = freshgit.offences(repository.fd)
            if not offences:
                return
            for path, reason in offences:
                folder, _, name = path.rpartition("/")
                try:
                    fd = files.openat2(
                        repository.fd,
                        folder or ".",
                        _FOLDER,
                        files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS,
                    )
                except OSError:
                    continue
                try:
                    self._sweep(fd, name, f"{repository.path}/{path}", reason, f"git_{path}", tries=1)
                finally:
                    os.close(fd)

    def _watch_parts(self, repository: Spot) -> None:
        for part in freshgit.WATCHED:
            try:
                fd = files.openat2(
                    repository.fd, part, _FOLDER, files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS
                )
            except OSError:
                continue
            old = repository.below.get(part)
            if old is not None and old.identity == files.identity(fd):
                os.close(fd)
                continue
            if old is not None:
                self._forget(repository.below.pop(part))
            spot = Spot(fd, f"{repository.path}/{part}", part, repository.node, repository.stood)
            spot.repository = repository
            repository.below[part] = spot
            self._watch(spot, _APPEARS)

    def _look_for_a_bare_repository(self, spot: Spot) -> None:
        """Without HEAD a folder is no git dir: the workspace itself must not become one (git would obey its
        `config`).
        """
        names = set(os.listdir(spot.fd))
        git_dir = "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)
        if git_dir and "HEAD" not in spot.stood:
            self._sweep(spot.fd, "HEAD", f"{spot.path}/HEAD", "makes the workspace itself a git dir", "HEAD")

    def _sweep(self, folder: int, name: str, path: str, reason: str, label: str, tries: int = TRIES) -> None:
        for _ in range(tries):
            taken = self._quarantine.take(folder, name, _label(label))
            if taken is None:
                return
            if taken.how == "stuck":
                if path not in self._stuck and len(self._stuck) < STUCK:
                    self._stuck.add(path)
                    self._new.append(_swept(path, reason, taken))
                return
            if taken.how != "counted":
                self._new.append(_swept(path, reason, taken))


def _swept(path: str, reason: str, taken: Taken, times: int = 1) -> Swept:
    return Swept(path, reason, time.time_ns(), taken, times=times)


def _label(name: str) -> str:
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in name[:80]
    )
