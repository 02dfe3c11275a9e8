"""Reaching the supervisor of a running session: by its socket, and by its process where it does not answer.

Rule: nothing is sent to a number. The socket is opened through the session's folder, which must be this
user's alone, and its peer must have this user's uid; the process is a pidfd that was opened before it was
seen to hold the session's lock, so that a pid that was given out again is never taken for it.
"""

import _socket
import os
import select
import stat
import time

from jail.errors import EXIT_USAGE, JailError
from jail.launch import places, wire
from jail.launch.channel import Channel, peer
from jail.ledger import place
from jail.light import Final, Mapping, suppress

NEWEST_RUNNING: Final = "-"
CONNECT_WAIT: Final = 5.0
"""Seconds to wait for a place in the queue of a supervisor that is busy (joins.BACKLOG)."""
_POLL: Final = 0.02
BENEATH: Final = 64
"""Processes that are waited for beneath a supervisor: guard, keeper, process 1 and the first of its children;
process 1 ends after all the others (pid_namespaces(7)).
"""


def session_named(state: str, text: str, *, running: bool = False) -> str:
    """The folder of the session that `text` names: an id or its beginning, `last`, or `-` for the newest that
    runs.

    Raises JailError with EXIT_USAGE when there is none; with `running` also when it does not run.
    """
    if text == NEWEST_RUNNING:
        found = running_sessions(state)
        if not found:
            hint = "`jail run -- COMMAND` starts one"
            raise JailError("no session is running", where=state, hint=hint, code=EXIT_USAGE)
        return found[0]
    try:
        folder = place.find(state, text)
    except JailError:
        name, removed = gone(state, text) or ("", 0.0)
        if not removed:
            raise
        what = f"`jail gc` removed session {name}, with its ledger and its output"
        hint = "`jail sessions` lists those that are left"
        raise JailError(what, where=state, hint=hint, code=EXIT_USAGE) from None
    if running and not place.running(folder):
        hint = "`jail sessions` shows which run; `-` names the newest of them"
        raise JailError("this session has ended", where=folder, hint=hint, code=EXIT_USAGE)
    return folder


def gone(state: str, text: str) -> tuple[str, float] | None:
    """The one session whose id begins with `text`, which the index knows though its folder is gone, and when
    `jail gc` removed it (beside.sessions_named).
    """
    from jail.ledger import beside  # the index is read only for what is not found

    named = beside.sessions_named(state)
    found = [(name, removed) for name, removed in named.items() if text and name.startswith(text)]
    return found[0] if len(found) == 1 else None


def running_sessions(state: str) -> list[str]:
    """The folders of all sessions that run, newest first."""
    folders = [os.path.join(state, place.SESSIONS, name) for name in place.listing(state)]
    return [folder for folder in folders if place.running(folder)]


def state_of(environ: Mapping[str, str]) -> str:
    """The state folder of whoever calls."""
    return place.state_folder(environ, places.home(environ))


def connect(folder: str) -> _socket.socket:
    """A connection with the supervisor of the session in `folder`. Raises JailError."""
    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
    try:
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise PermissionError("the session's folder is not this user's alone")
            _connect(client, f"/proc/self/fd/{fd}/{place.SOCKET}")
        finally:
            os.close(fd)
        if peer(client)[1] != os.geteuid():
            raise PermissionError("another user answers there")
    except OSError as error:
        client.close()
        raise JailError(
            f"the session cannot be reached: {error.strerror or error}",
            where=os.path.join(folder, place.SOCKET),
            hint="it starts, ends, or does not answer: try again; `jail stop` ends it all the same",
        ) from error
    return client


def _connect(client: _socket.socket, path: str) -> None:
    until = time.monotonic() + CONNECT_WAIT
    client.settimeout(0)
    while True:
        try:
            client.connect(path)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(_POLL)
        else:
            client.settimeout(None)
            return


def ask(folder: str, request: bytes) -> Channel:
    """Connect, and send `request`; the answers come from the channel. Raises JailError."""
    if len(request) > wire.REQUEST_LIMIT:
        raise JailError(
            f"the command line has {len(request)} bytes, {wire.REQUEST_LIMIT} can be sent",
            where="the words after --",
            hint="put it into a script, or its input into a file",
        )
    client = connect(folder)
    link = Channel(client)
    tell(link, request)
    return link


def tell(link: Channel, message: bytes) -> None:
    """Send one message; a supervisor that is gone is noticed by the end of its channel."""
    with suppress(OSError):
        os.write(link.fileno(), message)


class Supervisor:
    """The supervisor's process, by pidfd."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)

    @classmethod
    def of(cls, folder: str, pid: object) -> "Supervisor | None":
        """The process `pid` (of the start entry) if it holds the lock of the session in `folder`; else
        None.
        """
        try:
            found = cls(pid) if isinstance(pid, int) and pid > 0 else None
        except (OSError, OverflowError):
            return None
        if found is None:
            return None
        if not (_has_open(found.pid, os.path.join(folder, place.LOCK)) and found.alive()):
            found.close()
            return None
        return found

    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self.wait(0.0)

    def wait(self, seconds: float) -> bool:
        """Wait for its end, at most so long; whether it has ended."""
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        return bool(poller.poll(int(seconds * 1000)))

    def signal(self, number: int) -> None:
        """Signal this process, and none that has its pid later (pidfd_send_signal(2))."""
        import signal

        try:
            signal.pidfd_send_signal(self._handle, number)
        except ProcessLookupError:
            return

    def beneath(self) -> "list[Supervisor]":
        """Its processes on the host, by parenthood: they die with it, and a moment later."""
        found: list[Supervisor] = []
        waiting = [self.pid]  # breadth first: guard, keeper, process 1
        while waiting and len(found) < BENEATH:
            for pid in _children(waiting.pop(0)):
                try:
                    found.append(Supervisor(pid))
                except OSError:
                    continue
                waiting.append(pid)
        return found

    def close(self) -> None:
        """Forget it."""
        os.close(self._handle)


def _children(pid: int) -> list[int]:
    """Its children (proc_pid_task(5)); none where the kernel does not list them."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _has_open(pid: int, path: str) -> bool:
    """Whether the process has the file at `path` open (proc_pid_fd(5))."""
    try:
        lock = os.stat(path, follow_symlinks=False)
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                found = os.stat(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino):
                return True
    except OSError:
        return False
    return False
