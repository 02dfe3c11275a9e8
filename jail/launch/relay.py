"""What the command writes goes to the caller's stdout and stderr; and what each of the caller's three fds is.

Rule: no fd of the caller ever enters the jail, because an fd can be opened again with any mode through
`/proc/self/fd` (a `>>` log truncated, a file on stdin written). So bytes are copied, without threads and
without blocking, by parts that say what they wait for and are told when it is there; the supervisor owns the
one poll loop. Who writes when:

    command -- inner pipe --> Relay: reads, writes all that it read, only then reads again --> caller's fd
    caller's fd -- looked at, not taken --> Feed (feed.py) -- inner pipe --> command; what it read is taken
    caller's terminal <--> Terminal (terminal.py): a relay each way <--> master of the inner pty
"""

import errno
import fcntl
import os
import select
import stat
import time

from jail.launch.ends import End, caller_sink, inner_end
from jail.launch.quota import Quota
from jail.light import Callable, Final, NamedTuple, Protocol, Sequence

CHUNK: Final = 65536
"""Most bytes that a relay holds: the default size of a pipe (pipe(7)), so that one read can empty it."""
PAGE: Final = os.sysconf("SC_PAGESIZE")
"""One slot of a pipe: a pipe that polls as writable takes this much at once (pipe(7))."""
BURST: Final = 4 * CHUNK
"""Most bytes that are copied before the poll loop looks at its other fds: some milliseconds of work."""
TURN: Final = 0.01
"""Seconds of such work at most: there are escape sequences of which each takes its time (escapes.py)."""
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


class Edit(Protocol):
    """What changes the bytes on their way (escapes.Filter), or looks at them (answers.Answers)."""

    def feed(self, data: bytes) -> bytes:
        """What goes out now for `data`; what is kept back comes with later bytes, or never."""

    def finish(self) -> bytes:
        """What goes out at the end."""


class Relay:
    """Copies one way, at most BURST bytes or TURN for an event, and holds at most CHUNK bytes.

    A pty gives a page for a read at most: small pieces are gathered until CHUNK, or until there is no more.

    `deliver`: whether what is left goes out after the command's end. `reopens`: the source is the master of a
    pty, whose slaves may all be closed (EIO) and be opened again; closing it then would be SIGHUP for a
    command that has only closed its streams, as each does just before it exits. `gate`: whether the source
    may be read now; `quota`: how much of it at most. `edit`: through which the bytes go. `moved`: bytes that
    were read from the source. `error`: why the sink failed (ENOSPC, EIO, …). A reader that went away (EPIPE)
    is not an error: the source is closed, and the writer inside gets SIGPIPE as it would without us. Our own
    SIGPIPE is ignored by Python.
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
        edit: Edit | None = None,
    ) -> None:
        self.closed = False
        self.moved = 0
        self.error: OSError | None = None
        self.timeout: float | None = None
        self._source, self._sink = source, sink
        self._deliver, self._reopens, self._gate = deliver, reopens, gate
        self._quota, self._edit = quota, edit
        self._held = memoryview(b"")
        self._gathers = deliver and gate is None
        self._room = self._most = CHUNK if deliver else PAGE
        self._last = False  # the source holds all that will ever come
        self._ended = False  # the source has nothing left
        self._hung = False  # no slave is open: POLLHUP would come back at once

    @property
    def dropped(self) -> dict[str, int]:
        """How many escape sequences of each kind were not passed."""
        return getattr(self._edit, "dropped", {})

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
                if self._last and not self._held and not self.closed:
                    self._read()
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
        """Copy until there is no more for now, the sink is full, or BURST."""
        stop, late = self.moved + BURST, time.monotonic() + TURN
        while self._take():
            if self._held and not self._sink.polled:
                self._write()
            if self.closed or self._held:
                return
            if not self._last and (self.moved >= stop or time.monotonic() > late):
                return
            if not self._gathers:
                return  # one read for an event: the source may block, and the rest may be for another reader

    def _take(self) -> bool:
        """Hold what can be read now, edited; False when there was nothing, and after the end."""
        if self._quota is not None and self._quota.spent:
            if self._last:
                self.close()  # what is left inside is past the limit
            return False
        pieces: list[bytes] = []
        room = self._room
        while room > 0:
            data = self._read_once(room)
            if not data:
                break
            pieces.append(data)
            room -= len(data)
            if not self._gathers or (self._quota is not None and self._quota.spent):
                break
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.moved += len(data)
        if self._edit is not None:
            data = self._edited(self._edit, data)
        self._held = memoryview(data)
        if self._ended and not data:
            self.close()
        return bool(pieces) or (self._ended and not self.closed)

    def _edited(self, edit: Edit, data: bytes) -> bytes:
        """Reads get smaller while what was read takes more than a turn."""
        late, full = time.monotonic() + TURN, len(data) >= self._room
        data = edit.feed(data) + (edit.finish() if self._ended else b"")
        if time.monotonic() > late:
            self._room = max(PAGE, self._room // 4)
        elif full:
            self._room = min(self._most, self._room * 2)
        return data

    def _read_once(self, room: int) -> bytes:
        """b"" when there is nothing now (`_hung` or not), or never again (`_ended`)."""
        try:
            data = os.read(self._source.fd, room)
        except BlockingIOError:
            self._ended = self._last
            return b""
        except OSError as failure:
            # EIO: the last slave of a pty closed, or a terminal hung up (n_tty_read).
            if failure.errno == errno.EIO and self._reopens and not self._last:
                self._hung = True
                return b""
            self.error = None if failure.errno == errno.EIO else failure
            data = b""
        self._ended = not data
        if self._quota is not None:
            self._quota.take(memoryview(data))
        return data

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
        if self._ended and not self._held:
            self.close()


def outward(inner_read: int, fd: int, quota: Quota | None = None, *, allowed: tuple[str, ...] = ()) -> Relay:
    """A relay from an inner pipe, ours from here on, to the caller's `fd`; a terminal gets it filtered."""
    edit = None
    if os.isatty(fd):
        from jail.launch.escapes import Filter

        edit = Filter(allowed, gate=lambda _: False, undoes=True)
    return Relay(inner_end(inner_read), caller_sink(fd), quota=quota, edit=edit)


class Filtered(Protocol):
    """What keeps escape sequences from a terminal: Relay, Terminal."""

    @property
    def dropped(self) -> dict[str, int]:
        """How many of each kind."""


def dropped(parts: Sequence[Filtered]) -> dict[str, int]:
    """How many escape sequences of each kind all `parts` kept from the terminal."""
    found: dict[str, int] = {}
    for part in parts:
        for kind, count in part.dropped.items():
            found[kind] = found.get(kind, 0) + count
    return found


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
