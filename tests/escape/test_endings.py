"""How a run ended: exit codes, the end of its time, and --status-file, which tells whose code it is (E10)."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.answers import new_jail
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, Jail
from support.running import Running, kill, until

RUNNING = "running, or killed before it could say how it ended"
EXITED, KILLED, NOT_EXECUTED = "exited", "killed by a signal", "could not be executed"
FAILED, REFUSED, TIMEOUT = "jail failed", "refused", "time is over"
GRACE = 10
"""Seconds between SIGTERM and SIGKILL once the time is over (launch/supervise.py)."""


class Ending(NamedTuple):
    """A shell command, or a program, and what is said of its end."""

    sentence: str
    command: tuple[str, ...]
    code: int
    reason: str
    signal: int = 0


ENDINGS = (
    Ending("success", ("true",), 0, EXITED),
    Ending("a failure", ("sh", "-c", "exit 1"), 1, EXITED),
    Ending("the largest code", ("sh", "-c", "exit 255"), 255, EXITED),
    Ending("the command's own 78 is not jail's", ("sh", "-c", "exit 78"), 78, EXITED),
    Ending("the command's own 124 is no timeout", ("sh", "-c", "exit 124"), 124, EXITED),
    Ending("the command's own 125 is not jail's", ("sh", "-c", "exit 125"), 125, EXITED),
    Ending("the command's own 127, of its shell", ("sh", "-c", "no-such-program"), 127, EXITED),
    Ending("the command's own 137 is no signal", ("sh", "-c", "exit 137"), 137, EXITED),
    Ending("SIGKILL to itself", ("sh", "-c", "kill -KILL $$"), 137, KILLED, 9),
    Ending("SIGSEGV", ("sh", "-c", "kill -SEGV $$"), 139, KILLED, 11),
    Ending("SIGABRT", ("sh", "-c", "kill -ABRT $$"), 134, KILLED, 6),
    Ending("SIGPIPE is not ignored", ("sh", "-c", "kill -PIPE $$"), 141, KILLED, 13),
    Ending("a real-time signal", ("sh", "-c", "kill -40 $$"), 168, KILLED, 40),
    Ending("no such command", ("no-such-program",), 127, NOT_EXECUTED),
    Ending("no such file", ("./no-such-file",), 127, NOT_EXECUTED),
    Ending("no such folder", ("no/such/file",), 127, NOT_EXECUTED),
    Ending("an empty name", ("",), 127, NOT_EXECUTED),
    Ending("a file that may not be executed", ("./plain",), 126, NOT_EXECUTED),
    Ending("a file of no format", ("./garbage",), 126, NOT_EXECUTED),
    Ending("a file whose interpreter is missing", ("./orphan",), 127, NOT_EXECUTED),
    Ending("a folder", ("/tmp",), 126, NOT_EXECUTED),
    Ending("a path through a file", ("./plain/file",), 127, NOT_EXECUTED),
)


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    made = new_jail(installed, tmp_path_factory.mktemp("endings"))
    for name, content, mode in (
        ("plain", b"text", 0o644),
        ("garbage", b"\x7fELF and no more", 0o755),
        ("orphan", b"#!/no/such/interpreter\n", 0o755),
    ):
        (made.workspace / name).write_bytes(content)
        (made.workspace / name).chmod(mode)
    return made


@pytest.fixture(scope="module", autouse=True)
def slow_ones(folder: Jail) -> Iterator[dict[str, Running]]:
    """Commands that take no SIGTERM, with a time limit: started first, looked at last."""
    stubborn = "trap '' TERM; sleep 1000 & setsid sleep 1000 & echo ready; while :; do wait; done"
    commands = {
        "a command that takes no SIGTERM": stubborn,
        "a stopped command": "echo ready; kill -STOP $$",
    }
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Running(folder, "sh", "-c", command, options=["--timeout", "1s"]))
            for name, command in commands.items()
        }


def ledger_of(folder: Jail, run: Running) -> list[dict[str, Any]]:
    """The entries of the session that the status file names."""
    (session,) = [path for path in folder.sessions() if path.name == run.status()["session"]]
    return [json.loads(line) for line in (session / "ledger.jsonl").read_text(encoding="ascii").splitlines()]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.sentence)
def test_e10_agent_48_the_exit_code_and_the_status_file_say_how_it_ended(
    folder: Jail, ending: Ending
) -> None:
    with Running(folder, *ending.command) as run:
        assert run.wait() == ending.code, run.errors
    said = run.status()
    assert (said["code"], said["reason"], said["signal"]) == (ending.code, ending.reason, ending.signal)
    assert "Traceback" not in run.errors
    assert "jail doctor" not in run.errors, "nothing is wrong with the host"
    last = ledger_of(folder, run)[-1]
    assert (last["kind"], last["fields"]["exit"], last["fields"]["reason"]) == (
        "end",
        ending.code,
        ending.reason,
    )


def test_e10_the_status_file_is_one_object_on_one_line_and_nothing_else_is_left(
    folder: Jail, tmp_path: Path
) -> None:
    target = tmp_path / "status.json"
    target.write_text("of an earlier run")
    folder.run("true", options=["--status-file", target])
    text = target.read_text()
    assert text.count("\n") == 1
    assert json.loads(text)["code"] == 0
    assert list(tmp_path.glob("status*")) == [target]


def test_e10_after_sigkill_of_process_1_the_status_file_says_that_jail_failed(folder: Jail) -> None:
    with Running(folder, "sh", "-c", "echo ready; exec sleep 1000") as run:
        kill(run.ready().family().process_1)
        assert run.wait() == 125, run.errors
    assert (run.status()["code"], run.status()["reason"]) == (125, FAILED)


def test_e10_a_status_file_of_an_earlier_run_does_not_outlive_a_killed_supervisor(folder: Jail) -> None:
    with Running(folder, "sh", "-c", "echo ready; exec sleep 1000") as run:
        run.status_file.write_text('{"code":0,"reason":"exited"}\n')
        again = Running(
            folder, "sh", "-c", "echo ready; exec sleep 1000", options=["--status-file", run.status_file]
        )
        with again:
            kill(again.ready().family().supervisor)
            again.wait()
        assert (run.status()["code"], run.status()["reason"]) == (125, RUNNING)
        run.signal(signal.SIGTERM).wait()


@pytest.mark.parametrize(
    ("sentence", "options", "code", "reason"),
    [
        ("a policy that is not there", ["--policy", "no-such"], 2, None),
        ("a loss that the policy does not accept", ["--policy", "{strict}"], 78, REFUSED),
        ("a workspace that holds the home folder", ["--workspace", "{above}"], 78, REFUSED),
        ("a path that is not there", ["--write", "no-such"], 78, REFUSED),
    ],
)
def test_e10_a_run_that_never_started_says_so(
    folder: Jail, tmp_path: Path, sentence: str, options: list[str], code: int, reason: str | None
) -> None:
    (tmp_path / "strict.toml").write_text('name = "strict"\n')
    places = {"strict": tmp_path / "strict.toml", "above": folder.home.parent}
    filled = [option.format(**places) for option in options]
    with Running(folder, "touch", "ran", options=filled) as run:
        assert run.wait() == code, run.errors
    said = run.status()
    assert said["code"] == code
    assert said["reason"] not in (EXITED, KILLED)
    assert reason in (None, said["reason"])
    assert not (folder.workspace / "ran").exists()


def test_a14_the_status_file_is_not_written_through_a_link_that_the_command_made(
    folder: Jail, tmp_path: Path
) -> None:
    """Its folder lies in the workspace: the command replaced it by a link to one that it cannot write."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "status.json").write_text("of another")
    (folder.workspace / "reports").mkdir()
    done = folder.run(
        *("sh", "-c", f"rm -r reports && ln -s {outside} reports"),
        options=["--status-file", folder.workspace / "reports/status.json"],
    )
    assert (folder.workspace / "reports").is_symlink(), done.stderr
    assert (outside / "status.json").read_text() == "of another"


