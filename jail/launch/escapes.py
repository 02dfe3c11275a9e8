r"""Output on its way to the person's terminal, without the escape sequences that reach beyond the window.

Rule: a sequence passes whole and unchanged or not at all (sequences.py says which), however it was cut into
reads; all else is byte for byte what the command wrote. What begins a sequence waits until its end is known;
a sequence that is cancelled, too long, or without its end when the stream ends is dropped. The states are
those of the VT500 parser (vt100.net/emu/dec_ansi_parser) as far as a filter needs them. Over text with
nothing suspicious there is one pass in C; decisions are made for suspects alone.

Eight-bit controls that begin a sequence, as a character (U+0080..U+009F) or as a byte that belongs to none,
become U+FFFD, which most terminals show for them anyway. A terminal that does not read UTF-8 at all may still
find one within a character.

Pure: no clocks, no files. Imported only where there is a terminal: it needs `re`.
"""

import re

from jail.launch.modes import Change, Modes
from jail.launch.sequences import (
    CLIPBOARD,
    CONSOLE,
    CONSOLE_BEGUN,
    ESCAPES,
    OTHER,
    STRING_END,
    STRINGS,
    Verdict,
    kind_of_string,
    of_control,
    of_string,
)
from jail.light import Callable, Final, Iterable

SEQUENCE_LIMIT: Final = 1024
"""Bytes of a control sequence: the longest that programs send, many colours at once, have some fifty."""
STRING_LIMIT: Final = 4096
"""Bytes of a string sequence: a link of 2,083 characters fits. What is longer is dropped to its end."""
CLIPBOARD_LIMIT: Final = 1 << 20
"""Bytes of what sets the clipboard, where that is allowed: as much as tmux takes."""
KNOWN_LIMIT: Final = 512
"""Judged control sequences that are kept: a program draws with a few dozen, over and over."""

GROUND: Final = "ground"
STRING: Final = "string"
OVERLONG: Final = "overlong"

_EIGHT_BIT: Final = re.compile("[\x90\x98\x9a\x9b\x9d-\x9f\udc90\udc98\udc9a\udc9b\udc9d-\udc9f]")
"""DCS, SOS, DECID, CSI, OSC, PM, APC: as a character, and as a byte that belongs to none (PEP 383)."""
_CUT: Final = re.compile(
    rb"(?:[\xc2-\xf4]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|"
    rb"\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?)\Z"
)
"""The beginning of a character at the end of what was read."""
_SUSPECT: Final = re.compile(
    rb"\x1b(?:\[(?:[0-9]{0,5}+[;:]){0,160}+[0-9]{0,5}+[^@A-HJKLMPSXZ`abdefm]|\((?![0B])|[^\[(78M\\])"
)
"""Begins with one literal, and never goes back: everything that is drawn goes past it."""
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-9;:]*+)?\Z")
_ESCAPE: Final = re.compile(rb"\x1b[ -/]*+([0-~]|\Z)?")
_NOT_ESCAPE: Final = re.compile(rb"[^\x1b]")
_CONTROL: Final = re.compile(rb"\x1b\[[\x00-\x17\x19\x1c-?\x7f]*+([@-~]|\Z)?")
"""Group 1: the final byte; empty where more may come; None where something else cancels the sequence."""
_CONTROL_END: Final = re.compile(rb"[\x18\x1a\x1b@-~\x80-\xff]")
_CANCELS: Final = b"\x18\x1a"
_OSC_END: Final = re.compile(rb"[\x07\x18\x1a\x1b]|\xc2\x9c")
_END: Final = re.compile(rb"[\x18\x1a\x1b]|\xc2\x9c")


