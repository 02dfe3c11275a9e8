"""What the command reads comes from the caller's stdin, and what it did not read stays there.

Rule: bytes are looked at first, and taken from the caller only when the command has read them, so that `while
read l; do jail run -- cmd; done` sees each line, from a file, a pipe or a socket. Nothing else is lost either
when the supervisor is killed. It holds for one reader at a time: two jails that read one pipe at once may
both see a byte. A terminal or a device cannot be looked at without taking: up to one page of it goes with the
command (a Relay).
"""

import _socket  # the C part alone: socket imports enum and selectors
import ctypes
import errno
import fcntl
import os
import select
import stat
import sys
import termios

from jail.launch.ends import caller_source, inner_end
from jail.launch.relay import CHUNK, PAGE, Relay
from jail.launch.tty import line_mode
from jail.light import Protocol


class Feed:
    """Gives a file, pipe or socket of the caller to the command as an inner pipe, which is the only buffer.

    From a file the pipe is filled through pread(2), and the caller's offset follows what was read inside. A
    pipe or socket is looked at (tee(2), MSG_PEEK) a page at a time into an inner pipe of one slot: that polls
    as writable exactly when it is empty, and then the page is taken from the caller's. `inner`: (read end,
    write end); the read end is the command's stdin, and our copy of it stays open to be asked how much is
    unread. `error` is why the source failed.
    """

    timeout: float | None = None

    def __init__(self, source: "Source", inner: tuple[int, int]) -> None:
        self.closed = False
        self.error: OSError | None = None
        self._source = source
        self._read_end, self._write_end = inner
        self._given = 0  # bytes that went into the inner pipe and are not yet taken from the caller's
        self._ended = False
        os.set_blocking(self._write_end, False)
        if not source.ahead:
            fcntl.fcntl(self._write_end, fcntl.F_SETPIPE_SZ, PAGE)

    def interests(self) -> list[tuple[int, int]]:
        """(fd, poll mask) pairs to wait for now; none after the end of the source."""
        if self._ended:
            return []
        if self._given or self._source.ahead:
            return [(self._write_end, select.POLLOUT)]
        return [(self._source.fd, select.POLLIN)]

    def ready(self, fd: int, mask: int) -> None:
        """Act on an event of poll(2); events of other fds, and late ones, are ignored."""
        if self._ended or not mask or fd not in (self._write_end, self._source.fd):
            return
        try:
            self._settle()
            if not self._given or self._source.ahead:
                self._give()
            elif fd == self._write_end:
                # Writable and not empty: the command made its stdin larger (F_SETPIPE_SZ), and we would spin
                fcntl.fcntl(self._write_end, fcntl.F_SETPIPE_SZ, PAGE)
        except OSError as failure:
            self.error = failure
            self._end()

    def finish(self) -> None:
        """Everything inside is dead: the caller's stdin now stands where the command stopped reading."""
        self.close()

    def close(self) -> None:
        """Take what was read inside, leave the rest to the caller, close the inner pipe. The caller's fd
        stays open.
        """
        if self.closed:
            return
        self.closed = True
        try:
            self._settle()
        except OSError as failure:
            self.error = self.error or failure
        self._end()
        self._source.close()
        os.close(self._read_end)

    def _settle(self) -> None:
        """FIONREAD of the inner pipe (ioctl_tty(2)) is what the command has not read yet."""
        unread = int.from_bytes(fcntl.ioctl(self._read_end, termios.FIONREAD, bytes(4)), sys.byteorder)
        if unread < self._given:
            self._source.take(self._given - unread)
            self._given = unread

    def _give(self) -> None:
        data = self._source.look(self._given)
        if data:
            self._given += os.write(self._write_end, data)
        elif data is not None:
            self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            os.close(self._write_end)


class Source(Protocol):
    """Where a Feed looks and takes. `ahead`: whether it can look beyond what was given already."""

    fd: int
    ahead: bool

    def look(self, given: int) -> bytes | None:
        """What comes after the first `given` bytes; b"" at the end, None when there is nothing yet."""

    def take(self, count: int) -> None:
        """Drop `count` bytes; fewer when another reader was there first."""

    def close(self) -> None:
        """Close what is ours."""


class File:
    """A seekable source; the offset that the caller shares moves by what was taken (lseek(2), SEEK_CUR)."""

    ahead = True

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._place = os.lseek(fd, 0, os.SEEK_CUR)

    def look(self, given: int) -> bytes | None:
        """At most CHUNK bytes of the file after what was given."""
        return os.pread(self.fd, CHUNK, self._place + given)

    def take(self, count: int) -> None:
        """Move the caller's offset."""
        self._place += count
        os.lseek(self.fd, count, os.SEEK_CUR)

    def close(self) -> None:
        """Nothing here is ours."""


class Pipe:
    """A pipe or FIFO: tee(2) copies without taking, over a pipe of ours, as it writes only to pipes."""

    ahead = False

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._copy = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def look(self, given: int) -> bytes | None:
        """At most a page of what the pipe holds."""
        assert given == 0
        count: int = _libc.tee(self.fd, self._copy[1], PAGE, os.SPLICE_F_NONBLOCK)
        if count >= 0:
            return os.read(self._copy[0], count) if count else b""
        code = ctypes.get_errno()
        if code in (errno.EAGAIN, errno.EINTR):
            return None
        raise OSError(code, os.strerror(code))

    def take(self, count: int) -> None:
        """Splice to the pipe of ours, which does not wait, and drop it there."""
        try:
            while count > 0 and (
                moved := os.splice(self.fd, self._copy[1], count, flags=os.SPLICE_F_NONBLOCK)
            ):
                os.read(self._copy[0], moved)
                count -= moved
        except BlockingIOError:
            return

    def close(self) -> None:
        """Close the pipe of ours."""
        os.close(self._copy[0])
        os.close(self._copy[1])


class Socket:
    """A socket: recv(2) with MSG_PEEK looks, without it takes. Node starts its children with sockets as
    stdio.
    """

    ahead = False

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._socket = _socket.socket(fileno=fd)

    def look(self, given: int) -> bytes | None:
        """At most a page of what has arrived."""
        assert given == 0
        try:
            return self._socket.recv(PAGE, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def take(self, count: int) -> None:
        """Receive and drop."""
        try:
            while count > 0 and (taken := len(self._socket.recv(count, _socket.MSG_DONTWAIT))):
                count -= taken
        except BlockingIOError:
            return

    def close(self) -> None:
        """Forget the fd without closing it."""
        self._socket.detach()


def inward(fd: int, inner: tuple[int, int]) -> Feed | Relay:
    """A part that gives the caller's `fd` (stdin) to the command as `inner` (read end, write end).

    Fork first: the command gets the read end; after this call both ends are ours here. A terminal is read by
    lines, while it is ours and in its line mode: where a pager at the end of our pipeline drives it, the keys
    are the pager's.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
        return Feed(File(fd), inner)
    if stat.S_ISFIFO(mode):
        return Feed(Pipe(fd), inner)
    if stat.S_ISSOCK(mode):
        return Feed(Socket(fd), inner)
    os.close(inner[0])
    gate = (lambda: line_mode(fd)) if os.isatty(fd) else None
    return Relay(caller_source(fd), inner_end(inner[1]), deliver=False, gate=gate)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.tee.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint]
_libc.tee.restype = ctypes.c_ssize_t
