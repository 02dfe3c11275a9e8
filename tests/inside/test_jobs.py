"""^Z, fg and bg from the caller's shell: a command on a terminal is its job, as without jail."""

import os
import signal
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pexpect
import pytest

from support.attempts import warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, survivors
from support.joining import Session, session

PATIENCE = 40
OUTSIDE = "outside> "
INSIDE = "inside> "
STOP, END = "\x1a", "\x04"


@pytest.fixture(scope="module")
def jail(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    found = warm_jail(installed, tmp_path_factory.mktemp("jobs"), TERM="xterm-256color", SHELL="/bin/bash")
    (found.workspace / "stops").write_text(STOPS)
    return found


@pytest.fixture(scope="module")
def running(jail: Jail) -> Iterator[Session]:
    """A session that `jail exec` joins."""
    with session(jail) as found:
        yield found


STOPS = r"""
import os, signal, sys, tty
how, continued = sys.argv[1], []
signal.signal(signal.SIGCONT, lambda *_: continued.append(1))
tty.setraw(0)
os.write(1, b"ready")
if how == "itself":
    os.kill(os.getpid(), signal.SIGSTOP)
elif how == "its group":
    os.kill(0, signal.SIGTSTP)
else:
    signal.signal(signal.SIGTSTP, lambda *_: os.kill(0, signal.SIGSTOP))
    os.kill(os.getpid(), signal.SIGTSTP)
os.write(1, b"on %d %d;" % os.get_terminal_size(0))
data = os.read(0, 100)
os.write(1, b"%s continued %d times" % (data.hex().encode(), len(continued)))
sys.exit(5)
"""


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


class Caller:
    """A person's bash, with job control, at its prompt."""

    def __init__(self, jail: Jail) -> None:
        environment = {
            **jail.environment,
            "JAIL": str(jail.installed.command),
            "PS1": OUTSIDE,
            "HISTFILE": "",
        }
        self.bash: pexpect.spawn[bytes] = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noprofile", "--noediting"],
            cwd=str(jail.workspace),
            env=environment,
            timeout=PATIENCE,
            dimensions=(24, 80),
        )
        self.see(OUTSIDE)

    def see(self, pattern: str) -> None:
        self.bash.expect(pattern)

    def keys(self, text: str) -> None:
        self.bash.send(text)

    def do(self, line: str, *patterns: str) -> None:
        self.keys(line + "\r")
        for pattern in patterns:
            self.see(pattern)

    def stopped(self) -> None:
        self.see("Stopped")
        self.see(OUTSIDE)

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.bash.child_fd)

    def job(self) -> int:
        """The one child of the shell: jail, or what runs it."""
        (pid,) = [each for each in children(self.bash.pid) if state(each) != "Z"]
        return pid


@pytest.fixture
def caller(jail: Jail) -> Iterator[Caller]:
    found = Caller(jail)
    yield found
    found.bash.close(force=True)


def stat_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def state(pid: int) -> str:
    return stat_of(pid)[0]