class Filter:
    """One stream of output; `allowed` are words of the policy (TITLE, CLIPBOARD).

    `gate`: whether that many questions, and modes that change what is typed, may pass now; shut where no key
    goes in, as what they bring could reach the caller's shell alone. `undoes`: what is left set is undone at
    the end; else the caller does it, with `modes`. `dropped`: how many sequences of each kind did not pass.
    `asked`: the questions that passed, as kinds of answers (answers.py), for the caller to take out.
    """

    def __init__(
        self,
        allowed: Iterable[str] = (),
        *,
        gate: Callable[[int], bool] = lambda _: True,
        undoes: bool = False,
    ) -> None:
        self.dropped: dict[str, int] = {}
        self.asked: list[str] = []
        self.modes = Modes()
        self._allowed = frozenset(allowed)
        self._gate, self._undoes = gate, undoes
        self._state = GROUND
        self._character = b""
        self._held = b""
        self._introducer = b""
        self._beginning = b""
        self._text: list[bytes] = []
        self._size = 0
        self._known: dict[bytes, Verdict] = {}
        self._passing: dict[bytes, tuple[Change, ...]] = {}
        """Of the known, what passes at any time, and what it changes."""

    def feed(self, data: bytes) -> bytes:
        """What of `data`, after what waited, may be shown now."""
        if b"\x05" in data:  # ENQ: the terminal would type its answerback
            self._drop(OTHER, data.count(b"\x05"))
            data = data.translate(None, b"\x05")
        if self._character or not data.isascii():
            data = self._without_eight_bit(data)
        if self._held:
            data, self._held = self._held + data, b""
        self.modes.drawn = self.modes.drawn or b"\x1b" in data or b"\x0e" in data
        if self._state != GROUND or b"\x1b" in data:
            shown: list[bytes] = []
            at = 0
            while at < len(data):
                at = _STEPS[self._state](self, data, at, shown)
            data = b"".join(shown)
        if b"\x18" in data:  # CAN, with which ZMODEM begins a file; alone it does nothing
            self._drop(OTHER, data.count(b"\x18"))
            data = data.translate(None, b"\x18")
        return data

    def finish(self) -> bytes:
        """The stream has ended: what is left to be shown of it."""
        if self._held or self._state != GROUND:
            self._drop(self._kind())
        rest, self._character = self._character, b""
        self._held, self._state, self._text = b"", GROUND, []
        return self._replaced(rest) + (self.modes.undo() if self._undoes else b"")

    def _drop(self, kind: str, count: int = 1) -> None:
        self.dropped[kind] = self.dropped.get(kind, 0) + count

    def _decide(self, verdict: Verdict, whole: bytes, shown: list[bytes]) -> None:
        if verdict.drop:
            self._drop(verdict.drop)
            return
        asks = verdict.answers if verdict.answer else 0
        given = not (asks or any(change.typed for change in verdict.changes)) or self._gate(asks)
        self.modes.note(verdict.changes, given=given)
        if given:
            shown.append(whole)
            self.asked += [verdict.answer] * asks
        elif not verdict.changes:
            self._drop(OTHER)

    def _without_eight_bit(self, data: bytes) -> bytes:
        data = self._character + data
        cut = _CUT.search(data, max(0, len(data) - 3))
        self._character = cut[0] if cut else b""
        if cut:
            data = data[: cut.start()]
        try:
            data.decode()
        except UnicodeDecodeError:
            return self._replaced(data)
        return self._replaced(data) if b"\xc2" in data else data

    def _replaced(self, data: bytes) -> bytes:
        text, count = _EIGHT_BIT.subn("\ufffd", data.decode("utf-8", "surrogateescape"))
        if not count:
            return data
        self._drop(OTHER, count)
        return text.encode("utf-8", "surrogateescape")

    def _ground(self, data: bytes, at: int, shown: list[bytes]) -> int:
        begun = at
        while found := _SUSPECT.search(data, at):
            control = _CONTROL.match(data, found.start())
            if control is None or (changes := self._passing.get(control[0])) is None:
                break
            if changes:
                self.modes.note(changes, given=True)
            at = control.end()
        else:
            start = data.rfind(b"\x1b", at)
            if start >= 0 and _UNFINISHED.match(data, start):
                shown.append(data[begun:start])
                return self._wait(data, start)
            shown.append(data[begun:])
            return len(data)
        start = found.start()
        shown.append(data[begun:start])
        introducer = data[start + 1 : start + 2]
        if introducer == b"[":
            return self._control(data, start, shown)
        if introducer == b"\x1b":  # each cancels the one before
            after = _NOT_ESCAPE.search(data, start)
            return (after.start() if after else len(data)) - 1
        if introducer not in STRINGS:
            return self._escape(data, start, shown)
        if CONSOLE_BEGUN.match(data, start):
            return self._wait(data, start)
        if console := CONSOLE.match(data, start):
            self._drop(OTHER)
            return console.end()
        self._state, self._introducer, self._beginning, self._text, self._size = (
            STRING,
            introducer,
            b"",
            [],
            0,
        )
        return start + 2

    def _wait(self, data: bytes, start: int) -> int:
        self._held = data[start:]
        if len(self._held) > SEQUENCE_LIMIT:
            self._held, self._state = b"", OVERLONG
        return len(data)

    def _escape(self, data: bytes, start: int, shown: list[bytes]) -> int:
        found = _ESCAPE.match(data, start)
        assert found
        if found[1] is None:  # what comes now cancels it; without its ESC it is text
            return found.end()
        if not found[1]:
            return self._wait(data, start)
        changes = ESCAPES.get(found[0][1:])
        if changes is None:
            self._drop(OTHER)
        else:
            self._decide(
                Verdict(answer="c" if found[0] == b"\x1bZ" else "", changes=changes), found[0], shown
            )
        return found.end()

    def _control(self, data: bytes, start: int, shown: list[bytes]) -> int:
        found = _CONTROL.match(data, start)
        assert found
        if found[1] == b"":
            return self._wait(data, start)
        if found[1] is None or found.end() - start > SEQUENCE_LIMIT:
            self._drop(OTHER)
            return found.end() + (found[1] is None and data[found.end()] in _CANCELS)
        whole = found[0]
        verdict = self._known.get(whole)
        if verdict is None:
            verdict = of_control(whole)
            if len(self._known) < KNOWN_LIMIT:
                self._known[whole] = verdict
                if not (verdict.drop or verdict.answer or any(change.typed for change in verdict.changes)):
                    self._passing[whole] = verdict.changes
        self._decide(verdict, whole, shown)
        return found.end()

    def _overlong(self, data: bytes, at: int, shown: list[bytes]) -> int:  # noqa: ARG002 - as in the table
        found = _CONTROL_END.search(data, at)
        if found is None:
            return len(data)
        self._drop(OTHER)
        self._state = GROUND
        return found.start() if found[0] == b"\x1b" or found[0] >= b"\x80" else found.end()

    def _string(self, data: bytes, at: int, shown: list[bytes]) -> int:
        found = (_OSC_END if self._introducer == b"]" else _END).search(data, at)
        if found is None:
            self._keep(data[at:])
            return len(data)
        end, after = found[0], found.end()
        if end == b"\x1b":
            if after == len(data):
                self._keep(data[at : found.start()])
                self._held = end
                return after
            if data.startswith(STRING_END, found.start()):
                end, after = STRING_END, after + 1
            else:
                after = found.start()  # another sequence begins, which ends this one
        self._keep(data[at : found.start()])
        text = b"".join(self._text)
        fits = len(text) == self._size
        verdict = of_string(self._introducer, text, end, self._allowed) if fits else Verdict(self._kind())
        self._state, self._text = GROUND, []
        self._decide(verdict, b"\x1b" + self._introducer + text + end, shown)
        return after

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self._beginning = (self._beginning + piece[:4])[:4]
        if self._size <= (CLIPBOARD_LIMIT if self._kind() == CLIPBOARD in self._allowed else STRING_LIMIT):
            self._text.append(piece)
        else:
            self._text = []

    def _kind(self) -> str:
        return kind_of_string(self._introducer, self._beginning) if self._state == STRING else OTHER


_STEPS: Final = {GROUND: Filter._ground, STRING: Filter._string, OVERLONG: Filter._overlong}
