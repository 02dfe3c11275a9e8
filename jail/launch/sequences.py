r"""What each escape sequence does to the person's terminal, as tables.

Rule: of control sequences (CSI) all pass but those named here; of string sequences (OSC, DCS, and their like,
which do all the harm: titles, clipboard, files, notifications, keys, what is read back) only those named here
pass, and only without a control character in them. The sources: xterm's Control Sequences (ctlseqs), the
VT500 parser of vt100.net, console_codes(4), the manuals of kitty, iTerm2, tmux and screen.

Pure. Imported only where there is a terminal: it needs `re`.
"""

import re

from jail.light import Callable, Final, Mapping, NamedTuple

TITLE: Final = "title"
CLIPBOARD: Final = "clipboard"
OTHER: Final = "other"
"""What a dropped sequence would have done; the first two are words of the policy (TERMINAL)."""

BELL_END: Final = b"\x07"
STRING_END: Final = b"\x1b\\"
STRINGS: Final = b"]PX^_k"
"""What begins a string sequence after ESC: OSC, DCS, SOS, PM, APC, and the title of screen and tmux."""
ESCAPES_DROPPED: Final = (b"\x1b%", b"\x1b!", b"\x1b G")
"""Beginnings: another character set than UTF-8; a message of screen; answers in eight-bit controls."""
CONSOLE: Final = re.compile(rb"\x1b\](?:R|P[0-9A-Fa-f]{7})")
CONSOLE_BEGUN: Final = re.compile(rb"\x1b\](?:P[0-9A-Fa-f]{0,6})?\Z")
"""The console's palette (console_codes(4)): without an end, which any other terminal would wait for. Dropped.
"""


class Verdict(NamedTuple):
    """Why a sequence is dropped, "" where it passes; what its answer looks like (answers.py), "" without."""

    drop: str = ""
    answer: str = ""


PASS: Final = Verdict()
_Numbers = list[bytes]


def _window(numbers: _Numbers) -> Verdict:
    if numbers[0] in (b"14", b"15", b"16", b"18", b"19"):  # sizes
        return Verdict(answer="t")
    if numbers[0] in (b"22", b"23"):  # keep the title and give it back: smcup and rmcup of terminfo
        return PASS
    return Verdict(TITLE if numbers[0] in (b"20", b"21") else OTHER)


def _always(drop: str) -> Callable[[_Numbers], Verdict]:
    return lambda _: Verdict(drop)


def _where(number: bytes) -> Callable[[_Numbers], Verdict]:
    return lambda numbers: Verdict(OTHER if number in numbers else "")


def _asks(answer: str) -> Callable[[_Numbers], Verdict]:
    return lambda _: Verdict(answer=answer)


_CONTROLS: Final[dict[bytes, Callable[[_Numbers], Verdict]]] = {
    b"t": _window,
    **dict.fromkeys((b">t", b">T"), _always(TITLE)),  # how titles are read and set
    **dict.fromkeys((b"i", b"?i", b">i", b"=i"), _always(OTHER)),  # print on paper
    **dict.fromkeys((b"*y", b"#|"), _always(OTHER)),  # tell what the screen shows
    b'"p': _always(OTHER),  # be another terminal, answer in eight-bit controls
    b"]": _always(OTHER),  # the console: go to another one
    b"h": _where(b"2"),  # lock the keyboard
    b"?l": _where(b"2"),  # be a VT52, which has other sequences
    **dict.fromkeys((b"n", b"?n"), _asks("n")),
    **dict.fromkeys((b"c", b">c"), _asks("c")),
    **dict.fromkeys((b"$p", b"?$p"), _asks("y")),
    **dict.fromkeys((b"=c", b">q", b"$w", b"$u", b"&u"), _asks("P")),
    b"x": _asks("x"),
    b"?u": _asks("u"),
    b"?S": _asks("S"),
    b"?m": _asks("m"),
}
"""Private mark, intermediates and final of a control sequence → its rule; what is not here passes."""
_CONTROL_PARTS: Final = re.compile(rb"\x1b\[([<=>?]?)([0-9:;]*)([ -/]*[@-~])")
_C0: Final = bytes((*range(0x1B), *range(0x1C, 0x20), 0x7F))
"""Controls that a terminal obeys, or ignores, in the middle of a control sequence."""


