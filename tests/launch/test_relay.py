"""What the command writes reaches the caller: all of it, in order, bounded, on the caller's terms."""

import errno
import fcntl
import os
import pty
import select
import signal
import socket
import subprocess
import time
import tty
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from jail.launch import ends, relay
from jail.launch.relay import (
    BURST,
    CHUNK,
    NULL,
    PAGE,
    PIPE,
    TERMINAL,
    TURN,
    Quota,
    Relay,
    Stdio,
    drain,
    outward,
    plan_stdio,
)
from support.loops import BOUND, Reader, Writer, digest, plain_bytes, run, settle, step

PIPE_SIZE = 65536
BIG = os.urandom(20 << 20)
SHOWN = plain_bytes(4 << 20)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def closed_later(stack: ExitStack, *fds: int) -> tuple[int, ...]:
    def close(fd: int) -> None:
        with suppress(OSError):
            os.close(fd)

    for fd in fds:
        stack.callback(close, fd)
    return fds


def pipe(stack: ExitStack) -> tuple[int, int]:
    read, write = closed_later(stack, *os.pipe())
    return read, write


def raw_pty(stack: ExitStack) -> tuple[int, int]:
    master, slave = closed_later(stack, *pty.openpty())
    tty.setraw(slave)
    return master, slave


def sockets(stack: ExitStack) -> tuple[int, int]:
    far, near = socket.socketpair()
    return closed_later(stack, far.detach(), near.detach())  # type: ignore[return-value] # two in, two out


FAR_AND_NEAR = {"pipe": pipe, "socket": sockets, "terminal": raw_pty}


