"""The process that writes down what held trees were when the run began, while the command runs.

Rule: what an overlay holds is compared with what lay beneath it then (hold/base.py); a list of that takes a
walk through the tree, which no command should have to wait for. So a child of the supervisor takes it, at low
priority; it opened the trees before the command existed, has nothing else open, and dies with the
supervisor. What it could not list is unknown: changes of that are conflicts for a person to look at, never
applied over.
"""

import os
import select

from jail.errors import say
from jail.hold import base
from jail.kernel import files, libc, privileges
from jail.launch.cutshort import until_signal
from jail.light import Final, Iterable, NoReturn, signal, suppress
from jail.plan.held import OVERLAY, Held

NICE: Final = 10
"""Of the listing process: the command is what the person waits for."""
SLOW: Final = 2.0
"""Seconds after which a person is told what the end of a run still waits for."""
_PROBLEM_BYTES: Final = 4096


class Bases:
    """The listing process of one run."""

    def __init__(self, pid: int, told: int) -> None:
        self._pid = pid
        self._told = told

    @classmethod
    def start(cls, held_folder: str, things: Iterable[Held], started_ns: int) -> "Bases | None":
        """List the trees among `things` that an overlay holds; None where there is none. `started_ns`: what
        changed since is unknown. Raises OSError; to be called before there is a thread, and before the
        command.
        """
        trees: list[tuple[str, int]] = []
        told = tell = -1
        try:
            trees.extend(
                (thing.name, files.open_path(thing.path)) for thing in things if thing.kind == OVERLAY
            )
            if not trees:
                return None
            told, tell = os.pipe2(os.O_CLOEXEC)
            parent = os.getpid()
            pid = libc.named("fork", os.fork)
            if pid == 0:
                _list(held_folder, trees, started_ns, tell, parent)
            found = cls(pid, told)
            told = -1
            return found
        finally:
            for fd in (told, tell, *(fd for _, fd in trees)):
                if fd >= 0:
                    os.close(fd)

    def wait(self) -> str:
        """Until it is done; why it could not list all, "" where it did. A signal that would end jail ends the
        waiting instead: then nobody knows what the trees were.
        """
        found: list[str] = []
        if until_signal(lambda: found.append(self._wait())):
            return found[0]
        self.end()
        return "a signal came while the end of the run waited for it"

    def _wait(self) -> str:
        poller = select.poll()
        poller.register(self._told, select.POLLIN)
        if not poller.poll(SLOW * 1000):
            say("waiting until what the held trees were is written down; without it no change can be applied")
        problem = b""
        while piece := os.read(self._told, _PROBLEM_BYTES):
            problem += piece
        return self._reaped() or problem.decode("utf-8", "replace")

    def _reaped(self) -> str:
        if not self._pid:
            return ""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return f"it was killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""

    def end(self) -> None:
        """End it, done or not; a second call does nothing."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
            self._reaped()
        if self._told >= 0:
            os.close(self._told)
        self._told = -1


def _list(folder: str, trees: list[tuple[str, int]], started_ns: int, tell: int, parent: int) -> NoReturn:
    """Be the listing process."""
    problems: list[str] = []
    try:
        privileges.die_with_parent(parent)
        os.setsid()  # ^C at the terminal is for the command
        files.close_all_but({tell, *(fd for _, fd in trees)})
        privileges.no_new_privileges()
        os.nice(NICE)
        for name, fd in trees:
            try:
                base.snapshot(fd, base.file_of(folder, name), started_ns)
            except OSError as error:
                problems.append(str(error))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the run goes on and says so
        problems.append(str(error) or type(error).__name__)
    with suppress(OSError):
        os.write(tell, "; ".join(problems).encode("utf-8", "replace")[:_PROBLEM_BYTES])
    os._exit(1 if problems else 0)
