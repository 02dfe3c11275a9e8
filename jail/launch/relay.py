"""What the command writes goes to the caller's stdout and stderr; and what each of the caller's three fds is.

Rule: no fd of the caller ever enters the jail, because an fd can be opened again with any mode through
`/proc/self/fd` (a `>>` log truncated, a file on stdin written). So bytes are copied, without threads and
without blocking, by parts that say what they wait for and are told when it is there; the supervisor owns the
one poll loop. Who writes when:

    command -- inner pipe --> Relay: reads, writes all that it read, only then reads again --> caller's fd
    caller's fd -- looked at, not taken --> Feed (feed.py) -- inner pipe --> command; what it read is taken
    caller's terminal <--> Terminal (terminal.py): a relay each way <--> master of the inner pty

The caller's fds are open file descriptions that others share, so O_NONBLOCK is never set on them: it would
surface in the caller's shell. Pipes and terminals are opened once more, privately; sockets have MSG_DONTWAIT;
a file is always ready, and a disk that hangs holds us as it would hold the command.
"""

import _socket  # the C part alone: socket imports enum and selectors
import errno
import fcntl
import os
import select
import stat
import time

from jail.light import Callable, Final, NamedTuple, Protocol, Sequence

CHUNK: Final = 65536
"""Most bytes that a relay holds: the default size of a pipe (pipe(7)), so that one read can empty it."""
PAGE: Final = os.sysconf("SC_PAGESIZE")
"""One slot of a pipe: a pipe that polls as writable takes this much at once (pipe(7))."""
RECHECK: Final = 0.25
"""Seconds until a terminal that is somebody else's is asked again; no event tells when it comes back."""

NULL: Final = "null"
PIPE: Final = "pipe"
TERMINAL: Final = "terminal"


class Stdio(NamedTuple):
    """What each stream becomes inside: NULL, PIPE or TERMINAL. `merged`: one pipe is stdout and stderr."""

    stdin: str
    stdout: str
    stderr: str
    merged: bool


def plan_stdio(stdin: int = 0, stdout: int = 1, stderr: int = 2) -> Stdio:
    """How the caller's three fds are given inside (fstat(2), isatty(3)).

    A closed fd is NULL, like /dev/null. stdout and stderr on a terminal are slaves of the inner pty; stdin is
    so only when stdout is too: in `jail run -- make | less` the keys are for less. Two fds of one file (2>&1)
    share one inner pipe, so that the order of lines stays; two opens of one file at one offset count as one,
    which is kinder to it than both writing over each other.
    """
    kinds = [_kind(fd) for fd in (stdin, stdout, stderr)]
    if kinds[0] == TERMINAL and kinds[1] != TERMINAL:
        kinds[0] = PIPE
    if kinds[1] == kinds[2] == TERMINAL and os.fstat(stdout).st_rdev != os.fstat(stderr).st_rdev:
        kinds[2] = PIPE
    return Stdio(kinds[0], kinds[1], kinds[2], kinds[1] == kinds[2] == PIPE and _same_file(stdout, stderr))


class Part(Protocol):
    """What the poll loop drives: Relay, Feed, Terminal.

    `timeout`: seconds after which `interests` may differ without an event, None for never.
    """

    @property
    def closed(self) -> bool:
        """Nothing is left to do."""

    @property
    def error(self) -> OSError | None:
        """Why it ended early, for the report."""

    @property
    def timeout(self) -> float | None:
        """Seconds to poll at most."""

    def interests(self) -> list[tuple[int, int]]:
        """(fd, poll mask) pairs to wait for now."""

    def ready(self, fd: int, mask: int) -> None:
        """Act on an event of poll(2); events of other fds, and late ones, are ignored."""

    def finish(self) -> None:
        """Everything inside is dead: deliver what is left, as the loop goes on, then close."""

    def close(self) -> None:
        """Close what is ours; the caller's fds stay open."""


class Quota:
    """How many bytes may still be taken from the command, by all relays that share it; `keep` is shown them.

    Once more than that was taken nothing more is read: what waits in the inner pipes stays there, and what a
    relay holds still goes out.
    """

    def __init__(self, left: int) -> None:
        self.left = left
        self.keep: Callable[[memoryview], None] | None = None

    def take(self, piece: memoryview) -> None:
        """So much was read."""
        self.left -= len(piece)
        if self.keep is not None:
            self.keep(piece)

    @property
    def spent(self) -> bool:
        """More was printed than may be."""
        return self.left < 0


class End(NamedTuple):
    """One end of a relay: `ours` is closed by us; `polled` says that a write before poll(2) allows it could
    block.
    """

    fd: int
    ours: bool
    polled: bool
    write: Callable[[int, memoryview], int] = os.write


