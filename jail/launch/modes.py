r"""Modes of the person's terminal: which ones may be changed from inside, and the way back from each.

Rule: a mode passes only when it is known here, by its number, and whatever is left set is undone at the end:
an undoing sequence is kept for each. Modes that make the terminal send what nobody typed, or send keys
otherwise (`Change.typed`), are set only while the keyboard is ours: in the background they are kept until we
come to the front, else another program would read what they bring.

Pure. The numbers: xterm, Control Sequences (ctlseqs); kitty, Comprehensive keyboard handling;
terminal-wg, contour and kitty for 2026 (held output), 2027 (graphemes), 2031 (colour scheme), 2048 (size).
"""

from jail.light import Final, Iterable, NamedTuple, Sequence


class Change(NamedTuple):
    """One mode: the sequence that undoes it, and the one that sets it, b"" where it is undone.

    `typed`: whether it changes what the terminal sends. `levels`: how many of POP are undone.
    """

    undo: bytes
    set: bytes = b""
    typed: bool = False
    levels: int = 1


POP: Final = b"\x1b[<u"
"""Undoes one push of kitty's keyboard; the only mode that is a stack."""
PUSHED_LIMIT: Final = 16
"""Pushes that are remembered, to be made again; what lies deeper is counted."""
MOST: Final = 99999
"""Number in a sequence."""
SCREENS: Final = (b"\x1b[?47l", b"\x1b[?1047l", b"\x1b[?1049l")
SOFT: Final = b"\x1b(B\x0f\x1b[0m"
"""Character set and colours: what any sequence at all may have left."""
KEYPAD: Final = b"\x1b>"
KEYS_OF_XTERM: Final = b"\x1b[>4;0m"
FLAGS: Final = b"\x1b[=0u"
CURSOR: Final = b"\x1b[0 q"
MARGINS: Final = b"\x1b7\x1b[r\x1b8"
TABS: Final = b"\x1b[?5W"

_TYPED: Final = frozenset((1, 9, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2031, 2048))
"""Cursor keys, keypad, mouse, focus, wheel, paste, reports of colour scheme and size."""
_SET: Final = _TYPED | {5, 12, 45, 47, 69, 1047, 1049, 2026, 2027}
"""Off unless a program sets them: reverse video, blinking, wrap backwards, alternate screens, margins, …"""
_UNSET: Final = frozenset((7, 25))
"""On unless a program unsets them: wrap, cursor."""
_FREE: Final = frozenset((1034, 1048))
"""Eight-bit meta keys, which readline of the person's own shell sets, too; the saved cursor."""
_ONLY_UNSET: Final = frozenset((3, 4, 6, 1001))
"""Part of a terminal's own reset: columns, smooth scrolling, origin, highlighting that waits."""
_ANSI: Final = frozenset((4, 34))
"""Insertion; the cursor's form in screen. Never 2, which locks the keyboard."""

SIZE_REPORTS: Final = 2048
"""Answered at once, and at each change."""


def private(numbers: Sequence[int], final: str) -> tuple[Change, ...] | None:
    """The changes of `CSI ? numbers h` or `l`; None where one is not to pass."""
    found = []
    for number in numbers:
        if number in _FREE or (number in _ONLY_UNSET and final == "l"):
            continue
        if number not in _SET and number not in _UNSET:
            return None
        change = b"\x1b[?%d%s" % (number, final.encode())
        undo = b"\x1b[?%d%s" % (number, b"h" if number in _UNSET else b"l")
        found.append(Change(undo, b"" if change == undo else change, number in _TYPED))
    return tuple(found)


def ansi(numbers: Sequence[int], final: str) -> tuple[Change, ...] | None:
    """The changes of `CSI numbers h` or `l`; None where one is not to pass."""
    if not _ANSI.issuperset(numbers) and not (final == "l" and _ANSI.union((20,)).issuperset(numbers)):
        return None
    return (Change(b"\x1b[4l", b"\x1b[4h" if final == "h" else b""),) if 4 in numbers else ()


class Modes:
    """What one stream has set on the terminal and not undone."""

    def __init__(self) -> None:
        self.drawn = False
        """Whether any sequence passed at all."""
        self._set: dict[bytes, tuple[Change, bool]] = {}
        self._pushed: list[tuple[Change, bool]] = []
        self._buried = 0

    def note(self, changes: Iterable[Change], *, given: bool) -> None:
        """`changes` passed; not `given`: the terminal did not get them, now is not the time."""
        for change in changes:
            if change.undo == POP:
                self._note_stack(change, given=given)
                continue
            before = change.undo in self._set and self._set[change.undo][1]
            if change.set:
                self._set[change.undo] = change, given or before
            elif given or not before:
                self._set.pop(change.undo, None)

    def _note_stack(self, change: Change, *, given: bool) -> None:
        if change.set:
            self._pushed.append((change, given))
            if len(self._pushed) > PUSHED_LIMIT:
                self._buried += self._pushed.pop(0)[1]
        else:
            self._buried -= min(self._buried, max(0, change.levels - len(self._pushed)))
            del self._pushed[max(0, len(self._pushed) - change.levels) :]

    def again(self) -> bytes:
        """We have the keyboard: what sets the modes that the terminal has not got."""
        owed = [
            change for change, given in (*self._set.values(), *self._pushed) if not given and change.typed
        ]
        self._set = {undo: (change, given or change.typed) for undo, (change, given) in self._set.items()}
        self._pushed = [(change, True) for change, _ in self._pushed]
        return b"".join(change.set for change in owed)

    def leave(self) -> bytes:
        """We lose the keyboard, and may get it back (`again`): what undoes the modes that change keys."""
        undone = [change.undo for change, given in self._set.values() if given and change.typed]
        pops = self._pops()
        self._set = {
            undo: (change, given and not change.typed) for undo, (change, given) in self._set.items()
        }
        self._pushed = [(change, False) for change, _ in self._pushed]
        self._buried = 0
        return pops + b"".join(reversed(undone))

    def undo(self) -> bytes:
        """What undoes all that is left, the last first; nothing is set any more."""
        undone = [change.undo for change, given in self._set.values() if given]
        pops = self._pops()
        left = pops + b"".join(reversed(undone))
        if any(screen in undone for screen in SCREENS):
            left += pops  # each screen has a stack of its own
        left += SOFT if self.drawn else b""
        self._set, self._pushed, self._buried, self.drawn = {}, [], 0, False
        return left

    def _pops(self) -> bytes:
        count = self._buried + sum(given for _, given in self._pushed)
        return b"\x1b[<%du" % min(count, MOST) if count else b""
