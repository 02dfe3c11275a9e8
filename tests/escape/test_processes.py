"""E: the lives of processes: who dies with whom, what signals reach, and what the exit code says of it."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.answers import PRELUDE, new_jail, numbers
from support.entries import Entries, compile_entries
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, Jail, survivors
from support.running import Running, kill, until

GONE = PATIENCE
"""Seconds within which nothing of a run may be left (E1)."""
STUBBORN = (
    "trap '' TERM HUP INT QUIT USR1; sleep 1000 & setsid sh -c 'sleep 1000 & wait' & "
    "sleep 0.1; echo ready; wait"
)
"""A command that no signal but SIGKILL ends, with children in its session and in one of their own."""
JAIL_FAILED = 125


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return new_jail(installed, tmp_path_factory.mktemp("processes"))


@pytest.fixture(scope="module")
def entries(folder: Jail) -> Entries:
    return compile_entries(folder.workspace)


@pytest.fixture
def canary() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user outside, with a nice value and a signal mask as it was born."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


# The death of any of ours is the death of all that is inside.


@pytest.mark.parametrize("who", ["supervisor", "keeper", "process_1"])
def test_e1_after_sigkill_of_one_of_ours_nothing_is_left(folder: Jail, who: str) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    with Running(folder, "sh", "-c", STUBBORN) as run:
        family = run.ready().family()
        assert len(family.inside) >= 3, "no positive control: the children do not run"
        assert all(process.alive() for process in family.inside)
        kill(getattr(family, who))
        assert until(lambda: not family.left(), GONE), family.left()
        code = run.wait()
    assert Path("/proc/self/mountinfo").read_text() == mounts
    if who == "supervisor":
        assert code == -signal.SIGKILL
    else:
        assert code == JAIL_FAILED, run.errors
        assert run.status()["reason"] == "jail failed"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_e1_e3_e15_a_supervisor_that_ends_at_any_moment_of_the_launch_leaves_nothing(
    folder: Jail, number: int
) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    for step in range(12):
        mark = f"moment-{number}-{step}-{os.getpid()}"
        with Running(folder, "sh", "-c", f": {mark}; exec sleep 1000", mark) as run:
            time.sleep(0.012 * step)
            run.signal(number)
            code = run.wait()
        assert code in (-number, 128 + number), (step, run.errors)
        assert until(partial(survive_not, mark), GONE), survivors(mark)
    assert Path("/proc/self/mountinfo").read_text() == mounts


def survive_not(mark: str) -> bool:
    return not survivors(mark)


def test_agent_35_a_daemon_that_takes_no_signal_is_dead_when_jail_returns(folder: Jail) -> None:
    daemon = r"""
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        print("daemon", flush=True)
        time.sleep(1000)
    os._exit(0)
