import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from jail.cli.sessions import as_lines, command, row
from jail.ledger import heads, place
from support.ledgers import state_in, write


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return state_in(tmp_path)


def sessions(*arguments: str) -> str:
    found = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert found.exit_code == 0
    return found.output


def test_before_the_first_session_it_says_how_to_make_one(state: str, tmp_path: Path) -> None:
    assert sessions() == "no sessions yet: `jail run -- COMMAND` makes one\n"
    assert sessions("--json") == "[]\n"
    assert os.listdir(tmp_path) == []


def test_each_session_is_one_row_with_its_state(state: str) -> None:
    made = {
        "ended 0": write(state)[0],
        "ended 137": write(state, exit=137)[0],
        "crashed": write(state, end=False)[0],
    }
    running, lock = write(state, end=False, keep_lock=True)
    starting = place.new_session(state)
    made |= {"running": running, "running ": Path(starting.folder)}
    lines = sessions().splitlines()
    os.close(lock)
    os.close(starting.lock_fd)
    assert lines[0].split() == "SESSION STARTED (UTC) AGE STATE CPU MEMORY HELD COMMAND WORKSPACE".split()
    assert len(lines) == 6
    at = lines[0].index("STATE")
    for said, folder in made.items():
        (line,) = [line for line in lines if line.startswith(folder.name)]
        assert line[at:].startswith(said.strip())
    (whole,) = [line for line in lines if line.startswith(made["ended 0"].name)]
    assert whole.endswith("pytest -q 'a b'  /home/someone/work")


def test_the_newest_comes_first(state: str) -> None:
    names = [write(state)[0].name for _ in range(4)]
    assert [line.split()[0] for line in sessions().splitlines()[1:]] == names[::-1]


def test_the_table_is_these_lines() -> None:
    rows = [
        {
            "session": "20261130-141502-k3f9x2ab",
            "started": 1796048102.5,
            "state": "ended",
            "exit": 1,
            "reason": "exited",
            "command": ["make", "-j", "x" * 80],
            "workspace": "/w",
        },
        dict.fromkeys(("started", "exit", "reason", "command", "workspace"))
        | {"session": "20261130-141501-00000000", "state": "crashed"},
    ]
    rows = [{"cpu_s": None, "memory_bytes": None, "held": False, **found} for found in rows]
    rows[0] |= {"held": True, "cpu_s": 75.0, "memory_bytes": 2560 << 20}
    assert as_lines(rows, 1796048102.5 + 7200) == [
        "SESSION                   STARTED (UTC)        AGE  STATE    CPU  MEMORY   HELD  COMMAND"
        + " " * 55
        + "WORKSPACE",
        "20261130-141502-k3f9x2ab  2026-11-30 14:15:02  2h   ended 1  1m   2.5 GiB  yes   make -j "
        + "x" * 51
        + "…  /w",
        "20261130-141501-00000000  ?                    ?    crashed                      ?" + " " * 61 + "?",
    ]


def test_json_has_all_of_the_command(state: str) -> None:
    write(state, command=["x" * 200], exit=3)
    (found,) = json.loads(sessions("--json"))
    assert found["command"] == ["x" * 200]
    assert (found["state"], found["exit"], found["reason"]) == ("ended", 3, "exited")


def test_sessions_whose_folder_is_gone_are_told_and_by_whom(state: str) -> None:
    removed, missing, kept = (write(state)[0] for _ in range(3))
    folder = os.open(kept.parent, os.O_RDONLY)
    heads.add_removal(folder, removed.name)
    os.close(folder)
    for name in (removed, missing):
        shutil.rmtree(name)
    told = [
        f"1 more ran, removed by `jail gc`: {removed.name}",
        f"1 more ran, whose folder is missing, and not by `jail gc`: {missing.name}",
    ]
    lines = sessions().splitlines()
    assert lines[1].startswith(kept.name)
    assert lines[2:] == told
    rows = json.loads(sessions("--json"))
    states = {row["session"]: row["state"] for row in rows}
    assert states == {kept.name: "ended", removed.name: "removed", missing.name: "missing"}
    assert len({tuple(row) for row in rows}) == 1, "each has all the keys"
    shutil.rmtree(kept)
    assert sessions().splitlines() == [told[0], f"{told[1].replace('1', '2', 1)}, {kept.name}"]


def test_an_ended_session_shows_what_it_used(state: str) -> None:
    write(state, cpu_s=75.0, peak_bytes=2560 << 20)
    write(state, cpu_s="x", peak_bytes=-1)
    odd, whole = sessions().splitlines()[1:]
    assert "  1m   2.5 GiB  " in whole
    assert "1m" not in odd
    assert [(row["cpu_s"], row["memory_bytes"]) for row in json.loads(sessions("--json"))] == [
        (None, None),
        (75.0, 2560 << 20),
    ]


@pytest.mark.parametrize("raw", [b"", b"\xff\0", b"{}\n", b'{"fields":{}}\n'])
def test_a_ledger_of_garbage_is_a_row_too(state: str, raw: bytes) -> None:
    folder, _ = write(state)
    (folder / "ledger.jsonl").write_bytes(raw)
    assert "crashed" in sessions()
    (folder / "ledger.jsonl").unlink()
    os.mkfifo(folder / "ledger.jsonl")
    assert "crashed" in sessions()
    assert row(str(folder))["command"] is None


def test_what_a_program_said_cannot_steer_the_terminal(state: str) -> None:
    hostile = "\x1b]52;c;AA==\x07\x9b2J\u202e\udcff\n"
    write(state, command=[hostile], workspace=hostile, exit=hostile)
    write(state, command=hostile, workspace=[hostile])
    lines = sessions().splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line[lines[0].index("STATE") - 1] == " "
        assert line.isascii()
        assert line.isprintable()


def test_one_that_holds_changes_says_so(state: str) -> None:
    folder, other = write(state)[0], write(state)[0]
    (folder / "held").mkdir()
    (folder / "held" / "manifest").write_bytes(b"damaged")
    found = {each["session"]: each["held"] for each in json.loads(sessions("--json"))}
    assert found == {folder.name: None, other.name: False}