def children(parent: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if int(stat_of(int(name))[1]) == parent:
                found.append(int(name))
    return sorted(found)


def descendants(parent: int) -> list[int]:
    return [each for child in children(parent) for each in (child, *descendants(child))]


@pytest.fixture(params=["run", "exec"])
def start(request: pytest.FixtureRequest, jail: Jail) -> str:
    """The two ways to start a command."""
    if request.param == "run":
        return "$JAIL run --"
    joined: Session = request.getfixturevalue("running")
    return f"$JAIL exec {joined.id} --"


@pytest.mark.parametrize("how", ["itself", "its group", "as an editor does"])
def test_a_command_that_stops_itself_stops_as_a_job_and_goes_on_raw_with_fg(
    how: str, start: str, caller: Caller
) -> None:
    before = caller.modes()
    caller.do(f"{start} {PYTHON} -I stops '{how}'", "ready")
    caller.stopped()
    assert caller.modes() == before
    caller.do("jobs", "Stopped", OUTSIDE)
    caller.bash.setwinsize(40, 90)
    caller.do("fg", "on 90 40;")
    assert caller.modes() != before
    caller.keys("\x03")
    caller.see("03 continued 1 times")
    caller.see(OUTSIDE)
    assert caller.modes() == before
    caller.do("echo code=$?", "code=5", OUTSIDE)


def test_the_key_stops_a_command_that_knows_nothing_of_it_again_and_again(start: str, caller: Caller) -> None:
    before = caller.modes()
    caller.do(f"{start} cat")
    for word in ("one", "two"):
        caller.do(word, f"{word}\r\n{word}\r\n")
        caller.keys(STOP)
        caller.stopped()
        assert caller.modes() == before
        caller.do("fg", "cat\r\n")
    caller.do("three", "three\r\nthree\r\n")
    caller.keys(END)
    caller.see(OUTSIDE)
    caller.do("echo code=$?", "code=0", OUTSIDE)
    assert caller.modes() == before


def test_vim_is_put_away_with_the_key_and_comes_back_as_it_was(start: str, caller: Caller) -> None:
    before = caller.modes()
    caller.do(f"{start} vim -u NONE -N", r"\x1b\[\?1049h", "~")
    caller.keys("isome text")
    caller.see("text")
    caller.keys("\x1b")
    caller.keys(STOP)
    caller.stopped()
    assert caller.modes() == before
    caller.do("fg", r"\x1b\[\?1049h", "some text")
    caller.do(":cquit 3", OUTSIDE)
    caller.do("echo code=$?", "code=3", OUTSIDE)
    assert caller.modes() == before


def test_a_stop_of_the_caller_that_comes_by_kill_puts_the_terminal_in_order_first(
    start: str, caller: Caller
) -> None:
    before = caller.modes()
    caller.do(f"{start} sh -c 'stty raw -echo; printf u%s p; head -c 2 | od -An -tx1; exit 6'", "up")
    os.kill(caller.job(), signal.SIGTSTP)
    caller.stopped()
    assert caller.modes() == before
    caller.do("fg")
    wait_for(lambda: caller.modes() != before)
    caller.keys("\x03\x1a")
    caller.see("03 1a")
    caller.see(OUTSIDE)
    caller.do("echo code=$?", "code=6", OUTSIDE)
    assert caller.modes() == before


def test_in_the_background_it_goes_on_without_the_terminal(start: str, caller: Caller) -> None:
    before = caller.modes()
    caller.do(f'{start} sh -c \'kill -STOP $$; echo "go"es on; read line; echo "got" $line; exit 7\'')
    caller.stopped()
    caller.do("bg", "goes on")
    assert caller.modes() == before
    caller.do("echo sh''ell", "shell", OUTSIDE)
    caller.do("fg", "sh -c")
    wait_for(lambda: caller.modes() != before)
    caller.do("a line", "got a line", OUTSIDE)
    caller.do("echo code=$?", "code=7", OUTSIDE)
    assert caller.modes() == before


@pytest.mark.parametrize("name", ["TERM", "KILL", "HUP"])
def test_killed_while_it_is_stopped_it_leaves_nothing(name: str, start: str, caller: Caller) -> None:
    before = caller.modes()
    mark = f"stopped-{name}-{os.getpid()}"
    caller.do(f"{start} sh -c 'stty raw -echo; printf u%s p; kill -STOP $$; sleep 600' {mark}", "up")
    caller.stopped()
    assert survivors(mark), "the control"
    caller.do(f"kill -{name} %1", OUTSIDE)
    wait_for(lambda: not survivors(mark))
    caller.do("echo sh''ell", "shell", OUTSIDE)
    assert caller.modes() == before


def test_all_of_a_pipeline_stops_with_the_command(caller: Caller) -> None:
    caller.do("$JAIL run -- cat | sed -u s/^/shown:/", "")
    caller.do("one", "shown:one")
    caller.keys(STOP)
    caller.stopped()
    caller.do("fg", "sed")
    caller.do("two", "shown:two")
    caller.keys(END)
    caller.see(OUTSIDE)


def test_while_it_is_stopped_nothing_inside_runs(jail: Jail, caller: Caller) -> None:
    program = 'echo > ticks; (while :; do echo >> ticks; sleep 0.01; done) & printf u%s p; kill -STOP $$; echo "go"es on; read x'
    caller.do(f"$JAIL run -- sh -c '{program}'", "up")
    caller.stopped()
    ticks = jail.workspace / "ticks"
    settled = -1
    while settled != (settled := ticks.stat().st_size):
        time.sleep(0.15)
    caller.do("fg", "goes on")
    wait_for(lambda: ticks.stat().st_size > settled)
    caller.do("", OUTSIDE)


def test_a_shell_inside_keeps_its_jobs_and_can_be_put_away_itself(start: str, caller: Caller) -> None:
    before = caller.modes()
    caller.do(f"{start} env PS1='in''side> ' bash --norc --noprofile --noediting", INSIDE)
    caller.do("cat")
    caller.do("word", r"word\r\nword\r\n")
    caller.keys(STOP)
    caller.see(r"Stopped +cat\s+" + INSIDE)
    caller.do("suspend")
    caller.stopped()
    assert caller.modes() == before
    caller.do("fg", INSIDE)
    if "run" in start:
        os.kill(caller.job(), signal.SIGTSTP)
        caller.stopped()
        caller.do("fg")
    caller.do("", INSIDE)
    caller.do("jobs; grep State /proc/$(jobs -p)/status", "Stopped +cat", r"T \(stopped\)", INSIDE)
    caller.do("fg", r"cat\r\n")
    caller.do("more", r"more\r\nmore\r\n")
    caller.keys(END)
    caller.see(INSIDE)
    caller.do("exit 8", OUTSIDE)
    caller.do("echo code=$?", "code=8", OUTSIDE)
    assert caller.modes() == before


class Way(NamedTuple):
    """What a command does about the leader of its session ($PPID), and what the caller's shell then shows."""

    program: str
    shown: str


WAYS = {
    "killed, it is hung up": Way("kill -9 $PPID; exec sleep 600", "code=129"),
    "killed, and the hang-up ignored": Way('trap "" HUP; kill -9 $PPID; sleep 0.1; exit 9', "code=9"),
    "signalled with all that can be ignored": Way(
        "for n in $(seq 2 64); do case $n in 9|19|32|33) ;; *) kill -$n $PPID; esac; done; kill -STOP $$; exit 4",
        "Stopped(?s:.)*code=4",
    ),
    "looked into": Way(
        "for n in mem environ maps stack fd/0 root/etc; do cat /proc/$PPID/$n && exit 1; done 2>/dev/null;"
        "for n in Seccomp Seccomp_filters NoNewPrivs CapEff CapBnd; do for p in $PPID $$; do "
        'grep "^$n:" /proc/$p/status; done | uniq | wc -l; done | grep -cx 1',
        "5\r\n(?s:.)*code=0",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_leader_of_the_commands_session_is(way: str, start: str, caller: Caller) -> None:
    before = caller.modes()
    program, shown = WAYS[way]
    caller.do(f"{start} sh -c '{program}'")
    if "Stopped" in shown:
        caller.stopped()
        caller.do("fg", "sh -c")
        shown = shown.partition("*")[2]
    caller.see(OUTSIDE)
    caller.do("echo code=$?", shown.rpartition("*")[2], OUTSIDE)
    assert caller.modes() == before


def test_a_command_that_stopped_its_leader_and_ended_is_ended_from_outside(
    jail: Jail, caller: Caller
) -> None:
    mark = f"left-{os.getpid()}"
    caller.do(f"$JAIL run -- sh -c 'sleep 600 & kill -STOP $PPID; printf u%s p; exit 3' {mark}", "up")
    supervisor = caller.job()
    wait_for(lambda: any(state(pid) == "Z" for pid in descendants(supervisor)))
    os.kill(supervisor, signal.SIGTERM)
    caller.see(OUTSIDE)
    caller.do("echo code=$?", "code=3", OUTSIDE)
    assert not survivors(mark)


def test_where_nobody_could_continue_it_nothing_stops(jail: Jail) -> None:
    """As a terminal's own process group is orphaned: without jail the kernel drops the signal."""
    command = ["run", "--", "sh", "-c", "kill -TSTP $$; kill -STOP $$; echo goes on; exit 6"]
    alone: pexpect.spawn[bytes] = pexpect.spawn(
        str(jail.installed.command),
        command,
        cwd=str(jail.workspace),
        env=dict(jail.environment),
        timeout=PATIENCE,
    )
    alone.expect("goes on")
    alone.expect(pexpect.EOF)
    alone.close()
    assert alone.exitstatus == 6
