"""What a program leaves set on the terminal is undone: each mode by its own sequence, the last first, and once."""

import pytest

from jail.launch import tty
from jail.launch.escapes import Filter
from jail.launch.modes import SOFT

LEFT = {
    "mouse": (b"\x1b[?1003h\x1b[?1006h", b"\x1b[?1006l\x1b[?1003l"),
    "several in one": (b"\x1b[?1000;1004;25l\x1b[?1002;2004h", b"\x1b[?2004l\x1b[?1002l\x1b[?25h"),
    "X10's mouse": (b"\x1b[?9h", b"\x1b[?9l"),
    "highlighting given back": (b"\x1b[?1001r", b"\x1b[?1001l"),
    "size reports": (b"\x1b[?2048h", b"\x1b[?2048l"),
    "wheel": (b"\x1b[?1007h", b"\x1b[?1007l"),
    "cursor": (b"\x1b[?25l", b"\x1b[?25h"),
    "cursor's form": (b"\x1b[5 q", b"\x1b[0 q"),
    "wrap": (b"\x1b[?7l", b"\x1b[?7h"),
    "insertion": (b"\x1b[4h", b"\x1b[4l"),
    "reverse video": (b"\x1b[?5h", b"\x1b[?5l"),
    "keypad and cursor keys": (b"\x1b[?1h\x1b=", b"\x1b>\x1b[?1l"),
    "kitty's keyboard, pushed": (b"\x1b[>1u\x1b[>5u", b"\x1b[<2u"),
    "kitty's keyboard, pushed often": (b"\x1b[>1u" * 300, b"\x1b[<300u"),
    "kitty's keyboard, popped in part": (b"\x1b[>1u" * 30 + b"\x1b[<20u", b"\x1b[<10u"),
    "kitty's keyboard, set": (b"\x1b[=5;1u", b"\x1b[=0u"),
    "kitty's keyboard on both screens": (b"\x1b[?1049h\x1b[>1u", b"\x1b[<1u\x1b[?1049l"),
    "xterm's keyboard": (b"\x1b[>4;2m", b"\x1b[>4;0m"),
    "scroll region": (b"\x1b[5;9r", b"\x1b7\x1b[r\x1b8"),
    "tabs": (b"\x1b[3g", b"\x1b[?5W"),
    "colours alone": (b"\x1b[8m", b""),
}
UNDONE = (
    b"\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=\x1b[?2004h\x1b[?1003;1006h\x1b[>1u\x1b[>4;1m\x1b[2 q\x1b[3;9r\x1b[?2026h\x1b[4h"
    b"\x1b[4l\x1b[?2026l\x1b[r\x1b[ q\x1b[>4m\x1b[<u\x1b[?1003;1006l\x1b[?2004l\x1b>\x1b[?1l\x1b[?25h\x1b[?1049l"
)


@pytest.mark.parametrize("what", LEFT)
def test_what_is_left_is_undone_and_only_that(what: str) -> None:
    sent, undo = LEFT[what]
    for cut in (1, len(sent)):
        one = Filter()
        assert b"".join(one.feed(sent[at : at + cut]) for at in range(0, len(sent), cut)) == sent
        left = one.modes.undo()
        assert left.startswith(undo)
        assert left.endswith(SOFT)
        assert left.removesuffix(SOFT) in (undo, undo + b"\x1b[<1u")
        assert one.modes.undo() == b"", "once"


def test_what_a_program_undid_itself_or_never_passed_is_left_alone() -> None:
    one = Filter()
    assert one.feed(UNDONE) == UNDONE
    one.feed(b"\x1b[?38h\x1b[2h")
    assert one.modes.undo() == SOFT
    assert Filter().modes.undo() == b"", "where nothing but text was shown, nothing is sent"


def test_the_undoing_passes_the_filter_and_the_reset_does() -> None:
    for data in (tty.RESET, *(undo for _, undo in LEFT.values())):
        one = Filter()
        assert one.feed(data) + one.finish() == data


def test_a_stream_of_its_own_undoes_at_its_end() -> None:
    one = Filter(gate=lambda _: False, undoes=True)
    assert one.feed(b"\x1b[?25l\x1b[?1003hx") == b"\x1b[?25lx", "nobody's mouse"
    assert one.finish() == b"\x1b[?25h" + SOFT


def test_what_changes_keys_waits_until_the_keyboard_is_ours() -> None:
    ours = False
    one = Filter(gate=lambda _: ours)
    assert one.feed(b"\x1b[?1003h\x1b[>1u\x1b=\x1b[?1004h\x1b[?1004l\x1b[?25l") == b"\x1b[?25l"
    assert one.dropped == {}
    ours = True
    assert one.modes.again() == b"\x1b[?1003h\x1b=\x1b[>1u"
    assert one.modes.again() == b""
    assert one.modes.leave() == b"\x1b[<1u\x1b>\x1b[?1003l"
    ours = False
    one.feed(b"\x1b[?1003l")
    assert one.modes.again() == b"\x1b=\x1b[>1u"
    assert one.modes.undo() == b"\x1b[<1u\x1b[?25h\x1b>" + SOFT
