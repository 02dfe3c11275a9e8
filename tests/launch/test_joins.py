"""The supervisor's socket under attack: garbage, floods, clients that stall or die; and nobody inside reaches it."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.launch import init, joins, relay, wire
from jail.launch.channel import Channel
from jail.ledger import place
from support.answers import new_jail
from support.attempts import PRELUDE
from support.installed import Installed
from support.jails import PATIENCE, PYTHON
from support.joining import Session, kill_and_reap, session
from support.policies import policy
from support.running import Running, until

NO_STREAMS = relay.Stdio(relay.NULL, relay.NULL, relay.NULL, merged=False)


@pytest.fixture(scope="module")
def running(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session(new_jail(installed, tmp_path_factory.mktemp("joins"))) as found:
        yield found
        assert found.running.wait() == 0
    assert found.jail.call("verify", found.id).stdout.startswith("intact")


def request(*command: str) -> bytes:
    return wire.join(wire.Join(command, NO_STREAMS, ""))


def closed(client: socket.socket) -> bool:
    """Whether the supervisor closes the connection; what it says before is dropped."""
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


GARBAGE = {
    "zeros": b"\0" * 1000,
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "marshalled code": b"\xe3" + b"\xff" * 100,
    "more than a request may have": b"x" * (wire.REQUEST_LIMIT + 4096),
    "ready before anything": wire.ready(),
    "a signal before anything": wire.signal(wire.Signal("group", 9)),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_costs_its_sender_the_connection_and_nobody_else(running: Session, case: str) -> None:
    with running.connect() as client:
        client.send(GARBAGE[case])
        if case != "a signal before anything":
            assert closed(client)
    assert running.lives()


def test_descriptors_that_a_client_sends_go_nowhere(running: Session) -> None:
    pid = running.running.process.pid
    before = len(os.listdir(f"/proc/{pid}/fd"))
    with running.connect() as client:
        socket.send_fds(client, [b"\0"], [0] * 200)
        assert closed(client)
    assert until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before, PATIENCE)


def test_two_hundred_connections_that_say_nothing_stop_nobody_for_long(running: Session) -> None:
    pid = running.running.process.pid
    before = len(os.listdir(f"/proc/{pid}/fd"))
    clients = [running.connect() for _ in range(200)]
    kept = [client for client in clients if not select.select([client], [], [], 0)[0]]
    assert len(kept) <= joins.VISITS + joins.BACKLOG
    assert running.running.process.poll() is None
    for client in clients:
        client.close()
    assert until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before, PATIENCE)
    assert running.lives()


def test_a_flood_of_commands_all_run_or_are_refused(running: Session) -> None:
    processes = [running.popen("sh", "-c", f"echo {number}") for number in range(24)]
    said = sorted(int(process.communicate(timeout=PATIENCE)[0]) for process in processes)
    assert said == list(range(24))
    assert [process.returncode for process in processes] == [0] * 24


def test_a_client_that_stalls_before_its_command_starts_holds_nobody_up(running: Session) -> None:
    stalled = [running.connect() for _ in range(3)]
    for client in stalled:
        client.send(request("sh", "-c", "echo ran > stalled"))
    tags = [Channel(client).receive() for client in stalled]  # type: ignore[arg-type]  # socket is a subclass
    assert [message[0] for message in tags if message] == ["offered"] * 3
    assert running.lives()
    for client in stalled:
        client.close()
    assert running.lives()
    assert not (running.jail.workspace / "stalled").exists()
    assert "echo ran > stalled" not in str(running.entries("joined")), "recorded, though it never ran"


def test_a_client_that_does_not_read_is_not_waited_for(running: Session) -> None:
    with running.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.send(request("true"))
        for _ in range(2000):
            try:
                client.send(wire.signal(wire.Signal(init.TO_GROUP, signal.SIGCONT)), socket.MSG_DONTWAIT)
            except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                break
        assert running.lives()


def test_clients_that_die_at_any_moment_leave_nothing(running: Session) -> None:
    pid = running.running.process.pid
    before = len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(30):
        client = running.connect()
        client.send(request("sleep", "984"))
        select.select([client], [], [], (0.0, 0.01, 0.05)[_ % 3])
        client.close()
    assert until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before, PATIENCE)
    assert running.exec("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout.count("sleep 984") == 0


def test_another_users_namespace_is_turned_away(running: Session) -> None:
    program = (
        "import os, socket, sys\n"
        "c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "f = os.open(sys.argv[1], os.O_PATH)\n"
        "c.connect(f'/proc/self/fd/{f}/socket')\n"
        "try:\n"
        f"    c.send({request('echo', 'x')!r})\n"
        "    print('heard' if c.recv(1000) else 'turned away')\n"
        "except OSError:\n"
        "    print('turned away')\n"
    )
    command = [sys.executable, "-I", "-c", program, str(running.folder)]
    same = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert same.stdout == "heard\n", same.stderr
    other = ["/usr/bin/unshare", "--user", *command]
    met = subprocess.run(other, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert met.stdout == "turned away\n", met.stderr


def test_nothing_inside_reaches_the_socket(running: Session) -> None:
    program = PRELUDE + (
        f"places = ({str(running.path)!r}, '/proc/1/root' + {str(running.path)!r}, '/proc/self/cwd/../socket')\n"
        "for place in places:\n"
        "    attempt(place, lambda: reach(place, socket.SOCK_SEQPACKET))\n"
        "for number in range(3, 64):\n"
        "    attempt(f'fd {number}', lambda: os.fstat(number))\n"
        "found['listed'] = 'socket' in content('/proc/net/unix')\n"
        "say()\n"
    )
    met = running.inside(program)
    assert set(met.values()) <= {"ENOENT", "EACCES", "EBADF", False}, met
    control = running.jail.outside(program)
    assert control[str(running.path)] == "done"


def test_the_folder_and_the_socket_are_this_users_alone(running: Session) -> None:
    assert running.folder.stat().st_mode & 0o777 == 0o700
    assert running.path.is_socket()


def test_h1_a_person_can_look_into_a_session_that_a_fork_bomb_has_filled(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "bomb")
    program = (
        "import os, sys, time\n"
        "count = 0\n"
        "try:\n"
        "    while os.fork():\n"
        "        count += 1\n"
        "    time.sleep(100)\n"
        "except BlockingIOError:\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    options = ("--policy", policy(jail.home.parent))
    with Running(jail, PYTHON, "-I", "-c", program, options=options, stdin=subprocess.PIPE) as running:
        running.ready()
        done = Session(jail, running).exec("grep", "-c", "", "/proc/self/status")
        assert done.returncode == 0, done.stderr
        assert running.wait() == 0


def test_a_session_whose_socket_cannot_be_made_runs_all_the_same(
    installed: Installed, tmp_path: Path
) -> None:
    site_folder = tmp_path / "folder"
    site_folder.mkdir()
    (site_folder / place.SOCKET).write_text("in its place")

    said: list[str] = []

    class Ledger:
        def append(self, kind: str, **fields: str) -> None:
            said.append(f"{kind}: {fields['text']}")

    class Record:
        ledger = Ledger()

    part = joins.Joins(joins.Site(None, None, Record()), str(site_folder))  # type: ignore[arg-type]  # no client comes
    assert part.interests() == []
    part.finish()
    assert "no command can join this session" in said[0]
    assert (site_folder / place.SOCKET).read_text() == "in its place"


def test_stopped_clients_are_ended_with_the_session(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "stopped")) as found:
        process = found.popen("sh", "-c", "echo up; sleep 100")
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGSTOP)
        assert found.running.wait() == 0
        kill_and_reap(process)
