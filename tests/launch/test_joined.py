"""What joins a session is confined as its first command is, field by field (CASES.md E11, CVE-2022-31214)."""

import json
import signal
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from jail.launch import init, joined, relay, wire
from support.answers import new_jail
from support.installed import Installed
from support.jails import PYTHON, Jail
from support.joining import Session, session
from support.posture import PROGRAM
from support.running import Running

FIRST = f"{PROGRAM}\nprint('ready', flush=True)\nsys.stdin.read()"
MEANT_TO_DIFFER: dict[str, tuple[object, object]] = {}
"""Fields with another value on purpose, and both values: there is none."""


class Both(NamedTuple):
    """The posture of the first command, of one that joined it, and of a process without walls."""

    first: dict[str, Any]
    joined: dict[str, Any]
    outside: dict[str, Any]


def postures(jail: Jail) -> Both:
    with Running(jail, PYTHON, "-I", "-c", FIRST, stdin=subprocess.PIPE) as running:
        first = json.loads(running.line())
        running.ready()
        done = Session(jail, running).exec(PYTHON, "-I", "-c", PROGRAM, stdin="")
        assert done.returncode == 0, done.stdout + done.stderr
    return Both(first, json.loads(done.stdout), jail.outside(PROGRAM))


@pytest.fixture(scope="module")
def both(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return postures(new_jail(installed, tmp_path_factory.mktemp("posture")))


CONTROLS = (
    *("status NoNewPrivs", "status Seccomp", "status Seccomp_filters"),
    *("namespace mnt", "namespace pid", "namespace user", "namespace net", "namespace ipc", "namespace uts"),
    *("mountinfo", "uid_map", "oom_score_adj", "limits", "root", "parent", "unshare user"),
)
"""Fields that are not what they are outside, so that two equal ones mean walls."""


def test_e11_every_field_of_the_joined_process_is_that_of_the_first(both: Both) -> None:
    assert both.joined.keys() == both.first.keys()
    differing = {name: (both.first[name], both.joined[name]) for name in both.first}
    assert {name: pair for name, pair in differing.items() if pair[0] != pair[1]} == MEANT_TO_DIFFER


@pytest.mark.parametrize("field", CONTROLS)
def test_control_a_process_without_walls_differs(both: Both, field: str) -> None:
    assert both.outside[field] != both.first[field]


def test_cve_2022_31214_it_has_no_capability_no_new_privileges_and_both_filters(both: Both) -> None:
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert both.joined[f"status {name}"] == ["0000000000000000"]
    assert both.joined["status NoNewPrivs"] == ["1"]
    assert both.joined["status Seccomp"] == ["2"]
    assert both.joined["status Seccomp_filters"] == ["2"]
    assert both.joined["look into process 1"] == "EACCES"
    assert both.joined["trace process 1"] == "EPERM"


@pytest.mark.root
def test_e11_started_by_root_every_field_is_that_of_the_first_too(
    installed: Installed, tmp_path: Path
) -> None:
    found = postures(new_jail(installed, tmp_path / "root"))
    assert found.joined == found.first
    assert found.joined["ids"][0][0] not in (0, *found.outside["ids"][0])


def test_the_ledger_has_the_command_before_it_ran_and_how_it_left(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "recorded")
    with session(jail) as found:
        assert found.exec("sh", "-c", "echo $$; exit 7").returncode == 7
        (told,) = found.entries("joined")
        assert told == {
            "join": told["join"],
            "command": ["sh", "-c", "echo $$; exit 7"],
            "pid": told["pid"],
            "probes_held": len(found.entries("probes")[0]["results"]),
            "terminal": False,
        }
        (left,) = found.entries("left")
        assert left == {"join": told["join"], "exit": 7, "signal": 0, "reason": "exited"}
        assert found.running.wait() == 0
    assert jail.call("verify", found.id).stdout.startswith("intact")


INSIDE_LOOKS = r"""
import errno, json, os, sys, time
end = time.monotonic() + float(sys.argv[1])
met = {}
while time.monotonic() < end:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            for place in ("mem", "environ", "fd", "maps"):
                try:
                    (os.listdir if place == "fd" else open)(f"/proc/{name}/{place}")
                    word = "ok"
                except OSError as error:
                    word = errno.errorcode[error.errno]
                try:
                    if not open(f"/proc/{name}/cmdline").read().startswith("jail-init"):
                        break  # executed by now, or ended: what was met says nothing
                except OSError:
                    break
                met.setdefault(place, []).append(word)
print(json.dumps({place: sorted(set(words)) for place, words in met.items()}))
"""
"""What runs inside and lies in wait for what joins, to trace it before its exec."""


def test_what_runs_inside_cannot_look_into_a_process_that_joins_until_its_exec(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "waiting")
    program = f"print('ready', flush=True)\n{INSIDE_LOOKS}"
    with Running(jail, PYTHON, "-I", "-c", program, "3") as running:
        running.ready()
        found = Session(jail, running)
        clients = [found.popen("sleep", "0.05") for _ in range(2)]
        for each in clients:
            each.communicate(timeout=60)
        met = json.loads(running.line())
        running.wait()
    for place in ("mem", "fd"):
        assert "ok" not in met.get(place, []), met
    assert "EACCES" in met["fd"], "no process was met before its exec"


SLOWS = r"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
IOPRIO_SET, SCHED_SETATTR = (251, 314) if os.uname().machine == "x86_64" else (30, 274)

def call(number, *words):
    if libc.syscall(number, *words) == -1:
        raise OSError(ctypes.get_errno(), "")

def answer(deed):
    try:
        deed()
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]

