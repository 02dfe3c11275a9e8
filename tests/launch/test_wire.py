import os

import pytest
from hypothesis import given, strategies

from jail import __version__
from jail.launch import relay, wire

PIPES = relay.Stdio(relay.PIPE, relay.PIPE, relay.PIPE, merged=True)
ON_TERMINAL = relay.Stdio(relay.TERMINAL, relay.TERMINAL, relay.NULL, merged=False)
MARK = f"jail {__version__}\0".encode()

MESSAGES = {
    "a command on pipes": (wire.Join(("sh", "-c", "exit 1"), PIPES, ""), wire.join),
    "a command on a terminal": (wire.Join(("bash",), ON_TERMINAL, "xterm-256color"), wire.join),
    "an argument that is not UTF-8": (wire.Join((os.fsdecode(b"\xff"), ""), PIPES, ""), wire.join),
    "the end": (wire.Stop(2.5), wire.stop),
    "a signal": (wire.Signal("group", 2), wire.signal),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_what_is_said_is_what_is_heard(case: str) -> None:
    message, pack = MESSAGES[case]
    assert wire.parse(pack(message)) == message  # type: ignore[operator]  # each with its own


def test_ready_is_ready() -> None:
    assert wire.parse(wire.ready()) == wire.READY


NOT_UNDERSTOOD = {
    "nothing": b"",
    "no words": b"x",
    "another program": b"GET / HTTP/1.1\r\n\r\n\0",
    "no verb": MARK,
    "an unknown verb": MARK + b"widen",
    "a join without a command": MARK + b"join\0pipe\0pipe\0pipe\0one\0",
    "a join with an unknown stream": MARK + b"join\0file\0pipe\0pipe\0one\0\0true",
    "a join whose streams are one though they differ": MARK + b"join\0pipe\0pipe\0null\0one\0\0true",
    "a stop without a time": MARK + b"stop",
    "a stop after no number": MARK + b"stop\0soon",
    "a stop before now": MARK + b"stop\0-1",
    "a stop at no time": MARK + b"stop\0nan",
    "a stop never": MARK + b"stop\0inf",
    "signal 0": MARK + b"signal\0group\0000",
    "signal 65": MARK + b"signal\0group\00065",
    "a signal for somebody else": MARK + b"signal\0everybody\0009",
    "a signal that is no number": MARK + "signal\0group\0²".encode(),
    "ready with more": MARK + b"ready\0now",
    "too long": wire.join(wire.Join(("x" * wire.REQUEST_LIMIT,), PIPES, "")),
}


@pytest.mark.parametrize("case", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_said_to_be(case: str) -> None:
    assert wire.parse(NOT_UNDERSTOOD[case]) == "not understood"


def test_another_version_is_named() -> None:
    assert wire.parse(b"jail 99.1\0ready") == f"this session was started by jail {__version__}, not 99.1"


@pytest.mark.parametrize("term", ["../../etc/passwd", "x" * 65, "a b", "", "é", "\x1b"])
def test_a_terminals_name_that_is_none_is_left_out(term: str) -> None:
    found = wire.parse(wire.join(wire.Join(("true",), ON_TERMINAL, term)))
    assert isinstance(found, wire.Join)
    assert found.term == ""


@given(strategies.binary(max_size=200), strategies.booleans())
def test_any_bytes_are_a_request_or_a_sentence(raw: bytes, marked: bool) -> None:
    found = wire.parse(MARK * marked + raw)
    assert isinstance(found, wire.Join | wire.Stop | wire.Signal | str)
