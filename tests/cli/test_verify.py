import json
import os
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jail.cli.logs import command as logs
from jail.cli.verify import command
from jail.errors import EXIT_USAGE, JailError, printable
from jail.ledger import heads
from support.ledgers import state_in, write


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return state_in(tmp_path)


def verify(*arguments: str) -> Result:
    found = CliRunner().invoke(command, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def edit(folder: Path) -> None:
    file = folder / "ledger.jsonl"
    file.write_bytes(file.read_bytes().replace(b"note 1", b"note 7"))


def test_an_intact_session_at_a_glance(state: str) -> None:
    folder, _ = write(state)
    found = verify("last")
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert lines[0] == "intact: every entry from start to end is as jail wrote it"
    assert lines[1:3] == [f"session    {folder.name}", "entries    4"]
    assert [line.split()[0] for line in lines[3:]] == ["started", "command", "workspace", "policy", "ended"]
    assert "command    pytest -q 'a b'" in lines
    assert lines[-1].endswith("UTC, exit 0, exited")


def test_a_broken_session_names_the_line(state: str) -> None:
    folder, _ = write(state)
    edit(folder)
    found = verify(folder.name)
    assert found.exit_code == 1
    assert found.output.splitlines()[:2] == [
        "BROKEN: this ledger is not as jail wrote it",
        "  line 3: edited: its content does not have the hash that it names",
    ]


def test_a_crashed_session_is_incomplete(state: str) -> None:
    write(state, end=False)
    found = verify("last")
    assert found.exit_code == 3
    assert found.output.splitlines()[:2] == [
        "incomplete: what is there is as jail wrote it, but it has no end",
        "  note: no head file beside it: a cut tail cannot be ruled out",
    ]


def test_a_running_session_is_incomplete_and_says_why(state: str) -> None:
    _, lock = write(state, end=False, keep_lock=True)
    found = verify("last")
    os.close(lock)
    assert found.exit_code == 3
    assert found.output.splitlines()[0].endswith("it has no end yet: the session is running")


@pytest.mark.parametrize(
    "how", ["id", "beginning", "last", "-", "folder", "file", "relative file", "name here"]
)
def test_a_session_is_named_in_many_ways(state: str, tmp_path: Path, how: str) -> None:
    folder, lock = write(state, keep_lock=True)
    (tmp_path / "copy.jsonl").write_bytes((folder / "ledger.jsonl").read_bytes())
    what = {
        "id": folder.name,
        "beginning": folder.name[:17],
        "last": "last",
        "-": "-",
        "folder": str(folder),
        "file": str(folder / "ledger.jsonl"),
        "relative file": f"./{os.path.relpath(folder / 'ledger.jsonl', tmp_path)}",
        "name here": "copy.jsonl",
    }[how]
    found = verify(what)
    os.close(lock)
    assert found.exit_code == 0
    assert f"session    {folder.name}" in found.output


def test_a_session_whose_folder_is_gone_is_broken(state: str) -> None:
    folder, _ = write(state)
    shutil.rmtree(folder)
    found = verify(folder.name[:-1])
    assert found.exit_code == 1
    assert "No such file" in found.output
    assert "the index of sessions knows entry 3" in found.output


def test_a_session_that_gc_removed_is_said_to_be_removed_and_no_damage(state: str) -> None:
    kept, gone = write(state)[0], write(state)[0]
    shutil.rmtree(gone)
    sessions = os.open(kept.parent, os.O_RDONLY)
    heads.add_removal(sessions, gone.name)
    os.close(sessions)
    found = verify(gone.name)
    assert found.exit_code == 4
    lines = found.output.splitlines()
    assert lines[0].startswith("removed: `jail gc`")
    assert [line.split()[0] for line in lines[1:]] == ["session", "removed"]
    told = json.loads(verify(gone.name, "--json").output)
    assert (told["state"], told["problems"]) == ("removed", [])
    assert abs(told["removed"] - time.time()) < 3600
    assert verify(kept.name).exit_code == 0
    with pytest.raises(JailError, match=f"`jail gc` removed session {gone.name}"):
        CliRunner().invoke(logs, [gone.name], catch_exceptions=False)
    shutil.copytree(kept, gone)
    assert verify(gone.name).exit_code == 1, "what lies there is judged, whatever the index says"


@pytest.mark.parametrize("what", ["last", "2026", "absent", ""])
def test_no_such_session_is_a_wrong_command_line(state: str, what: str) -> None:
    with pytest.raises(JailError, match="no session") as caught:
        verify(what)
    assert caught.value.code == EXIT_USAGE


def test_json_says_the_same(state: str) -> None:
    folder, _ = write(state)
    intact = verify("last", "--json")
    assert intact.exit_code == 0
    found = json.loads(intact.output)
    assert (found["state"], found["session"], found["entries"]) == ("intact", folder.name, 4)
    assert (found["problems"], found["end"]["exit"], found["start"]["pid"]) == ([], 0, 4711)
    edit(folder)
    broken = verify("last", "--json")
    assert broken.exit_code == 1
    assert json.loads(broken.output)["problems"][0]["line"] == 3


def test_what_a_program_said_cannot_steer_the_terminal(state: str) -> None:
    hostile = "\x1b]52;c;AA==\x07\x9b2J\u202e\udcff\n"
    write(state, command=[hostile], workspace=hostile, policy=hostile, reason=hostile)
    for arguments in (["last"], ["last", "--json"]):
        found = verify(*arguments)
        assert found.exit_code == 0
        for line in found.output.splitlines():
            assert printable(line) == line
    for line in verify("last").output.splitlines():
        assert line.isprintable()


def test_fields_of_any_type_are_shown(state: str) -> None:
    write(state, command=7, workspace=None, policy=["x"], exit={"a": 1}, reason=None)
    assert verify("last").exit_code == 0


def test_the_help_names_each_exit_code() -> None:
    found = verify("--help").output
    for line in ("0  intact", "1  broken", "2  no such session", "3  incomplete", "4  removed"):
        assert f"  {line}" in found


def test_an_apply_that_was_interrupted_is_incomplete_and_what_finishes_it_is_said(state: str) -> None:
    folder, _ = write(state)
    (folder / "held").mkdir()
    (folder / "held/journal").touch()
    found = verify(folder.name)
    assert found.exit_code == 3
    told = f"incomplete: an apply was interrupted; `jail apply {folder.name}` finishes it"
    assert found.output.splitlines()[0] == told
    assert json.loads(verify(folder.name, "--json").output)["interrupted"] is True
    (folder / "held/journal").unlink()
    assert verify(folder.name).exit_code == 0
