"""The caller's terminal, relayed to a pty inside, and its return to a sane state on each way out.

Rule: the caller's terminal never enters the jail (TIOCSTI, CVE-2017-5226; /dev/tty). Inside there is a pty of
its own; here its master is copied to and from the terminal, which is raw meanwhile: ^C and ^Z are bytes that
the line discipline inside turns into signals for the foreground group inside.

The terminal is touched only while our process group is its foreground group. In the background (`jail run …
&`) output goes out, nothing is read and nothing is set, so that SIGTTIN and SIGTTOU stop nobody; as no signal
tells that we came to the front, `timeout` makes the poll loop ask again.

The settings are put back by `Terminal.restore`, and by the guard, a process of its own, when SIGKILL ends the
supervisor.
"""

import errno
import fcntl
import os
import select
import termios
import time

from jail.kernel.files import close_all_but
from jail.launch import tty
from jail.launch.ends import caller_sink, caller_source, inner_end
from jail.launch.quota import Quota
from jail.launch.relay import PAGE, RECHECK, Relay
from jail.light import TYPE_CHECKING, Any, Callable, Final, Iterable, NamedTuple, signal, suppress

if TYPE_CHECKING:
    from jail.launch.answers import Answers
    from jail.launch.escapes import Filter

SETTLED: Final = 0.02
"""Seconds without a byte after which a pty holds no more of what was written: the kernel passes it on later
(tty_flip_buffer_push).
"""
GUARD_WAIT: Final = 2
"""Whole seconds (alarm(2)) that the guard may take to put the terminal back; then it ends all the same."""

_RAW: Final = b"R"
_SANE: Final = b"S"


class Guard(NamedTuple):
    """The process that puts the terminal back when the supervisor is killed.

    `pipe` must be open in the supervisor alone: each child closes it, else the guard waits for the child too.
    """

    pid: int
    pipe: int

    def tell(self, state: bytes) -> None:
        """State of the terminal from now on; the last one before the end of the pipe counts."""
        with suppress(OSError):  # the guard was killed: we alone put the terminal back then
            os.write(self.pipe, state)

    def release(self) -> None:
        """Let the guard go, the terminal being as it should; waits at most GUARD_WAIT seconds for its end."""
        self.tell(_SANE)
        os.close(self.pipe)
        with suppress(OSError):  # ESRCH, ECHILD: the supervisor's own wait saw its end
            handle = os.pidfd_open(self.pid)
            try:
                poller = select.poll()
                poller.register(handle, select.POLLIN)
                poller.poll(GUARD_WAIT * 1000)
                os.waitpid(self.pid, os.WNOHANG)
            finally:
                os.close(handle)


def guard(terminal: int) -> Guard:
    """Start the process that outlives a SIGKILL of ours and then puts `terminal` back as it is now.

    Call before any thread exists and before the terminal is raw. The guard has a session of its own, so that
    a kill of our group does not reach it, holds only the terminal and a pipe, and waits for the pipe's end.
    Raises OSError and termios.error.
    """
    saved = tty.settings(terminal)
    screen = caller_sink(terminal)
    wait_end, pipe = os.pipe2(os.O_CLOEXEC)
    # Until it ignores them, signals wait: SIGHUP comes to the whole group when a session's leader is killed.
    before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            try:
                _stand_guard(screen.fd, wait_end, saved)
            finally:
                os._exit(0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(wait_end)
    if screen.ours:
        os.close(screen.fd)
    return Guard(pid, pipe)


def _stand_guard(terminal: int, pipe: int, saved: list[Any]) -> None:
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGALRM}:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    close_all_but({terminal, pipe})
    state = _SANE
    while told := os.read(pipe, 1):
        state = told
    if state == _RAW:
        signal.alarm(GUARD_WAIT)
        # A shell that noticed our death first has set the terminal for its line editor: that stays.
        if tty.is_raw(terminal):
            tty.apply(terminal, saved, flush=True)
        os.write(terminal, tty.RESET)