def flags(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def open_fds() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("kind", FAR_AND_NEAR)
def test_all_goes_through_byte_for_byte_and_the_callers_fd_keeps_its_flags(
    kind: str, stack: ExitStack
) -> None:
    far, near = FAR_AND_NEAR[kind](stack)
    before = flags(near)
    inner_read, inner_write = pipe(stack)
    data = SHOWN if kind == "terminal" else BIG
    reader = Reader(far, len(data))
    Writer(inner_write, data)
    part = outward(inner_read, near)
    during = set()

    def done() -> bool:
        during.add(flags(near))
        return part.closed and not reader.is_alive()

    run([part], done)
    assert reader.digest == digest(data)
    assert part.error is None
    assert during == {before}
    assert not before & os.O_NONBLOCK


def test_20_mb_go_to_a_file(tmp_path: Path, stack: ExitStack) -> None:
    (near,) = closed_later(stack, os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    inner_read, inner_write = pipe(stack)
    Writer(inner_write, BIG)
    part = outward(inner_read, near)
    run([part], lambda: part.closed)
    assert (tmp_path / "out").read_bytes() == BIG
    assert os.lseek(near, 0, os.SEEK_CUR) == len(BIG)


def test_past_its_quota_a_relay_reads_nothing_more_and_delivers_what_it_read(
    tmp_path: Path, stack: ExitStack
) -> None:
    outs = [
        closed_later(stack, os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT))[0] for name in ("one", "two")
    ]
    quota = Quota(CHUNK + 10)
    ends = [pipe(stack), pipe(stack)]
    parts = [outward(ends[number][0], outs[number], quota) for number in (0, 1)]
    os.write(ends[0][1], BIG[:CHUNK])
    run(parts, lambda: quota.left == 10)
    assert not quota.spent
    os.write(ends[0][1], b"x" * 10)
    run(parts, lambda: quota.left == 0)
    assert not quota.spent, "all of it may be printed"
    os.write(ends[1][1], b"yz")
    run(parts, lambda: quota.spent)
    os.write(ends[0][1], b"too much")
    assert [part.interests() for part in parts] == [[], []]
    assert not any(part.closed for part in parts), "the writer waits, and gets no SIGPIPE"
    assert drain(parts, None)
    assert (tmp_path / "one").read_bytes() == BIG[:CHUNK] + b"x" * 10
    assert (tmp_path / "two").read_bytes() == b"yz"


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_a_sink_that_cannot_be_opened_again_gets_pages_after_poll(
    kind: str, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "_reopened", lambda *_: -1)
    far, near = FAR_AND_NEAR[kind](stack)
    before = flags(near)
    inner_read, inner_write = pipe(stack)
    part = outward(inner_read, near)
    reader = Reader(far, len(SHOWN))
    Writer(inner_write, SHOWN)
    run([part], lambda: part.closed and not reader.is_alive())
    assert reader.digest == digest(SHOWN)
    assert flags(near) == before


@pytest.mark.parametrize(
    ("kind", "polled"),
    # A terminal takes less than it polls for; only opened again does it never wait.
    [("pipe", False), ("socket", False), ("terminal", False), ("pipe", True), ("socket", True)],
)
def test_a_reader_that_stops_stops_the_writer_and_nothing_blocks_or_grows(
    *, kind: str, polled: bool, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    if polled:
        monkeypatch.setattr(ends, "_reopened", lambda *_: -1)
    far, near = FAR_AND_NEAR[kind](stack)
    inner_read, inner_write = pipe(stack)
    os.set_blocking(inner_write, False)
    part = outward(inner_read, near)
    sent = 0
    for _ in range(10_000):
        try:
            sent += os.write(inner_write, SHOWN[sent : sent + CHUNK])
        except BlockingIOError:
            if not step([part], 0):
                break
    else:
        raise AssertionError("the writer was never stopped")
    in_sockets = 2 * socket_buffer() if kind == "socket" else 0
    assert sent <= 2 * PIPE_SIZE + CHUNK + in_sockets
    os.close(inner_write)
    reader = Reader(far, sent)
    run([part], lambda: part.closed and not reader.is_alive())
    assert reader.digest == digest(SHOWN[:sent])


def socket_buffer() -> int:
    one, other = socket.socketpair()
    with one, other:
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def test_a_flood_moves_at_most_one_burst_for_an_event_so_that_it_cannot_starve_the_loop(
    tmp_path: Path, stack: ExitStack
) -> None:
    (near,) = closed_later(stack, os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    inner_read, inner_write = pipe(stack)
    fcntl.fcntl(inner_write, fcntl.F_SETPIPE_SZ, 2 * BURST)
    os.write(inner_write, bytes(2 * BURST))
    part = outward(inner_read, near)
    step([part], 0)
    assert 0 < (tmp_path / "out").stat().st_size <= BURST


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_reader_that_goes_away_gives_the_writer_sigpipe_and_is_no_error(
    kind: str, stack: ExitStack
) -> None:
    far, near = FAR_AND_NEAR[kind](stack)
    inner_read, inner_write = pipe(stack)
    with subprocess.Popen(["/usr/bin/yes"], stdout=inner_write, restore_signals=True) as yes:
        os.close(inner_write)
        part = outward(inner_read, near)
        run([part], lambda: bool(select.select([far], [], [], 0)[0]))
        assert os.read(far, 2) == b"y\n"
        os.close(far)
        run([part], lambda: part.closed)
        assert yes.wait(BOUND) == -signal.SIGPIPE
    assert part.error is None


def test_a_full_disk_ends_the_relay_and_is_remembered(stack: ExitStack) -> None:
    (near,) = closed_later(stack, os.open("/dev/full", os.O_WRONLY))
    inner_read, inner_write = pipe(stack)
    os.write(inner_write, b"lost")
    part = outward(inner_read, near)
    run([part], lambda: part.closed)
    assert part.error is not None
    assert part.error.errno == errno.ENOSPC
    with pytest.raises(BrokenPipeError):
        os.write(inner_write, b"more")


def test_a_log_opened_for_append_is_appended_to(tmp_path: Path, stack: ExitStack) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"of yesterday\n")
    (near,) = closed_later(stack, os.open(log, os.O_WRONLY | os.O_APPEND))
    inner_read, inner_write = pipe(stack)
    os.write(inner_write, b"of today\n")
    part = outward(inner_read, near)
    step([part], 0)
    with log.open("ab") as other:
        other.write(b"of somebody else\n")
    os.write(inner_write, b"of tonight\n")
    os.close(inner_write)
    run([part], lambda: part.closed)
    assert log.read_bytes() == b"of yesterday\nof today\nof somebody else\nof tonight\n"


def test_drain_delivers_what_is_left_though_a_write_end_is_still_open(stack: ExitStack) -> None:
    far, near = pipe(stack)
    inner_read, inner_write = pipe(stack)
    os.write(inner_write, BIG[:PIPE_SIZE])
    reader = Reader(far, PIPE_SIZE)
    part = outward(inner_read, near)
    assert drain([part], time.monotonic() + BOUND)
    reader.join(BOUND)
    assert reader.digest == digest(BIG[:PIPE_SIZE])


def test_drain_ends_at_its_deadline_when_nobody_reads(stack: ExitStack) -> None:
    _far, near = pipe(stack)
    inner_read, inner_write = pipe(stack)
    part = outward(inner_read, near)
    os.write(inner_write, bytes(PIPE_SIZE))
    settle(part)
    os.write(inner_write, bytes(PIPE_SIZE))
    assert not drain([part], time.monotonic() + 0.05)
    assert part.closed


def test_a_closed_relay_leaves_no_fd_and_the_callers_open(stack: ExitStack) -> None:
    for make in FAR_AND_NEAR.values():
        _far, near = make(stack)
        before = open_fds()
        inner_read, inner_write = os.pipe()
        part = outward(inner_read, near)
        os.close(inner_write)
        part.close()
        part.close()
        assert open_fds() == before
        assert part.interests() == []


def test_each_stream_becomes_what_it_is(tmp_path: Path, stack: ExitStack) -> None:
    _master, slave = raw_pty(stack)
    _other_master, other = raw_pty(stack)
    read, write = pipe(stack)
    _far, near = sockets(stack)
    null, file, again, shut = closed_later(
        stack,
        os.open("/dev/null", os.O_RDWR),
        os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT),
        os.open(tmp_path / "out", os.O_RDWR),
        os.dup(0),
    )
    elsewhere, log, log_again, same = closed_later(
        stack,
        os.open(tmp_path / "out", os.O_RDWR),
        os.open(tmp_path / "out", os.O_WRONLY | os.O_APPEND),
        os.open(tmp_path / "out", os.O_WRONLY | os.O_APPEND),
        os.dup(write),
    )
    os.close(shut)
    os.write(file, b"12")
    os.lseek(file, 0, os.SEEK_SET)
    os.lseek(elsewhere, 1, os.SEEK_SET)
    for streams, expected in {
        (slave, slave, slave): Stdio(TERMINAL, TERMINAL, TERMINAL, merged=False),
        (null, slave, slave): Stdio(NULL, TERMINAL, TERMINAL, merged=False),
        (slave, slave, other): Stdio(TERMINAL, TERMINAL, PIPE, merged=False),
        (slave, write, slave): Stdio(PIPE, PIPE, TERMINAL, merged=False),
        (slave, write, same): Stdio(PIPE, PIPE, PIPE, merged=True),
        (read, write, slave): Stdio(PIPE, PIPE, TERMINAL, merged=False),
        (shut, shut, shut): Stdio(NULL, NULL, NULL, merged=False),
        (null, null, null): Stdio(NULL, NULL, NULL, merged=False),
        (file, write, file): Stdio(PIPE, PIPE, PIPE, merged=False),
        (near, near, near): Stdio(PIPE, PIPE, PIPE, merged=True),
        (null, file, again): Stdio(NULL, PIPE, PIPE, merged=True),
        (null, file, elsewhere): Stdio(NULL, PIPE, PIPE, merged=False),
        (null, log, log_again): Stdio(NULL, PIPE, PIPE, merged=True),
        (null, file, log): Stdio(NULL, PIPE, PIPE, merged=False),
    }.items():
        assert plan_stdio(*streams) == expected


def test_pages_of_this_host_fill_one_slot_of_a_pipe(stack: ExitStack) -> None:
    read, write = pipe(stack)
    assert fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PAGE) == PAGE
    os.set_blocking(write, False)
    assert os.write(write, bytes(PAGE)) == PAGE
    with pytest.raises(BlockingIOError):
        os.write(write, b"x")
    os.read(read, PAGE)
    assert os.write(write, b"x") == 1


class Slow:
    """An edit for which each byte takes its time, by a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sizes: list[int] = []

    def monotonic(self) -> float:
        return self.now

    def feed(self, data: bytes) -> bytes:
        self.sizes.append(len(data))
        self.now += len(data) * TURN / PAGE * 0.9
        return b""

    def finish(self) -> bytes:
        return b""


def test_what_is_slow_to_edit_is_read_in_pieces_of_a_turn_each(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner_read, inner_write = pipe(stack)
    slow = Slow()
    monkeypatch.setattr(relay, "time", slow)
    part = Relay(ends.inner_end(inner_read), ends.caller_sink(1), edit=slow)
    for written in range(1, 5):
        os.write(inner_write, bytes(CHUNK))
        while sum(slow.sizes) < written * CHUNK:
            part.ready(inner_read, select.POLLIN)
    assert slow.sizes[0] == CHUNK
    assert max(slow.sizes[3:]) <= 2 * PAGE
    turns, begun = len(slow.sizes), slow.now
    os.write(inner_write, bytes(CHUNK))
    part.ready(inner_read, select.POLLIN)
    assert len(slow.sizes) - turns <= 2
    assert slow.now - begun <= 3 * TURN
    part.close()
