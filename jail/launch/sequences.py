r"""What each escape sequence does to the person's terminal, as tables.

Rule: only what is named here passes: terminals differ in what they make of the rest, and each year one of
them finds a new use for some. Escapes by their bytes, control sequences (CSI) by private mark, intermediates
and final byte, modes by number (modes.py), string sequences (OSC, DCS, and their like, which do most harm:
titles, clipboard, files, notifications, keys, what is read back) by number and form, and only without a
control character in them. Numbers have five digits at most: some terminals take more for another one. The
sources: xterm's Control Sequences (ctlseqs), the VT500 parser of vt100.net, console_codes(4), terminfo(5),
the manuals of kitty, iTerm2, tmux and screen.

Pure. Imported only where there is a terminal: it needs `re`.
"""

import re

from jail.launch import modes
from jail.launch.modes import Change
from jail.light import Callable, Final, Mapping, NamedTuple

TITLE: Final = "title"
CLIPBOARD: Final = "clipboard"
OTHER: Final = "other"
"""What a dropped sequence would have done; the first two are words of the policy (TERMINAL)."""

BELL_END: Final = b"\x07"
STRING_END: Final = b"\x1b\\"
STRINGS: Final = b"]PX^_k"
"""What begins a string sequence after ESC: OSC, DCS, SOS, PM, APC, and the title of screen and tmux."""
ESCAPES: Final[Mapping[bytes, tuple[Change, ...]]] = {
    **dict.fromkeys((b"7", b"8", b"M", b"\\", b"D", b"E", b"c", b"Z", b"g"), ()),
    **dict.fromkeys((b"#3", b"#4", b"#5", b"#6", b"#8"), ()),
    **{bytes((where, which)): () for where in b"()*+" for which in b"012ABUK"},
    b"H": (Change(modes.TABS, b"\x1bH"),),
    b"=": (Change(modes.KEYPAD, b"\x1b=", typed=True),),
    b">": (Change(modes.KEYPAD, typed=True),),
}
"""What passes after ESC → the modes that it changes: cursor, tabs, reset, sizes of letters, character sets,
keypad, and screen's silent bell (terminfo: flash)."""
CONSOLE: Final = re.compile(rb"\x1b\](?:R|P[0-9A-Fa-f]{7})")
CONSOLE_BEGUN: Final = re.compile(rb"\x1b\](?:P[0-9A-Fa-f]{0,6})?\Z")
"""The console's palette (console_codes(4)): without an end, which any other terminal would wait for. Dropped.
"""


class Verdict(NamedTuple):
    """Why a sequence is dropped, "" where it passes; what an answer looks like (answers.py), "" without, and
    how many there will be; the modes that it changes.
    """

    drop: str = ""
    answer: str = ""
    answers: int = 1
    changes: tuple[Change, ...] = ()


PASS: Final = Verdict()
_REFUSED: Final = Verdict(OTHER)
_Numbers = list[int]
_Rule = Callable[[_Numbers, bytes], Verdict]


def _window(numbers: _Numbers, _: bytes) -> Verdict:
    if numbers[0] in (14, 15, 16, 18, 19):  # sizes
        return Verdict(answer="t")
    if numbers[0] in (22, 23):  # keep the title and give it back: smcup and rmcup of terminfo
        return PASS
    return Verdict(TITLE if numbers[0] in (20, 21) else OTHER)


def _always(drop: str) -> _Rule:
    return lambda *_: Verdict(drop)


def _asks(answer: str, *of: int) -> _Rule:
    """A question with one number, of those given."""
    return lambda numbers, _: Verdict(answer=answer) if len(numbers) == 1 and numbers[0] in of else _REFUSED


def _asks_mode(numbers: _Numbers, _: bytes) -> Verdict:
    return Verdict(answer="y") if len(numbers) == 1 else _REFUSED


def _graphics(numbers: _Numbers, _: bytes) -> Verdict:
    """XTSMGRAPHICS: read, or read the most that can be; never set."""
    return Verdict(answer="S") if numbers[1:2] in ([1], [4]) else _REFUSED


def _plain(most: int, *of: int) -> _Rule:
    return lambda numbers, _: PASS if len(numbers) <= most and (not of or numbers[0] in of) else _REFUSED


def _changes(undo: bytes, most: int, *, typed: bool = False) -> _Rule:
    """Sets what `undo` undoes; undone by zeros, or without numbers."""

    def rule(numbers: _Numbers, whole: bytes) -> Verdict:
        change = Change(undo, whole if any(numbers) else b"", typed)
        return Verdict(changes=(change,)) if len(numbers) <= most else _REFUSED

    return rule


def _tabs(numbers: _Numbers, whole: bytes) -> Verdict:
    return Verdict(changes=(Change(modes.TABS, whole),)) if numbers in ([0], [3]) else _REFUSED


def _keys_of_xterm(numbers: _Numbers, whole: bytes) -> Verdict:
    """Keys that xterm would not tell apart (4, modifyOtherKeys), or all keys back to what they were."""
    if numbers not in ([0], [4]) and not (len(numbers) == 2 and numbers[0] == 4):
        return _REFUSED
    change = Change(modes.KEYS_OF_XTERM, whole if len(numbers) == 2 and numbers[1] else b"", typed=True)
    return Verdict(changes=(change,))


def _push(numbers: _Numbers, whole: bytes) -> Verdict:
    return Verdict(changes=(Change(modes.POP, whole, typed=True),)) if len(numbers) == 1 else _REFUSED


