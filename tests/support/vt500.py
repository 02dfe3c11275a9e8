"""A terminal that only listens: what a sequence of bytes would make one do, told byte by byte.

Rule: written from the state table of vt100.net/emu/dec_ansi_parser, without a look at the filter that it judges: it is
the second opinion. It reads UTF-8 and obeys eight-bit controls, as a character and as a stray byte, as the most
obliging terminal would; and it ends a device control string of tmux only where tmux does.
"""

from typing import NamedTuple


class Event(NamedTuple):
    """`kind`: print, execute, escape, control, string (with its introducer in `text`'s first place), or unfinished."""

    kind: str
    text: str


STRINGS = "PX^_]k"
EIGHT_BIT = {0x90: "P", 0x98: "X", 0x9B: "[", 0x9D: "]", 0x9E: "^", 0x9F: "_"}


def characters(data: bytes) -> list[int]:
    """Code points; a byte that belongs to no character stands for itself."""
    return [
        ord(char) - 0xDC00 if 0xDC80 <= ord(char) <= 0xDCFF else ord(char)
        for char in data.decode("utf-8", "surrogateescape")
    ]


class _Listener:
    """The states of the table that matter here, and what each does with a character."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.state, self.text = "ground", ""

    def hear(self, code: int) -> None:
        if self.state == "string" and code == 0x07 and self.text[0] == "]":
            self._done("string")
        elif code in (0x18, 0x1A):
            self.state = "ground"
        elif code == 0x1B or 0x80 <= code <= 0x9F:
            self._introduced(code)
        elif self.state == "string":
            self.text += chr(code)
        elif code < 0x20:
            self.events.append(Event("execute", chr(code)))
        elif self.state == "ground":
            self.events.append(Event("print", chr(code)))
        elif code != 0x7F:
            {"escape": self._escape, "control": self._control}[self.state](code)

    def _done(self, kind: str) -> None:
        self.events.append(Event(kind, self.text))
        self.state, self.text = "ground", ""

    def _introduced(self, code: int) -> None:
        if self.state == "string":
            self._done("string")
        if code == 0x1B:
            self.state, self.text = "escape", ""
        elif code == 0x9B:
            self.state, self.text = "control", ""
        elif code in EIGHT_BIT:
            self.state, self.text = "string", EIGHT_BIT[code]
        else:
            self.events.append(Event("execute", chr(code)))
            self.state = "ground"

    def _escape(self, code: int) -> None:
        char = chr(code)
        if not self.text and char == "[":
            self.state = "control"
        elif not self.text and char in STRINGS:
            self.state, self.text = "string", char
        else:
            self.text += char
            if not 0x20 <= code <= 0x2F:
                self._done("escape")

    def _control(self, code: int) -> None:
        self.text += chr(code)
        if code >= 0x40:
            self._done("control")


def obeys(data: bytes) -> list[Event]:
    """Everything that the terminal does."""
    listener = _Listener()
    for code in characters(data):
        listener.hear(code)
    if listener.state != "ground":
        listener.events.append(Event("unfinished", listener.state + listener.text))
    return listener.events