os.wait()
time.sleep(0.3)
"""
    mark = f"daemon-{os.getpid()}"
    with Running(folder, PYTHON, "-I", "-c", daemon, mark) as run:
        assert run.line() == "daemon"
        assert len(survivors(mark)) >= 2, "no positive control"
        assert run.wait() == 0, "the daemon holds stdout open for longer than that, and nobody waits for it"
    assert survivors(mark) == []


def test_agent_35_the_control_such_a_daemon_outlives_a_command_without_jail(folder: Jail) -> None:
    mark = f"1000.{os.getpid()}"
    command = f"setsid sh -c \"trap '' TERM; exec sleep {mark}\" >/dev/null 2>&1 & sleep 0.2"
    subprocess.run(["sh", "-c", command], check=True, timeout=20)
    left = survivors(mark)
    assert left
    for pid in left:
        os.kill(pid, signal.SIGKILL)


def test_e1_stopped_processes_die_too(folder: Jail) -> None:
    with Running(folder, "sh", "-c", "sleep 1000 & kill -STOP $!; echo ready; kill -STOP $$") as run:
        family = run.ready().family()
        time.sleep(0.1)
        run.signal(signal.SIGKILL)
        assert until(lambda: not family.left(), GONE), family.left()
        run.wait()


# Signals from outside.

PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@pytest.mark.parametrize("number", PASSED_ON, ids=lambda number: number.name)
def test_e10_agent_48_a_signal_ends_the_command_and_the_code_is_128_and_its_number(
    folder: Jail, number: signal.Signals
) -> None:
    with Running(folder, "sh", "-c", "echo ready; exec sleep 1000") as run:
        run.ready().signal(number)
        assert run.wait() == 128 + number, run.errors
    assert run.status()["signal"] == number
    assert run.status()["reason"] == "killed by a signal"
    assert "killed by" in run.errors


@pytest.mark.parametrize("number", PASSED_ON, ids=lambda number: number.name)
def test_e10_a_command_that_handles_the_signal_says_how_it_ends(folder: Jail, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    with Running(
        folder, "sh", "-c", f"trap 'echo handled; exit 7' {name}; echo ready; while :; do sleep 0.02; done"
    ) as run:
        run.ready().signal(number)
        assert run.wait() == 7, run.errors
    assert run.output == "handled\n"
    assert run.status()["reason"] == "exited"


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT], ids=lambda number: number.name
)
def test_e10_what_the_caller_had_ignored_stays_ignored(folder: Jail, number: signal.Signals) -> None:
    """nohup(1), and a background job of a shell without job control. The control is the table above."""
    with Running(
        folder,
        "sh",
        "-c",
        "echo ready; exec sleep 1000",
        prepare=lambda: signal.signal(number, signal.SIG_IGN),
    ) as run:
        run.ready().signal(number)
        time.sleep(0.2)
        assert run.process.poll() is None
        run.signal(signal.SIGTERM)
        assert run.wait() == 128 + signal.SIGTERM, run.errors


@pytest.mark.parametrize(
    "number", [signal.SIGALRM, signal.SIGABRT, signal.SIGSEGV], ids=lambda number: number.name
)
def test_e1_a_signal_that_is_not_passed_on_ends_everything(folder: Jail, number: signal.Signals) -> None:
    with Running(folder, "sh", "-c", STUBBORN) as run:
        family = run.ready().family()
        run.signal(number)
        assert run.wait() == -number
        assert until(lambda: not family.left(), GONE), family.left()


def test_e10_a_supervisor_that_was_stopped_goes_on(folder: Jail) -> None:
    with Running(folder, "sh", "-c", "echo ready; sleep 0.3; echo done; exit 9") as run:
        run.ready().signal(signal.SIGSTOP)
        time.sleep(0.5)
        run.signal(signal.SIGCONT)
        assert run.wait() == 9, run.errors
    assert run.output == "done\n"


def test_e10_a_stopped_command_is_continued_and_ended_from_outside(folder: Jail) -> None:
    with Running(folder, "sh", "-c", "echo ready; kill -STOP $$; echo continued; exec sleep 1000") as run:
        (command,) = run.ready().family().inside
        assert until(command.stopped, PATIENCE)
        run.signal(signal.SIGCONT)
        assert run.line() == "continued"
        run.signal(signal.SIGTERM)
        assert run.wait() == 128 + signal.SIGTERM, run.errors


def test_h7_the_end_comes_under_200_busy_threads(folder: Jail, entries: Entries) -> None:
    with Running(folder, entries.program, "busy", "200") as run:
        assert run.line() == "busy"
        run.signal(signal.SIGTERM)
        assert run.wait() == 128 + signal.SIGTERM, run.errors


def test_h7_the_end_comes_when_process_1_was_made_the_last_to_run(folder: Jail, entries: Entries) -> None:
    """The command may renice process 1, and pin it to the processor that it keeps busy."""
    program = (
        "import os, sys\n"
        "for change in (lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),\n"
        "        lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), lambda: os.sched_setaffinity(1, {0}),\n"
        "        lambda: os.sched_setaffinity(0, {0})):\n"
        "    try: change()\n"
        "    except OSError: pass\n"
        "os.execv(sys.argv[1], [sys.argv[1], 'busy', '100'])\n"
    )
    with Running(folder, PYTHON, "-I", "-c", program, entries.program) as run:
        assert run.line() == "busy"
        run.signal(signal.SIGTERM)
        assert run.wait() == 128 + signal.SIGTERM, run.errors


# Signals from inside.

REACH = r"""
me, (canary, supervisor, keeper) = os.getpid(), map(int, sys.argv[2:])
read, write = os.pipe()
attempts = {}
for name, pid in (("canary", canary), ("supervisor", supervisor), ("keeper", keeper)):
    attempts |= {
        f"kill {name}": lambda pid=pid: os.kill(pid, 9),
        f"kill the group of {name}": lambda pid=pid: os.killpg(pid, 9),
        f"stop {name}": lambda pid=pid: os.kill(pid, 19),
        f"pidfd of {name}": lambda pid=pid: os.pidfd_open(pid),
        f"SIGIO to {name}": lambda pid=pid: fcntl.fcntl(read, fcntl.F_SETOWN, pid),
        f"limits of {name}": lambda pid=pid: resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0)),
        f"priority of {name}": lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
        f"processor of {name}": lambda pid=pid: os.sched_setaffinity(pid, {0}),
        f"memory of {name}": lambda pid=pid: open(f"/proc/{pid}/mem", "rb"),
    }
