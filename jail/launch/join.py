"""The client's side of a joined command: `jail exec`.

Rule: it does for one command what the supervisor does for the first, with the same parts: the caller's fds
stay here, bytes are copied to and from pipes or a pty of the jail, the terminal is raw meanwhile and comes
back on each way out. ^Z stops it as it stops the session itself (suspend.py), but nothing else is frozen. It
holds no leash: when it dies, by SIGKILL too, its connection closes, and the
supervisor ends the command.
"""

import os
import select
import time

from jail.errors import EXIT_JAIL, EXIT_SIGNAL_BASE, JailError, report, say
from jail.launch import init, outcome, reach, relay, wire
from jail.launch.channel import Channel
from jail.launch.signals import DELIVERY, ENDING, FOR_GROUP, FOR_PROCESS, catch, only_wake
from jail.light import TYPE_CHECKING, signal

if TYPE_CHECKING:
    from jail.launch.terminal import Guard, Terminal


def join(folder: str, command: tuple[str, ...], term: str) -> int:
    """Run `command` in the session in `folder`; the exit code. Raises JailError.

    `term`: the caller's TERM. Replaces the process's signal handlers: it is the last thing that `jail exec`
    does.
    """
    stdio = relay.plan_stdio()
    request = wire.join(wire.Join(command, stdio, term))
    return _Client(reach.ask(folder, request), command, stdio).run()


