"""The limits that end a run: time, output, what the session keeps, memory as a whole, the host's open files.

Rule: one part of the supervisor's loop: it says when it wants to be asked (`timeout`), and `check` says
whether the run is over. Of the limits of a plan, the kernel keeps those on files in memory, processes and the
open files of each process at each use, so a program meets them as an errno and may go on; those here end the
run:

    time, output, held    SIGTERM to the command, then GRACE seconds, then everything inside is killed
    memory                a control group: the kernel kills all in it at once, the supervisor is outside of it
                          none: jail.launch.watch looks, about once a second, and everything inside is killed
    open files            of the whole host: a look about once a second, where the run can take more than a
                          quarter of them; half are gone, and everything inside is killed

Time is CLOCK_MONOTONIC: a laptop that sleeps does not use up the night (clock_gettime(2)).
"""

import time

from jail.errors import EXIT_SIGNAL_BASE, EXIT_TIMEOUT, JailError
from jail.kernel import cgroups, files
from jail.launch import init, outcome
from jail.launch.outcome import Outcome
from jail.launch.processes import Processes
from jail.launch.streams import Streams
from jail.light import TYPE_CHECKING, Final, NamedTuple, signal
from jail.plan.steps import Plan
from jail.policy.amounts import duration_text, size_text

if TYPE_CHECKING:
    from jail.launch.heldsize import HeldSize
    from jail.launch.record import Record
    from jail.launch.watch import Watch

SETUP_LIMIT: Final = 60.0
"""Seconds until a build that does not end is given up: a file system that hangs must not hang an overnight
loop.
"""
GRACE: Final = 10.0
"""Seconds between SIGTERM and the end of everything, once a limit that ends the run was reached."""
LOOK: Final = 1.0
"""Seconds between two looks at what nothing tells of: memory without a control group, bytes kept."""
MOST_OF_THE_TIME: Final = 20
"""A look comes again only after so many times as long as it took: at most a twentieth of one processor."""
EXIT_LIMIT: Final = EXIT_SIGNAL_BASE + signal.SIGKILL
"""The exit code of a run that a limit other than time has ended, however the command took its end."""


class Hit(NamedTuple):
    """A limit that ends the run: its word in the outcome and the ledger, the limit itself, the exit code."""

    reason: str
    which: str
    detail: str
    code: int = EXIT_LIMIT


