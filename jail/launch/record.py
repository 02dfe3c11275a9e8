"""What goes into the ledger of a run, and the sweep that feeds it.

Rule: the first entry is written before anything is built, the second before anything is executed; an entry
that cannot be written ends the run (JailError from the ledger), since what is not recorded must not go on.
"""

import os
import time

from jail.errors import JailError
from jail.hold.freshgit import Place
from jail.kernel import files, trees
from jail.launch import cameback, changes, firstentry, heldsteps, probes, quarantine, sweep, watchlist
from jail.launch.held import TIME_STAMP_SLACK
from jail.launch.messages import Messages
from jail.launch.nested import NESTED, Nested, is_told, mounted_in
from jail.launch.outcome import Outcome
from jail.ledger.place import Session
from jail.ledger.writer import Ledger
from jail.light import Final, suppress
from jail.plan.held import FILE
from jail.plan.steps import Plan
from jail.policy.value import Policy

QUARANTINE: Final = "swept"
"""Folder of the session that holds what was moved out of the workspace."""


class Record:
    """The ledger of one run, and the watch over protected paths that did not exist at launch."""

    def __init__(
        self,
        plan: Plan,
        policy: Policy,
        watched: tuple[watchlist.Place, ...],
        before: watchlist.Before,
        session: Session,
        resumed: str = "",
    ) -> None:
        self._resumed = resumed
        self._plan = plan
        self._watched = watched
        self._policy = policy
        self._before = before
        self._session = session
        self._started = time.time_ns() - TIME_STAMP_SLACK
        self._clock = time.monotonic()
        self._watch: sweep.Watch | None = None
        self._restored: dict[str, str] = {}
        self._messages = Messages()
        self._trees: list[tuple[str, int]] = []
        self._kept_back = quarantine.KeptBack(dict(plan.limits)["held_bytes"])
        self._kept = -1
        self._back = cameback.CameBack(session.folder, self._started, self._kept_back)
        self.swept = 0
        self.self_running = 0
        self.stopped = False
        self.standing: list[str] = []
        self.ledger = Ledger.create(session.folder, session.id)

    def start(self) -> None:
        """The first entry, and the watch."""
        self.ledger.append("start", **firstentry.fields(self._plan, self._policy, self._resumed))
        # Opened now: at the end the command may have closed its folders, or put others in their place.
        self._trees = [
            (step.target, os.open(step.target, files.FOLDER))
            for step in self._plan.steps
            if step.verb == "bind" and "rw" in step.options and os.path.isdir(step.target)
        ]
        self._trees += mounted_in(self._trees)
        self._kept = self._folder(QUARANTINE)
        self._watch = sweep.Watch(self._watched, self._kept, self._kept_back)
        self._watch.also(
            os.path.dirname(step.target)
            for step in self._plan.steps
            if step.verb in ("protect", "held-file", *heldsteps.TREES) and step.source
        )

    def _folder(self, name: str) -> int:
        folder = f"{self._session.folder}/{name}"
        os.mkdir(folder, 0o700)
        return os.open(folder, files.FOLDER)

    @property
    def blind(self) -> bool:
        """The kernel gave no more watches: what is made is found by looking again and again."""
        return self._watch is not None and self._watch.blind

    def fileno(self) -> int:
        """The fd that is readable when something was made where nothing may be; -1: nothing is watched."""
        return -1 if self._watch is None else self._watch.fileno()

    def probes(self, results: list[probes.Result]) -> None:
        """The second entry: what the probes met."""
        self.ledger.append("probes", results={name: [held, met] for name, held, met in results})

    def running(self) -> None:
        """The command is about to be executed."""
        self.ledger.append("running")
        self.take_away()

    def lost(self, path: str, before: str) -> None:
        """A mount is gone: an action on the host took the name under it away."""
        self.ledger.append("lost", path=path, digest_before=before, digest_after=None, window_s=None)
        self._tell(f"{path}: an action on the host removed its protection; it is being restored")

    def restored(self, path: str, before: str, after: str, window: float) -> None:
        """It is back, `window` seconds after it was missed."""
        if things := [thing for thing in self._plan.held if thing.kind != FILE and thing.path == path]:
            self._back.things += things
            # What the host does there is its own; what was made there before it was back may be a command's.
            self._tell(f"{path}: held again; look at what was made there meanwhile before you run any of it")
        else:
            self._restored[path] = after
        self.ledger.append(
            "restored", path=path, digest_before=before, digest_after=after, window_s=round(window, 6)
        )
        self._look_at_back(last=False)

    def gone(self, path: str, tree: str, reason: str) -> None:
        """It stays away: from now on it is an absent protected path, and what appears there is swept."""
        self.ledger.append("note", text=f"{path}: still absent; what is made there is moved away from now on")
        if self._watch is not None:
            # A path that lies in no watched folder (another `write` tree) stays as it is told here.
            with suppress(ValueError):
                self._watch.add(tree, path[len(tree) + 1 :], reason)
            self.take_away()

    def limit(self, which: str, detail: str) -> None:
        """A limit was reached."""
        self.ledger.append("limit", which=which, detail=detail)

    def note(self, text: str) -> None:
        """Something that a reader should know, and that must not end the run where it cannot be written."""
        with suppress(JailError):
            self.ledger.append("note", text=text)

    @property
    def keeps(self) -> bool:
        """Something was taken away, so that `full` may become true."""
        return self.swept > 0 or self._kept_back.refused

    @property
    def full(self) -> bool:
        """More was taken away than the session may keep; asking reads the folder where it lies."""
        return self.keeps and self._kept_back.full(self._kept)

    def escapes(self, dropped: dict[str, int]) -> None:
        """Escape sequences were kept from the terminal: how many of each kind."""
        from jail.launch.sequences import told  # loaded already: it is what dropped them

        text = told(dropped, self._plan.terminal)
        self.ledger.append("note", text=text)
        self._tell(text)

    def take_away(self) -> bool:
        """Move away what appeared under a protected name; its digest follows at the end, when nobody can
        write to it any more. True when names came or went: protected mounts should be looked at.
        """
        if self._watch is None:
            return False
        for item in self._watch.handle():
            self._write_swept(item)
            self.swept += _is_away(item.taken)
            self._tell(f"{item.path}: made inside, and protected ({item.reason}): {self._fate(item)}")
        stirred, self._watch.stirred = self._watch.stirred, False
        return stirred

    def _write_swept(self, item: sweep.Swept) -> None:
        if item.taken.how == "delivered":
            self.ledger.append("note", text=f"{item.path}: {item.reason}; it stays")
            return
        self._append_swept(item.path, item.taken, item.digest, QUARANTINE)

    def _append_swept(self, path: str, taken: quarantine.Taken, digest: str, folder: str) -> None:
        moved = _is_away(taken)
        self.ledger.append(
            "swept",
            path=path,
            kind=taken.kind,
            digest=digest or None,
            moved_to=f"{folder}/{taken.kept}" if moved else None,
            why_not=None if moved else f"{taken.how} {taken.kept}".rstrip(),
        )

    def _fate(self, item: sweep.Swept) -> str:
        if _is_away(item.taken):
            return f"{item.taken.how} to {self._session.folder}/{QUARANTINE}/{item.taken.kept}"
        return f"{item.taken.how} {item.taken.kept}".rstrip()

    def stop_watching(self) -> None:
        """The command has ended: `finish` will look at everything."""
        if self._watch is not None:
            self._watch.stop()

    def finish(self) -> None:
        """Everything inside is dead: the last look, and the files that the host may run later.

        Each part is done whatever became of the others; the first failure is raised afterwards (OSError,
        JailError).
        """
        problem: Exception | None = None
        for part in (self._last_look, self._compare_restored, self._look_at_back, self._list_changes):
            try:
                part()
            except (OSError, JailError) as error:
                problem = problem or error
        if problem is not None:
            raise problem

    def _last_look(self) -> None:
        if self._watch is None:
            return
        for item in self._watch.finish():
            if item.taken.how == "stuck":
                self.standing.append(item.path)
            self._write_swept(item)
        if self._watch.missed is not None:
            raise self._watch.missed

    def _list_changes(self) -> None:
        """Files that run by themselves, new or changed; what makes git run something, or leads it out of what
        is looked at, is moved away too.
        """
        own = tuple(os.path.realpath(folder) for folder in self._before.own)
        nested: Nested | None = None
        for path, tree in self._trees:
            where = Place(path, tuple(self._trees))
            before = self._before._replace(own=own)
            for changed in changes.auto_exec_changes(tree, self._started, where=where, before=before):
                if changed.offends:
                    nested = nested or Nested(self._folder(NESTED), self._kept_back)
                    self._take_nested(nested, path, changed)
                    continue
                self._append_changed(path, changed)
                self.self_running += is_told(changed)
        if nested is not None:
            self._end_nested(nested)

    def _append_changed(self, tree: str, changed: changes.Changed) -> None:
        shown = changed.path if tree == self._plan.workspace else f"{tree}/{changed.path}"
        digest, tier = changed.digest or None, changed.tier or None
        self.ledger.append("changed", path=shown, kind=changed.reason, digest=digest, tier=tier)

    def _take_nested(self, nested: Nested, tree: str, changed: changes.Changed) -> None:
        if nested.rows < changes.ROWS:
            nested.rows += 1
            self._append_changed(tree, changed)
        taken = nested.take(changed)
        if taken is None or taken.how == "counted":
            return
        whole = f"{tree}/{changed.path}"
        if taken.how == "stuck" and len(self.standing) < changes.ROWS:
            self.standing.append(whole)
        self.swept += _is_away(taken)
        self._append_swept(whole, taken, changed.digest, NESTED)
        fate = f"{NESTED}/{taken.kept}" if _is_away(taken) else f"{taken.how} {taken.kept}".rstrip()
        self._tell(f"{whole}: {changed.reason}: {fate}")

    def _end_nested(self, nested: Nested) -> None:
        if removed := nested.finish():
            text = f"{removed} more such files were removed, and not kept"
            self.ledger.append("note", text=text)
            self._tell(text)

    def _look_at_back(self, *, last: bool = True) -> None:
        for path, taken in self._back.take(last=last):
            self._append_swept(path, taken, "", cameback.FOLDER)
            self.swept += _is_away(taken)
            self.standing += [path] if last and taken.how == "stuck" else []
            self._tell(cameback.said(path, taken))

    def _compare_restored(self) -> None:
        """A file opened while its protection was away can be written through that fd later: the last digest
        tells.
        """
        for path, after in self._restored.items():
            now = _digest(path)
            if now != after:
                reason = "changed after its protection came back: by the host, or through an open file"
                self.ledger.append("changed", path=path, kind=reason, digest=now or None)
                self._tell(f"{path}: {reason}")

    def hold_messages(self) -> None:
        """From here on the terminal is the command's: what there is to say waits for `say`."""
        self._messages.hold()

    def say(self) -> None:
        """Print what waited; the terminal is the caller's again."""
        self._messages.say()

    def _tell(self, message: str) -> None:
        self._messages.tell(message)

    def stop(self, grace: float) -> None:
        """Somebody asked for the end, by `jail stop`; `grace` as in wire.Stop."""
        self.stopped = True
        self.ledger.append("stopped", grace_s=grace)

    def held(self, **counts: object) -> None:
        """What the session holds now that all is over."""
        self.ledger.append("held", **counts)

    def tell(self, message: str) -> None:
        """A line for a person, when the terminal is theirs."""
        self._tell(message)

    def end(self, outcome: Outcome) -> None:
        """The last entry; the ledger is closed."""
        self.ledger.append(
            "end",
            exit=outcome.code,
            reason=outcome.reason,
            signal=outcome.signal,
            duration_s=round(time.monotonic() - self._clock, 6),
            cpu_s=round(outcome.cpu, 6),
            peak_bytes=outcome.peak,
        )
        self.ledger.close()


def _is_away(taken: quarantine.Taken) -> bool:
    """Whether it lies in the session now, whole."""
    return taken.how in ("moved", "copied")


def _digest(path: str) -> str:
    try:
        fd = files.openat2(-1, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, files.RESOLVE_NO_SYMLINKS)
    except OSError:
        return ""
    try:
        return trees.digest_tree(fd).hex
    except OSError:
        return ""
    finally:
        os.close(fd)
