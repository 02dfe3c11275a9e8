"""Settings of a terminal."""

import os
import pty
import select
import termios
import tty as standard_tty
from collections.abc import Iterator
from contextlib import suppress

import pytest

from jail.launch import tty
from support.loops import BOUND


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    for fd in (master, slave):
        with suppress(OSError):
            os.close(fd)


def test_raw_is_what_the_standard_library_sets(pair: tuple[int, int]) -> None:
    _, slave = pair
    mode = tty.raw(termios.tcgetattr(slave))
    standard_tty.setraw(slave)
    expected = termios.tcgetattr(slave)
    for number in (1, 2, 3):
        assert mode[number] & 0o177 == expected[number] & 0o177
    assert tty.apply(slave, mode)
    assert termios.tcgetattr(slave) == mode
    assert tty.is_raw(slave)


def test_a_line_editors_mode_is_not_ours(pair: tuple[int, int]) -> None:
    _, slave = pair
    assert not tty.is_raw(slave)
    standard_tty.setcbreak(slave)
    assert not tty.is_raw(slave)
    assert not tty.line_mode(slave)


def test_a_terminal_that_does_not_control_us_is_in_front(pair: tuple[int, int]) -> None:
    assert tty.foreground(pair[1])
    assert tty.line_mode(pair[1])


def test_flush_drops_what_waits_and_no_flush_keeps_it(pair: tuple[int, int]) -> None:
    master, slave = pair
    mode = tty.raw(termios.tcgetattr(slave))
    for flush, left in ((False, b"old"), (True, b"new")):
        tty.apply(slave, mode)
        os.write(master, b"old")
        assert has_input(slave)
        tty.apply(slave, mode, flush=flush)
        if flush:
            os.write(master, b"new")
        assert os.read(slave, 3) == left


def has_input(slave: int) -> bool:
    return bool(select.select([slave], [], [], BOUND)[0])


def test_a_terminal_that_hung_up_is_neither_set_nor_waited_for(pair: tuple[int, int]) -> None:
    master, slave = pair
    mode = termios.tcgetattr(slave)
    os.close(master)
    assert not tty.apply(slave, mode)
    tty.await_output(slave)
    tty.copy_size(slave, slave)
