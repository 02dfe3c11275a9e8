"""The caller's stdin, stdout and stderr beside what the command gets instead: inner pipes, the inner
terminal, or /dev/null.

Rule: no fd of the caller enters the jail (relay.py says why). Which stream becomes what is decided once,
before the fork; the parts that copy are made after it, so that no process inside holds an end that is ours.
"""

import os

from jail.launch import relay
from jail.launch.command import NULL, TERMINAL
from jail.launch.quota import Quota
from jail.light import TYPE_CHECKING, Callable
from jail.plan.steps import Plan

if TYPE_CHECKING:
    from jail.launch.kept import Kept
    from jail.launch.terminal import Guard, Terminal


class Streams:
    """The streams of one run. `inner` is for the command: fds by number, NULL or TERMINAL; `quota`: what it
    may print on all of them together.
    """

    def __init__(self, plan: Plan) -> None:
        self._ids = (plan.uid, plan.gid)
        self.quota = Quota(dict(plan.limits)["output_bytes"])
        self._allowed = plan.terminal
        self._plan = relay.plan_stdio()
        self._stdin: tuple[int, int] | None = None
        self._outputs: list[tuple[int, int, int]] = []
        self.parts: list[relay.Part] = []
        self._kept: Kept | None = None
        self._kept_in: tuple[str, Callable[[str], None]]
        self._delivering = False
        self._shown: list[relay.Relay] = []
        self._terminal: Terminal | None = None
        self._guard: Guard | None = None
        self.inner = (self._first(), self._output(1, self._plan.stdout), self._third())
        self.with_terminal = TERMINAL in self.inner

    def _first(self) -> int:
        if self._plan.stdin != relay.PIPE:
            return _no_pipe(self._plan.stdin)
        self._stdin = self._pipe()
        return self._stdin[0]

    def _output(self, number: int, kind: str) -> int:
        if kind != relay.PIPE:
            return _no_pipe(kind)
        ours, theirs = self._pipe()
        self._outputs.append((number, ours, theirs))
        return theirs

    def _pipe(self) -> tuple[int, int]:
        """A pipe that belongs to the command's uid, which may open /dev/stdin and its like again."""
        ends = os.pipe2(os.O_CLOEXEC)
        if os.geteuid() == 0:
            os.fchown(ends[0], *self._ids)
        return ends

    def _third(self) -> int:
        return self._outputs[0][2] if self._plan.merged else self._output(2, self._plan.stderr)

    def start_guard(self) -> None:
        """Start the process that puts the terminal back should we be killed; before the keeper's fork."""
        if self.with_terminal:
            from jail.launch import terminal

            self._guard = terminal.guard(self._screen())

    def _screen(self) -> int:
        return 1 if self._plan.stdout == relay.TERMINAL else 2

    def forked(self) -> None:
        """The keeper has its copies: close what is the command's here, and make the parts that copy."""
        for number, ours, theirs in self._outputs:
            os.close(theirs)
            self._shown.append(relay.outward(ours, number, self.quota, allowed=self._allowed))
        self.parts += self._shown
        if self._stdin is not None:
            from jail.launch import feed

            self.parts.append(feed.inward(0, self._stdin))

    def open_terminal(self, master: int) -> None:
        """The inner pty's master came from the keeper: connect it with the caller's terminal."""
        from jail.launch import terminal

        keyboard = 0 if self._plan.stdin == relay.TERMINAL else None
        self._terminal = terminal.Terminal(
            keyboard, self._screen(), master, self._guard, self.quota, allowed=self._allowed
        )
        self.parts.append(self._terminal)

    def keep_in(self, folder: str, note: Callable[[str], None]) -> None:
        """From here on the end of what is printed is kept in the session's `folder`; `note` hears why not."""
        self._kept_in = (folder, note)
        self.quota.keep = self._keep

    def _keep(self, piece: memoryview) -> None:
        if self._kept is None:
            from jail.launch.kept import Kept  # what prints nothing needs none

            self._kept = Kept(*self._kept_in)
            self.parts.append(self._kept)
            if self._delivering:
                self._kept.finish()
        self._kept.take(piece)

    def enter(self) -> None:
        """The command starts: the keyboard is its own from here on."""
        if self._terminal is not None:
            self._terminal.enter()

    def resized(self) -> None:
        """The window has another size (SIGWINCH)."""
        if self._terminal is not None:
            self._terminal.resized()

    def suspend(self) -> None:
        """We are about to be stopped: give the terminal back. `enter` takes it again."""
        if self._terminal is not None:
            self._terminal.suspend()

    def deliver(self, deadline: float | None) -> bool:
        """Everything inside is dead: what is left in the pipes goes out, at most until `deadline` (monotonic
        seconds); whether all of it did.
        """
        self._delivering = True
        try:
            return relay.drain(self.parts, deadline)
        finally:
            if self._kept is not None:
                self._kept.close()

    def restore(self, *, killed: bool) -> None:
        """Give the terminal back, and end the guard; `killed`: the command could not clean up its screen
        itself.
        """
        if self._terminal is not None:
            self._terminal.restore(reset=killed)
        if self._guard is not None:
            self._guard.release()
            self._guard = None

    def dropped(self) -> dict[str, int]:
        """How many escape sequences of each kind (launch/sequences.py) did not get to a terminal."""
        return relay.dropped([*self._shown, *([self._terminal] if self._terminal is not None else [])])

    def problem(self) -> str:
        """Why output was lost, "" when none was."""
        return "; ".join(
            f"output was lost: {part.error.strerror}" for part in self.parts if part.error is not None
        )


def _no_pipe(kind: str) -> int:
    return TERMINAL if kind == relay.TERMINAL else NULL
