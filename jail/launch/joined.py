"""One client of a running session, as the supervisor sees it: a command that joins, or a request to stop.

Rule: nothing here waits and nothing is believed; every state has an end in time, and a client that dies,
stalls or talks nonsense loses its own command and nothing else. A join goes through these states:

    asks      connected; the request has to come within REQUEST_WAIT
    built     ordered from process 1, which forks it confined as it is itself; its probes must hold; what has
              the same uid inside can stop it (SIGSTOP), so it is told to go on now and then
    offered   the client has the outer ends of the streams and puts its terminal in order; what is recorded
              in the ledger when it says `ready`, and only then, the exec may happen
    runs      until it exits; when the client goes first, the session of the command is hung up and, after
              HANG_UP_GRACE, killed
    hung up   the client is gone
    stops     it asked for the end of the session, which is killed when its grace is over
    over      nothing is left to do

The streams are pipes, or a pty of the jail's own devpts: no fd of the client enters.
"""

import _socket
import os
import time

from jail.errors import EXIT_CANNOT_ISOLATE, EXIT_JAIL
from jail.launch import command, init, outcome, relay, wire
from jail.launch.channel import Channel
from jail.launch.joins import Site
from jail.light import Any, Final, signal, suppress

REQUEST_WAIT: Final = 5.0
"""Seconds until a client that connected has to say what it wants."""
BUILD_WAIT: Final = 20.0
"""Seconds until a command that joins has to be ready for its exec: a fork and a few probes."""
GO_ON: Final = 0.5
"""Seconds until a process that is not ready is told to go on, and between two such orders (SIGCONT)."""
HANG_UP_GRACE: Final = 3.0
"""Seconds between SIGHUP and SIGKILL for a command whose client is gone: an editor keeps its file."""

ASKS: Final = "asks"
BUILT: Final = "built"
OFFERED: Final = "offered"
RUNS: Final = "runs"
HUNG_UP: Final = "hung up"
STOPS: Final = "stops"
OVER: Final = "over"

_Fds = tuple[int, ...]