def test_e10_what_a_command_does_to_process_1_is_never_told_as_nothing_ran(folder: Jail) -> None:
    """prlimit(2) asks for the same uid alone; and 78 is for runs of which nothing was executed."""
    program = (
        "import resource, sys, time\n"
        "for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS):\n"
        "    try: resource.prlimit(1, limit, (0, 0))\n"
        "    except OSError: pass\n"
        "open('worked', 'w').close()\n"
        "time.sleep(0.2)\n"
        "sys.exit(7)\n"
    )
    with Running(folder, PYTHON, "-I", "-c", program) as run:
        code = run.wait()
    assert (folder.workspace / "worked").exists(), "no positive control"
    assert code in (7, 125), (code, run.errors)
    assert run.status()["reason"] in (EXITED, FAILED)


def test_agent_35_the_time_is_over_for_a_command_that_takes_sigterm(folder: Jail) -> None:
    """It ends then, and not when SIGKILL comes to one beside it that takes none."""
    takes = "trap 'echo taken; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    options = ["--timeout", "1s"]
    takes_none = "trap '' TERM; sleep 1000"
    with (
        Running(folder, "sh", "-c", takes, options=options) as run,
        Running(folder, "sh", "-c", takes_none, options=options) as beside,
    ):
        assert run.wait() == 124, run.errors
        assert beside.process.poll() is None
    assert run.output == "ready\ntaken\n"
    assert (run.status()["code"], run.status()["reason"]) == (124, TIMEOUT)
    limits = [entry["fields"]["which"] for entry in ledger_of(folder, run) if entry["kind"] == "limit"]
    assert limits == ["timeout"]