class Terminal:
    """The inner pty's master relayed to the caller's terminal; a part of the poll loop (relay.Part).

    `keyboard`: the caller's stdin, or None to relay output only (stdin is no terminal); the terminal then
    stays as it is and ^C reaches the supervisor as SIGINT. `screen`: the caller's stdout, or stderr. `master`
    becomes ours. Make it before the command starts: here the pty gets the terminal's settings (erase key,
    UTF-8, …) and size. Then `enter`. `allowed`: words of the policy; other escape sequences that reach beyond
    the window do not get to the terminal (escapes.py).
    """

    def __init__(
        self,
        keyboard: int | None,
        screen: int,
        master: int,
        watch: Guard | None = None,
        quota: Quota | None = None,
        *,
        allowed: Iterable[str] = (),
    ) -> None:
        self._keyboard, self._screen, self._master, self._watch = keyboard, screen, master, watch
        self._saved = tty.settings(screen if keyboard is None else keyboard)
        self._wanted = self._raw = False
        inner = self._saved.copy()
        if keyboard is None:
            inner[1] &= ~termios.OPOST  # the caller's terminal does it
        termios.tcsetattr(master, termios.TCSANOW, inner)  # of a master: sets its slave (tty_mode_ioctl)
        self._filter, self._answers = _filters(allowed, self._may_pass)
        self._output = Relay(
            inner_end(master), caller_sink(screen), reopens=True, quota=quota, edit=self._filter
        )
        self._input: Relay | None = None
        if keyboard is not None:
            copy = fcntl.fcntl(master, fcntl.F_DUPFD_CLOEXEC, 3)
            self._input = Relay(caller_source(keyboard), inner_end(copy), deliver=False, edit=self._answers)
        self.resized()

    @property
    def closed(self) -> bool:
        """After `finish` all is shown; or the terminal is gone."""
        return self._output.closed

    @property
    def error(self) -> OSError | None:
        """Why the terminal could not be written; EIO, a terminal that hung up, is none."""
        failure = self._output.error
        return None if failure is None or failure.errno == errno.EIO else failure

    @property
    def dropped(self) -> dict[str, int]:
        """How many escape sequences of each kind did not get to the terminal."""
        return self._filter.dropped

    @property
    def timeout(self) -> float | None:
        """RECHECK while the keyboard is wanted and somebody else's, or nobody inside has the pty open, else
        None.
        """
        return RECHECK if self._wanted and not self._raw and not self.closed else self._output.timeout

    def interests(self) -> list[tuple[int, int]]:
        """(fd, poll mask) pairs to wait for now. Notices, too, that we came to the foreground or left it."""
        self._attend()
        wants = self._output.interests()
        if self._input is not None and self._raw:
            wants += self._input.interests()
        return wants

    def ready(self, fd: int, mask: int) -> None:
        """Act on an event of poll(2)."""
        self._output.ready(fd, mask)
        self._note_questions()
        if self._input is not None and self._raw:
            self._input.ready(fd, mask)
        if self._output.closed:
            self.close()

    def enter(self) -> None:
        """Give the keyboard to the inside: raw mode, now or when we come to the foreground. Again after
        SIGCONT.
        """
        self._wanted, self._raw = self._keyboard is not None, False
        self._attend()
        self.resized()

    def suspend(self) -> None:
        """Put the terminal back, since we are about to be stopped. What the command sent before goes out
        first (an editor leaves the alternate screen), at most for OUTPUT_WAIT. Then `enter`, when continued.
        """
        end = time.monotonic() + tty.OUTPUT_WAIT
        while time.monotonic() < end and (wants := self._output.interests()):
            poller = select.poll()
            poller.register(*wants[0])
            wait = SETTLED if wants[0][1] == select.POLLIN else end - time.monotonic()
            found = poller.poll(max(0.0, wait) * 1000)
            if not found:
                break
            self._output.ready(*found[0])
        self.restore(pause=True)

    def restore(self, *, reset: bool = False, pause: bool = False) -> None:
        """Put the terminal back as it was; any number of times. On each way out. What the command set and did
        not undo is undone, when we `pause` what changes keys alone.

        `reset` sends RESET too: for a command that was killed and could not clean up. An answer of the
        terminal to a question from inside (cursor position, colours) that is still on its way is waited for,
        at most ANSWER_WAIT, and what is there to be read is dropped: the caller's shell would take it for
        typed text. What was typed ahead before is inside already.
        """
        self._wanted = False
        left = self._filter.modes.leave() if pause else self._filter.modes.undo()
        self._send((tty.RESET if reset and tty.foreground(self._screen) else b"") + left)
        if self._keyboard is None or not self._raw:
            return
        if tty.foreground(self._keyboard):
            tty.await_output(self._screen)
            self._await_answers(self._keyboard)
            tty.apply(self._keyboard, self._saved, flush=True)
        self._raw = False
        self._tell(_SANE)

    def resized(self) -> None:
        """Copy the window's size to the inner pty; after SIGWINCH."""
        if not self.closed:
            tty.copy_size(self._screen, self._master)

    def finish(self) -> None:
        """Everything inside is dead: show what is left, as the loop goes on. `restore` comes after that."""
        if self._input is not None:
            self._input.close()
        self._output.finish()

    def close(self) -> None:
        """Close the master, which hangs up what still runs inside, and our copies of the terminal; nothing is
        set.
        """
        self._output.close()
        if self._input is not None:
            self._input.close()

    def __enter__(self) -> "Terminal":  # noqa: PYI034 - Self is not in jail.light
        self.enter()
        return self

    def __exit__(self, *failure: object) -> None:
        self.restore(reset=failure[0] is not None)
        self.close()

    def _attend(self) -> None:
        """Raw mode when in front; what the terminal is like then is what it goes back to, unless it is raw
        still.
        """
        if self._keyboard is None or not self._wanted or self.closed:
            return
        front = tty.foreground(self._keyboard)
        if front and not self._raw:
            with suppress(termios.error):  # hung up: the relays see that
                if not tty.is_raw(self._keyboard):
                    self._saved = tty.settings(self._keyboard)
            self._tell(_RAW)
            self._raw = True  # before it is: an exception of a signal handler may come in between
            tty.apply(self._keyboard, tty.raw(self._saved))
            self._send(self._filter.modes.again())
        elif self._raw and not front:
            self._raw = False  # our shell took the terminal and set it for itself
            self._tell(_SANE)

    def _may_pass(self, questions: int) -> bool:
        """Whether what they bring comes to us. Asked each time: a shell may have taken the terminal."""
        if self._keyboard is None or not self._raw or not tty.foreground(self._keyboard):
            return False
        return self._answers.room(len(self._filter.asked) + questions, time.monotonic())

    def _note_questions(self) -> None:
        if self._filter.asked:
            self._answers.asked(self._filter.asked, time.monotonic())
            self._filter.asked.clear()

    def _await_answers(self, keyboard: int) -> None:
        self._note_questions()
        source = caller_source(keyboard)
        poller = select.poll()
        poller.register(source.fd, select.POLLIN)
        with suppress(OSError):  # hung up: no answer will come
            while (rest := self._answers.wait(time.monotonic())) and poller.poll(int(rest * 1000) + 1):
                if not self._answers.feed(os.read(source.fd, PAGE)):
                    break
        if source.ours:
            os.close(source.fd)

    def _send(self, data: bytes) -> None:
        if not data:
            return
        sink = caller_sink(self._screen)
        with suppress(OSError):  # full or gone: nobody sees it
            if not sink.polled:
                sink.write(sink.fd, memoryview(data))
        if sink.ours:
            os.close(sink.fd)

    def _tell(self, state: bytes) -> None:
        if self._watch is not None:
            self._watch.tell(state)


def _filters(allowed: Iterable[str], gate: Callable[[int], bool]) -> "tuple[Filter, Answers]":
    """Imported here, while the walls are being built by another process: `re` takes its time."""
    from jail.launch.answers import Answers
    from jail.launch.escapes import Filter

    return Filter(allowed, gate=gate), Answers()
