"""The settings of a terminal: whose it is, raw mode, the way back.

Rule: nothing here can stop us or wait without end. In a process group that is not the terminal's foreground
group, tcsetattr(3) brings SIGTTOU and a read SIGTTIN (termios(3)); after ^S a drain never ends.
"""

import fcntl
import os
import select
import sys
import termios
import time

from jail.light import Any, Final, signal, suppress

OUTPUT_WAIT: Final = 1.0
"""Seconds to wait for output on its way to the terminal before its settings change (TCSADRAIN has no limit).
"""

RESET: Final = (
    b"\x1b[<99u\x1b[=0u"  # kitty's keyboard, a stack for each screen
    b"\x1b7\x1b[?1049l"  # leave the alternate screen; where it was off, the cursor saved just now comes back
    b"\x1b[?69l\x1b7\x1b[r\x1b8"  # the whole screen scrolls; that moves the cursor, hence saved and restored
    b"\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l"  # mouse
    b"\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    b"\x1b[?1004l\x1b[?2004l\x1b[?2026l"  # focus events, bracketed paste, held output
    b"\x1b[?2027l\x1b[?2031l\x1b[?2048l"  # graphemes, reports of colour scheme and size
    b"\x1b[?1l\x1b[?66l\x1b>\x1b[<99u\x1b[=0u\x1b[>4;0m"  # cursor keys, keypad, keyboards of kitty and xterm
    b"\x1b[4l\x1b[?5l\x1b[?7h\x1b[?25h"  # insertion, reverse video, wrap, cursor
    b"\x1b(B\x0f\x1b[0m"  # character set, colours
)
"""What a program that was killed on a terminal did not undo itself (xterm, Control Sequences).

Not 1007, the wheel as cursor keys: many terminals have it on from the start, and it sends nothing to a shell.
"""

_RAW_INPUT: Final = (
    *(termios.IGNBRK, termios.BRKINT, termios.PARMRK, termios.ISTRIP),
    *(termios.INLCR, termios.IGNCR, termios.ICRNL, termios.IXON),
)
_RAW_LOCAL: Final = (termios.ECHO, termios.ECHONL, termios.ICANON, termios.ISIG, termios.IEXTEN)


def foreground(tty: int) -> bool:
    """Whether the terminal is ours to read and set; one that does not control us knows no background."""
    try:
        return os.tcgetpgrp(tty) == os.getpgrp()
    except OSError:
        return True


def line_mode(tty: int) -> bool:
    """Whether the terminal gives lines, to us. True when it hung up: the read says so."""
    try:
        return foreground(tty) and bool(termios.tcgetattr(tty)[3] & termios.ICANON)
    except termios.error:
        return True


def settings(tty: int) -> list[Any]:
    """tcgetattr(3); in the background, where it is a line editor's, with line mode and echo added."""
    mode = termios.tcgetattr(tty)
    if not foreground(tty):
        mode[0] |= termios.ICRNL
        mode[1] |= termios.OPOST | termios.ONLCR
        mode[3] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
    return mode


def raw(mode: list[Any]) -> list[Any]:
    """`mode` made raw as cfmakeraw(3) does it."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, keys = mode
    keys = list(keys)
    keys[termios.VMIN], keys[termios.VTIME] = 1, 0
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    return [
        iflag & ~sum(_RAW_INPUT),
        oflag & ~termios.OPOST,
        cflag,
        lflag & ~sum(_RAW_LOCAL),
        ispeed,
        ospeed,
        keys,
    ]


def is_raw(tty: int) -> bool:
    """Whether the terminal is as `raw` left it; line editors of shells keep ISIG and OPOST. Raises
    termios.error.
    """
    mode = termios.tcgetattr(tty)
    return not (mode[1] & termios.OPOST or mode[3] & (termios.ICANON | termios.ECHO | termios.ISIG))


def apply(tty: int, mode: list[Any], *, flush: bool = False) -> bool:
    """tcsetattr(3) at once, with SIGTTOU blocked, as we may just have left the foreground; `flush` drops
    unread input.

    False when the terminal hung up: there is nothing to set then.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
    try:
        if flush:
            termios.tcflush(tty, termios.TCIFLUSH)
        termios.tcsetattr(tty, termios.TCSANOW, mode)
    except termios.error:
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def await_output(tty: int) -> None:
    """Wait until what was written is sent (TIOCOUTQ, ioctl_tty(2)), at most OUTPUT_WAIT."""
    end = time.monotonic() + OUTPUT_WAIT
    with suppress(OSError):
        while int.from_bytes(fcntl.ioctl(tty, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
            if time.monotonic() > end:
                return
            select.poll().poll(10)


def copy_size(source: int, target: int) -> None:
    """Window size of one terminal to another; where it changed the kernel sends SIGWINCH (ioctl_tty(2))."""
    with suppress(OSError):
        fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8)))
