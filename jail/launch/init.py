"""Process 1 of the jail: makes /proc, starts the command and what joins it, passes signals on, reaps, and
says how each ended.

Rule: when this process ends the kernel kills all that is inside (pid_namespaces(7)); it ends with the
command, with the keeper (parent-death signal) and with the supervisor (end of the orders channel). It handles
no signal, so nothing inside can send it one; it has no capability, and cannot be looked into (not dumpable).

Whatever runs inside is forked here, after this process was confined, so there is one confinement for the
command and for what joins it later (CVE-2022-31214 was a join that got less). A join that fails (what runs
inside may have taken every process that there is) is told and changes nothing else.
"""

import os
import resource
import select

from jail.errors import EXIT_JAIL
from jail.kernel import files, mounts, privileges, pty
from jail.kernel.filters import Filters
from jail.launch import command, leader
from jail.launch.channel import ORDER_LIMIT, Channel, tell_failure
from jail.launch.confine import confine
from jail.light import Any, Callable, Final, NamedTuple, NoReturn, signal, suppress
from jail.plan.steps import Plan

_PROC: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV | mounts.ATTR_NOEXEC
OUTER_PARENT: Final = 0
"""What getppid(2) says of a parent in an outer pid namespace."""
NAME: Final = "jail-init"
TO_GROUP: Final = "group"
TO_PROCESS: Final = "process"
FREEZE: Final = "freeze"
THAW: Final = "thaw"
HANG_UP: Final = "hang up"
KILL: Final = "kill"
JOIN: Final = "join"
COMMAND: Final = 0
"""The number of the command among what may be signalled; joined processes count from 1."""
SWEEPS: Final = 5
"""How often the processes of a session are looked for, to kill them all while they fork."""


class Joined(NamedTuple):
    """What joined: its process and session, and its channel to the supervisor."""

    process: leader.Started
    channel: Channel


class Inside:
    """What process 1 looks after: the command, and what joined it, by number."""

    def __init__(self, start: command.Start, orders: Channel) -> None:
        self._start = start
        self._orders = orders
        self._command = leader.Started(0, 0)
        self._joined: dict[int, Joined] = {}
        self._hung_up: dict[int, int] = {}
        self._stopped: set[int] | None = None
        self._score = 0
        self._own_score: privileges.OomScore | None = None
        for name, value in start.plan.limits:
            if name == "oom_score":
                self._score, self._own_score = value, privileges.OomScore()

    def started(self, process: leader.Started) -> None:
        """The command is there."""
        self._command = process

    def obey(self) -> None:
        """Do what the supervisor says; without a supervisor there is nothing to live for."""
        message = self._orders.receive(ORDER_LIMIT)
        if message is None:
            os._exit(EXIT_JAIL)
        tag, values, fds = message
        if tag == JOIN:
            self._join(values, fds)
        else:
            # It has ended; or what runs inside has left us no file to look into /proc.
            with suppress(OSError):
                SIGNALS[tag](self, *map(int, map(str, values)))

    def _process(self, who: int) -> leader.Started:
        """The process with that number; it is not reaped yet, so its pid is still its own."""
        if who == COMMAND:
            return self._command
        if who not in self._joined:
            raise ProcessLookupError
        return self._joined[who].process

    def _to_group(self, who: int, number: int) -> None:
        pid = self._process(who).pid
        os.killpg(os.getpgid(pid), number)  # the one that it leads, but on a terminal it may go to another

    def _to_process(self, who: int, number: int) -> None:
        process = self._process(who)
        os.kill(process.pid, number)
        if process.session != process.pid:
            # A leader that was stopped inside would never let us reap.
            os.kill(process.session, signal.SIGKILL if number == signal.SIGKILL else signal.SIGCONT)

    def _freeze(self, who: int) -> None:  # noqa: ARG002 - functions of one table have one signature
        """Stop all that is inside, and remember what was stopped before: that is somebody's stopped job.

        Leaders first, that none takes this for a stop of its command.
        """
        if self._stopped is None:
            self._stopped = set()
            with suppress(OSError):  # no file is left to look into /proc: then all will go on
                self._stopped.update(filter(_is_stopped, _pids()))
        for process in self._leaders():
            with suppress(OSError):
                os.kill(process, signal.SIGSTOP)
        os.kill(-1, signal.SIGSTOP)  # all but ourselves (kill(2))

    def _thaw(self, who: int) -> None:  # noqa: ARG002 - as above
        """Continue what `_freeze` stopped, leaders last."""
        stopped, self._stopped = self._stopped or set(), None
        leaders = self._leaders()
        try:
            others = set(_pids()) - stopped - set(leaders)
        except OSError:  # as above
            others = {-1}
        for pid in [*others, *leaders]:
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)

    def _leaders(self) -> list[int]:
        found = [self._command, *(joined.process for joined in self._joined.values())]
        return [process.session for process in found if process.session != process.pid]

    def _hang_up(self, who: int) -> None:
        """As a terminal that is gone does it; a stopped process has to go on to hear of it."""
        self._hung_up[who] = self._process(who).session
        _signal_session(self._hung_up[who], signal.SIGHUP, signal.SIGCONT)

    def _kill(self, who: int) -> None:
        """What a hang-up did not end; its leader may have ended before the rest of the session."""
        session = self._hung_up.pop(who, 0) or self._process(who).session
        _signal_session(session, signal.SIGKILL)

    def _join(self, values: tuple[Any, ...], fds: tuple[int, ...]) -> None:
        """Start one more process: (number, argv, stdio, environment), with its channel and its streams."""
        number, argv, stdio, environment = values
        if not fds:
            return  # none could be received (RLIMIT_NOFILE): the end of its channel tells
        channel = Channel.of(fds[0])
        try:
            streams = tuple(fds[place] if place > 0 else place for place in stdio)
            plan = self._start.plan._replace(command=argv, environment=environment)
            joined = command.Start(plan, streams, channel, channel.fileno(), joins=True)
            master, terminal = pty.open_pair() if command.TERMINAL in streams else (-1, "")
            try:
                process = self._fork(joined, terminal)
                channel.send("forked", process.pid, fds=(master,) if terminal else (), wait=False)
            finally:
                if terminal:
                    os.close(master)
            self._joined[number] = Joined(process, channel)
        except Exception as problem:  # noqa: BLE001 - a join that fails must not end what runs
            tell_failure(channel, "process 1 of the jail", problem)
            channel.close()
        finally:
            for fd in fds[1:]:
                os.close(fd)

    def _fork(self, joined: command.Start, terminal: str) -> leader.Started:
        if self._own_score is not None:
            self._own_score.set(self._score)
        try:
            return leader.start(joined, terminal, lambda kept: _forget(joined, kept))
        finally:
            if self._own_score is not None:
                self._own_score.put_back()

    def reap(self) -> bool:
        """Collect every ended child; True when the command was among them, after its status was reported."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return False
            if pid == self._command.pid:
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                self._start.control.send("exit", status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
                return True
            self._left(pid, status)

    def _left(self, pid: int, status: int) -> None:
        for number, joined in self._joined.items():
            if joined.process.pid == pid:
                with suppress(OSError):
                    joined.channel.send("exit", status, wait=False)
                joined.channel.close()
                del self._joined[number]
                return


SIGNALS: Final[dict[str, Callable[..., None]]] = {
    TO_GROUP: Inside._to_group,
    TO_PROCESS: Inside._to_process,
    FREEZE: Inside._freeze,
    THAW: Inside._thaw,
    HANG_UP: Inside._hang_up,
    KILL: Inside._kill,
}
"""Every order beside JOIN: its tag and what it does; any other is a defect, and the end by KeyError."""


def _forget(start: command.Start, kept: set[int]) -> None:
    """In the child of a join: nothing of process 1 but its own streams and channels goes with it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    files.close_all_but({0, 1, 2, start.go, *kept, *(fd for fd in start.stdio if fd >= 0)})


