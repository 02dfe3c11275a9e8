"""scripts/bench: how it counts, and that its work is work. How fast anything is, is no test."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def speed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The modules of scripts/speed by name; they import one another as programs in one folder do."""
    monkeypatch.syspath_prepend(str(checkout / "scripts" / "speed"))
    names = ("candidates", "held", "loads", "parallel", "rounds", "table")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return {name: __import__(name) for name in names}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that does the timed work."""
    made = tmp_path_factory.mktemp("work") / "work"
    source = Path(__file__).parent.parent / "scripts" / "speed" / "work.c"
    subprocess.run(["gcc", "-Wall", "-Werror", "-O2", "-o", made, source], check=True, timeout=60)
    return made


def test_each_round_runs_every_candidate_and_the_first_one_changes(speed: dict[str, ModuleType]) -> None:
    ran: list[str] = []
    trials = {name: lambda name=name: float(ran.append(name) or len(ran)) for name in "abc"}
    found = speed["rounds"].in_turns(trials, 4)
    assert "".join(ran) == "abcbcacababc"
    assert found == {"a": [1, 6, 8, 10], "b": [2, 4, 9, 11], "c": [3, 5, 7, 12]}


def test_a_ratio_is_that_of_each_round(speed: dict[str, ModuleType]) -> None:
    """A round in which the machine was ten times slower changes no ratio."""
    found = speed["rounds"].rows("work", {"outside": [1, 10, 1], "inside": [2, 20, 2]}, "outside")
    assert [row.ratio for row in found] == [1, 2]
    assert [row.rounds for row in found] == [3, 3]


def test_the_table_is_markdown_and_json(speed: dict[str, ModuleType]) -> None:
    rows = speed["rounds"].rows("work", {"outside": [1, 1], "jail": [2, 2]}, "outside")
    lines = speed["table"].markdown(rows).splitlines()
    assert lines[2:] == [
        "| work | outside | 1.0 ms | 1.0-1.0 | 1.00 |",
        "|  | jail | 2.0 ms | 2.0-2.0 | 2.00 |",
    ]
    assert [row["candidate"] for row in json.loads(speed["table"].as_json(rows))] == ["outside", "jail"]


WORK = {
    "fork": (["fork", "2"], 0),
    "stat": (["stat", "5", "/", "/usr"], 0),
    "run": (["run", "2", "echo", "thrown away"], 0),
    "a file that is absent": (["stat", "5", "/", "/absent"], 1),
    "a command that fails": (["run", "2", "false"], 1),
    "a command that is absent": (["run", "2", "/absent"], 1),
    "no command": (["run", "2"], 2),
    "nothing": ([], 2),
}


@pytest.mark.parametrize("case", WORK)
def test_work_says_how_long_it_took_and_never_of_what_failed(case: str, work: Path) -> None:
    arguments, code = WORK[case]
    done = subprocess.run([work, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    assert done.stdout.strip().isdigit() == (code == 0)


def test_processes_of_the_session_are_told_from_the_command(speed: dict[str, ModuleType], work: Path) -> None:
    """By bubblewrap, which has no closed processes: its own two count, what runs inside does not."""
    shown = f"--ro-bind / / --ro-bind {work.parent} {work.parent} --unshare-pid --die-with-parent".split()
    command = ["bwrap", *shown, "sh", "-c", f"{work} wait; true"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        own = speed["parallel"]._own_processes(process.pid)
        names = [Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() for pid in own]
        proportional, private = speed["parallel"]._of_session(process.pid)
        process.communicate()
    assert names == ["bwrap", "bwrap"]
    assert 0 < private <= proportional


def test_the_machine_itself_is_a_candidate_without_a_prefix(
    speed: dict[str, ModuleType], tmp_path: Path
) -> None:
    candidates, account = speed["candidates"], speed["candidates"].Account(-1, -1, str(tmp_path), "bench")
    found = {"outside": [], "broken": ["/bin/false"]}
    assert candidates.that_run(found, account, str(tmp_path)) == {"outside": []}
    assert candidates.candidates("/absent/bin", str(tmp_path))["outside"] == []


JAIL_OF_NO_WALLS = """#!/bin/sh
case $1 in
    run) echo "$1 $2 $3" >> ../asked; shift 3; exec "$@" ;;
    *) echo "$*" >> ../asked ;;
esac
"""


def test_held_changes_are_as_many_as_are_said_and_the_same_in_and_out_of_a_jail(
    speed: dict[str, ModuleType], tmp_path: Path
) -> None:
    held, account = speed["held"], speed["candidates"].Account(-1, -1, str(tmp_path), "bench")
    fake = tmp_path / "jail"
    fake.write_text(JAIL_OF_NO_WALLS)
    fake.chmod(0o755)
    few, many = (
        held.Ground(account, str(fake), sys.executable, tmp_path / str(count), count) for count in (40, 120)
    )
    found = list(held.measured(few, many, 2))
    assert {row.measure.partition(",")[0] for row in found} == {*held.ASKED}
    assert [row.rounds for row in found] == [2] * 12
    words = ["run --hold --", *(" ".join(each) for each in held.ASKED.values())]
    assert (few.place / "asked").read_text().splitlines() == words * 2
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=few.folder, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert sorted(line[:2] for line in changed if line) == [" D"] * 2 + [" M"] * 38 + ["??"] * 2


def test_a_wrong_command_line_is_refused(checkout: Path) -> None:
    command = [sys.executable, "-I", str(checkout / "scripts" / "speed"), "/absent/bin"]
    for arguments in ([], ["fast"], ["all", "0x"], ["start", "1"]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2, arguments
        assert "usage: scripts/bench" in done.stderr
