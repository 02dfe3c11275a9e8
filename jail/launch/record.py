"""What goes into the ledger of a run, and the sweep that feeds it.

Rule: the first entry is written before anything is built, the second before anything is executed; an entry
that cannot be written ends the run (JailError from the ledger), since what is not recorded must not go on.
"""

import os
import select
import sys
import time

from jail import __version__
from jail.errors import say
from jail.kernel import files, trees
from jail.launch import changes, probes, sweep, watchlist
from jail.launch.outcome import Outcome
from jail.ledger.place import Session
from jail.ledger.writer import Ledger
from jail.light import Final, suppress
from jail.plan import text
from jail.plan.steps import Plan
from jail.policy.value import Policy

QUARANTINE: Final = "swept"
"""Folder of the session that holds what was moved out of the workspace."""
MESSAGES: Final = 200
"""Most messages that wait; the ledger has them all."""
LAST_WORDS_MS: Final = 500
"""How long the end waits for a reader of messages, for each of them."""
TIME_STAMP_SLACK: Final = 20_000_000
"""Nanoseconds by which a file's change time may lag behind the clock: it is as coarse as the kernel's tick.
"""


class Record:
    """The ledger of one run, and the watch over protected paths that did not exist at launch."""

    def __init__(
        self, plan: Plan, policy: Policy, watched: tuple[watchlist.Place, ...], session: Session
    ) -> None:
        self._plan = plan
        self._watched = watched
        self._policy = policy
        self._session = session
        self._started = time.time_ns() - TIME_STAMP_SLACK
        self._clock = time.monotonic()
        self._watch: sweep.Watch | None = None
        self._restored: dict[str, str] = {}
        self._messages: list[str] = []
        self._at_once = True
        self.swept = 0
        self.ledger = Ledger.create(session.folder, session.id)

    def start(self) -> None:
        """The first entry: the plan as `jail plan` prints it, and everything that it was made from."""
        kernel = os.uname()
        self.ledger.append(
            "start",
            plan="\n".join(text.lines(self._plan, self._policy.accept)),
            policy=self._policy.name,
            policy_digest=self._policy.digest,
            policy_sources=[list(source) for source in self._policy.sources],
            versions={
                "jail": __version__,
                "python": ".".join(map(str, sys.version_info[:3])),
                "kernel": kernel.release,
                "machine": kernel.machine,
            },
            losses=[loss.name for loss in self._plan.losses],
            command=list(self._plan.command),
            workspace=self._plan.workspace,
            pid=os.getpid(),
        )
        self._watch = sweep.Watch(self._watched, self._quarantine())
        self._watch.also(
            os.path.dirname(step.target)
            for step in self._plan.steps
            if step.verb == "protect" and step.source
        )

    def _quarantine(self) -> int:
        folder = f"{self._session.folder}/{QUARANTINE}"
        os.mkdir(folder, 0o700)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)

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
        self._restored[path] = after
        self.ledger.append(
            "restored", path=path, digest_before=before, digest_after=after, window_s=round(window, 6)
        )

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

    def take_away(self) -> bool:
        """Move away what appeared under a protected name; its digest follows at the end, when nobody can
        write to it any more. True when names came or went: protected mounts should be looked at.
        """
        if self._watch is None:
            return False
        for item in self._watch.handle():
            self._write_swept(item)
            self.swept += 1
            self._tell(f"{item.path}: made inside, and protected ({item.reason}): {self._fate(item)}")
        stirred, self._watch.stirred = self._watch.stirred, False
        return stirred

    def _write_swept(self, item: sweep.Swept) -> None:
        if item.taken.how == "delivered":
            self.ledger.append("note", text=f"{item.path}: {item.reason}; it stays")
            return
        moved = item.taken.how in ("moved", "copied")
        self.ledger.append(
            "swept",
            path=item.path,
            kind=item.taken.kind,
            digest=item.digest or None,
            moved_to=f"{QUARANTINE}/{item.taken.kept}" if moved else None,
            why_not=None if moved else f"{item.taken.how} {item.taken.kept}".rstrip(),
        )

    def _fate(self, item: sweep.Swept) -> str:
        if item.taken.how in ("moved", "copied"):
            return f"{item.taken.how} to {self._session.folder}/{QUARANTINE}/{item.taken.kept}"
        return f"{item.taken.how} {item.taken.kept}".rstrip()

    def stop_watching(self) -> None:
        """The command has ended: `finish` will look at everything."""
        if self._watch is not None:
            self._watch.stop()

    def clear(self) -> None:
        """The run failed, perhaps because nothing can be recorded any more: what was made is still moved."""
        if self._watch is not None:
            with suppress(OSError):
                self._watch.finish()

    def finish(self) -> None:
        """Everything inside is dead: the last look, and the files that the host may run later."""
        if self._watch is None:
            return
        for item in self._watch.finish():
            self._write_swept(item)
        self._compare_restored()
        root = files.open_path(self._plan.workspace)
        try:
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
        finally:
            os.close(root)
        try:
            for changed in changes.auto_exec_changes(readable, self._started):
                self.ledger.append(
                    "changed", path=changed.path, kind=changed.reason, digest=changed.digest or None
                )
        finally:
            os.close(readable)

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
        self._at_once = False

    def say(self) -> None:
        """Print what waited; the terminal is the caller's again."""
        self._at_once = True
        self._print(LAST_WORDS_MS)

    def _tell(self, message: str) -> None:
        if len(self._messages) < MESSAGES:
            self._messages.append(message)
        if self._at_once:
            self._print(0)

    def _print(self, patience: int) -> None:
        """As many of the waiting messages as can be written without blocking: a reader that does not read
        must not hold up the sweep.
        """
        poller = select.poll()
        with suppress(OSError, ValueError, AttributeError):
            poller.register(sys.stderr.fileno(), select.POLLOUT)
            while self._messages and poller.poll(patience):
                say(self._messages.pop(0))

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
