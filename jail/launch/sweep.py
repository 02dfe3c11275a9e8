"""Protected names that did not exist at launch: watched, and taken away as soon as they appear.

Rule: an absent protected path gets no stub, so it can be created; what appears under such a name is moved
into the session at once (jail.launch.quarantine), by whomever it was made: the kernel does not say who.
Between creation and move there is a window of about a millisecond in which a program on the host could read
it; that is stated, and the record has the time. Every look goes through folders opened at launch, one
component at a time, never through a symlink; one that was closed to us gets our permission bits back. When
events were lost, everything is looked at again.

A `.git` folder that appears stays while it is harmless (jail.hold.freshgit). Its `config` may be changed
through a memory map without any event: `finish`, when all that ran inside is dead, has the last word on
everything.
"""

import errno
import os
import sys
import time

from jail.hold import freshgit
from jail.kernel import files, inotify, walk
from jail.launch import watchlist
from jail.launch.held import TIME_STAMP_SLACK
from jail.launch.quarantine import KeptBack, Quarantine, Taken
from jail.launch.watchlist import Node, Place, Spot, Swept, places
from jail.light import Final, Iterable, Sequence
from jail.plan import protected

__all__ = ["Place", "Swept", "Watch", "places"]

READS: Final = 16
"""Reads of the events in one `handle`: a loop of creations inside does not keep the terminal waiting."""
TRIES: Final = 64
"""How often one name is taken in a row before the supervisor's other work; the next event brings it back."""
STUCK: Final = 1000
"""Paths of which it is recorded, once each, that they could not be taken away."""
SPOTS: Final = 256
"""Folders watched beyond those of the launch, each with an open fd; past it the watch is blind: the
spellings of a name have no end."""

_APPEARS: Final = inotify.IN_CREATE | inotify.IN_MOVED_TO | inotify.IN_MOVED_FROM
_CHANGES: Final = _APPEARS | inotify.IN_MODIFY | inotify.IN_CLOSE_WRITE
_NO_FOLDER: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)
_GONE: Final = (*_NO_FOLDER, errno.EACCES)
_GIT: Final = ".git"


