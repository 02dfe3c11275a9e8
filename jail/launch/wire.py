"""What a client (`jail exec`, `jail stop`) says to the supervisor of a running session.

Rule: words separated by NUL bytes, one message of a SOCK_SEQPACKET socket each, and nothing is unpacked or
called by name, since the supervisor must survive whatever comes. Both ends are the same version of jail: the
first word says which. The answers go the other way as messages of channel.py, to a client that has made sure
whom it asks.

    client → supervisor    join: streams, TERM, argv; then `ready`, when it has its terminal in order; signals
                           stop: seconds of grace
    supervisor → client    offered (+ the outer ends of the streams), stopped (the command was), exit,
                           refused, ended; stopping
"""

import os

from jail import __version__
from jail.launch import relay
from jail.light import Final, NamedTuple

REQUEST_LIMIT: Final = 128 * 1024
"""Bytes of one request: a sender may have 208 KiB under way (net.core.wmem_default)."""
TERM_LIMIT: Final = 64
"""Bytes of a name of terminfo(5)."""
JOIN: Final = "join"
STOP: Final = "stop"
READY: Final = "ready"
SIGNAL: Final = "signal"
_MARK: Final = f"jail {__version__}"
_KINDS: Final = (relay.NULL, relay.PIPE, relay.TERMINAL)
_HEAD: Final = 7
"""Words before the command of a join."""


class Join(NamedTuple):
    """A command that is to run inside, what its streams are to be, and the client's terminal ("": none)."""

    command: tuple[str, ...]
    stdio: relay.Stdio
    term: str


class Stop(NamedTuple):
    """The end of the session: SIGTERM, and SIGKILL after `grace` seconds."""

    grace: float


class Signal(NamedTuple):
    """A signal for the joined command: its group or its process (init.TO_GROUP, init.TO_PROCESS)."""

    target: str
    number: int


def join(request: Join) -> bytes:
    """The message that asks for a join."""
    stdio = request.stdio
    streams = (stdio.stdin, stdio.stdout, stdio.stderr, "one" if stdio.merged else "two")
    return _packed(JOIN, *streams, request.term, *request.command)


def stop(request: Stop) -> bytes:
    """The message that asks for the end."""
    return _packed(STOP, repr(request.grace))


def signal(request: Signal) -> bytes:
    """The message that hands on a signal."""
    return _packed(SIGNAL, request.target, str(request.number))


def ready() -> bytes:
    """The message that lets the command start."""
    return _packed(READY)


def parse(raw: bytes) -> "Join | Stop | Signal | str":
    """What a message asks for; a str is READY, or else a sentence about what is wrong with it."""
    words = os.fsdecode(raw).split("\0")
    if len(raw) > REQUEST_LIMIT or len(words) < 2:
        return "not understood"
    if words[0] != _MARK:
        other = words[0].removeprefix("jail ")
        known = other != words[0] and other.replace(".", "").isalnum()
        return f"this session was started by jail {__version__}, not {other}" if known else "not understood"
    parser = _PARSERS.get(words[1])
    found = None if parser is None else parser(words)
    return "not understood" if found is None else found


def _packed(*words: str) -> bytes:
    return b"\0".join(map(os.fsencode, (_MARK, *words)))


def _join(words: list[str]) -> Join | None:
    if len(words) <= _HEAD:
        return None
    kinds, merged, term = words[2:5], words[5], words[6]
    if any(kind not in _KINDS for kind in kinds) or merged not in ("one", "two"):
        return None
    if merged == "one" and kinds[1:] != [relay.PIPE, relay.PIPE]:
        return None
    plain = term.replace("-", "").replace("+", "").replace(".", "").replace("_", "")
    named = len(term) <= TERM_LIMIT and plain.isascii() and plain.isalnum()
    stdio = relay.Stdio(kinds[0], kinds[1], kinds[2], merged == "one")
    return Join(tuple(words[_HEAD:]), stdio, term if named else "")


def _stop(words: list[str]) -> Stop | None:
    try:
        grace = float(words[2]) if len(words) == 3 else -1.0
    except ValueError:
        return None
    return Stop(grace) if 0.0 <= grace <= GRACE_LIMIT else None


def _signal(words: list[str]) -> Signal | None:
    if len(words) != 4 or words[2] not in ("group", "process") or len(words[3]) > 2:
        return None
    known = words[3].isascii() and words[3].isdigit() and 0 < int(words[3]) < SIGNALS_END
    return Signal(words[2], int(words[3])) if known else None


def _ready(words: list[str]) -> str | None:
    return READY if len(words) == 2 else None


GRACE_LIMIT: Final = 86400.0
"""Seconds that a stop may wait: a day is longer than anybody watches."""
SIGNALS_END: Final = 65
"""One above the last signal (signal(7))."""
_PARSERS: Final = {JOIN: _join, STOP: _stop, SIGNAL: _signal, READY: _ready}
