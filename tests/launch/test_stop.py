"""`jail stop`: SIGTERM, then SIGKILL; whoever does not answer is stopped all the same, and nobody else is."""

import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from jail.cli.stop import command
from jail.launch import reach
from support.answers import new_jail
from support.installed import Installed
from support.jails import PATIENCE, Jail, survivors
from support.joining import Session, session
from support.ledgers import state_in, write
from support.running import until


@pytest.fixture
def fresh(installed: Installed, tmp_path: Path) -> Jail:
    return new_jail(installed, tmp_path / "stop")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return state_in(tmp_path)


def stop(found: Session, *arguments: str) -> subprocess.CompletedProcess[str]:
    return found.jail.call("stop", *(arguments or (found.id,)))


def mark(number: int) -> str:
    return f"98{number}.{os.getpid()}"


def test_the_command_gets_sigterm_and_may_end_in_its_own_way(fresh: Jail) -> None:
    script = "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    with session(fresh, "sh", "-c", script) as found:
        done = stop(found)
        assert (done.returncode, done.stdout) == (0, f"{found.id}  stopped\n"), done.stderr
        assert found.running.process.wait(PATIENCE) == 9
        assert found.running.wait() == 9
        assert found.running.output == "bye\n"
        assert "jail: stopped by `jail stop`; session" in found.running.errors
    assert found.entries("stopped") == [{"grace_s": 10.0}]
    assert found.entries("end")[0]["exit"] == 9
    assert fresh.call("verify", "last").stdout.startswith("intact")


def test_what_ignores_sigterm_is_killed_when_the_time_is_over(fresh: Jail) -> None:
    script = f"trap '' TERM; sleep {mark(1)} & setsid sleep {mark(1)} & echo ready; sleep {mark(1)}; sleep {mark(1)}"
    with session(fresh, "sh", "-c", script) as found:
        done = stop(found, "-", "--grace", "0.2s")
        assert (done.returncode, done.stdout) == (0, f"{found.id}  stopped\n"), done.stderr
        assert not survivors(mark(1))
        assert found.running.wait() == 137
    assert found.entries("end")[0]["signal"] == 9


def test_joined_commands_end_too(fresh: Jail) -> None:
    with session(fresh) as found:
        joined = found.popen("sh", "-c", "trap '' TERM HUP; echo up; sleep 100")
        assert joined.stdout is not None
        assert joined.stdout.readline() == "up\n"
        assert stop(found).returncode == 0
        assert joined.wait(PATIENCE) == 125
        joined.communicate()


def test_a_supervisor_that_is_stopped_goes_on_and_ends(fresh: Jail) -> None:
    with session(fresh) as found:
        found.running.signal(signal.SIGSTOP)
        done = stop(found, "last", "--grace", "5s")
        assert done.returncode == 0, done.stderr
        assert not survivors(found.id)
        assert found.running.wait() == 143


def test_a_session_whose_socket_is_gone_is_ended_by_its_process(fresh: Jail) -> None:
    script = f"trap '' TERM; echo ready; while :; do sleep {mark(2)}; done"
    with session(fresh, "sh", "-c", script) as found:
        found.path.unlink()
        done = stop(found, found.id, "--grace", "0.2s")
        assert done.returncode == 0
        assert "killed; it did not answer" in done.stdout
        assert not survivors(mark(2)), "it said that nothing is left"
        assert found.running.wait() == -signal.SIGKILL


def test_all_stops_each_and_none_is_no_failure(fresh: Jail) -> None:
    with session(fresh) as one, session(fresh) as other:
        done = stop(one, "--all")
        assert done.returncode == 0
        assert {line.split()[0] for line in done.stdout.splitlines()} == {one.id, other.id}
        assert {one.running.wait(), other.running.wait()} == {143}
        done = stop(one, "--all")
        assert (done.returncode, done.stdout) == (0, "no session is running\n")
        assert stop(one, "--all", "--json").stdout == "[]\n"


def test_as_json_each_session_is_an_object_with_how_it_ended(fresh: Jail) -> None:
    with session(fresh) as found:
        done = stop(found, "--json", "-")
        assert json.loads(done.stdout) == [{"session": found.id, "how": "asked", "problem": None}]


def test_one_that_cannot_be_ended_is_a_failure_whatever_came_after(
    state: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows the process that holds these locks: their ledgers name one that does not."""
    locks = [write(state, end=False, keep_lock=True) for _ in range(2)]
    done = CliRunner().invoke(command, ["--all", "--grace", "0", "--json"], catch_exceptions=False)
    for _, lock in locks:
        os.close(lock)
    assert done.exit_code == 125
    rows = json.loads(done.stdout)
    assert {row["session"] for row in rows} == {folder.name for folder, _ in locks}
    assert all(row["how"] is None and "does not answer" in row["problem"] for row in rows)


def test_a_pid_that_was_given_out_again_is_not_taken_for_the_supervisor(fresh: Jail) -> None:
    with session(fresh) as found:
        innocent = subprocess.Popen(["/bin/sleep", "100"])
        try:
            folder = str(found.folder)
            assert reach.Supervisor.of(folder, innocent.pid) is None
            for wrong in (None, "1", 0, -1, 2**40, True):
                assert reach.Supervisor.of(folder, wrong) is None
            right = reach.Supervisor.of(folder, found.running.process.pid)
            assert right is not None
            assert right.alive()
            right.close()
            assert innocent.poll() is None
        finally:
            innocent.kill()
            innocent.wait()


def test_wrong_calls_are_told(fresh: Jail) -> None:
    assert fresh.run("true").returncode == 0
    for arguments, said in {
        (): "name one SESSION",
        ("last", "--all"): "name one SESSION",
        ("last",): "has ended",
        ("--all", "--grace", "soon"): "`soon` is not a duration",
        ("--all", "--grace", "48h"): "`48h` is too large",
        ("nonsense",): "no session 'nonsense'",
    }.items():
        done = fresh.call("stop", *arguments)
        assert done.returncode == 2, arguments
        assert said in done.stderr


def test_a_run_that_is_only_delivering_its_output_ends_too(fresh: Jail) -> None:
    """Its command has ended, and the reader of its output does not read."""
    read, write = os.pipe()
    os.write(write, b"x" * fcntl.fcntl(write, fcntl.F_GETPIPE_SZ))
    process = fresh.popen("head", "-c", "2971", "/dev/zero", stdout=write, stderr=subprocess.DEVNULL)
    try:
        mark = "head\0-c\x002971\0/dev/zero\0"
        assert until(lambda: _wrote(fresh, "running") and survivors(mark) == [process.pid], 60)
        done = fresh.call("stop", "last", "--grace", "0.5s")
        assert done.returncode == 0, done.stderr
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)


def _wrote(jail: Jail, kind: str) -> bool:
    return any(
        kind in path.read_text() for path in jail.home.glob(".local/state/jail/sessions/2*/ledger.jsonl")
    )
