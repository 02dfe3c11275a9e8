"""Messages between the processes of one run: a tag and plain values, with file descriptors beside them.

Rule: this socket exists only before the command's exec (it closes on exec), so every message comes from
jail's own code; whole messages or none (SOCK_SEQPACKET, unix(7)). Who says what:

    keeper  → supervisor   failed, init (its pid), terminal (+ the pty's master), private (+ a tmpfs, or the
                           list of System V segments), lost, restored, gone
    command → supervisor   probes, not-executed
    leader  → supervisor   stopped: the command was; leader → init: command (its pid)
    init    → supervisor   exit
    supervisor → keeper    look: a name came or went beside a protected one
    init    → keeper       proc (+ the mount of /proc); keeper → init: built
    supervisor → init      orders: signal, freeze, thaw, hang-up, kill, join (+ its streams and a channel of
                           its own); their end is the end of the supervisor, and then of everything inside

A joined process (launch/joined.py) has a channel of its own: from it `probes`, `not-executed`, `failed`, from
its leader `stopped`, from init `forked` (+ the pty's master), `exit`. One byte lets a command exec: on a pipe
for the first, on its own channel for a joined one.
"""

import _socket
import marshal
import struct

from jail.light import Final, suppress

MESSAGE_LIMIT: Final = 65536
"""Bytes of one message: the longest is a text of errors or probes, a few hundred bytes."""
ORDER_LIMIT: Final = 160 * 1024
"""Bytes of one order: the longest is a command to join, with its arguments (wire.REQUEST_LIMIT)."""
FDS_LIMIT: Final = 5

Message = tuple[str, tuple[object, ...], tuple[int, ...]]


class Channel:
    """One end of a pair; `pair` makes both."""

    def __init__(self, socket: _socket.socket) -> None:
        self._socket = socket

    @classmethod
    def pair(cls) -> "tuple[Channel, Channel]":
        """Two connected ends."""
        one, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        return cls(one), cls(other)

    @classmethod
    def of(cls, fd: int) -> "Channel":
        """The end that `fd` is; it becomes this object's."""
        return cls(_socket.socket(fileno=fd))

    def detach(self) -> int:
        """The fd of this end, which is the caller's from here on."""
        return self._socket.detach()

    def set_patience(self, seconds: float) -> None:
        """From here on `receive` raises TimeoutError after so long."""
        self._socket.settimeout(seconds)

    def set_nonblocking(self) -> None:
        """From here on `receive` raises BlockingIOError where it would wait."""
        self._socket.settimeout(0)

    def fileno(self) -> int:
        """For poll(2)."""
        return self._socket.fileno()

    def send(self, tag: str, *values: object, fds: tuple[int, ...] = (), wait: bool = True) -> None:
        """Send one message; OSError when the other end is gone, or, without `wait`, cannot take it now."""
        data = marshal.dumps((tag, values))  # type: ignore[arg-type]  # plain values, as the rule says
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
        self._socket.sendmsg([data], rights, 0 if wait else _socket.MSG_DONTWAIT)

    def offer(self, tag: str) -> None:
        """Send a message that may be lost: where the last ones are still unread, it will look anyway."""
        with suppress(OSError):
            self._socket.sendmsg([marshal.dumps((tag, ()))], [], _socket.MSG_DONTWAIT)

    def receive(self, limit: int = MESSAGE_LIMIT) -> Message | None:
        """The next message, waiting for it; None when the other end is gone. `limit`: bytes of the longest
        one that may come.
        """
        space = _socket.CMSG_SPACE(FDS_LIMIT * 4)
        try:
            data, ancillary, _, _ = self._socket.recvmsg(limit, space, _socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            # The other end closed with offers of ours unread; what it sent before that still waits (unix(7)).
            return self.receive(limit)
        if not data:
            return None
        fds: list[int] = []
        for level, kind, payload in ancillary:
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                fds += struct.unpack_from(f"{len(payload) // 4}i", payload)
        tag, values = marshal.loads(data)  # noqa: S302 - from jail's own processes alone
        return tag, values, tuple(fds)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def peer(client: _socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a Unix socket, as the kernel saw them connect (SO_PEERCRED of
    unix(7)). Raises OSError.
    """
    ucred = struct.Struct("iii")
    pid, uid, _ = ucred.unpack(client.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, ucred.size))
    return pid, uid


def tell_failure(control: Channel, at: str, problem: BaseException) -> None:
    """Tell the supervisor that `at` failed; the run is over. Its death is ours, so nobody need hear."""
    by_the_kernel = isinstance(problem, OSError)
    text = str(problem) if by_the_kernel else f"{type(problem).__name__}: {problem}"
    try:
        control.send("failed", at, text, by_the_kernel)
    except OSError:
        return
