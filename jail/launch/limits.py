"""The limits that end a run: time, output, what the session keeps, and memory as a whole.

Rule: one part of the supervisor's loop: it says when it wants to be asked (`timeout`), and `check` says
whether the run is over. Of the limits of a plan, the kernel keeps those on files in memory, processes and
open files at each use, so a program meets them as an errno and may go on; those here end the run:

    time, output, held    SIGTERM to the command, then GRACE seconds, then everything inside is killed
    memory                a control group: the kernel kills all in it at once, the supervisor is outside of it
                          none: jail.launch.watch looks, about once a second, and everything inside is killed

Time is CLOCK_MONOTONIC: a laptop that sleeps does not use up the night (clock_gettime(2)).
"""

import time

from jail.errors import EXIT_SIGNAL_BASE, EXIT_TIMEOUT, JailError
from jail.kernel import cgroups
from jail.launch import init, outcome
from jail.launch.outcome import Outcome
from jail.launch.processes import Processes
from jail.launch.streams import Streams
from jail.light import TYPE_CHECKING, Final, NamedTuple, signal
from jail.plan.steps import Plan
from jail.plan.text import size

if TYPE_CHECKING:
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
    """The limits of one run; `group` is the folder of its control group, "" when there is none."""

    def __init__(self, plan: Plan, group: str, processes: Processes, streams: Streams) -> None:
        self._plan = plan
        self._values = dict(plan.limits)
        self._group = group
        self._processes = processes
        self._streams = streams
        self._running = False
        self._deadline = time.monotonic() + SETUP_LIMIT
        self._next_look = 0.0
        self._watch: Watch | None = None
        self._crowded = False
        self.hit: Hit | None = None

    def start(self) -> None:
        """The command starts: its time runs from here on."""
        now = time.monotonic()
        self._running = True
        self._deadline = now + self._plan.timeout if self._plan.timeout else 0.0
        # With a group, nothing is looked at before something was taken away.
        if not self._group:
            self._next_look = now + min(LOOK, self._values["memory_bytes"] / _FASTEST)

    @property
    def timeout(self) -> float | None:
        """Seconds until `check` has something to do without an event; None for never."""
        times = [each for each in (self._deadline, self._next_look) if each]
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
                    hint="a file system that does not answer? look at the folders of `jail plan`",
                )
            return None
        if self.hit is not None:
            return Outcome(self.hit.code, self.hit.reason, signal.SIGKILL) if over else None
        if over:
            detail = f"{self._plan.timeout:g} s"
            return self._tell(record, Hit(outcome.TIMEOUT, "timeout", detail, EXIT_TIMEOUT))
        if self._streams.quota.spent:
            return self._tell(record, Hit(outcome.OUTPUT, "output", self._most("output_bytes")))
        if self._next_look <= now and (self._next_look or record.swept):
            return self._look(record, now)
        return None

    def _tell(self, record: "Record", hit: Hit) -> Outcome | None:
        self.hit = hit
        record.limit(hit.which, hit.detail)
        self._next_look = 0.0
        self._deadline = time.monotonic() + GRACE
        self._processes.order(init.TO_PROCESS, signal.SIGTERM)
        return None

    def _most(self, name: str) -> str:
        return f"more than {size(self._values[name])}"

    def _look(self, record: "Record", now: float) -> Outcome | None:
        pause = LOOK
        if record.full:
            return self._tell(record, Hit(outcome.HELD, "held", self._most("held_bytes")))
        if not self._group and self._processes.process_1:
            if self._watch is None:
                from jail.launch.watch import Watch  # most runs end before the first look, or have a group

                self._watch = Watch(self._processes.process_1, self._processes.private, self._values)
            found = self._watch.look()
            self._crowded = self._crowded or found.crowded
            if found.over:
                self.hit = Hit(outcome.MEMORY, "memory", self._most("memory_bytes"))
                record.limit(self.hit.which, f"{self.hit.detail}: {found.said}")
                return Outcome(self.hit.code, self.hit.reason, signal.SIGKILL)
            pause = min(pause, max(_SHORTEST, found.room / _FASTEST))
        took = time.monotonic() - now
        self._next_look = now + took + max(pause, took * MOST_OF_THE_TIME)
        return None

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
            found = (found or Outcome(0, ""))._replace(code=self.hit.code, reason=self.hit.reason)
            if self.hit.code == EXIT_LIMIT:
                notes.insert(0, self.hit.detail)
        if found is None:
            return None
        detail = "; ".join(filter(None, (found.detail, *notes)))
        return found._replace(detail=detail, peak=max(found.peak, counts.peak))


_FASTEST: Final = 2 << 30
"""Bytes a second that a program may take, about what a processor can clear: the nearer the limit, the sooner
the next look.
"""
_SHORTEST: Final = 0.02
