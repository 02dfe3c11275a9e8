"""The caller's terminal is relayed, and is sane again after each way out."""

import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty as standard_tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pexpect
import pytest

import jail
from jail.launch import ends, tty
from jail.launch.quota import Quota
from jail.launch.relay import RECHECK, drain
from jail.launch.terminal import Terminal
from support.loops import BOUND, Reader, Writer, digest, plain_bytes, run, settle

IUTF8 = 0o40000
"""Of asm-generic/termbits.h; the module has no name for it."""
BIG = os.urandom(20 << 20)
SHOWN = plain_bytes(12 << 20)

SUPERVISOR = r'''
"""A supervisor in small: guard, pty, Terminal, poll loop. Arguments: what to do, the command inside."""

import fcntl
import os
import pty
import select
import signal
import sys
import termios

from jail.launch import terminal

if os.getsid(0) == os.getpid():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
deed, command = sys.argv[1], sys.argv[2:]
watch = terminal.guard(0)
master, slave = pty.openpty()
part = terminal.Terminal(0, 1, master, watch)
go, start = os.pipe()
pid = os.fork()
if pid == 0:
    os.closerange(start, start + 1)
    os.close(watch.pipe)
    os.login_tty(slave)
    os.read(go, 1)
    os.execvp(command[0], command)
os.close(slave)
signal.signal(signal.SIGWINCH, lambda *_: part.resized())
signal.signal(signal.SIGCONT, lambda *_: part.enter())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def stop(*_):
    part.restore()
    os.kill(os.getpid(), signal.SIGSTOP)


signal.signal(signal.SIGTSTP, stop)
try:
    with part:
        print("ready", os.getpid(), watch.pid, file=sys.stderr, flush=True)
        os.close(start)
        if deed == "raise":
            raise ArithmeticError
        ended = os.pidfd_open(pid)
        while not part.closed:
            poller = select.poll()
            ended >= 0 and poller.register(ended, select.POLLIN)
            for fd, mask in part.interests():
                poller.register(fd, mask)
            for fd, mask in poller.poll(None if part.timeout is None else part.timeout * 1000):
                part.ready(fd, mask)
                if fd == ended:
                    part.finish()
                    ended = -1
finally:
    watch.release()
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=sys.stderr, flush=True)
'''

INSIDE = r"""
import os, signal, sys

def size(*_):
    columns, rows = os.get_terminal_size(0)
    os.write(1, b"%d %d\n" % (rows, columns))

signal.signal(signal.SIGWINCH, size)
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"caught\n"))
size()
while line := os.read(0, 100):
    os.write(1, b"got " + line)
sys.exit(5)
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def supervisor(tmp_path: Path) -> str:
    path = tmp_path / "supervisor.py"
    path.write_text(SUPERVISOR)
    return str(path)


def environment() -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(Path(jail.__file__).parent.parent),
        "TERM": "xterm",
        "PS1": "$ ",
    }


def ptys(stack: ExitStack) -> tuple[int, int]:
    def close(fd: int) -> None:
        with suppress(OSError):
            os.close(fd)

    pair = pty.openpty()
    for fd in pair:
        stack.callback(close, fd)
    return pair


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + BOUND
    while not done():
        assert time.monotonic() < end
        select.select([], [], [], 0.01)


def gone(pid: int) -> bool:
    """Whether the process `pid` ends, or has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = bool(select.select([handle], [], [], BOUND)[0])
    os.close(handle)
    return ended