found = {name: answer(lambda: action() and None) for name, action in attempts.items()}

def everything():
    children = []
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            os.setsid()
            time.sleep(1000)
            os._exit(0)
        children.append(pid)
    os.kill(-1, 9)
    return str(sum(os.waitpid(pid, 0)[1] == 9 for pid in children))

found["kill(-1)"] = everything()
found["priority of its user"] = answer(lambda: os.setpriority(os.PRIO_USER, os.getuid(), 5))
os.setpriority(os.PRIO_PROCESS, 0, 5)
found["own priority"] = os.getpriority(os.PRIO_PROCESS, 0)
for number in range(1, 65):
    os.kill(1, number)
found["process 1"] = status_of(1, "State")["State"][:1]
for name in ("mem", "environ", "maps", "auxv", "syscall", "stack"):
    found[f"{name} of process 1"] = answer(lambda: open(f"/proc/1/{name}", "rb").read(1) and None)
for name in ("root", "cwd", "exe", "fd", "ns/mnt", "map_files"):
    found[f"{name} of process 1"] = answer(lambda: (os.stat if name == "ns/mnt" else os.listdir if name in
        ("fd", "map_files") else os.readlink)(f"/proc/1/{name}") and None)
libc.ptrace.restype = ctypes.c_long
def traced():
    ctypes.set_errno(0)
    if libc.ptrace(ctypes.c_long(16), ctypes.c_long(1), None, None):
        raise OSError(ctypes.get_errno(), "")
found["ptrace of process 1"] = answer(traced)
print(json.dumps(found), flush=True)
sys.stdin.readline()  # its end is the end of all of them
"""


REACHED = (
    *("kill", "kill the group of", "stop", "pidfd of", "SIGIO to"),
    *("limits of", "priority of", "processor of"),
)
PROCESS_1 = "mem environ maps auxv syscall stack root cwd exe fd ns/mnt map_files".split()


def test_e7_nothing_inside_reaches_a_process_outside_or_process_1(
    folder: Jail, canary: subprocess.Popen[bytes]
) -> None:
    started = f"{PYTHON} -I -c {shlex.quote(PRELUDE + REACH)} {shlex.quote(numbers())}"
    command = f"echo ready; read -r pids; exec {started} $pids"
    with Running(folder, "bash", "-c", command, stdin=subprocess.PIPE) as run:
        family = run.ready().family()
        run.say(f"{canary.pid} {family.supervisor.pid} {family.keeper.pid}\n")
        said = run.line()
        assert canary.poll() is None
        assert os.getpriority(os.PRIO_PROCESS, canary.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        assert family.keeper.alive()
        assert run.say("\n").wait() == 0, run.errors
    found: dict[str, Any] = json.loads(said)
    for who in ("canary", "supervisor", "keeper"):
        met = {what: found[f"{what} {who}"] for what in REACHED}
        assert met == dict.fromkeys(REACHED, "ESRCH"), who
        assert found[f"memory of {who}"] == "ENOENT"
    assert found["kill(-1)"] == "5", "no positive control: it does not even reach the own children"
    assert found["priority of its user"] == "EPERM", "process 1 is one of that user's"
    assert found["own priority"] == 5, "no positive control"
    assert found["process 1"] in ("S", "R"), "64 signals, and it goes on"
    for what in PROCESS_1:
        assert found[f"{what} of process 1"] in ("EACCES", "EPERM"), what
    assert found["ptrace of process 1"] == "EPERM"
