"""The supervisor: relays bytes and signals, keeps the ledger, and says how the run ended.

Rule: one thread, one poll loop. The processes, and who speaks to whom:

    supervisor (host) ── keeper (jail's user and mount namespaces) ── init (process 1) ── command
        └── guard (host), and between init and command the leader (inside): only with a terminal

    build      `failed` from any of them, or `probes` from the command's process: when the ledger has both
               first entries, and only then, the supervisor writes the byte that lets the command's exec
               happen
    while      bytes both ways by relay.Part; signals as orders to init; `stopped` from the leader; `lost` and
               `restored` from the keeper; the sweep by inotify
    end        `exit` from init; the keeper ends; what is left in the pipes is delivered

The death of any of them is the death of all that is inside: keeper and init have parent-death signals, and
the supervisor's end of the orders channel closes with it.
"""

import os
import select
import time

from jail.errors import (
    EXIT_CANNOT_ISOLATE,
    EXIT_JAIL,
    EXIT_SIGNAL_BASE,
    JailError,
    report,
)
from jail.launch import init, joins, keeper, outcome
from jail.launch.limits import Limits
from jail.launch.outcome import Outcome
from jail.launch.processes import Processes
from jail.launch.signals import DELIVERY, ENDING, FOR_GROUP, FOR_PROCESS, catch, only_wake
from jail.launch.streams import Streams
from jail.launch.suspend import follow, resume, suspend
from jail.light import TYPE_CHECKING, Callable, Final, signal
from jail.plan.steps import Plan

if TYPE_CHECKING:
    from jail.launch.heldsize import HeldSize
    from jail.launch.record import Record

BLIND: Final = 0.05
"""Seconds between two looks for protected names, once the kernel has no more watches for us."""
FOR_US: Final = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)

_Values = tuple[object, ...]
_Fds = tuple[int, ...]