class Running:
    """The supervisor of this file on a terminal of its own; the test holds the other end of that."""

    def __init__(self, stack: ExitStack, script: str, *words: str) -> None:
        self.screen, self.slave = ptys(stack)
        self.mode = termios.tcgetattr(self.slave)
        self.flags = fcntl.fcntl(self.slave, fcntl.F_GETFL)
        self.shown = b""
        slave = self.slave
        self.process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, script, *words],
                stdin=slave,
                stdout=slave,
                stderr=subprocess.PIPE,
                env=environment(),
                start_new_session=True,
            )
        )
        stack.callback(self._end)
        assert self.process.stderr is not None
        self.errors = self.process.stderr
        word, _pid, guard = self.errors.readline().split()
        assert word == b"ready"
        self.guard = int(guard)

    def _end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()

    def see(self, pattern: bytes) -> bytes:
        """Wait until the screen shows `pattern`; what was shown up to its end, which is then forgotten."""
        end = time.monotonic() + BOUND
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < end, self.shown
            if select.select([self.screen], [], [], 0.1)[0]:
                self.shown += os.read(self.screen, 65536)
        before, self.shown = self.shown[: found.end()], self.shown[found.end() :]
        return before

    def type(self, keys: bytes) -> None:
        os.write(self.screen, keys)

    def size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def kill_group(self) -> None:
        wait_for(lambda: os.getsid(self.guard) == self.guard)
        os.killpg(self.process.pid, signal.SIGKILL)

    def now(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def sane_after(self, status: int | None) -> None:
        if status is not None:
            assert self.process.wait(BOUND) == status
        assert gone(self.guard)
        assert self.now() == self.mode
        assert fcntl.fcntl(self.slave, fcntl.F_GETFL) == self.flags


def test_16_mb_come_out_byte_for_byte(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    master, inner = pty.openpty()
    part = Terminal(slave, slave, master)
    standard_tty.setraw(inner)
    reader = Reader(screen, len(SHOWN))
    with part:
        Writer(inner, SHOWN)
        run([part], lambda: not reader.is_alive())
        assert drain([part], None)
    assert reader.digest == digest(SHOWN)
    assert not fcntl.fcntl(slave, fcntl.F_GETFL) & os.O_NONBLOCK


def test_past_its_quota_nothing_more_is_shown_and_keys_still_go_in(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    master, inner = ptys(stack)
    quota = Quota(3)
    part = Terminal(slave, slave, os.dup(master), quota=quota)
    standard_tty.setraw(inner)
    with part:
        os.write(inner, b"1234")
        run([part], lambda: quota.spent)
        assert settle(part) < 5
        assert os.read(screen, 10) == b"1234", "what was read is shown"
        os.write(inner, b"more")
        os.write(screen, b"\x03")
        reader = Reader(inner, 1)
        run([part], lambda: not reader.is_alive())
        assert drain([part], None)
    assert not select.select([screen], [], [], 0)[0]


def test_20_mb_go_in_byte_for_byte(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    master, inner = ptys(stack)
    part = Terminal(slave, slave, os.dup(master))
    standard_tty.setraw(inner)
    reader = Reader(inner, len(BIG))
    with part:
        Writer(screen, BIG, close=False)
        run([part], lambda: not reader.is_alive())
    assert reader.digest == digest(BIG)


def test_a_terminal_that_cannot_be_opened_again_is_read_after_poll_alone(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "_reopened", lambda *_: -1)
    screen, slave = ptys(stack)
    master, inner = ptys(stack)
    with Terminal(slave, slave, os.dup(master)) as part:
        standard_tty.setraw(inner)
        for word in (b"one", b"two"):
            os.write(screen, word)
            settle(part)  # would block
            assert os.read(inner, 100) == word


def test_the_last_output_is_not_lost(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    for size in (1, 4095):
        master, inner = pty.openpty()
        part = Terminal(None, slave, master)
        standard_tty.setraw(inner)
        standard_tty.setraw(slave)
        reader = Reader(screen, size)
        with subprocess.Popen(["/usr/bin/head", "-c", str(size), "/dev/zero"], stdout=inner) as head:
            os.close(inner)
            head.wait(BOUND)
        assert drain([part], time.monotonic() + BOUND)
        reader.join(BOUND)
        assert reader.digest == digest(bytes(size))


def test_a_command_that_closed_its_terminal_is_not_hung_up_and_may_open_it_again(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    master, inner = ptys(stack)
    part = Terminal(None, slave, os.dup(master))
    name = os.ttyname(inner)
    os.close(inner)
    for _ in range(3):
        assert settle(part) < 5
        assert not part.closed
        assert part.timeout == RECHECK
    again = os.open(name, os.O_RDWR | os.O_NOCTTY)
    os.write(again, b"back")
    reader = Reader(screen, 4)
    run([part], lambda: not reader.is_alive())
    assert part.timeout is None
    os.close(again)
    assert drain([part], None)


def test_raw_while_entered_and_as_before_after_restore_however_often(stack: ExitStack) -> None:
    _screen, slave = ptys(stack)
    master, _inner = ptys(stack)
    before = termios.tcgetattr(slave)
    part = Terminal(slave, slave, os.dup(master))
    assert termios.tcgetattr(slave) == before
    for _ in range(2):
        part.enter()
        part.enter()
        assert tty.is_raw(slave)
        part.restore()
        part.restore()
        assert termios.tcgetattr(slave) == before
        part.interests()
        assert termios.tcgetattr(slave) == before
    part.close()


@pytest.mark.parametrize("taken", [True, False], ids=["read", "never read"])
def test_before_a_stop_goes_out_what_was_written_and_nothing_waits_for_ever(
    taken: bool, stack: ExitStack
) -> None:
    screen, slave = ptys(stack)
    master, inner = ptys(stack)
    before = termios.tcgetattr(slave)
    part = Terminal(slave, slave, os.dup(master))
    part.enter()
    standard_tty.setraw(inner)
    os.set_blocking(inner, False)
    if taken:
        reader = Reader(screen, 3000)
        os.write(inner, b"x" * 3000)
    else:
        with suppress(BlockingIOError):
            while os.write(inner, b"x" * 4096):
                pass
    part.suspend()
    assert termios.tcgetattr(slave) == before
    if taken:
        reader.join(BOUND)
        assert reader.digest == digest(b"x" * 3000)
    part.close()


def test_the_pty_inside_has_the_terminals_settings_and_size(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    mode = termios.tcgetattr(slave)
    mode[6][termios.VERASE] = b"\x08"
    mode[0] |= IUTF8
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 7, 77, 0, 0))
    master, inner = ptys(stack)
    part = Terminal(slave, slave, os.dup(master))
    assert termios.tcgetattr(inner) == mode
    assert os.get_terminal_size(inner) == (77, 7)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("4H", 8, 88, 0, 0))
    part.resized()
    assert os.get_terminal_size(inner) == (88, 8)
    part.close()
    part.resized()


def test_a_terminal_for_output_alone_is_never_set(stack: ExitStack) -> None:
    _screen, slave = ptys(stack)
    before = termios.tcgetattr(slave)
    master, inner = ptys(stack)
    with Terminal(None, slave, os.dup(master)) as part:
        part.interests()
        assert part.timeout is None
        assert termios.tcgetattr(slave) == before
        assert not termios.tcgetattr(inner)[1] & termios.OPOST
    assert termios.tcgetattr(slave) == before


def test_a_terminal_that_hangs_up_ends_the_relay_and_hangs_up_inside(stack: ExitStack) -> None:
    screen, slave = ptys(stack)
    master, inner = ptys(stack)
    copy = os.dup(master)
    os.close(master)
    part = Terminal(slave, slave, copy)
    with part:
        os.close(screen)
        os.write(inner, b"nobody sees this")
        run([part], lambda: part.closed)
        assert part.error is None
    with pytest.raises(OSError, match="Input/output") as problem:
        os.write(inner, b"more")
    assert problem.value.errno == errno.EIO


def test_typed_answers_and_keys_that_signal_reach_the_inside(stack: ExitStack, supervisor: str) -> None:
    running = Running(stack, supervisor, "run", sys.executable, "-c", INSIDE)
    running.see(rb"0 0\r\n")
    running.type(b"hello\r")
    running.see(rb"hello\r\ngot hello\r\n")
    assert tty.is_raw(running.slave)
    running.size(24, 80)
    running.see(rb"24 80\r\n")
    running.type(b"\x03")
    running.see(rb"caught\r\n")
    running.type(b"\x04")
    running.sane_after(0)
    assert b"status 5\n" in running.errors.read()


@pytest.mark.parametrize(
    ("deed", "act", "status"),
    [
        ("run", lambda running: running.type(b"\x04"), 0),
        ("raise", lambda _: None, 1),
        ("run", lambda running: running.process.terminate(), 143),
        ("run", lambda running: running.process.kill(), -signal.SIGKILL),
        ("run", lambda running: running.kill_group(), -signal.SIGKILL),
    ],
    ids=["end", "exception", "SIGTERM", "SIGKILL", "SIGKILL of the group"],
)
def test_the_terminal_is_sane_after(
    deed: str, act: Callable[[Running], None], status: int, stack: ExitStack, supervisor: str
) -> None:
    running = Running(stack, supervisor, deed, "sh", "-c", r"printf '\033[?1049h\033[?25lup'; cat")
    if deed == "run":
        running.see(rb"up")
        assert tty.is_raw(running.slave)
    act(running)
    running.sane_after(status)
    if status != 0:
        running.see(re.escape(tty.RESET))


def test_the_guard_leaves_a_terminal_alone_that_a_shell_has_set_since(
    stack: ExitStack, supervisor: str
) -> None:
    running = Running(stack, supervisor, "run", "cat")
    os.kill(running.process.pid, signal.SIGSTOP)
    editor = running.now()
    editor[1] |= termios.OPOST
    editor[3] |= termios.ISIG
    termios.tcsetattr(running.slave, termios.TCSANOW, editor)
    running.process.kill()
    assert running.process.wait(BOUND) == -signal.SIGKILL
    assert gone(running.guard)
    assert running.now() == editor


def test_the_guard_holds_nothing_but_the_terminal_and_its_pipe(stack: ExitStack, supervisor: str) -> None:
    running = Running(stack, supervisor, "run", "cat")
    wait_for(lambda: len(os.listdir(f"/proc/{running.guard}/fd")) == 2)
    held = {os.readlink(f"/proc/{running.guard}/fd/{fd}") for fd in os.listdir(f"/proc/{running.guard}/fd")}
    assert os.ttyname(running.slave) in held
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGTTOU, signal.SIGPIPE):
        os.kill(running.guard, number)
    running.process.kill()
    assert running.process.wait(BOUND) == -signal.SIGKILL
    running.sane_after(None)


def test_output_that_nobody_takes_holds_neither_restore_nor_the_guard(
    stack: ExitStack, supervisor: str
) -> None:
    for act in (subprocess.Popen.terminate, subprocess.Popen.kill):
        running = Running(stack, supervisor, "run", "yes")
        act(running.process)
        assert running.process.wait(BOUND) in (143, -signal.SIGKILL)
        assert gone(running.guard)
        assert running.now() == running.mode


class Shell:
    """An interactive bash on a terminal; jobs are supervisors of this file."""

    def __init__(self, stack: ExitStack, supervisor: str) -> None:
        self.bash = pexpect.spawn(
            "/bin/bash", ["--norc", "--noprofile", "-i"], env=environment(), timeout=BOUND, encoding="utf-8"
        )
        stack.callback(self.bash.close, force=True)
        self.bash.expect_exact("$ ")
        self.job = f"{sys.executable} {supervisor} run"

    def do(self, line: str, *patterns: str) -> None:
        self.bash.sendline(line)
        for pattern in patterns:
            self.bash.expect(pattern)

    def settings(self) -> str:
        self.do("stty -g; echo e''nd", r"([0-9a-f]+(?::[0-9a-f]+)+)\r\nend\r\n")
        assert self.bash.match is not None
        found = self.bash.match.group(1)
        self.bash.expect_exact("$ ")
        return str(found)


def test_in_the_background_it_runs_on_reads_nothing_and_comes_to_the_front_with_fg(
    stack: ExitStack, supervisor: str
) -> None:
    shell = Shell(stack, supervisor)
    before = shell.settings()
    shell.do(
        f"{shell.job} sh -c 'echo first; stty -a; cat; echo last' &", "ready", "first", r" icanon", r" echo "
    )
    shell.do("", r"\$ ")
    assert shell.settings() == before
    shell.do("jobs", "Running")
    shell.do("fg", "fg", "supervisor.py")
    for word in ("hello", "again"):
        shell.do(word, rf"{word}\r\n{word}\r\n")
    shell.bash.sendcontrol("d")
    shell.bash.expect("last")
    shell.bash.expect("status 0")
    assert shell.settings() == before


@pytest.mark.parametrize("name", ["TSTP", "STOP"])
def test_stopped_by_a_signal_it_gives_the_terminal_back_and_takes_it_again(
    name: str, stack: ExitStack, supervisor: str
) -> None:
    shell = Shell(stack, supervisor)
    before = shell.settings()
    shell.do(f"{shell.job} cat", r"ready (\d+)")
    assert shell.bash.match is not None
    pid = int(shell.bash.match.group(1))
    shell.do("one", r"one\r\none\r\n")
    os.kill(pid, getattr(signal, f"SIG{name}"))
    shell.bash.expect("Stopped")
    assert shell.settings() == before
    shell.do("fg", "supervisor.py")
    shell.do("two", r"two\r\ntwo\r\n")
    shell.bash.sendcontrol("d")
    shell.bash.expect("status 0")
    assert shell.settings() == before


def test_killed_by_sigkill_it_leaves_a_shell_that_works(stack: ExitStack, supervisor: str) -> None:
    shell = Shell(stack, supervisor)
    before = shell.settings()
    shell.do(f"{shell.job} cat", r"ready (\d+) (\d+)")
    assert shell.bash.match is not None
    pid, guard = (int(group) for group in shell.bash.match.groups())
    shell.do("one", r"one\r\none\r\n")
    os.kill(pid, signal.SIGKILL)
    shell.bash.expect("Killed")
    assert gone(guard)
    assert shell.settings() == before