class Watch:
    """Watches absent protected names and takes away what appears under them.

    `quarantine_fd` is a folder of the session, open; it stays the caller's. Made before the command starts,
    and looks once. Raises OSError where a folder cannot be opened or watched. `stirred`: a name came or went
    in a watched folder since this was last set to False; a protected mount may have gone away with it.
    `blind`: something made inside is not watched (the kernel refused, or see SPOTS), so that no event may
    tell of it; from then on `handle` looks at everything, and must be called at least every 50 ms.
    `missed`: why `finish` could not look everywhere.
    """

    def __init__(self, places: Sequence[Place], quarantine_fd: int, kept: KeptBack | None = None) -> None:
        self._quarantine = Quarantine(quarantine_fd, kept)
        self._inotify = inotify.Inotify()
        self._started = self._stopped = self.stirred = self.blind = False
        self.missed: OSError | None = None
        self._since = time.time_ns() - TIME_STAMP_SLACK
        self._held = 0
        self._most = sys.maxsize
        self._due: dict[Spot, None] = {}
        self._spots: dict[int, Spot] = {}
        self._tops: list[Spot] = []
        self._records: list[Swept] = []
        self._new: list[Swept] = []
        self._stuck: set[str] = set()
        for place in places:
            top = watchlist.top_of(place)
            self._tops.append(top)
            self._held += 1
            self._watch(top, _APPEARS)
        self._look_everywhere()
        self._started, self._most = True, self._held + SPOTS

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
            watchlist.merge(top.node, watchlist.tree([(relative, reason)]))
        self._look_everywhere()

    def also(self, folders: Iterable[str]) -> None:
        """Notice, in `stirred`, when names come and go in these folders too; what is gone is passed by."""
        for folder in dict.fromkeys(folders):
            try:
                fd = files.openat2(-1, folder, files.FOLDER, files.RESOLVE_NO_SYMLINKS)
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
        lost = self.blind
        for _ in range(READS):
            events = self._inotify.read()
            if not events:
                break
            self.stirred = True
            lost = lost or any(event.overflow for event in events)
            if lost:
                continue
            for watch, name in dict.fromkeys((event.watch, event.name) for event in events):
                if name and (spot := self._spots.get(watch)) is not None:
                    self._look(spot, name)
        if lost or self.blind:
            self._look_everywhere()
        self._judge_due()
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
        records += [item for top in self._tops for item in watchlist.delivered(top)]
        if more := self._quarantine.counted:
            reason, taken = "protected names made again and again", Taken("absent", "counted", "")
            records.append(watchlist.swept("", reason, taken, more))
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
        try:
            try:
                spot.watch = self._inotify.add(spot.fd, mask | spot.more)
            except PermissionError:
                walk.regain_folder(spot.fd)
                spot.watch = self._inotify.add(spot.fd, mask | spot.more)
            self._spots[spot.watch] = spot
        except OSError as error:
            self._could_not(error)

    def _could_not(self, error: OSError) -> None:
        """Before the command starts the error is raised, later the watch is blind, the last look `missed`."""
        if not self._started:
            raise error
        if self._stopped and error.errno != errno.EACCES:  # a folder that is not ours: nobody inside made it
            self.missed = error
        self.blind = True

    def _names(self, spot: Spot) -> list[str]:
        try:
            return os.listdir(spot.fd)
        except OSError as error:
            if error.errno not in _NO_FOLDER:  # ENOENT: it was removed meanwhile
                self._could_not(error)
            return []

    def _forget(self, spot: Spot) -> None:
        for below in spot.below.values():
            self._forget(below)
        spot.below.clear()
        if self._spots.get(spot.watch) is spot:
            del self._spots[spot.watch]
            self._inotify.remove(spot.watch)
        self._due.pop(spot, None)
        self._held -= 1
        os.close(spot.fd)

    def _look_everywhere(self) -> None:
        for top in self._tops:
            self._look_around(top)
        self._judge_due()

    def _look_around(self, spot: Spot) -> None:
        if spot.repository is not None:
            self._due[spot.repository] = None
            return
        for name in {*self._names(spot), *spot.below}:
            self._look(spot, name)

    def _look(self, spot: Spot, name: str) -> None:
        folded = protected.canonical(name)
        if spot.repository is not None:
            if folded in freshgit.JUDGED or spot is spot.repository.below.get("hooks"):
                self._due[spot.repository] = None
            return
        node = spot.node.below.get(folded)
        if node is None:
            wrong = watchlist.of_git(spot, name, self._since, self._names) if not spot.relative else None
            if wrong is not None:
                self._sweep(spot.fd, wrong.name, f"{spot.path}/{wrong.name}", wrong.reason, wrong.name)
            return
        relative = f"{spot.relative}/{name}" if spot.relative else name
        if node.reason:
            stays = relative in spot.stood or not spot.counts(name, node)
            if stays or (folded == _GIT and self._enter(spot, name, node)):
                return
            self._sweep(spot.fd, name, f"{spot.path}/{name}", node.reason, node.name)
        elif not self._enter(spot, name, node):
            link = watchlist.target(spot.fd, name)
            if link and link != spot.stood.as_link(relative):
                reason = "a link where protected names would lie"
                self._sweep(spot.fd, name, f"{spot.path}/{name}", reason, node.name)

    def _enter(self, spot: Spot, name: str, node: Node) -> bool:
        """Watch the folder `name` in `spot`, which may be another one than last time; False when it is no
        folder, or none that can be entered.
        """
        try:
            fd = walk.enter(spot.fd, name)
        except OSError as error:
            # At launch, what cannot be entered is not ours: nobody inside can make anything in it either.
            if error.errno not in (_NO_FOLDER if self._started else _GONE):
                self._could_not(error)
            fd = -1
        old = spot.below.get(name)
        if old is not None and (fd < 0 or old.identity != files.identity(fd)):
            self._forget(spot.below.pop(name))
        if fd < 0:
            return False
        if name in spot.below:
            os.close(fd)
        else:
            below = spot.inside(fd, name, node)
            below.repository = below if protected.canonical(name) == _GIT else None
            spot.below[name] = below
            self._held += 1
            if self._held > self._most:
                self.blind = True
                self._look_around(below)
                self._judge_due()
                self._forget(spot.below.pop(name))
                return True
            self._watch(below, _APPEARS if below.repository is None else _CHANGES)
        self._look_around(spot.below[name])
        return True

    def _judge_due(self) -> None:
        """Once for all events of a `handle`: what is made inside decides how many those are."""
        while self._due:
            repository, _ = self._due.popitem()
            self._judge(repository)

    def _judge(self, repository: Spot) -> None:
        """Take out of a git dir made inside what may not stay, and watch its folders."""
        self._watch_parts(repository)
        for _ in range(TRIES):
            offences = freshgit.offences(repository.fd)
            if not offences:
                return
            for path, reason in offences:
                if not path:
                    self._sweep_whole(repository, reason)
                    return
                folder, _, name = path.rpartition("/")
                try:
                    fd = walk.enter(repository.fd, folder or ".")
                except OSError:
                    continue
                try:
                    self._sweep(fd, name, f"{repository.path}/{path}", reason, f"git_{path}", tries=1)
                finally:
                    os.close(fd)

    def _sweep_whole(self, repository: Spot, reason: str) -> None:
        above, _, name = repository.path.rpartition("/")
        for top in self._tops:
            if top.path == above:
                self._sweep(top.fd, name, repository.path, reason, _GIT, tries=1)

    def _watch_parts(self, repository: Spot) -> None:
        for part in freshgit.WATCHED:
            try:
                fd = walk.enter(repository.fd, part)
            except OSError as error:
                if error.errno not in _GONE:
                    self._could_not(error)
                continue
            old = repository.below.get(part)
            if old is not None and old.identity == files.identity(fd):
                os.close(fd)
                continue
            if old is not None:
                self._forget(repository.below.pop(part))
            spot = repository.inside(fd, part, repository.node)
            spot.repository, repository.below[part] = repository, spot
            self._held += 1
            self._watch(spot, _APPEARS)

    def _sweep(self, folder: int, name: str, path: str, reason: str, named: str, tries: int = TRIES) -> None:
        for _ in range(tries):
            taken = self._quarantine.take(folder, name, watchlist.label(named))
            if taken is None:
                return
            if taken.how == "stuck":
                if path not in self._stuck and len(self._stuck) < STUCK:
                    self._stuck.add(path)
                    self._new.append(watchlist.swept(path, reason, taken))
                return
            if taken.how != "counted":
                self._new.append(watchlist.swept(path, reason, taken))