def of_control(sequence: bytes) -> Verdict:
    """The verdict on a whole control sequence, from ESC to its final byte."""
    found = _CONTROL_PARTS.fullmatch(sequence.translate(None, _C0))
    if found is None:
        return Verdict(OTHER)
    mark, numbers, end = found.groups()
    rule = _CONTROLS.get(mark + end)
    return rule([each.lstrip(b"0") for each in numbers.replace(b":", b";").split(b";")]) if rule else PASS


_COLOURS: Final = frozenset((4, 5, *range(10, 20), 21))
_COMMANDS: Final = frozenset((*_COLOURS, 8, 22, 104, 105, *range(110, 120), 133))
"""Numbers of OSC that pass: colours and their reset, links, the pointer's shape, marks of the prompt."""
_TITLES: Final = re.compile(rb"(?:[012]|3[01])(?:;|\Z)|[lLI]")
_COMMAND: Final = re.compile(rb"(0|[1-9][0-9]{0,3})(?:;|\Z)")
_SETS_CLIPBOARD: Final = re.compile(rb"52;[cpqs0-7]*;[A-Za-z0-9+/]*={0,2}")
"""Never `?`, which reads it."""
_DEVICE: Final = re.compile(rb"""(?:(\$q(?:[mrst]| q|"[pq]|[$*]\|)|\+q[0-9A-Fa-f;]*)|=[12]s)""")
"""Of DCS: questions for settings and capabilities; output that is held for a moment."""
_CONTROLS_IN_TEXT: Final = re.compile(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]")


def kind_of_string(introducer: bytes, beginning: bytes) -> str:
    """What a string sequence is about; its first few bytes tell."""
    if introducer == b"k" or (introducer == b"]" and _TITLES.match(beginning)):
        return TITLE
    return CLIPBOARD if introducer == b"]" and beginning.startswith(b"52;") else OTHER


def of_string(introducer: bytes, text: bytes, end: bytes, allowed: frozenset[str]) -> Verdict:
    """The verdict on a whole string sequence; `allowed` are words of the policy."""
    kind = kind_of_string(introducer, text)
    if not _is_text(text) or end not in (BELL_END, STRING_END):
        return Verdict(kind)
    if introducer == b"P":
        device = _DEVICE.fullmatch(text)
        return Verdict(OTHER) if device is None else Verdict(answer="P" if device[1] else "")
    if introducer == b"k":
        return Verdict("" if kind in allowed else kind)
    if introducer != b"]":
        return Verdict(OTHER)
    if kind == CLIPBOARD:
        return Verdict("" if kind in allowed and _SETS_CLIPBOARD.fullmatch(text) else kind)
    found = _COMMAND.match(text)
    if kind == TITLE:
        return Verdict("" if kind in allowed and found else kind)
    if found is None or int(found[1]) not in _COMMANDS:
        return Verdict(OTHER)
    return Verdict(answer="]" if b"?" in text and int(found[1]) in _COLOURS else "")


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return _CONTROLS_IN_TEXT.search(text) is None


_DEEDS: Final = {
    TITLE: "for the window's title",
    CLIPBOARD: "for the clipboard",
    OTHER: "that reach beyond the window otherwise",
}


def told(dropped: Mapping[str, int], allowed: tuple[str, ...]) -> str:
    """What was dropped (Filter.dropped), for a person, and what would let it pass."""
    counts = ", ".join(f"{dropped[kind]} {deed}" for kind, deed in _DEEDS.items() if dropped.get(kind))
    words = ", ".join(f'"{kind}"' for kind in (TITLE, CLIPBOARD) if dropped.get(kind) and kind not in allowed)
    hint = f"; to allow them: [terminal] allow = [{words}] in a policy" if words else ""
    return f"escape sequences were kept from the terminal: {counts}{hint}"