class _Client:
    """One joined command, from the request to its exit code."""

    def __init__(self, link: Channel, command: tuple[str, ...], stdio: relay.Stdio) -> None:
        self._link = link
        self._command = command
        self._stdio = stdio
        self._parts: list[relay.Part] = []
        self._filtered: list[relay.Filtered] = []
        self._allowed: tuple[str, ...] = ()
        self._terminal: Terminal | None = None
        self._guard: Guard | None = None
        self._code: int | None = None
        self._status: outcome.Outcome | None = None
        self._told_to_end = False
        self._started = False
        self._wake, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self) -> int:
        try:
            if relay.TERMINAL in self._stdio:
                from jail.launch import terminal

                self._guard = terminal.guard(self._screen())
            ours = (signal.SIGWINCH, signal.SIGTSTP) if relay.TERMINAL in self._stdio else (signal.SIGWINCH,)
            catch((*FOR_GROUP, signal.SIGCONT, *FOR_PROCESS, *ours), self._wake_write)
            while self._code is None:
                self._turn()
        finally:
            self._end()
        if self._status is not None and self._status.reason == outcome.KILLED:
            number = self._status.signal
            if number != signal.SIGPIPE:
                say(f"killed by signal {number} ({signal.strsignal(number)})")
        return self._code

    def _screen(self) -> int:
        return 1 if self._stdio.stdout == relay.TERMINAL else 2

    def _turn(self) -> None:
        """One turn of the loop: wait, and act."""
        poller = select.poll()
        wanted = {self._link.fileno(): select.POLLIN, self._wake: select.POLLIN}
        waits = []
        for part in self._parts:
            for fd, mask in part.interests():
                wanted[fd] = wanted.get(fd, 0) | mask
            if part.timeout is not None:
                waits.append(part.timeout)
        for fd, mask in wanted.items():
            poller.register(fd, mask)
        for fd, mask in poller.poll(min(waits) * 1000 + 1 if waits else None):
            if fd == self._link.fileno():
                self._hear()
                if self._code is not None:
                    return
            elif fd == self._wake:
                for number in os.read(self._wake, 4096):
                    self._signalled(number)
            else:
                for part in self._parts:
                    part.ready(fd, mask)

    def _hear(self) -> None:
        message = self._link.receive()
        if message is None:
            say("the session ended without a word: its supervisor was killed, or closed this connection")
            self._code = EXIT_JAIL
            return
        tag, values, fds = message
        if tag == "offered":
            names: tuple[str, ...] = values[0]  # type: ignore[assignment]  # from our own supervisor
            self._allowed = values[1]  # type: ignore[assignment]  # as above
            self._connect(dict(zip(names, fds, strict=True)))
        elif tag == "exit":
            self._exited(values)
        elif tag == "stopped":
            self._follow()
        elif tag == "ended":
            say("the session ended, and this command with it")
            self._told_to_end, self._code = True, EXIT_JAIL
        else:
            text, code = values
            raise JailError(
                f"the command could not join: {text}",
                where="the supervisor of the session",
                hint="`jail logs` shows what the session recorded",
                code=int(str(code)),
            )

    def _connect(self, ends: dict[str, int]) -> None:
        """The outer ends are here: connect them with the caller's streams, then let the command start."""
        for number, name in ((1, "stdout"), (2, "stderr")):
            if name in ends:
                shown = relay.outward(ends[name], number, allowed=self._allowed)
                self._parts.append(shown)
                self._filtered.append(shown)
        if "stdin" in ends:
            from jail.launch import feed

            self._parts.append(feed.inward(0, (ends["unread"], ends["stdin"])))
        if "master" in ends:
            from jail.launch import terminal

            keyboard = 0 if self._stdio.stdin == relay.TERMINAL else None
            self._terminal = terminal.Terminal(
                keyboard, self._screen(), ends["master"], self._guard, allowed=self._allowed
            )
            self._parts.append(self._terminal)
            self._filtered.append(self._terminal)
            self._terminal.enter()
        reach.tell(self._link, wire.ready())
        self._started = True

    def _exited(self, values: tuple[object, ...]) -> None:
        if len(values) > 1:
            from jail.launch.unexecuted import not_executed

            error = not_executed(self._command[0], int(str(values[1])), os.environ)
            report(error)
            self._code = error.code
            return
        self._status = outcome.of_status(int(str(values[0])), 0.0, 0)
        self._code = self._status.code

    def _follow(self) -> None:
        """The command was stopped: stop as a job of the caller's shell, and have it go on when we do."""
        from jail.launch.suspend import stop_ourselves

        if self._terminal is not None:
            self._terminal.suspend()
        stop_ourselves(0)
        self._signalled(signal.SIGCONT)

    def _signalled(self, number: int) -> None:
        if number in (signal.SIGWINCH, signal.SIGCONT) and self._terminal is not None:
            self._terminal.resized() if number == signal.SIGWINCH else self._terminal.enter()
        if number == signal.SIGWINCH:
            return
        self._told_to_end = self._told_to_end or number in ENDING
        if not self._started:
            if number in ENDING:  # a supervisor that is stopped would never hear of it
                self._code = EXIT_SIGNAL_BASE + number
            return
        if number == signal.SIGTSTP:
            number = (
                signal.SIGSTOP
            )  # of the command; `stopped` comes back, and then the terminal is put in order
        target = init.TO_PROCESS if number in FOR_PROCESS else init.TO_GROUP
        reach.tell(self._link, wire.signal(wire.Signal(target, number)))

    def _end(self) -> None:
        """The last output, and the terminal as it was."""
        self._link.close()
        signal.set_wakeup_fd(-1)
        if signal.getsignal(signal.SIGTSTP) is only_wake:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)  # ^Z in the pager stops the whole pipeline
        hurry = self._told_to_end or self._code is None
        for number in ENDING:
            if signal.getsignal(number) is only_wake:
                signal.signal(number, signal.SIG_DFL)
        try:
            if not relay.drain(self._parts, time.monotonic() + DELIVERY if hurry else None):
                say("output was lost: nobody read it")
        finally:
            killed = self._status is None or self._status.signal != 0
            if self._terminal is not None:
                self._terminal.restore(reset=killed)
            if self._guard is not None:
                self._guard.release()
                self._guard = None
        if found := relay.dropped(self._filtered):
            from jail.launch.sequences import told  # loaded already: it is what dropped them

            say(told(found, self._allowed))