class Supervisor:
    """One run, from the fork of the keeper to the outcome. `record` is there once the ledger is; `held`: what
    weighs what is held.
    """

    def __init__(
        self, plan: Plan, built_from: keeper.BuiltFrom, group: str, held: "HeldSize | None" = None
    ) -> None:
        self._plan = plan
        self._built_from = built_from
        self._streams = Streams(plan)
        self._processes = Processes()
        self._group = group
        self._limits = Limits(plan, group, self._processes, self._streams, held)
        self.record: Record | None = None
        self._outcome: Outcome | None = None
        self._note = ""
        self._running = False
        self._told_to_end = False
        self._wake, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self, open_record: "Callable[[], Record]") -> Outcome:
        """Build, run, end; leaves nothing inside alive, however it ends.

        `open_record` opens the ledger and writes its first entry; it is called when the build is under way,
        since both take their time, and nothing is executed before it has returned. Raises JailError when the
        walls could not be built, or the ledger not be written.
        """
        try:
            self._streams.start_guard()
            self._processes.start(self._plan, self._built_from, self._streams, self._group)
            self._streams.forked()
            catch((*FOR_GROUP, *FOR_PROCESS, *FOR_US), self._wake_write)
            self.record = open_record()
            self._streams.keep_in(os.path.dirname(self.record.ledger.path), self.record.note)
            self._loop(self.record)
        finally:
            self._end()
        found = self._limits.ended(self._outcome, self.record)
        found = found or Outcome(EXIT_JAIL, outcome.FAILED, 0, "process 1 of the jail was killed")
        lost = self._streams.problem()
        if lost and found.code == 0:
            found = found._replace(code=EXIT_JAIL, reason=outcome.FAILED)
        return found._replace(detail=found.detail or self._note or lost)

    def _loop(self, record: "Record") -> None:
        while not self._over():
            wanted, timeout = self._interests(record)
            poller = select.poll()
            for fd, mask in wanted.items():
                poller.register(fd, mask)
            for fd, mask in poller.poll(timeout):
                if not self._handle(record, fd, mask):
                    return
            if record.blind:
                record.take_away()
            if not self._over():
                self._outcome = self._limits.check(record)

    def _over(self) -> bool:
        return self._outcome is not None

    def _interests(self, record: "Record") -> tuple[dict[int, int], float | None]:
        wanted = {self._processes.control.fileno(): select.POLLIN, self._wake: select.POLLIN}
        if self._running:
            wanted[record.fileno()] = select.POLLIN
        waits = [] if self._limits.timeout is None else [self._limits.timeout]
        for part in self._streams.parts:
            for fd, mask in part.interests():
                wanted[fd] = wanted.get(fd, 0) | mask
            if part.timeout is not None:
                waits.append(part.timeout)
        if record.blind:
            waits.append(BLIND)
        return wanted, max(0.0, min(waits)) * 1000 + 1 if waits else None

    def _handle(self, record: "Record", fd: int, mask: int) -> bool:
        """Act on one event; False when everything inside has ended."""
        if fd == self._processes.control.fileno():
            message = self._processes.control.receive()
            if message is None:
                return False
            tag, values, fds = message
            _HEARD[tag](self, record, values, fds)
        elif fd == self._wake:
            for number in os.read(self._wake, 4096):
                self._signalled(number)
        elif fd == record.fileno():
            if record.take_away():
                self._processes.control.offer("look")
        else:
            for part in self._streams.parts:
                part.ready(fd, mask)
        return True

    def _failed(self, record: "Record", values: _Values, fds: _Fds) -> None:
        at, text, by_the_kernel = values
        if self._running:
            self._outcome = Outcome(EXIT_JAIL, outcome.FAILED, 0, f"{at}: {text}")
            raise JailError(
                f"a wall could not be kept, so the run was ended: {at}",
                where=str(text),
                hint="everything inside is dead; look at what an action on the host did to the workspace",
            )
        code = EXIT_CANNOT_ISOLATE if by_the_kernel else EXIT_JAIL
        self._outcome = Outcome(code, outcome.REFUSED, 0, f"{at}: {text}")
        raise JailError(
            f"the walls could not be built: {at}",
            where=str(text),
            hint="run `jail doctor`: it names what this host lacks and how to mend it",
            code=code,
        )

    def _process_1_started(self, record: "Record", values: _Values, fds: _Fds) -> None:
        self._processes.process_1 = int(str(values[0]))

    def _got_private(self, record: "Record", values: _Values, fds: _Fds) -> None:
        self._processes.private += fds

    def _got_terminal(self, record: "Record", values: _Values, fds: _Fds) -> None:
        self._streams.open_terminal(fds[0])
        record.hold_messages()

    def _probed(self, record: "Record", values: _Values, fds: _Fds) -> None:
        found: tuple[tuple[str, bool, str], ...] = values[0]  # type: ignore[assignment]  # probes.Result, each
        record.probes(list(found))
        open_walls = "; ".join(f"{name} ({met})" for name, held, met in found if not held)
        if open_walls:
            self._outcome = Outcome(EXIT_CANNOT_ISOLATE, outcome.REFUSED, 0, open_walls)
            raise JailError(
                f"a wall does not hold: {open_walls}",
                where="probes before the command's start",
                hint="run `jail doctor`; nothing was executed",
                code=EXIT_CANNOT_ISOLATE,
            )
        record.running()
        self._running = True
        self._limits.start()
        self._streams.enter()
        self._processes.go()
        site = joins.Site(self._plan, self._processes, record)
        self._streams.parts.append(joins.Joins(site, os.path.dirname(record.ledger.path)))

    def _not_executed(self, record: "Record", values: _Values, fds: _Fds) -> None:
        from jail.launch.unexecuted import not_executed

        error = not_executed(self._plan.command[0], int(str(values[0])), os.environ)
        report(error)
        self._note = error.message
        self._outcome = Outcome(error.code, outcome.NOT_EXECUTED, 0, error.message)

    def _exited(self, record: "Record", values: _Values, fds: _Fds) -> None:
        status, cpu, peak = values
        if not self._running:
            raise JailError(
                "the command's process ended before the command was executed",
                where=f"wait status {status}",
                hint="run `jail doctor`; nothing was executed",
            )
        self._outcome = outcome.of_status(int(str(status)), float(str(cpu)), int(str(peak)))

    def _stopped(self, record: "Record", values: _Values, fds: _Fds) -> None:
        follow(self._streams, self._processes)

    def _lost(self, record: "Record", values: _Values, fds: _Fds) -> None:
        path, before = map(str, values)
        record.lost(path, before)

    def _restored(self, record: "Record", values: _Values, fds: _Fds) -> None:
        path, before, after, window = values
        record.restored(str(path), str(before), str(after), float(str(window)))

    def _gone(self, record: "Record", values: _Values, fds: _Fds) -> None:
        path, tree, reason = map(str, values)
        record.gone(path, tree, reason)

    def _signalled(self, number: int) -> None:
        if number == signal.SIGWINCH:
            self._streams.resized()
        elif number in FOR_US:
            if self._running:
                (suspend if number == signal.SIGTSTP else resume)(self._streams, self._processes)
        elif self._running:
            self._told_to_end = self._told_to_end or number in ENDING
            self._processes.order(init.TO_PROCESS if number in FOR_PROCESS else init.TO_GROUP, number)
        elif number in ENDING:
            code = EXIT_SIGNAL_BASE + number
            self._outcome = Outcome(code, outcome.KILLED, number, "before the command started")

    def _end(self) -> None:
        """Nothing inside lives on; then the last output, the last words, and the terminal as it was."""
        found = self._outcome
        if self.record is not None:
            self.record.stop_watching()
        self._processes.end(kill=found is None or found.reason not in (outcome.EXITED, outcome.NOT_EXECUTED))
        self._hear_last_words()
        signal.set_wakeup_fd(-1)
        self._deliver()
        if self.record is not None and (dropped := self._streams.dropped()):
            self.record.escapes(dropped)
        self._streams.restore(killed=found is None or found.signal != 0 or self._limits.hit is not None)
        if self.record is not None:
            self.record.say()

    def _deliver(self) -> None:
        """What is left in the pipes goes to its reader, at his pace, as in any pipeline; a run that was told
        to end waits for a few seconds only. A signal ends the waiting too.
        """
        hurry = self._limits.hit is not None or self._told_to_end or self._outcome is None
        for number in ENDING:
            if signal.getsignal(number) is only_wake:
                signal.signal(number, _enough)
        if signal.getsignal(signal.SIGTSTP) is only_wake:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)  # ^Z in the pager stops the whole pipeline
        try:
            if not self._streams.deliver(time.monotonic() + DELIVERY if hurry else None):
                self._note = self._note or "output was lost: nobody read it"
        except _EnoughError:
            self._note = "output was lost: a signal came while it waited for its reader"
        for number in ENDING:
            if signal.getsignal(number) is _enough:
                signal.signal(number, signal.SIG_DFL)

    def _hear_last_words(self) -> None:
        """What the keeper said while it ended: mounts lost and restored in the last moments belong in the
        ledger.
        """
        while (message := self._processes.control.receive()) is not None:
            tag, values, fds = message
            if tag in ("lost", "restored", "gone") and self.record is not None:
                _HEARD[tag](self, self.record, values, fds)
        self._processes.control.close()


class _EnoughError(Exception):
    """A signal while the last output is delivered: the caller will not wait for it."""


def _enough(number: int, frame: object) -> None:  # noqa: ARG001 - as signal(7) has handlers
    raise _EnoughError


_HEARD: Final = {
    "failed": Supervisor._failed,
    "init": Supervisor._process_1_started,
    "private": Supervisor._got_private,
    "terminal": Supervisor._got_terminal,
    "probes": Supervisor._probed,
    "not-executed": Supervisor._not_executed,
    "exit": Supervisor._exited,
    "stopped": Supervisor._stopped,
    "lost": Supervisor._lost,
    "restored": Supervisor._restored,
    "gone": Supervisor._gone,
}
"""Every message that the supervisor understands; any other is a defect and ends the run by KeyError."""
