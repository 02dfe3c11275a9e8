"""Whatever is printed, however it is cut: the terminal obeys nothing that is not allowed, and nothing else is changed."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jail.launch.escapes import CLIPBOARD_LIMIT, SEQUENCE_LIMIT, STRING_LIMIT, Filter
from support import terminfo
from support.vt500 import Event, obeys

BOTH = ("title", "clipboard")
END = b"\x1b\\"


def passed(data: bytes, allowed: tuple[str, ...] = (), size: int = 0) -> bytes:
    """What a filter shows of `data`, read in pieces of `size` (0: at once)."""
    one = Filter(allowed)
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    return b"".join(one.feed(piece) for piece in pieces) + one.finish()


NATIVE = {
    "plain text, tabs, bells, erasing": b"one\ttwo\r\nthree\x07\x08 \x7f\x0b\x0c\x0e\x0f\x00",
    "colours": b"\x1b[31mred\x1b[0m\x1b[1;38;5;196;48;2;10;20;30mtrue\x1b[m\x1b[4:3;58:2::255:0:0mcurly\x1b[0m",
    "the whole screen": b"\x1b[?1049h\x1b[22;0;0t\x1b[1;24r\x1b[H\x1b[2J\x1b[12;40Hx\x1b[K\x1b[3@\x1b[2P\x1b[?1049l\x1b[23;0;0t",
    "character sets": b"\x1b(0lqqk\x1b(B\x1b)0\x1b*A\x1b#8",
    "keys, mouse, paste, focus": b"\x1b[?1h\x1b=\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[>4;2m",
    "kitty's keyboard": b"\x1b[>1u\x1b[=5;1u\x1b[?u\x1b[<u",
    "held output": b"\x1b[?2026hx\x1b[?2026l\x1bP=1s\x1b\\\x1bP=2s\x1b\\",
    "cursor": b"\x1b[5 q\x1b[?25l\x1b7\x1b8\x1b[s\x1b[u\x1bM\x1bD\x1bE\x1bc\x1b[!p",
    "modes of xterm's and tmux's terminfo": b"\x1b[?1034h\x1b[?3;4l\x1b[4l\x1b[34h\x1b[?12;25h\x1b[?5h\x1b[?5l\x1b[?69h\x1b[1;80s",
    "what mc sends around the mouse": b"\x1b[?1001s\x1b[?1000h\x1b[?1000l\x1b[?1001r",
    "tabs": b"\x1b[3g\x1bH\x1b[?5W\x1b[2I\x1b[Z",
    "size reports": b"\x1b[?2048h\x1b[?2048l\x1b[?2031h\x1b[?2031l",
    "the console's cursor": b"\x1b[?25h\x1b[?0c\x1b[?17;0;64c",
    "questions": b"\x1b[c\x1b[>c\x1b[=c\x1b[>q\x1b[6n\x1b[5n\x1b[?6n\x1b[?996n\x1b[18t\x1b[14t\x1b[?2026$p\x1bZ",
    "questions for colours": b"\x1b]11;?\x07\x1b]10;?\x1b\\\x1b]4;1;?\x07",
    "questions for settings": b"\x1bP$qm\x1b\\\x1bP$q q\x1b\\\x1bP+q544e;436f\x1b\\",
    "links": b"\x1b]8;id=1;https://example.org/a?b=c\x07text\x1b]8;;\x07",
    "colours set and reset": b"\x1b]4;1;rgb:ff/00/00\x07\x1b]12;#00ff00\x1b\\\x1b]104\x07\x1b]110\x07",
    "marks of a prompt": b"\x1b]133;A\x07$ \x1b]133;C\x07",
    "all alphabets": "Нет А Р ✜ 日本語 ─┼─ é ñ ß 𝄞 👩‍👩‍👧 İ".encode(),
    "a file that is no text": bytes(
        set(range(256)) - {0x05, 0x18, 0x1B, 0x90, 0x98, 0x9A, 0x9B, 0x9D, 0x9E, 0x9F}
    ),
    "a character that is cut": b"caf\xc3",
}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("what", NATIVE)
def test_what_only_draws_or_asks_passes_byte_for_byte(what: str, size: int) -> None:
    assert passed(NATIVE[what], size=size) == NATIVE[what]


FORBIDDEN = {
    "title": b"\x1b]0;x\x07",
    "title of the window, ended by ST": b"\x1b]2;x\x1b\\",
    "name of the icon": b"\x1b]1;x\x07",
    "title of Konsole's tab": b"\x1b]30;x\x07",
    "title of Sun's terminal": b"\x1b]lx\x1b\\",
    "title of screen and tmux": b"\x1bkx\x1b\\",
    "a property of the window": b"\x1b]3;WM_CLASS=x\x07",
    "clipboard written": b"\x1b]52;c;aGFoYQ==\x07",
    "clipboard read": b"\x1b]52;c;?\x07",
    "clipboard, with a number that another would read so": b"\x1b]052;c;aGFoYQ==\x07",
    "clipboard of kitty": b"\x1b]5522;type=read\x1b\\",
    "title told": b"\x1b[21t",
    "title of the icon told": b"\x1b[20t",
    "title told, more numbers": b"\x1b[021;0t",
    "how titles are told": b"\x1b[>2t",
    "answerback": b"\x05",
    "font": b"\x1b]50;x\x07",
    "folder": b"\x1b]7;file://h/x\x07",
    "notification of iTerm2, progress of ConEmu": b"\x1b]9;x\x07",
    "notification of kitty": b"\x1b]99;;x\x1b\\",
    "notification of rxvt": b"\x1b]777;notify;a;b\x07",
    "file of iTerm2": b"\x1b]1337;File=name=eA==;inline=0:eA==\x07",
    "clipboard of iTerm2": b"\x1b]1337;CopyToClipboard=\x07",
    "files of kitty": b"\x1b]5113;ac=send\x1b\\",
    "a command line to run again": b"\x1b]633;E;rm\x07",
    "no number": b"\x1b];x\x07",
    "another word": b"\x1b]x\x07",
    "printer": b"\x1b[5i",
    "printer, the cursor's line": b"\x1b[?1i",
    "keys": b"\x1bP0;1|17/736f6d65\x1b\\",
    "pictures": b"\x1bPq#0~\x1b\\",
    "an odd question for settings": b"\x1bP$qecho x\nm\x1b\\",
    "a file read by kitty": b"\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\",
    "a file deleted by kitty": b"\x1b_Gt=t;L3RtcC94\x1b\\",
    "rxvt answers with a line end": b"\x1bG",
    "a command of Emacs' terminal": b"\x1bA",
    "the pointer's shape told": b"\x1b]22;?__current__\x1b\\",
    "the mouse's place told": b"\x1b['|",
    "colours told by xterm": b"\x1b[#R",
    "rxvt's keys told": b"\x1b[?1g",
    "what is shown told": b'\x1b[1"v',
    "more that is told": b"\x1b[1,u",
    "an intermediate that nobody knows": b"\x1b[1+p",
    "the tab stops told": b"\x1b[2$w",
    "Tektronix": b"\x1b[?38h",
    "window resized by a mode": b"\x1b[?40;3h",
    "the window raised by the bell": b"\x1b[?1043h",
    "highlighting that waits": b"\x1b[?1001h",
    "line ends doubled": b"\x1b[20h",
    "a number that overflows to VT52": b"\x1b[?4294967298l",
    "a number that overflows to a lock": b"\x1b[4294967298h",
    "a number too long for anything drawn": b"\x1b[100000b",
    "zeros before a number": b"\x1b[000001A",
    "two questions in one": b"\x1b[5;06n",
    "locking shift": b"\x1bn",
    "a character set of two bytes": b'\x1b("4',
    "lines locked": b"\x1bl",
    "graphics set": b"\x1b[?1;3;256S",
    "privacy message": b"\x1b^x\x1b\\",
    "start of string": b"\x1bXx\x1b\\",
    "window moved": b"\x1b[3;0;0t",
    "window made small": b"\x1b[2t",
    "window resized": b"\x1b[8;1;1t",
    "checksum of the screen": b"\x1b[1;1;1;1;1;1*y",
    "keyboard locked": b"\x1b[2h",
    "keyboard locked, among others": b"\x1b[4;02h",
    "VT52": b"\x1b[?2l",
    "another character set than UTF-8": b"\x1b%@",
    "message of screen": b"\x1b!x",
    "eight-bit answers": b"\x1b G",
    "the console's palette": b"\x1b]P1ff0000",
    "the console's palette reset": b"\x1b]R",
    "another console": b"\x1b[12;3]",
    "a control sequence that holds a control": b"\x1b[2\n1t",
}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_reaches_beyond_the_window_is_dropped_whole(what: str, size: int) -> None:
    one = Filter()
    data = b"before " + FORBIDDEN[what] + b" after"
    pieces = [data[at : at + (size or 99)] for at in range(0, len(data), size or 99)]
    assert b"".join(map(one.feed, pieces)) + one.finish() == b"before  after"
    assert sum(one.dropped.values()) == 1


@pytest.mark.parametrize("end", [b"\x07", END])
def test_allowed_by_name_title_and_clipboard_pass_whole(end: bytes) -> None:
    title, clipboard = "\x1b]2;naïve ✜".encode() + end, b"\x1b]52;c;" + b"QUJD" * 9000 + end
    for size in (0, 1 if len(clipboard) < 100 else 4096):
        assert passed(title + clipboard, BOTH, size) == title + clipboard
    assert passed(title + clipboard, ("title",)) == title
    assert passed(title + clipboard, ("clipboard",)) == clipboard


@pytest.mark.parametrize(
    "never",
    [
        b"\x1b]52;c;?\x07",
        b"\x1b]52;;?\x1b\\",
        b"\x1b]52;c;not base64!\x07",
        b"\x1b]2;two\nlines\x07",
        b"\x1b]2;stray\x9c\x07",
        b"\x1b]2;ended by a character\xc2\x9c",
        b"\x1b[21t",
        b"\x1bPtmux;\x1b\x1b]0;x\x1b\x1b\\\x1b\\",
    ],
)
def test_even_where_both_are_allowed_it_never_passes(never: bytes) -> None:
    for size in (0, 1):
        shown = passed(never, BOTH, size)
        assert [event for event in obeys(shown) if event.kind == "string"] == []
        assert b"[21t" not in shown


EIGHT_BIT = {0x90: b"$qm", 0x98: b"x", 0x9B: b"21t", 0x9D: b"52;c;eA==", 0x9E: b"x", 0x9F: b"Gt=f;x"}


@pytest.mark.parametrize("code", EIGHT_BIT)
@pytest.mark.parametrize("form", ["as a byte", "as a character", "after the beginning of a character"])
def test_eight_bit_controls_lose_their_beginning_in_each_form(code: int, form: str) -> None:
    introducer = {
        "as a byte": bytes([code]),
        "as a character": chr(code).encode(),
        "after the beginning of a character": b"\xe2" + bytes([code]),
    }[form]
    for end in (b"\x07", END, b"\x9c", b"\xc2\x9c"):
        for size in (0, 1):
            shown = passed(b"a" + introducer + EIGHT_BIT[code] + end, BOTH, size)
            assert "�" in shown.decode("utf-8", "replace")
            assert not [event for event in obeys(shown) if event.kind in ("string", "control")]


def test_a_continuation_byte_is_no_control() -> None:
    text = "".join(chr(code) for code in range(0xA0, 0x800)).encode()
    for size in (0, 1, 3):
        assert passed(text, size=size) == text


@pytest.mark.parametrize("cancel", [b"\x18", b"\x1a", b"\x1b[m"])
@pytest.mark.parametrize("begun", [b"\x1b]0;x", b"\x1bPx", b"\x1b[2", b"\x1b_G"])
def test_a_cancelled_sequence_is_dropped_and_what_follows_is_shown(begun: bytes, cancel: bytes) -> None:
    for size in (0, 1):
        assert passed(begun + cancel + b"text", BOTH, size) == cancel.strip(b"\x18\x1a") + b"text"


@pytest.mark.parametrize(
    "begun", [b"\x1b", b"\x1b[", b"\x1b[3", b"\x1b]", b"\x1b]0;x", b"\x1b]0;x\x1b", b"\x1bP", b"\x1b("]
)
def test_a_sequence_without_its_end_is_not_left_to_the_shells_prompt(begun: bytes) -> None:
    shown = passed(b"text" + begun, BOTH)
    assert shown in (b"text", b"text\x1b(")


def test_nested_for_tmux_nothing_passes_for_those_who_unwrap_it_or_do_not() -> None:
    for inner in (b"\x1b]52;c;eA==\x07", b"\x1b]0;x\x1b\\", b"\x1bPtmux;\x1b]0;x\x07\x1b\\"):
        wrapped = b"\x1bPtmux;" + inner.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
        for data in (wrapped, b"\x1bP" + inner + b"\x1b\\", b"\x1bPtmux;" + wrapped + b"\x1b\\"):
            for size in (0, 1):
                shown = passed(data + b"text", size=size)
                assert not [event for event in obeys(shown) if event.kind in ("string", "control")]
                assert shown.endswith(b"text")


def test_what_is_too_long_is_dropped_to_its_end_and_held_nowhere() -> None:
    for data, allowed, limit in (
        (b"\x1b]8;;" + b"x" * STRING_LIMIT + b"\x07", (), STRING_LIMIT),
        (b"\x1b]0;" + b"x" * 300_000 + b"\x1b\\", ("title",), STRING_LIMIT),
        (b"\x1b]52;c;" + b"A" * CLIPBOARD_LIMIT + b"\x07", ("clipboard",), CLIPBOARD_LIMIT),
        (b"\x1b[" + b"1;" * SEQUENCE_LIMIT + b"m", (), SEQUENCE_LIMIT),
    ):
        for size in (0, 997, 65536):
            one = Filter(allowed)
            shown = b""
            for at in range(0, len(data), size or len(data)):
                shown += one.feed(data[at : at + (size or len(data))])
                assert len(one._held) + sum(map(len, one._text)) <= limit + len(data[:size])
            assert shown + one.feed(b"text") == b"text"
            assert sum(one.dropped.values()) == 1


def test_questions_are_told_in_their_order() -> None:
    one = Filter()
    one.feed(b"\x1b[6n\x1b]11;?\x07\x1b[c\x1b[31m\x1bP$qm\x1b\\\x1b]8;;x?y\x07\x1b[14t\x1b[22t\x1b[?u")
    assert one.asked == ["n", "]", "c", "P", "t", "u"]


def test_where_nobody_can_answer_nothing_asks() -> None:
    one = Filter(gate=lambda _: False)
    assert one.feed(b"a\x1b[6nb\x1b]11;?\x07c\x1b[31md\x1bZ") == b"abc\x1b[31md"
    assert one.asked == []


def test_no_more_pass_than_the_gate_has_room_for_and_each_answer_is_counted() -> None:
    room = 5
    one = Filter(gate=lambda count: len(one.asked) + count <= room)
    assert one.feed(b"\x1b[c" * 9 + b"\x1b[31m") == b"\x1b[c" * 5 + b"\x1b[31m"
    assert one.asked == ["c"] * 5
    assert one.dropped == {"other": 4}
    for data, answers in (
        (b"\x1b]4;1;?;2;?;3;?\x07", ["]"] * 3),
        (b"\x1b]10;?;?\x07", ["]"] * 2),
        (b"\x1bP+q544e;436f\x1b\\", ["P"] * 2),
        (b"\x1b[?2048;2048h", ["t"] * 2),
    ):
        one.asked.clear()
        room = len(answers)
        assert (one.feed(data), one.asked) == (data, answers)
        assert one.feed(data) == b""


@pytest.mark.parametrize(
    "start", [b"**\x18B00000000000000\r\x8a\x11", b"rz\r**\x18B0100", b"*\x18A\x00", b"**\x18C"]
)
def test_a_file_transfer_does_not_begin(start: bytes) -> None:
    for size in (0, 1):
        assert passed(start, size=size) == start.replace(b"\x18", b"")


DROPPED_OF_TERMINFO = {
    **dict.fromkeys(("mc0", "mc4", "mc5", "mc5p"), "print on paper"),
    **dict.fromkeys(("meml", "memu"), "lock lines of the screen, which nothing undoes"),
    **dict.fromkeys(("tsl", "dsl", "TS"), "set the title"),
    "Ms": "sets the clipboard",
    **dict.fromkeys(("initc", "oc"), "the palette of the console, whose sequence has no end elsewhere"),
    "rs1": "resets that palette, too",
}


@pytest.mark.parametrize(
    "terminal", ["xterm-256color", "tmux-256color", "screen", "linux", "rxvt-unicode-256color"]
)
def test_what_terminfo_has_programs_send_passes_but_what_is_dropped_for_a_reason(terminal: str) -> None:
    changed = set()
    sent = terminfo.strings(terminal)
    assert len(sent) > 60
    for name, text in sent.items():
        for values in ([48] * 9, [66] * 9, [65, 48, 33, 4, 5, 6, 7, 8, 9]):
            data = terminfo.filled(text, values)
            if passed(data) != data:
                changed.add(name)
    linux = {"initc", "oc", "rs1"}
    assert changed <= set(DROPPED_OF_TERMINFO) - (set() if terminal == "linux" else linux)


PROGRAMS = {
    "claude code, codex (ink, ratatui)": b"\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[?1007h\x1b[>7u\x1b[?2026h\x1b[39;49m\x1b[?2026l"
    b"\x1b[?u\x1b[c\x1b[>0q\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[?2031h\x1b[?996n\x1b[2K\x1b[1A\x1b[G\x1b[<1u\x1b[?1007l\x1b[?2004l",
    "vim": b"\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;24r\x1b[?12h\x1b[?12l\x1b[22;2t\x1b[22;1t"
    b"\x1b[?4m\x1b[>c\x1b[2;2H\xe2\x96\xbd\x1b[6n\x1bP+q436f\x1b\\\x1bP$q q\x1b\\\x1b]10;?\x07\x1b[?2026$p\x1b[23;2t\x1b[>4;m",
    "neovim": b"\x1b[?69$p\x1b[?2027$p\x1b[?2048$p\x1b[?2048h\x1b[?1004h\x1b[?25l\x1b[2 q\x1b[0 q\x1b[>1u\x1b[4:3m\x1bP+q4d73\x1b\\",
    "emacs -nw": b"\x1b[?1049h\x1b[?12;25h\x1b[?1h\x1b=\x1b[>0c\x1b[>4;1m\x1b[?2004h\x1b]104;1\x07\x1b[39;49m\x1b[>4m",
    "tmux": b"\x1b[?1049h\x1b(B\x1b[m\x1b[?1l\x1b>\x1b[H\x1b[2J\x1b[?12l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?1005l"
    b"\x1b[c\x1b[>c\x1b[>q\x1b]112\x07\x1b[?69h\x1b[1;40s\x1b[32;1;1;2;2$x\x1b[24;1H\x1b[K\x1b[80b",
    "the shell's line editor": b"\x1b[?2004h\x1b[?1034h\x1b[?1h\x1b=\x1b[C\x1b[K\x1b[?2004l\x1b[?1l\x1b>",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_programs_of_today_send_passes(program: str) -> None:
    for size in (0, 1, 3):
        assert passed(PROGRAMS[program], size=size) == PROGRAMS[program]


@pytest.mark.parametrize(
    "piece", [b"\x1b", b"\x1b\x1b[", b"\x1b]x", b"\x1b]0;x\x07", b"\x1bA", b"\x1b[5i", b"\x1b[6n"], ids=repr
)
def test_a_flood_is_decided_as_its_pieces_are(piece: bytes) -> None:
    one = Filter(gate=lambda _: False)
    assert one.feed(piece * 3000 + b"\x18end") == b"end"
    assert sum(one.dropped.values()) >= (0 if piece.strip(b"\x1b[") == b"" else 3000)


PIECES = st.sampled_from(
    [
        *FORBIDDEN.values(),
        *NATIVE.values(),
        *(
            bytes([byte])
            for byte in (0x05, 0x07, 0x18, 0x1A, 0x1B, 0x90, 0x9B, 0x9C, 0x9D, 0xC2, 0xE2, 0xF0, 0x0A, 0x7F)
        ),
        *(
            b"\x1b",
            b"\x1b]",
            b"\x1bP",
            b"\x1b[",
            b"\x1b_",
            b"52;c;eA==",
            b"0;x",
            b"21t",
            b"\\",
            b"]",
            b"[",
            b"%",
            b"2",
            b"h",
            b"tmux;",
        ),
    ]
)
STREAMS = st.lists(PIECES | st.binary(max_size=4), max_size=12).map(b"".join)
CUTS = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


DRAWN = set("@ABCDEFGHIJKLMPSTXZ`abdefmrsu") | set(
    "?J ?K !p '} '~ $r $t $v $x $z *x #p #q #{ #} #P #Q >m >u <u =u ?c >q $p ?$p ?u ?m ?S".split()
)
DRAWN |= {" @", " A", " q"}
PRIVATE = {*(1, 5, 7, 9, 12, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016)}
PRIVATE |= {*(1034, 1047, 1048, 1049, 2004, 2026, 2027, 2031, 2048)}
KNOWN_CONTROLS = {
    "?h": PRIVATE,
    "?l": PRIVATE | {3, 4, 6, 1001},
    "?s": {1001},
    "?r": {1001},
    "h": {4, 34},
    "l": {4, 20, 34},
    "n": {5, 6},
    "?n": {6, 996},
    "c": {0},
    ">c": {0},
    "=c": {0},
    "g": {0, 3},
    "?W": {5},
    "t": {*range(14), 14, 15, 16, 18, 19, 22, 23},
}
"""Private mark and final → the numbers that do no harm, wherever they stand."""


def harm_of_control(text: str) -> bool:
    found = re.fullmatch("([<=>?]?)([0-9;:]*)([ -/]*.)", text)
    if found is None or re.search("[0-9]{6}", text):
        return True
    mark, numbers, end = found.groups()
    if mark + end == "t" and int(re.split("[;:]", numbers)[0] or 0) < 14:
        return True
    if (mark + end in ("n", "?n") and len(numbers) > 3) or (mark + end == "?S" and ";3" in numbers):
        return True
    values = {int(number or 0) for number in re.split("[;:]", numbers)}
    return mark + end not in DRAWN and not values <= KNOWN_CONTROLS.get(mark + end, set())


def harm(event: Event, allowed: tuple[str, ...]) -> bool:
    """Whether a terminal does what it must not; written apart from the tables of the filter."""
    text = event.text
    if event.kind == "unfinished":
        return event.text.startswith(("string", "control"))
    if event.kind == "execute":
        return text == "\x05"
    if event.kind == "escape":
        return re.fullmatch(r"[78MDEHcZg=>\\]|#[34568]|[()*+][012ABUK]", text) is None
    if event.kind == "control":
        return harm_of_control(text)
    if event.kind == "string":
        if "title" in allowed and re.fullmatch(
            r"k[^\x00-\x1f\x7f-\x9f]*|\](?:[012]|3[01])(?:;[^\x00-\x1f\x7f-\x9f]*)?", text
        ):
            return False
        if "clipboard" in allowed and re.fullmatch(r"\]52;[cpqs0-7]*;[A-Za-z0-9+/]*={0,2}", text):
            return False
        if text.startswith("]22;") and "?" in text:
            return True
        good = r"\](?:4|5|1[0-9]|21|8|22|104|105|11[0-9]|133)(?:;[^\x00-\x1f\x7f-\x9f]*)?|P(?:\$q.{1,2}|\+q[0-9A-Fa-f;]*|=[12]s)"
        return re.fullmatch(good, text) is None
    return False


@settings(max_examples=400, deadline=None)
@given(STREAMS, CUTS, st.sampled_from([(), ("title",), ("clipboard",), BOTH]))
def test_however_it_is_cut_the_terminal_does_no_harm_and_shows_the_same(
    data: bytes, sizes: list[int], allowed: tuple[str, ...]
) -> None:
    whole = passed(data, allowed)
    assert [event for event in obeys(whole) if harm(event, allowed)] == []
    one = Filter(allowed)
    assert b"".join(map(one.feed, cut(data, sizes))) + one.finish() == whole
    assert passed(whole, allowed) == whole, "what passed once passes again"


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(blacklist_categories=("Cc", "Cs"))), CUTS)
def test_text_is_not_changed(text: str, sizes: list[int]) -> None:
    one = Filter()
    assert b"".join(map(one.feed, cut(text.encode(), sizes))) + one.finish() == text.encode()
    assert one.dropped == {}


def test_control_the_second_opinion_sees_the_harm_of_each() -> None:
    blind = [
        what
        for what, data in FORBIDDEN.items()
        if not [event for event in obeys(data) if harm(event, ())] and "console's" not in what
    ]
    assert blind == []
