"""The two ends of a relay: descriptors of our own, and the caller's, which are never changed.

Rule: the caller's fds are open file descriptions that others share, so O_NONBLOCK is never set on them: it
would surface in the caller's shell. Pipes and terminals are opened once more, privately; sockets have
MSG_DONTWAIT; a file is always ready, and a disk that hangs holds us as it would hold the command.
"""

import _socket  # the C part alone: socket imports enum and selectors
import os
import stat

from jail.light import Callable, NamedTuple


class End(NamedTuple):
    """One end of a relay: `ours` is closed by us; `polled` says that a write before poll(2) allows it could
    block.
    """

    fd: int
    ours: bool
    polled: bool
    write: Callable[[int, memoryview], int] = os.write


def inner_end(fd: int) -> End:
    """An end of a pipe or pty of ours, made non-blocking."""
    os.set_blocking(fd, False)
    return End(fd, ours=True, polled=False)


def caller_source(fd: int) -> End:
    """A terminal or device of the caller as a source, opened once more where that is possible."""
    private = _reopened(fd, os.O_RDONLY)
    return End(fd, ours=False, polled=True) if private < 0 else End(private, ours=True, polled=False)


def caller_sink(fd: int) -> End:
    """The caller's stdout or stderr as a sink.

    A file is written through the caller's own fd, which keeps its offset and O_APPEND. Where a pipe or
    terminal cannot be opened again (another owner, TIOCEXCL), a page is written after each POLLOUT; with a
    second writer on the same pipe that may wait until the pipe's reader goes on.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
        return End(fd, ours=False, polled=False)
    if stat.S_ISSOCK(mode):
        return End(fd, ours=False, polled=False, write=_send)
    private = _reopened(fd, os.O_WRONLY) if stat.S_ISFIFO(mode) or os.isatty(fd) else -1
    return End(fd, ours=False, polled=True) if private < 0 else End(private, ours=True, polled=False)


def _reopened(fd: int, mode: int) -> int:
    """The pipe or device behind `fd` as an open file description of our own, non-blocking; -1 where it cannot
    be had.
    """
    try:
        return os.open(f"/proc/self/fd/{fd}", mode | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return -1


def _send(fd: int, data: memoryview) -> int:
    end = _socket.socket(fileno=fd)
    try:
        return end.send(data, _socket.MSG_DONTWAIT | _socket.MSG_NOSIGNAL)
    finally:
        end.detach()
