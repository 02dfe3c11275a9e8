"""The start of a command inside, and, on a terminal, the process that leads the terminal's session.

Rule: ^Z works on a process group whose parent is in the same session and in another group; any other is
orphaned, and the kernel drops SIGTSTP for it (setpgid(2), termios(3)). So a command on a terminal is not its
own session's leader, but the child of one, as every job is the child of a shell:

    process 1 ── leader (session, controlling terminal) ── command (its own group, in the foreground)

Why not process 1 itself: there is one session for each terminal, since what joins gets its own; what process
1 adopts would never count as orphaned again, and would stay stopped where the kernel continues it; and no key
can signal a process that no terminal controls.

The leader is confined as the command is, since process 1 is; it is as closed (not dumpable), and holds no
more than the channel to the supervisor, on which it says `stopped`. It reaps nothing: when the command has
ended it ends, process 1 inherits the command and takes its exit status as it came. Who kills the leader from
inside hangs the terminal's session up, as the kernel does it, and no wall falls; the command is process 1's
child then.

Without a terminal the command leads its session itself, and there is no such process.
"""

import errno
import fcntl
import os
import termios

from jail.errors import EXIT_JAIL
from jail.kernel import files, libc, privileges
from jail.launch import command
from jail.launch.channel import Channel, tell_failure
from jail.light import Callable, Final, NamedTuple, NoReturn, signal, suppress

NAME: Final = "jail-leader"
PATIENCE: Final = 5.0
"""Seconds that process 1 waits for a leader's first word: what runs inside may have stopped or killed it."""
PROCESS_1: Final = 1
_HEARD: Final = frozenset((signal.SIGHUP, signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT))
"""What a leader does not ignore: SIGHUP ends it, and the kernel then hangs the foreground up."""


class Started(NamedTuple):
    """A command by its pid, and the session that it is in by its leader's: the same without a terminal."""

    pid: int
    session: int


def start(start: command.Start, terminal: str, prepare: Callable[[set[int]], None]) -> Started:
    """Fork the command, and before it the leader when there is a `terminal` (the path of the slave).

    `prepare` runs in the new process and closes what is process 1's alone, but not the fds that it is given.
    Raises OSError; what was forked then ends by itself, at the latest with the end of `go`.
    """
    if not terminal:
        pid = libc.named("fork", os.fork)
        if pid == 0:
            _guarded(start, "the command's process", lambda: prepare(set()))
            command.run(start)
        return Started(pid, pid)
    ours, theirs = Channel.pair()
    leader = libc.named("fork", os.fork)
    if leader == 0:
        ours.close()
        _guarded(
            start, "the leader of the terminal's session", lambda: _lead(start, terminal, theirs, prepare)
        )
    theirs.close()
    try:
        ours.set_patience(PATIENCE)
        message = ours.receive()
        if message is None:
            raise OSError(errno.ECHILD, "the leader of the terminal's session ended")
    except OSError:
        os.kill(leader, signal.SIGKILL)  # not reaped yet, so the number is its own
        raise
    finally:
        ours.close()
    return Started(int(str(message[1][0])), leader)


def _guarded(start: command.Start, who: str, act: Callable[[], None]) -> None:
    try:
        act()
    except BaseException as problem:  # noqa: BLE001 - whatever it is, nothing may run on
        tell_failure(start.control, who, problem)
        os._exit(EXIT_JAIL)


def _lead(
    start: command.Start, terminal: str, process_1: Channel, prepare: Callable[[set[int]], None]
) -> NoReturn:
    prepare({process_1.fileno()})
    privileges.take_name(NAME)
    libc.named("setsid", os.setsid)
    if os.getppid() != PROCESS_1:
        raise OSError(errno.ECHILD, "the leader's parent is not process 1")
    slave = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    pid = libc.named("fork", os.fork)
    if pid == 0:
        process_1.close()
        command.run(start, slave, parent=os.getppid())
    process_1.send("command", pid)
    _keep_little(start.control)
    _watch(pid, start.control)


def _keep_little(control: Channel) -> None:
    for number in signal.valid_signals() - _HEARD:
        signal.signal(number, signal.SIG_IGN)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    files.close_all_but({0, 1, 2, control.fileno()})


def _watch(pid: int, control: Channel) -> NoReturn:
    """Until the command ends: tell of each stop of it that still lasts."""
    while True:
        seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        if seen is None or seen.si_code != os.CLD_STOPPED:
            os._exit(0)
        # Looked at once more: whoever froze us with all the others has continued the command before us.
        if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None:
            _bring_to_front(pid)
            control.send("stopped")


def _bring_to_front(pid: int) -> None:
    """Give the terminal back to the command, as a shell's `fg` does: its own child may have taken it."""
    with suppress(OSError):  # hung up
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            os.tcsetpgrp(terminal, os.getpgid(pid))
        finally:
            os.close(terminal)
