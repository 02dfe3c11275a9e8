"""The door of a running session: a socket on which `jail exec` and `jail stop` are heard.

Rule: one more part of the supervisor's poll loop; it waits for nobody. The socket lies in the session's
folder, which is this user's alone and which no jail shows; a peer must have the supervisor's uid and live in
its user namespace, so that a process inside that did reach it would be turned away. What is done with a
client (joined.py) is imported when the first one comes: most runs have none.
"""

import _socket
import os
import select
import time

from jail.errors import JailError
from jail.launch.channel import peer
from jail.launch.processes import Processes
from jail.ledger.place import SOCKET
from jail.light import TYPE_CHECKING, Callable, Final, NamedTuple, suppress
from jail.plan.steps import Plan

if TYPE_CHECKING:
    from jail.launch.joined import Visit
    from jail.launch.record import Record

BACKLOG: Final = 16
"""Clients that may wait to be accepted; one more gets EAGAIN (unix(7))."""
VISITS: Final = 64
"""Clients at a time: each holds at most seven fds here, and the soft limit on fds is often 1024."""
AT_ONCE: Final = 8
"""Clients accepted in one turn of the loop, so that a flood of them does not hold up the command's output."""
BREATH: Final = 0.5
"""Seconds without accepting after the system had no fd for one more client: poll(2) would return at once."""


class Site(NamedTuple):
    """What a client of one session may have to do with."""

    plan: Plan
    processes: Processes
    record: "Record"


class Joins:
    """The listening socket and its clients; a part of the poll loop (relay.Part)."""

    def __init__(self, site: Site, folder: str) -> None:
        self.closed = False
        self.error: OSError | None = None
        self._site = site
        self._visits: list[Visit] = []
        self._silent_until = 0.0
        self._folder = self._listener = -1
        self._socket: _socket.socket | None = None
        self.count = 0
        try:
            self._listen(folder)
        except OSError as error:
            site.record.ledger.append("note", text=f"no command can join this session: {error}")

    def _listen(self, folder: str) -> None:
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        kind = _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK
        listener = _socket.socket(_socket.AF_UNIX, kind)
        # Through /proc: a socket's path has at most 107 bytes (unix(7)), the folder's may have more.
        try:
            listener.bind(f"/proc/self/fd/{self._folder}/{SOCKET}")
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        self._socket, self._listener = listener, listener.fileno()

    @property
    def timeout(self) -> float | None:
        """Seconds until a client has waited, or kept us waiting, long enough."""
        waits = [visit.deadline for visit in self._visits if visit.deadline]
        if self._silent_until:
            waits.append(self._silent_until)
        return max(0.0, min(waits) - time.monotonic()) if waits else None

    def interests(self) -> list[tuple[int, int]]:
        """(fd, poll mask) pairs to wait for now. Acts, too, on what is over in time."""
        now = time.monotonic()
        for visit in self._visits:
            if visit.deadline and visit.deadline <= now:
                self._let(visit, visit.expired)
        if self._silent_until and self._silent_until <= now:
            self._silent_until = 0.0
        self._visits = [visit for visit in self._visits if not visit.closed]
        wanted = [(fd, select.POLLIN) for visit in self._visits for fd in visit.fds()]
        if self._listener >= 0 and not self._silent_until:
            wanted.append((self._listener, select.POLLIN))
        return wanted

    def ready(self, fd: int, mask: int) -> None:
        """Act on an event of poll(2); events of other fds, and late ones, are ignored."""
        if self._socket is not None and fd == self._listener and mask:
            self._accept(self._socket)
            return
        for visit in self._visits:
            if fd in visit.fds():
                self._let(visit, visit.ready, fd)

    def _let(self, visit: "Visit", act: Callable[..., None], *arguments: int) -> None:
        """What a client brings about must not end the run; only a ledger that cannot be written does."""
        try:
            act(*arguments)
        except JailError:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is this client's alone
            visit.give_up(f"{type(problem).__name__}: {problem}")

    def _accept(self, listener: _socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                fd, _ = listener._accept()  # type: ignore[attr-defined]  # accept(2), which the class in C has
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                self._silent_until = time.monotonic() + BREATH
                return
            client = _socket.socket(fileno=fd)
            client.settimeout(0)
            if len(self._visits) >= VISITS or not _is_ours(client):
                client.close()
                continue
            self._welcome(client)

    def _welcome(self, client: _socket.socket) -> None:
        try:
            from jail.launch.joined import Visit
        except ImportError:  # jail was removed or replaced while this session runs
            client.close()
            return
        self.count += 1
        self._visits.append(Visit(client, self._site, self.count))

    def finish(self) -> None:
        """Everything inside is dead: say so to who waits, and take the socket away."""
        for visit in self._visits:
            with suppress(JailError):  # the end entry will meet the same, and say it
                self._let(visit, visit.session_ended)
        self.close()

    def close(self) -> None:
        """Close what is open, once."""
        if self.closed:
            return
        self.closed = True
        for visit in self._visits:
            visit.close()
        self._visits = []
        if self._socket is not None:
            self._socket.close()
            with suppress(OSError):
                os.unlink(SOCKET, dir_fd=self._folder)
        if self._folder >= 0:
            os.close(self._folder)
        self._listener = self._folder = -1


def _is_ours(client: _socket.socket) -> bool:
    """Whether the peer has our uid, and lives in our user namespace and not in one beneath it."""
    try:
        pid, uid = peer(client)
        here, there = (os.stat(f"/proc/{who}/ns/user") for who in ("self", pid))
    except OSError:
        return False
    return bool(uid == os.geteuid() and (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
