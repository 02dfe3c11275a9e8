"""Process 1 of the jail: makes /proc, starts the command, passes signals on, reaps, and says how the command
ended.

Rule: when this process ends the kernel kills all that is inside (pid_namespaces(7)); it ends with the
command, with the keeper (parent-death signal) and with the supervisor (end of the orders pipe). It handles no
signal, so nothing inside can send it one; it has no capability, and cannot be looked into (not dumpable).
"""

import os
import resource
import select

from jail.errors import EXIT_JAIL
from jail.kernel import libc, mounts, privileges
from jail.kernel.filters import Filters
from jail.launch import command
from jail.launch.channel import Channel, tell_failure
from jail.launch.confine import confine
from jail.light import Final, NoReturn, signal
from jail.plan.steps import Plan

_PROC: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV | mounts.ATTR_NOEXEC
OUTER_PARENT: Final = 0
"""What getppid(2) says of a parent in an outer pid namespace."""
NAME: Final = "jail-init"
TO_GROUP: Final = b"g"
TO_PROCESS: Final = b"p"


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
        _lose_privileges(start.plan, filters)
        pid = libc.named("fork", os.fork)
        if pid == 0:
            keeper.close()
            os.close(orders)
            command.run(start, terminal)
        _let_go(start)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        _wait(start.control, pid, orders, wake_read)
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


def _wait(control: Channel, command_pid: int, orders: int, wake: int) -> None:
    poller = select.poll()
    poller.register(orders, select.POLLIN)
    poller.register(wake, select.POLLIN)
    # Looked at first: a command may end before the handler of SIGCHLD stands, and then nothing would wake us.
    while not _reap(control, command_pid):
        for fd, _ in poller.poll():
            if fd == orders:
                _obey(orders, command_pid)
            else:
                os.read(wake, 4096)
    os._exit(0)


def _obey(orders: int, command_pid: int) -> None:
    order = os.read(orders, 2)
    if len(order) != 2:
        os._exit(EXIT_JAIL)
    try:
        if order[:1] == TO_GROUP:
            os.killpg(command_pid, order[1])
        else:
            os.kill(command_pid, order[1])
    except ProcessLookupError:
        pass


def _reap(control: Channel, command_pid: int) -> bool:
    """Collect every ended child; True when the command was among them, after its status was reported."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return False
        if pid == command_pid:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            control.send("exit", status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
            return True
