"""The command's own process, from its fork to exec: streams, limits, probes, and the exec itself.

Rule: it is born confined (confine.py). It takes its streams and limits, lets no other fd through, and then
probes look at the walls from inside; only a byte from the supervisor, sent when the ledger has its first
entries, lets the exec happen. Nothing is imported here: this runs after the fork.
"""

import errno
import fcntl
import os

from jail.errors import EXIT_JAIL, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND
from jail.kernel import files, libc, privileges
from jail.launch import probes
from jail.launch.channel import Channel, tell_failure
from jail.light import Final, NamedTuple, NoReturn, signal
from jail.plan.steps import Plan

FIRST_FREE_FD: Final = 3


class Start(NamedTuple):
    """What the command's process needs: `stdio` has fds by number (-1: /dev/null, -2: the terminal); `go` is
    read before exec.

    `joins`: programs run inside already, with the same uid. Such a process must stay closed to them until its
    exec, as process 1 is: whoever could trace it would speak on `control`, or change what is executed.
    """

    plan: Plan
    stdio: tuple[int, int, int]
    control: Channel
    go: int
    joins: bool = False


NULL: Final = -1
TERMINAL: Final = -2


def run(start: Start, terminal: int = -1, parent: int = 1) -> NoReturn:
    """Limit this process and become the command.

    `terminal`: an fd of the session's controlling terminal, which becomes the command's; without one the
    command leads a session of its own. `parent` has to be its parent.
    """
    try:
        if not start.joins:
            # Process 1 is closed to all; we inherited that, and write limits into /proc/self (proc(5)).
            privileges.set_dumpable(True)
        if terminal < 0:
            libc.named("setsid", os.setsid)
        else:
            _come_to_front(terminal)
        _take_stdio(start.stdio, terminal)
        os.chdir(start.plan.folder)
        _default_signals()
        _limit(start)
        files.close_on_exec_from(FIRST_FREE_FD)
        _report_probes(start, parent)
        if os.read(start.go, 1) != b"g":
            os._exit(EXIT_JAIL)
        _execute(start)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, nothing may run on
        tell_failure(start.control, "the command's process", problem)
        os._exit(EXIT_JAIL)


def _come_to_front(terminal: int) -> None:
    """Lead a process group of our own, which the terminal's keys signal; SIGTTOU would stop us
    (termios(3)).
    """
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
    libc.named("tcsetpgrp", os.tcsetpgrp, terminal, os.getpid())


def _take_stdio(stdio: tuple[int, int, int], terminal: int) -> None:
    opened = {NULL: os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC), TERMINAL: terminal}
    # Above 2 first: a source may itself be one of 0, 1, 2 where the caller had those closed.
    sources = [fcntl.fcntl(opened.get(fd, fd), fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD) for fd in stdio]
    for number, fd in enumerate(sources):
        os.dup2(fd, number, inheritable=True)


def _default_signals() -> None:
    # Python ignores these two for itself (signal(7) would have the command inherit that).
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limit(start: Start) -> None:
    for name, value in start.plan.limits:
        if name in privileges.LIMITS:
            privileges.limit(name, value)
        elif name == "oom_score" and not start.joins:  # else it was forked with that score (init.py)
            privileges.prefer_as_oom_victim(value)


def _report_probes(start: Start, parent: int) -> None:
    found = probes.run(start.plan, parent)
    start.control.send("probes", tuple(found))


def _execute(start: Start) -> NoReturn:
    plan = start.plan
    environment = dict(plan.environment)
    program = plan.command[0]
    candidates = (
        [program] if "/" in program else [f"{folder}/{program}" for folder in environment["PATH"].split(":")]
    )
    problem: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for candidate in filter(None, candidates if program else ()):
        try:
            os.execve(candidate, plan.command, environment)  # noqa: S606 - that is the point
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                problem = (
                    error  # execvp(3): a file that may not be executed counts when nothing later is found
                )
                if error.errno != errno.EACCES:
                    break
    missing = problem.errno in (errno.ENOENT, errno.ENOTDIR)
    start.control.send("not-executed", problem.errno, missing)
    os._exit(EXIT_NOT_FOUND if missing else EXIT_NOT_EXECUTABLE)