class Attributes(ctypes.Structure):
    _fields_ = [(name, kind) for name, kind in (
        ("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("flags", ctypes.c_uint64), ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32), ("runtime", ctypes.c_uint64), ("deadline", ctypes.c_uint64), ("period", ctypes.c_uint64))]

idle = Attributes(ctypes.sizeof(Attributes), os.SCHED_IDLE)
one = {min(os.sched_getaffinity(0))}
found = {}
for pid in (1, os.fork() or (sys.stdin.read(), os._exit(0))):
    found[pid] = {
        "niceness": answer(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        "priority of I/O": answer(lambda: call(IOPRIO_SET, 1, pid, 3 << 13)),
        "processors": answer(lambda: os.sched_setaffinity(pid, one)),
        "parameters": answer(lambda: os.sched_setparam(pid, os.sched_param(0))),
        "policy": answer(lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))),
        "attributes": answer(lambda: call(SCHED_SETATTR, pid, ctypes.byref(idle), 0)),
    }
user = {
    "niceness": answer(lambda: os.setpriority(os.PRIO_USER, 0, 19)),
    "priority of I/O": answer(lambda: call(IOPRIO_SET, 3, os.getuid(), 3 << 13)),
}
print(json.dumps([*found.values(), user]), flush=True)
sys.stdin.read()
"""
"""What runs inside slows process 1, then a process of its own, then every process of its user."""

RUNS_AS = r"""
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
print(json.dumps([os.nice(0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0)),
    libc.syscall(252 if os.uname().machine == "x86_64" else 31, 1, 0)]))
"""


def test_what_runs_inside_cannot_slow_process_1_and_so_what_joins(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "slowed")
    with Running(jail, PYTHON, "-I", "-c", SLOWS, stdin=subprocess.PIPE) as running:
        process_1, own, user = json.loads(running.line())
        done = Session(jail, running).exec(PYTHON, "-I", "-c", RUNS_AS)
    assert set(own.values()) == {"done"}, "the control: of another process the same is allowed"
    assert set(process_1.values()) == {"EPERM"}, process_1
    assert set(user.values()) == {"EPERM"}
    assert json.loads(done.stdout) == jail.outside(RUNS_AS)


JOINS = 100
"""Processes that join until the command meets one before its exec: on a busy machine it may miss some."""
STOPS = r"""
import os, signal, sys, time
print("ready", flush=True)
seen = set()
while True:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()) and name not in seen:
            try:
                with open(f"/proc/{name}/stat") as file:
                    word, state = file.read().split()[1:3]
                if word == "(jail-init)" and state != "T":
                    os.kill(int(name), signal.SIGSTOP)
                    print("stopped", flush=True)
                    seen.add(name)
            except OSError:
                pass
"""
"""What runs inside and stops what joins, once."""


def test_a_process_that_is_stopped_while_it_joins_is_told_to_go_on(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "stopped")
    with Running(jail, PYTHON, "-I", "-c", STOPS) as running:
        running.ready()
        for _ in range(JOINS):
            done = Session(jail, running).exec("echo", "joined")
            assert (done.returncode, done.stdout) == (0, "joined\n"), done.stderr
            if running.has_said_more():
                break
        assert running.line() == "stopped"


def test_a_process_that_is_stopped_again_and_again_is_refused_and_why_is_said(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waits are as written; a site that takes notes stands for the session."""
    now = [1000.0]
    monkeypatch.setattr(joined.time, "monotonic", lambda: now[0])
    orders: list[tuple[object, ...]] = []
    processes = SimpleNamespace(
        order=lambda *order: orders.append(order),
        tell=lambda tag, *_, **_fds: orders.append((tag,)) or True,
    )
    site: Any = SimpleNamespace(
        plan=SimpleNamespace(environment=(), terminal=(), uid=0, gid=0), processes=processes
    )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    visit = joined.Visit(theirs, site, 7)
    null = relay.Stdio(relay.NULL, relay.NULL, relay.NULL, merged=False)
    ours.send(wire.join(wire.Join(("true",), null, "")))
    visit.ready(theirs.fileno())
    while not visit.closed:
        now[0] = visit.deadline
        visit.expired()
    assert now[0] == 1000.0 + joined.BUILD_WAIT
    assert set(orders[1:-1]) == {(init.TO_PROCESS, signal.SIGCONT, 7)}
    assert len(orders) - 2 == joined.BUILD_WAIT / joined.GO_ON - 1
    assert b"keep stopping it?" in ours.recv(4096)
    ours.close()