class Limits:
    """The limits of one run; `group` is the folder of its control group, "" when there is none; `held` weighs
    what the session holds, None when it holds nothing.
    """

    def __init__(
        self, plan: Plan, group: str, processes: Processes, streams: Streams, held: "HeldSize | None" = None
    ) -> None:
        self._plan = plan
        self._values = dict(plan.limits)
        self._group = group
        self._processes = processes
        self._streams = streams
        self._running = False
        self._deadline = time.monotonic() + SETUP_LIMIT
        self._next_look = 0.0
        self._watch: Watch | None = None
        self._held = held
        self._before = ""
        self._crowded = False
        self._files = FileTable(self._values["processes"] * self._values["open_files"])
        self.hit: Hit | None = None

    def start(self) -> None:
        """The command starts: its time runs from here on."""
        now = time.monotonic()
        self._running = True
        self._deadline = now + self._plan.timeout if self._plan.timeout else 0.0
        # Else nothing is looked at before something was taken away.
        if not self._group or self._files.within_reach:
            self._next_look = now + min(LOOK, self._values["memory_bytes"] / _FASTEST)
        if not self._group:
            self._before = files.content("/proc/meminfo")
        if self._held is not None:
            self._held.start(now)

    @property
    def timeout(self) -> float | None:
        """Seconds until `check` has something to do without an event; None for never."""
        held = self._held.due if self._held is not None and self.hit is None else 0.0
        times = [each for each in (self._deadline, self._next_look, held) if each]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def check(self, record: "Record") -> Outcome | None:
        """The outcome of a run that has to end now, else None; a limit that was reached is recorded, and the
        command told. Raises JailError when the walls took too long.
        """
        now = time.monotonic()
        over = 0 < self._deadline <= now
        if not self._running:
            if over:
                raise JailError(
                    f"the walls were not built within {SETUP_LIMIT:.0f} s",
                    where="launch",
                    hint="look for a file system that does not answer among the folders of `jail plan`",
                )
            return None
        if self.hit is not None and over:
            return Outcome(self.hit.code, self.hit.reason, signal.SIGKILL)
        if over:
            detail = duration_text(self._plan.timeout)
            self._tell(record, Hit(outcome.TIMEOUT, "timeout", detail, EXIT_TIMEOUT))
        elif self._streams.quota.spent:
            self._tell(record, Hit(outcome.OUTPUT, "output", self._most("output_bytes")))
        if self._held is not None and self.hit is None and self._held.due <= now and self._held.over():
            self._tell(record, Hit(outcome.KEPT_BACK, "held", self._most("held_bytes")))
        if self._next_look <= now and (self._next_look or record.keeps):
            return self._look(record, now)
        return None

    def _tell(self, record: "Record", hit: Hit) -> None:
        """The first limit that was met has the command end; it may take GRACE seconds for it."""
        if self.hit is not None:
            return
        self.hit = hit
        record.limit(hit.which, hit.detail)
        self._deadline = time.monotonic() + GRACE
        self._processes.order(init.TO_PROCESS, signal.SIGTERM)

    def _kill(self, record: "Record", hit: Hit) -> Outcome:
        """Without a word to the command: the host cannot wait."""
        self.hit = hit
        record.limit(hit.which, hit.detail)
        return Outcome(hit.code, hit.reason, signal.SIGKILL)

    def _most(self, name: str) -> str:
        return f"more than {size_text(self._values[name])}"

    def _look(self, record: "Record", now: float) -> Outcome | None:
        pause = LOOK
        if record.full:
            self._tell(record, Hit(outcome.KEPT_BACK, "held", self._most("held_bytes")))
        if self._files.short():
            return self._kill(record, Hit(outcome.FILES, "open_files", "half of what the host can open"))
        if not self._group:
            found = self._watching().look()
            self._crowded = self._crowded or found.crowded
            if found.over:
                detail = f"{self._most('memory_bytes')}: {found.said}"
                return self._kill(record, Hit(outcome.MEMORY, "memory", detail))
            pause = min(pause, max(_SHORTEST, found.room / _FASTEST))
        took = time.monotonic() - now
        self._next_look = now + took + max(pause, took * MOST_OF_THE_TIME)
        return None

    def _watching(self) -> "Watch":
        if self._watch is None:
            from jail.launch.watch import Watch  # most runs end before the first look, or have a group

            inside = self._processes
            self._watch = Watch(inside.process_1, inside.private, self._values, self._before)
        return self._watch

    def ended(self, found: Outcome | None, record: "Record | None") -> Outcome | None:
        """How the run ended, once everything inside is dead, in the light of its limits; what only the end
        tells is recorded.
        """
        counts = cgroups.counts(self._group) if self._group else cgroups.Counts(0, 0, 0)
        if self.hit is None and counts.oom_kills and (found is None or found.signal == signal.SIGKILL):
            self.hit = Hit(outcome.MEMORY, "memory", self._most("memory_bytes"))
            if record is not None:
                record.limit(self.hit.which, f"{self.hit.detail}: ended by the kernel")
        notes = []
        if (counts.forks_refused or self._crowded) and self._running:
            most = self._values["processes"]
            notes.append(f"the limit of {most} processes was reached")
            if record is not None:
                said = f"{counts.forks_refused} times" if counts.forks_refused else "seen by a look"
                record.limit("processes", f"{most}, {said}")
        if self.hit is not None:
            found = found or Outcome(0, "", signal.SIGKILL)
            found = found._replace(code=self.hit.code, reason=self.hit.reason)
            if self.hit.code == EXIT_LIMIT:
                notes.insert(0, self.hit.detail)
        if found is None:
            return None
        detail = "; ".join(filter(None, (found.detail, *notes)))
        return found._replace(detail=detail, peak=max(found.peak, counts.peak))


class FileTable:
    """The open files of the whole host, which all share one number (fs.file-max, proc_sys_fs(5)).

    Each process is bounded by RLIMIT_NOFILE, many together by nothing: where they could take more than the
    host has, everybody else would meet ENFILE. `most`: what all of them may open together.
    """

    def __init__(self, most: int) -> None:
        self._before, self._all = _open_files()
        self.within_reach = most > self._all // 4

    def short(self) -> bool:
        """Whether the host has more than half of its files open, and most of them since the start."""
        if not self.within_reach:
            return False
        now, most = _open_files()
        return now > most // 2 and now - self._before > most // 4


def _open_files() -> tuple[int, int]:
    words = files.content("/proc/sys/fs/file-nr").split()
    return (int(words[0]), int(words[2])) if len(words) == 3 else (0, 1 << 62)


_FASTEST: Final = 2 << 30
"""Bytes a second that a program may take, about what a processor can clear: the nearer the limit, the sooner
the next look.
"""
_SHORTEST: Final = 0.02
