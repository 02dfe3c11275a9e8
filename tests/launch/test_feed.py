"""What the command does not read of stdin stays the caller's."""

import fcntl
import os
import pty
import socket
import subprocess
import termios
import tty
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from jail.launch.feed import inward
from jail.launch.relay import RECHECK, drain
from support.loops import BOUND, Reader, Writer, digest, run, settle

BIG = os.urandom(20 << 20)
LIST = b"".join(b"line %d\n" % number for number in range(5000))
"""More than a page, less than a pipe."""
KINDS = ["file", "pipe", "socket"]


class Caller:
    """A stdin of some kind that will give `data`, then its end."""

    def __init__(self, kind: str, data: bytes, folder: Path) -> None:
        self.far = -1
        if kind == "file":
            (folder / "list").write_bytes(data)
            self.fd = os.open(folder / "list", os.O_RDONLY)
            return
        if kind == "pipe":
            self.fd, self.far = os.pipe()
        else:
            near, far = socket.socketpair()
            self.fd, self.far = near.detach(), far.detach()
        if len(data) > 60_000:
            Writer(self.far, data)
        else:
            os.write(self.far, data)
            os.close(self.far)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def later(stack: ExitStack, fd: int) -> int:
    def close() -> None:
        with suppress(OSError):
            os.close(fd)

    stack.callback(close)
    return fd


def command(stack: ExitStack) -> tuple[int, tuple[int, int]]:
    """(stdin of the command, inner pipe)."""
    inner = os.pipe()
    return later(stack, os.dup(inner[0])), inner


def rest_of(fd: int) -> bytes:
    pieces = []
    while piece := os.read(fd, 65536):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_20_mb_go_in_byte_for_byte_and_the_callers_fd_keeps_its_flags(
    kind: str, tmp_path: Path, stack: ExitStack
) -> None:
    caller = Caller(kind, BIG, tmp_path)
    stdin, inner = command(stack)
    before = fcntl.fcntl(caller.fd, fcntl.F_GETFL)
    part = inward(later(stack, caller.fd), inner)
    reader = Reader(stdin)
    run([part], lambda: not reader.is_alive())
    assert drain([part], None)
    assert reader.digest == digest(BIG)
    assert part.error is None
    assert fcntl.fcntl(caller.fd, fcntl.F_GETFL) == before
    assert not before & os.O_NONBLOCK
    assert os.read(caller.fd, 1) == b""


