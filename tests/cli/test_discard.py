"""`jail discard`: what is held is forgotten, and the real files are as they were."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from jail.cli.changes import command as changes
from jail.cli.discard import command
from jail.hold import apply
from support.changed import Kept, held_session
from support.ledgers import state_in, write

HOST: dict[str, bytes | str | None] = {"a": b"old", "gone": b"x"}
LEFT: dict[str, bytes | str | None] = {"a": b"new", "CLAUDE.md": b"", "d/b": b"", "d/c": b""}


def call(*words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


def held() -> list[str]:
    lines = CliRunner().invoke(changes, ["--json"], catch_exceptions=False).output.splitlines()
    return sorted(Path(json.loads(line)["path"]).name for line in lines)


def host(session: Kept) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in session.workspace.iterdir()}


def test_all_that_is_held_is_forgotten_however_grave(session: Kept) -> None:
    assert held() == ["CLAUDE.md", "a", "b", "c", "d", "gone"]
    assert call().output == "6 discarded\n"
    assert held() == []
    assert host(session) == {"a": b"old", "gone": b"x"}
    assert call().output == "nothing to discard\n"
    assert (session.folder / "review.jsonl").read_bytes().count(b'"discarded"') == 6


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["a"], ["CLAUDE.md", "b", "c", "d", "gone"]),
        (["d"], ["CLAUDE.md", "a", "gone"]),
        (["d/b"], ["CLAUDE.md", "a", "c", "d", "gone"]),
        (["gone", "CLAUDE.md"], ["a", "b", "c", "d"]),
        (["--all-but", "a"], ["a"]),
        (["--all-but", "d/b"], ["b", "d"]),
    ],
)
def test_paths_choose_what_is_forgotten(session: Kept, words: list[str], left: list[str]) -> None:
    assert call(*words).exit_code == 0
    assert held() == left
    assert host(session) == {"a": b"old", "gone": b"x"}


def test_a_dry_run_forgets_nothing(session: Kept) -> None:
    done = call("--dry-run", "a")
    assert done.output.splitlines()[-1] == "1 would be discarded"
    assert held() == ["CLAUDE.md", "a", "b", "c", "d", "gone"]
    assert not (session.folder / "review.jsonl").exists()


def test_json_lists_what_is_forgotten(session: Kept) -> None:
    found = json.loads(call("--json", "a").output)
    assert [each["path"] for each in found["discarded"]] == [f"{session.workspace}/a"]


@pytest.fixture
def covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A file stands where the folder of a deleted file was."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = held_session(state_in(tmp_path), tmp_path / "ws", {"d3/f3": b"x"}, {"d3": b"x"})
    monkeypatch.chdir(made.workspace)
    return made


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_what_is_covered_by_something_else_stays_and_that_is_said(covered: Kept, dry: list[str]) -> None:
    done = call(*dry, "d3/f3")
    assert done.exit_code == 1
    why = f"{covered.workspace}/d3 is in place of its folder: discard that first"
    would = " would be" if dry else ""
    assert done.output.splitlines()[-2:] == [f"left: D d3/f3: {why}", f"0{would} discarded, 1 left"]
    assert held() == ["d3", "f3"]
    if not dry:
        (line,) = (covered.folder / "review.jsonl").read_bytes().splitlines()
        entry = json.loads(line)
        assert (entry["kind"], entry["fields"]["reason"]) == ("refused", why)


def test_json_says_what_is_left_too(covered: Kept) -> None:
    done = call("--json", "d3/f3")
    found = json.loads(done.output)
    assert (done.exit_code, found["discarded"], len(found["left"])) == (1, [], 1)
    assert "discard that first" in found["left"][0]["why"]


@pytest.mark.parametrize("words", [["d3"], []])
def test_control_with_what_covers_it_it_goes(covered: Kept, words: list[str]) -> None:
    done = call(*words)
    assert (done.exit_code, done.output, held()) == (0, "2 discarded\n", [])


def test_an_apply_that_was_interrupted_is_finished_first_and_told(
    session: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "unfinished", lambda _: "committed")
    monkeypatch.setattr(apply, "finish", lambda *_: apply.Applied((), (), ""))
    assert call("a").output.splitlines() == [
        "an apply was interrupted, and is finished: 0 applied",
        "1 discarded",
    ]
    assert json.loads(call("--json", "gone").output)["finished"] == []


def test_a_session_that_holds_nothing_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write(state_in(tmp_path))
    assert call().exit_code == 0
    assert json.loads(call("--json").output) == {"finished": [], "discarded": [], "left": []}
    with pytest.raises(click.UsageError):
        command.main(["--all-but"], standalone_mode=False)