class Visit:
    """A client, from its connection to its end. `deadline` is in seconds of time.monotonic(), 0: none."""

    def __init__(self, client: _socket.socket, site: Site, number: int) -> None:
        self._socket = client
        self._client = Channel(client)
        self._site = site
        self._number = number
        self._state = ASKS
        self._link: Channel | None = None
        self._request = wire.Join((), relay.Stdio(relay.NULL, relay.NULL, relay.NULL, merged=False), "")
        self._streams: dict[str, int] = {}
        self._pid = 0
        self._held = 0
        self._ended = False
        self._built_by = 0.0
        self._missed: tuple[object, ...] = ()
        self.deadline = time.monotonic() + REQUEST_WAIT

    @property
    def closed(self) -> bool:
        """Nothing is left to do."""
        return self._state == OVER

    def fds(self) -> list[int]:
        """What is polled: the client, and the channel of its command."""
        found = [self._client.fileno()] if self._client.fileno() >= 0 else []
        return found if self._link is None else [*found, self._link.fileno()]

    def ready(self, fd: int) -> None:
        """Act on an event. Raises JailError when the ledger cannot be written."""
        if self._link is not None and fd == self._link.fileno():
            self._hear_command(self._link)
        else:
            self._hear_client()

    def expired(self) -> None:
        """The deadline has passed."""
        if self._state == BUILT and time.monotonic() < self._built_by:
            self._site.processes.order(init.TO_PROCESS, signal.SIGCONT, self._number)
            self.deadline = min(time.monotonic() + GO_ON, self._built_by)
            return
        self.deadline = 0.0
        if self._state == HUNG_UP:
            self._site.processes.tell(init.KILL, self._number)
            if self._ended:
                self.close()
        elif self._state == STOPS:
            self._site.processes.order(init.TO_PROCESS, signal.SIGKILL)
        else:
            self.give_up(_LATE[self._state])

    def give_up(self, why: str, code: int = EXIT_JAIL) -> None:
        """End this visit, and the command if there is one."""
        self._say("refused", why, code)
        if self._state in (RUNS, HUNG_UP):
            self._hang_up()
            return
        if self._link is not None:
            self._site.processes.tell(init.KILL, self._number)
        self.close()

    def session_ended(self) -> None:
        """Everything inside is dead: hear what the command said at last, then tell the client."""
        while self._link is not None and not self._ended and self._hear_command(self._link):
            pass
        if self._state in (RUNS, HUNG_UP) and not self._ended:
            self._left(None, 0, "the session ended")
        self._say("ended")
        self.close()

    def close(self) -> None:
        """Close every fd, once."""
        self._state = OVER
        self._forget_streams()
        self._client.close()
        if self._link is not None:
            self._link.close()
            self._link = None

    # What the client says.

    def _hear_client(self) -> None:
        try:
            raw = self._socket.recv(wire.REQUEST_LIMIT + 1)
        except BlockingIOError:
            return
        except OSError:
            raw = b""
        if not raw:
            self._client_is_gone()
            return
        request = wire.parse(raw)
        if isinstance(request, wire.Join) and self._state == ASKS:
            self._build(request)
        elif isinstance(request, wire.Stop) and self._state == ASKS:
            self._stop(request)
        elif request == wire.READY and self._state == OFFERED:
            self._go()
        elif isinstance(request, wire.Signal) and self._state == RUNS:
            self._site.processes.order(request.target, request.number, self._number)
        elif not isinstance(request, wire.Signal):  # one that came too early or too late is nobody's
            self.give_up(request if isinstance(request, str) and self._state == ASKS else "not understood")

    def _client_is_gone(self) -> None:
        if self._state == RUNS:
            self._hang_up()
        elif self._state == STOPS:
            self._client.close()  # who asked need not wait: the deadline stays
        else:
            self.give_up("")

    def _hang_up(self) -> None:
        self._state = HUNG_UP
        self._client.close()
        self._site.processes.tell(init.HANG_UP, self._number)
        self.deadline = time.monotonic() + HANG_UP_GRACE

    def _stop(self, request: wire.Stop) -> None:
        self._state = STOPS
        self._site.record.stop(request.grace)
        self.deadline = time.monotonic() + request.grace
        if signal.getsignal(signal.SIGTERM) in (signal.SIG_IGN, signal.SIG_DFL):
            self._site.processes.order(init.TO_PROCESS, signal.SIGTERM)
        else:
            os.kill(
                os.getpid(), signal.SIGTERM
            )  # as kill(1) would: the supervisor then knows that it hurries
        self._say("stopping")

    def _build(self, request: wire.Join) -> None:
        self._request = request
        ours, theirs = Channel.pair()
        ours.set_nonblocking()
        inner = {"channel": theirs.detach()}
        try:
            stdio = self._open_streams(request.stdio, inner)
            places = list(inner)
            numbers = tuple(places.index(name) if name in inner else _NO_PIPE[name] for name in stdio)
            environment = self._environment(request)
            fds = tuple(inner.values())
            told = self._site.processes.tell(
                init.JOIN, self._number, request.command, numbers, environment, fds=fds
            )
        finally:
            for fd in inner.values():
                os.close(fd)
        if not told:
            ours.close()
            self.give_up("process 1 of the jail takes no orders now")
            return
        self._link, self._state = ours, BUILT
        self._built_by = time.monotonic() + BUILD_WAIT
        self.deadline = time.monotonic() + GO_ON

    def _open_streams(self, stdio: relay.Stdio, inner: dict[str, int]) -> tuple[str, str, str]:
        """Make the pipes: the command's ends go into `inner`, the client's into `_streams`; a name for each
        stream.
        """
        names = []
        for name, kind in (("stdin", stdio.stdin), ("stdout", stdio.stdout), ("stderr", stdio.stderr)):
            if kind != relay.PIPE:
                names.append(kind)
            elif name == "stderr" and stdio.merged:
                names.append("stdout")
            else:
                read, write = os.pipe2(os.O_CLOEXEC)
                if os.geteuid() == 0:
                    os.fchown(read, self._site.plan.uid, self._site.plan.gid)
                names.append(name)
                self._streams[name] = write if name == "stdin" else read
                inner[name] = read if name == "stdin" else write
                if name == "stdin":  # the client asks the pipe how much is unread (feed.py)
                    self._streams["unread"] = os.dup(read)
        return names[0], names[1], names[2]

    def _environment(self, request: wire.Join) -> tuple[tuple[str, str], ...]:
        """The session's own; on a terminal with that terminal's name."""
        environment = dict(self._site.plan.environment)
        if request.term and relay.TERMINAL in request.stdio:
            environment["TERM"] = request.term
        return tuple(environment.items())

    # What the command's process, and process 1 for it, say.

    def _hear_command(self, link: Channel) -> bool:
        """One message; whether there was one."""
        try:
            message = link.receive()
        except BlockingIOError:
            return False
        if message is None:
            self._link = None
            link.close()
            if self._state in (BUILT, OFFERED):
                self.give_up("its process ended before it was executed")
            return False  # process 1 has ended, and so does the session: session_ended follows
        tag, values, fds = message
        _HEARD[tag](self, values, fds)
        return True

    def _forked(self, values: tuple[Any, ...], fds: _Fds) -> None:
        self._pid = values[0]
        if fds:
            self._streams["master"] = fds[0]
        self._offer()

    def _probed(self, values: tuple[Any, ...], _: _Fds) -> None:
        broken = "; ".join(f"{name} ({met})" for name, held, met in values[0] if not held)
        if broken:
            self._site.record.ledger.append(
                "note", text=f"a join was refused: a wall does not hold: {broken}"
            )
            self.give_up(f"a wall does not hold: {broken}", EXIT_CANNOT_ISOLATE)
            return
        self._held = len(values[0])
        self._offer()

    def _offer(self) -> None:
        """Give the client its ends, once the process is there and the walls hold around it."""
        if not self._pid or not self._held:
            return
        names = tuple(self._streams)
        allowed = self._site.plan.terminal
        self._client.send("offered", names, allowed, fds=tuple(self._streams.values()), wait=False)
        self._forget_streams()
        self._state, self.deadline = OFFERED, time.monotonic() + BUILD_WAIT

    def _go(self) -> None:
        assert self._link is not None
        self._site.record.ledger.append(
            "joined",
            join=self._number,
            command=list(self._request.command),
            pid=self._pid,
            probes_held=self._held,
            terminal=relay.TERMINAL in self._request.stdio,
        )
        self._state, self.deadline = RUNS, 0.0
        self._site.processes.order(init.TO_PROCESS, signal.SIGCONT, self._number)
        os.write(self._link.fileno(), b"g")

    def _failed(self, values: tuple[Any, ...], _: _Fds) -> None:
        at, text = values[:2]
        self.give_up(f"{at}: {text}")

    def _not_executed(self, values: tuple[Any, ...], _: _Fds) -> None:
        self._missed = values

    def _exited(self, values: tuple[Any, ...], _: _Fds) -> None:
        if self._state in (BUILT, OFFERED):
            self.give_up("its process ended before it was executed")
            return
        found = outcome.of_status(values[0], 0.0, 0)
        self._left(found.code, found.signal, outcome.NOT_EXECUTED if self._missed else found.reason)
        self._say("exit", values[0], *self._missed)
        if self._state != HUNG_UP:
            self.close()

    def _stopped(self, _: tuple[Any, ...], __: _Fds) -> None:
        if self._state == RUNS:
            self._say("stopped")
        else:  # the client has not let it start, or is gone
            self._site.processes.order(init.TO_GROUP, signal.SIGCONT, self._number)

    def _left(self, code: int | None, number: int, reason: str) -> None:
        self._ended = True
        self._site.record.ledger.append("left", join=self._number, exit=code, signal=number, reason=reason)

    def _say(self, tag: str, *values: object) -> None:
        with suppress(OSError):  # it is gone, or does not listen; either way it is not waited for
            self._client.send(tag, *values, wait=False)

    def _forget_streams(self) -> None:
        for fd in self._streams.values():
            os.close(fd)
        self._streams = {}


_LATE: Final = {
    ASKS: "its request took too long",
    BUILT: f"its process was not ready within {BUILD_WAIT:.0f} s, though told to go on (SIGCONT): does "
    "something inside keep stopping it?",
    OFFERED: "the command's start took too long",
}
"""What is said when a state has lasted too long."""
_NO_PIPE: Final = {relay.NULL: command.NULL, relay.TERMINAL: command.TERMINAL}
_HEARD: Final = {
    "forked": Visit._forked,
    "probes": Visit._probed,
    "failed": Visit._failed,
    "not-executed": Visit._not_executed,
    "exit": Visit._exited,
    "stopped": Visit._stopped,
}
"""Every message about a joined command; any other is a defect and ends the visit by KeyError."""