def _signal_session(session: int, *numbers: int) -> None:
    """Signal every process whose session (setsid(2)) is `session`; one that left it lives on till the end of
    all, as after a logout.
    """
    for _ in range(SWEEPS):
        found = [pid for pid in _pids() if _session(pid) == session]
        for pid in found:
            for number in numbers:
                with suppress(OSError):
                    os.kill(pid, number)
        if signal.SIGKILL not in numbers or not found:
            return


def _pids() -> list[int]:
    return list(map(int, filter(str.isdigit, os.listdir("/proc"))))


def _is_stopped(pid: int) -> bool:
    """Whether its state is T (proc_pid_stat(5))."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def run(start: command.Start, filters: Filters, keeper: Channel, orders: int) -> NoReturn:
    """Be process 1, from the fork by the keeper to the end of the command."""
    try:
        privileges.die_with_parent(OUTER_PARENT)
        privileges.take_name(NAME)
        tree = mounts.new_filesystem("proc", {}, _PROC)
        keeper.send("proc", fds=(tree,))
        os.close(tree)
        built = keeper.receive()
        if built is None:
            os._exit(EXIT_JAIL)
        terminal = str(built[1][0])
        # SIGCHLD has to interrupt poll(2), so it alone gets a handler; from inside it can be sent to no
        # effect.
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        inside = Inside(start, Channel.of(orders))
        _lose_privileges(start.plan, filters)

        def forget(kept: set[int]) -> None:  # noqa: ARG001 - the channels of a join are not there yet
            keeper.close()
            os.close(orders)

        inside.started(leader.start(start, terminal, forget))
        _let_go(start)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        _wait(inside, orders, wake_read)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, nothing may run on
        tell_failure(start.control, "process 1 of the jail", problem)
    os._exit(EXIT_JAIL)


def _nothing(number: int, frame: object) -> None:
    """A handler, so that the wake-up pipe is written."""


def _lose_privileges(plan: Plan, filters: Filters) -> None:
    privileges.set_dumpable(False)
    confine(plan, filters)
    privileges.die_with_parent(OUTER_PARENT)  # the change of credentials cleared it


def _let_go(start: command.Start) -> None:
    """Close what is the command's."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in {start.go, *start.stdio}:
        if fd > 2:
            os.close(fd)


def _wait(inside: Inside, orders: int, wake: int) -> None:
    poller = select.poll()
    poller.register(orders, select.POLLIN)
    poller.register(wake, select.POLLIN)
    # Looked at first: a command may end before the handler of SIGCHLD stands, and then nothing would wake us.
    while not inside.reap():
        for fd, _ in poller.poll():
            if fd == orders:
                inside.obey()
            else:
                os.read(wake, 4096)
    os._exit(0)