def _pop(numbers: _Numbers, _: bytes) -> Verdict:
    change = Change(modes.POP, typed=True, levels=numbers[0] or 1)
    return Verdict(changes=(change,)) if len(numbers) == 1 else _REFUSED


def _highlight(numbers: _Numbers, whole: bytes) -> Verdict:
    """Mode 1001 kept and given back: what mc sends around the mouse."""
    change = Change(b"\x1b[?1001l", whole if whole.endswith(b"r") else b"", typed=True)
    return Verdict(changes=(change,)) if numbers == [1001] else _REFUSED


def _mode(table: Callable[[_Numbers, str], tuple[Change, ...] | None], final: str) -> _Rule:
    def rule(numbers: _Numbers, _: bytes) -> Verdict:
        changes = table(numbers, final)
        if changes is None:
            return _REFUSED
        reports = numbers.count(modes.SIZE_REPORTS) if final == "h" else 0
        return Verdict(answer="t" if reports else "", answers=reports or 1, changes=changes)

    return rule


_DRAWN: Final = (
    *(bytes((final,)) for final in b"@ABCDEFGHIJKLMPSXZ`abdefm"),
    *(b"?J", b"?K", b"!p", b"'}", b"'~", b" @", b" A"),  # erase but the protected; soft reset; columns
    *(b"$r", b"$t", b"$v", b"$x", b"$z", b"*x"),  # rectangles
    *(b"#p", b"#q", b"#{", b"#}", b"#P", b"#Q"),  # keep colours and give them back
)
_CONTROLS: Final[dict[bytes, _Rule]] = {
    **dict.fromkeys(_DRAWN, lambda *_: PASS),
    b"T": _plain(1),  # with more numbers: answers about the mouse
    b"s": _plain(2),
    b"?c": _plain(3),  # the console's cursor (console_codes(4)); with `?` nothing else answers
    b"?W": _plain(1, 5),
    b"r": _changes(modes.MARGINS, 2),
    b"g": _tabs,
    b" q": _changes(modes.CURSOR, 1),
    b"t": _window,
    **dict.fromkeys((b">t", b">T"), _always(TITLE)),  # how titles are read and set
    b"h": _mode(modes.ansi, "h"),
    b"l": _mode(modes.ansi, "l"),
    b"?h": _mode(modes.private, "h"),
    b"?l": _mode(modes.private, "l"),
    **dict.fromkeys((b"?s", b"?r"), _highlight),
    b">m": _keys_of_xterm,
    b">u": _push,
    b"<u": _pop,
    b"=u": _changes(modes.FLAGS, 2, typed=True),
    b"u": _plain(1, 0),
    b"n": _asks("n", 5, 6),
    b"?n": _asks("n", 6, 996),
    **dict.fromkeys((b"c", b">c"), _asks("c", 0)),
    b"=c": _asks("P", 0),
    b">q": _asks("P", 0),
    **dict.fromkeys((b"$p", b"?$p"), _asks_mode),
    b"?u": _asks("u", 0),
    b"?S": _graphics,
    b"?m": _asks("m", 4),
}
"""Private mark, intermediates and final of a control sequence → its rule; what is not here is dropped."""
_CONTROL_PARTS: Final = re.compile(rb"\x1b\[([<=>?]?)((?:[0-9]{0,5}[;:])*+[0-9]{0,5})([ -/]*[@-~])")


def of_control(sequence: bytes) -> Verdict:
    """The verdict on a whole control sequence, from ESC to its final byte."""
    found = _CONTROL_PARTS.fullmatch(sequence)
    if found is None:
        return _REFUSED
    mark, numbers, end = found.groups()
    rule = _CONTROLS.get(mark + end)
    if rule is None or (b":" in numbers and mark + end != b"m"):
        return _REFUSED
    return rule([int(number or 0) for number in re.split(b"[;:]", numbers)], sequence)


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
        if device is None:
            return _REFUSED
        return Verdict(answer="P", answers=1 + text.count(b";")) if device[1] else PASS
    if introducer == b"k":
        return Verdict("" if kind in allowed else kind)
    if introducer != b"]":
        return _REFUSED
    if kind == CLIPBOARD:
        return Verdict("" if kind in allowed and _SETS_CLIPBOARD.fullmatch(text) else kind)
    found = _COMMAND.match(text)
    if kind == TITLE:
        return Verdict("" if kind in allowed and found else kind)
    if found is None or int(found[1]) not in _COMMANDS:
        return _REFUSED
    if int(found[1]) in _COLOURS:
        return Verdict(answer="]" if b"?" in text else "", answers=text.count(b"?"))
    return _REFUSED if found[1] == b"22" and b"?" in text else PASS  # kitty tells the pointer's shape


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return _CONTROLS_IN_TEXT.search(text) is None


_DEEDS: Final = {
    TITLE: "for the window's title",
    CLIPBOARD: "for the clipboard",
    OTHER: "that reach beyond the window otherwise or that jail does not know",
}


def told(dropped: Mapping[str, int], allowed: tuple[str, ...]) -> str:
    """What was dropped (Filter.dropped), for a person, and what would let it pass."""
    counts = ", ".join(f"{dropped[kind]} {deed}" for kind, deed in _DEEDS.items() if dropped.get(kind))
    words = ", ".join(f'"{kind}"' for kind in (TITLE, CLIPBOARD) if dropped.get(kind) and kind not in allowed)
    hint = f"; to allow them: [terminal] allow = [{words}] in a policy" if words else ""
    return f"escape sequences were kept from the terminal: {counts}{hint}"
