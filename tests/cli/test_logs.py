import json
import os
import subprocess
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # it ships no types of its own
import pytest

from jail.ledger.review import ReviewLedger
from support.answers import new_jail
from support.installed import Installed
from support.jails import PATIENCE, Jail
from support.joining import session
from support.ledgers import REVIEWED

HOSTILE = r"printf 'a\033[2J\033]52;c;AA==\007b\r\n\302\233\342\200\256\377\nend'"


@pytest.fixture(scope="module")
def ran(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    jail = new_jail(installed, tmp_path_factory.mktemp("logs"))
    assert jail.run("sh", "-c", HOSTILE, "\x1b[2J\u202e").returncode == 0
    return jail


def test_each_entry_is_one_line_that_steers_nothing(ran: Jail) -> None:
    done = ran.call("logs", "last")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(ran.ledger())
    assert [line.split("  ", 1)[1].split()[0] for line in lines] == [
        "started:",
        "20",
        "the",
        "ended:",
    ], lines
    assert all(line.isprintable() for line in lines)
    assert "\\x1b[2J" in lines[0]
    assert lines[-1].split("  ")[1].startswith("ended: exit 0, exited")


def test_json_is_the_entries(ran: Jail) -> None:
    done = ran.call("logs", "--json", ran.sessions()[-1].name)
    assert [json.loads(line)["fields"] for line in done.stdout.splitlines()] == [
        entry["fields"] for entry in ran.ledger()
    ]


def test_the_output_is_shown_escaped(ran: Jail) -> None:
    done = ran.call("logs", "--output", "last")
    assert done.stdout == "a\\x1b[2J\\x1b]52;c;AA==\\x07b\n\\x9b\\u202e\\xff\nend\n"


def test_the_bytes_themselves_go_to_a_file_and_never_to_a_terminal(ran: Jail, tmp_path: Path) -> None:
    command = [str(ran.installed.command), "logs", "--output", "--raw", "last"]
    with (tmp_path / "raw").open("wb") as file:
        subprocess.run(command, env=dict(ran.environment), stdout=file, check=True, timeout=PATIENCE)
    assert (tmp_path / "raw").read_bytes() == b"a\033[2J\033]52;c;AA==\007b\r\n\xc2\x9b\xe2\x80\xae\xff\nend"
    child = pexpect.spawn(command[0], command[1:], env=dict(ran.environment), timeout=PATIENCE)
    child.expect(pexpect.EOF)
    assert b"could steer this terminal" in child.before
    assert b"\x1b" not in child.before
    child.close()
    assert child.exitstatus == 2


WRONG = {
    "no such session": (("logs", "nonsense"), "no session 'nonsense'"),
    "raw entries": (("logs", "--raw", "last"), "--raw is for --output"),
    "output that goes on": (("logs", "--output", "-f", "last"), "goes with neither"),
    "none running": (("logs", "-"), "no session is running"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_told(ran: Jail, case: str) -> None:
    arguments, said = WRONG[case]
    done = ran.call(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_session_that_printed_nothing_says_so(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "silent")
    assert jail.run("true").returncode == 0
    done = jail.call("logs", "--output", "last")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no output of this session is kept" in done.stderr


def test_follow_goes_on_until_the_end(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "follow")) as found:
        command = [str(found.jail.installed.command), "logs", "--follow", "-"]
        environment = dict(found.jail.environment)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)][2].endswith("the command runs\n")
        assert found.exec("true").returncode == 0
        assert "joined 1: true" in process.stdout.readline()
        assert "left 1: exit 0" in process.stdout.readline()
        assert found.running.wait() == 0
        rest = process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == 0
        assert "ended: exit 0" in rest


def test_follow_ends_when_the_supervisor_was_killed(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "killed")) as found:
        command = [str(found.jail.installed.command), "logs", "-f", "last"]
        process = subprocess.Popen(
            command, env=dict(found.jail.environment), stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)][2].endswith("the command runs\n")
        found.running.process.kill()
        assert process.communicate(timeout=PATIENCE)[0] == ""
        assert process.returncode == 0


def test_a_ledger_of_garbage_is_told_line_by_line(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "garbage")
    assert jail.run("true").returncode == 0
    ledger = jail.sessions()[-1] / "ledger.jsonl"
    first = ledger.read_bytes().splitlines()[0]
    ledger.write_bytes(b"\xff\x1b[2J\n" + b"x" * 300_000 + b"\n{}\n" + first + b"\nhalf")
    lines = jail.call("logs", "last").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == [
        f"line {number} is no entry" for number in (1, 2, 3)
    ]
    assert "started: true" in lines[3]
    assert lines[4].startswith("line 5 is no entry")
    os.unlink(ledger)
    os.mkfifo(ledger)
    assert jail.call("logs", "last").returncode == 125


def test_what_became_of_held_changes_follows_the_run(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path)
    assert jail.run("true").returncode == 0
    folder = jail.sessions()[-1]
    review = ReviewLedger.open(str(folder), folder.name)
    review.append("applied", **{**REVIEWED, "path": "/w/\x1b[2J"})
    review.append("resumed", by="20261130-141502-k3f9x2ab")
    review.close()
    lines = jail.call("logs", "last").stdout.splitlines()
    assert [line.split("  ", 1)[1] for line in lines[-2:]] == [
        "applied: modified /w/\\x1b[2J (warned: a Makefile)",
        "resumed by 20261130-141502-k3f9x2ab, which has what was held",
    ]
    assert lines[-3].split("  ")[1].startswith("ended")