class Relay:
    """Copies one way, at most one read and one write for an event, and holds at most CHUNK bytes.

    `deliver`: whether what is left goes out after the command's end. `reopens`: the source is the master
    of a pty, whose slaves may all be closed (EIO) and be opened again; closing it then would be SIGHUP
    for a command that has only closed its streams, as each does just before it exits. `gate`: whether the
    source may be read now; `quota`: how much of it at most. `error`: why the sink failed (ENOSPC, EIO,
    …). A reader that went away (EPIPE) is not an error: the source is closed, and the writer inside gets
    SIGPIPE as it would without us. Our own SIGPIPE is ignored by Python.
    """

    def __init__(
        self,
        source: End,
        sink: End,
        *,
        deliver: bool = True,
        reopens: bool = False,
        gate: Callable[[], bool] | None = None,
        quota: Quota | None = None,
    ) -> None:
        self.closed = False
        self.error: OSError | None = None
        self.timeout: float | None = None
        self._source, self._sink = source, sink
        self._deliver, self._reopens, self._gate, self._quota = deliver, reopens, gate, quota
        self._held = memoryview(b"")
        self._last = False  # the source holds all that will ever come
        self._hung = False  # no slave is open: POLLHUP would come back at once

    def interests(self) -> list[tuple[int, int]]:
        """(fd, poll mask) pairs to wait for now; none when closed, or while the gate is shut (`timeout` is
        set then).
        """
        self.timeout = None
        if self.closed:
            return []
        if self._held:
            return [(self._sink.fd, select.POLLOUT)]
        if self._quota is not None and self._quota.spent:
            return []
        if self._hung or (self._gate is not None and not self._gate()):
            self._hung = False
            self.timeout = RECHECK
            return []
        return [(self._source.fd, select.POLLIN)]

    def ready(self, fd: int, mask: int) -> None:
        """Act on an event of poll(2); events of other fds, and late ones, are ignored."""
        if self.closed or not mask:
            return
        if self._held:
            if fd == self._sink.fd:
                self._write()
        elif fd == self._source.fd and (self._gate is None or self._gate()):
            self._read()

    def finish(self) -> None:
        """Everything inside is dead: deliver what is left, as the loop goes on, then close."""
        self._last = True
        if not self._deliver:
            self.close()
        elif not self.closed and not self._held:
            self._read()

    def close(self) -> None:
        """Close the ends that are ours; what is held is dropped. The caller's fds stay open."""
        if self.closed:
            return
        self.closed = True
        self._held = memoryview(b"")
        for end in (self._source, self._sink):
            if end.ours:
                os.close(end.fd)

    def _read(self) -> None:
        if self._quota is not None and self._quota.spent:
            if self._last:
                self.close()  # what is left inside is past the limit
            return
        try:
            data = os.read(self._source.fd, CHUNK if self._deliver else PAGE)
        except BlockingIOError:
            if not self._last:
                return
            data = b""
        except OSError as failure:
            # EIO: the last slave of a pty closed, or a terminal hung up (n_tty_read).
            if failure.errno == errno.EIO and self._reopens and not self._last:
                self._hung = True
                return
            self.error = None if failure.errno == errno.EIO else failure
            data = b""
        if not data:
            self.close()
            return
        self._held = memoryview(data)
        if self._quota is not None:
            self._quota.take(self._held)
        if not self._sink.polled:
            self._write()

    def _write(self) -> None:
        piece = self._held[:PAGE] if self._sink.polled else self._held
        try:
            self._held = self._held[self._sink.write(self._sink.fd, piece) :]
        except BlockingIOError:
            return
        except OSError as failure:
            if failure.errno not in (errno.EPIPE, errno.ECONNRESET):
                self.error = failure
            self.close()
            return
        if self._last and not self._held:
            self._read()


def outward(inner_read: int, fd: int, quota: Quota | None = None) -> Relay:
    """A relay from the read end of an inner pipe, which becomes ours, to the caller's `fd` (stdout or
    stderr).
    """
    return Relay(inner_end(inner_read), caller_sink(fd), quota=quota)


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


def drain(parts: Sequence[Part], deadline: float | None) -> bool:
    """Finish `parts` and poll until all are closed: what is left in the inner pipes goes out. True when all
    of it did.

    `deadline` is a time of time.monotonic(), None for no end: a reader that pauses (less) then holds us as it
    would hold the command. Parts that are late are closed.
    """
    for part in parts:
        part.finish()
    while waiting := [part for part in parts if not part.closed]:
        owners = {fd: (part, mask) for part in waiting for fd, mask in part.interests()}
        rest = None if deadline is None else deadline - time.monotonic()
        if not owners or (rest is not None and rest <= 0):
            break
        poller = select.poll()
        for fd, (_, mask) in owners.items():
            poller.register(fd, mask)
        for fd, mask in poller.poll(None if rest is None else int(rest * 1000) + 1):
            owners[fd][0].ready(fd, mask)
    for part in waiting:
        part.close()
    return not waiting


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


def _kind(fd: int) -> str:
    try:
        found = os.fstat(fd)
    except OSError:
        return NULL
    if stat.S_ISCHR(found.st_mode):
        if found.st_rdev == os.makedev(1, 3):
            return NULL
        if os.isatty(fd):
            return TERMINAL
    return PIPE


def _same_file(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    if (first.st_dev, first.st_ino) != (second.st_dev, second.st_ino):
        return False
    if stat.S_ISREG(first.st_mode) and os.lseek(one, 0, os.SEEK_CUR) != os.lseek(other, 0, os.SEEK_CUR):
        return False
    return fcntl.fcntl(one, fcntl.F_GETFL) == fcntl.fcntl(other, fcntl.F_GETFL)