@pytest.mark.parametrize("read", [0, 1, 8, 4096, 4097, 20_000, len(LIST)])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_read_inside_is_still_there(
    kind: str, read: int, tmp_path: Path, stack: ExitStack
) -> None:
    caller = Caller(kind, LIST, tmp_path)
    stdin, inner = command(stack)
    part = inward(later(stack, caller.fd), inner)
    taken = b""
    while True:
        settle(part)
        if len(taken) == read:
            break
        taken += os.read(stdin, read - len(taken))
    part.finish()
    assert taken == LIST[:read]
    assert rest_of(caller.fd) == LIST[read:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_over_lines_with_a_command_in_it_sees_each_line(
    kind: str, tmp_path: Path, stack: ExitStack
) -> None:
    caller = Caller(kind, b"one\ntwo\nthree\n", tmp_path)
    later(stack, caller.fd)
    seen: list[bytes] = []
    while word := b"".join(iter(lambda: os.read(caller.fd, 1), b"\n" if len(seen) < 3 else b"")):
        seen.append(word)
        _stdin, inner = command(stack)
        part = inward(caller.fd, inner)
        settle(part)
        part.finish()
    assert seen == [b"one", b"two", b"three"]


def test_a_file_given_with_an_offset_is_read_from_there(tmp_path: Path, stack: ExitStack) -> None:
    caller = Caller("file", b"head\ntail\n", tmp_path)
    os.lseek(later(stack, caller.fd), 5, os.SEEK_SET)
    stdin, inner = command(stack)
    part = inward(caller.fd, inner)
    settle(part)
    assert rest_of(stdin) == b"tail\n"
    part.finish()
    assert os.lseek(caller.fd, 0, os.SEEK_CUR) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_makes_its_stdin_larger_cannot_make_us_spin(
    kind: str, tmp_path: Path, stack: ExitStack
) -> None:
    caller = Caller(kind, LIST, tmp_path)
    stdin, inner = command(stack)
    part = inward(later(stack, caller.fd), inner)
    settle(part)
    fcntl.fcntl(stdin, fcntl.F_SETPIPE_SZ, 1 << 20)
    assert settle(part) < 50
    head = os.read(stdin, 100)
    assert settle(part) < 50
    part.finish()
    assert head + rest_of(caller.fd) == LIST


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_the_command_puts_into_its_own_stdin_take_nothing_from_the_caller(
    kind: str, tmp_path: Path, stack: ExitStack
) -> None:
    caller = Caller(kind, LIST, tmp_path)
    stdin, inner = command(stack)
    forged = later(stack, os.open(f"/proc/self/fd/{stdin}", os.O_WRONLY | os.O_NONBLOCK))
    part = inward(later(stack, caller.fd), inner)
    with suppress(BlockingIOError):
        while True:
            os.write(forged, bytes(4096))
    settle(part)
    part.finish()
    assert rest_of(caller.fd) == LIST


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_closes_its_stdin_loses_nothing(kind: str, tmp_path: Path, stack: ExitStack) -> None:
    caller = Caller(kind, LIST, tmp_path)
    stdin, inner = command(stack)
    part = inward(later(stack, caller.fd), inner)
    settle(part)
    os.close(stdin)
    settle(part)
    part.finish()
    assert rest_of(caller.fd) == LIST


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_feed_leaves_no_fd(kind: str, tmp_path: Path, stack: ExitStack) -> None:
    caller = Caller(kind, LIST, tmp_path)
    later(stack, caller.fd)
    before = set(os.listdir("/proc/self/fd"))
    part = inward(caller.fd, os.pipe())
    settle(part)
    part.close()
    part.close()
    assert part.interests() == []
    assert set(os.listdir("/proc/self/fd")) == before


def test_another_reader_of_the_callers_pipe_cannot_make_us_wait(stack: ExitStack) -> None:
    read, write = os.pipe()
    later(stack, read)
    later(stack, write)
    os.write(write, b"abc")
    stdin, inner = command(stack)
    part = inward(read, inner)
    settle(part)
    assert os.read(read, 3) == b"abc"
    assert os.read(stdin, 3) == b"abc"
    settle(part)
    part.finish()
    assert part.error is None


def test_a_source_that_cannot_be_read_is_an_end_with_an_error(stack: ExitStack, tmp_path: Path) -> None:
    fd = later(stack, os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    stdin, inner = command(stack)
    part = inward(fd, inner)
    settle(part)
    assert os.read(stdin, 1) == b""
    assert part.error is not None
    part.finish()


def test_a_device_is_read_a_page_at_a_time(stack: ExitStack) -> None:
    zero = later(stack, os.open("/dev/zero", os.O_RDONLY))
    with subprocess.Popen(
        ["/usr/bin/head", "-c", "100000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as head:
        assert head.stdin is not None
        assert head.stdout is not None
        unused = os.pipe()
        os.close(unused[1])
        part = inward(zero, (unused[0], os.dup(head.stdin.fileno())))
        head.stdin.close()
        reader = Reader(os.dup(head.stdout.fileno()))
        run([part], lambda: part.closed and not reader.is_alive())
        assert head.wait(BOUND) == 0
    assert reader.digest == digest(bytes(100_000))


def test_a_terminal_is_read_by_lines_and_left_alone_while_another_program_drives_it(stack: ExitStack) -> None:
    master, slave = pty.openpty()
    later(stack, master)
    later(stack, slave)
    before = termios.tcgetattr(slave), fcntl.fcntl(slave, fcntl.F_GETFL)
    stdin, inner = command(stack)
    part = inward(slave, inner)
    os.set_blocking(stdin, False)
    os.write(master, b"a line\n")
    got: list[bytes] = []

    def arrived() -> bool:
        with suppress(BlockingIOError):
            got.append(os.read(stdin, 100))
        return bool(got)

    run([part], arrived)
    assert got == [b"a line\n"]
    assert part.timeout is None
    assert (termios.tcgetattr(slave), fcntl.fcntl(slave, fcntl.F_GETFL)) == before
    tty.setraw(slave)
    os.write(master, b"q")
    assert part.interests() == []
    assert part.timeout == RECHECK
    assert os.read(slave, 1) == b"q"


def test_the_end_of_a_terminals_lines_is_the_end_of_stdin(stack: ExitStack) -> None:
    master, slave = pty.openpty()
    later(stack, master)
    later(stack, slave)
    stdin, inner = command(stack)
    part = inward(slave, inner)
    os.write(master, b"\x04")
    run([part], lambda: part.closed)
    assert os.read(stdin, 1) == b""