@pytest.mark.parametrize("how", ["the time is over", "SIGTERM"])
def test_h5_the_end_comes_although_nobody_reads_the_output(folder: Jail, how: str) -> None:
    """A pager that waits for a key, a log collector that hangs: an overnight loop must not hang with it."""
    options = ["--timeout", "1s"] if how == "the time is over" else []
    with Running(folder, "sh", "-c", "echo ready; exec yes", options=options) as run:
        run.ready()
        if how == "SIGTERM":
            time.sleep(0.3)
            run.signal(signal.SIGTERM)
        assert until(lambda: run.process.poll() is not None, PATIENCE), "it hangs"
        assert run.wait() == (124 if how == "the time is over" else 128 + signal.SIGTERM)
        assert run.status()["detail"], "that output was lost is said"


def test_h9_large_empty_files_do_not_hold_up_the_end(folder: Jail) -> None:
    """Sparse files cost nothing to make; a look at those that run by themselves must not read them for hours."""
    script = "for i in 1 2 3 4 5 6; do mkdir big$i; truncate -s 1T big$i/Makefile; done; echo ready"
    try:
        with Running(folder, "sh", "-c", script) as run:
            run.ready()
            assert until(lambda: run.process.poll() is not None, PATIENCE), "it goes on reading"
            assert run.wait() == 0, run.errors
    finally:
        subprocess.run(["sh", "-c", "rm -r big?"], cwd=folder.workspace, check=False, timeout=20)


def test_a_command_that_is_faster_than_its_time_limit_is_not_touched(folder: Jail) -> None:
    with Running(folder, "sh", "-c", "exit 3", options=["--timeout", "1s"]) as run:
        assert run.wait() == 3, run.errors
    assert run.status()["reason"] == EXITED


@pytest.mark.parametrize("name", ["a command that takes no SIGTERM", "a stopped command"])
def test_agent_35_the_time_is_over_for(folder: Jail, slow_ones: dict[str, Running], name: str) -> None:
    run = slow_ones[name].ready()
    family: Any = None
    if run.process.poll() is None:
        family = run.family()
    assert run.wait() == 124, run.errors
    assert ledger_of(folder, run)[-1]["fields"]["duration_s"] > GRACE
    assert (run.status()["code"], run.status()["reason"]) == (124, TIMEOUT)
    if family is not None:
        assert family.left() == []
