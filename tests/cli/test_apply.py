"""`jail apply`: what is chosen arrives, the rest is left and said, and the ledger has all of it."""

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from jail.cli.apply import command
from jail.cli.held import EXIT_LEFT
from jail.errors import EXIT_USAGE, JailError
from jail.hold import look
from jail.hold.change import Change
from jail.ledger.lines import parse
from support.changed import Kept, held_session
from support.ledgers import state_in, write

HOST: dict[str, bytes | str | None] = {
    "src/main.py": b"one\ntwo\n",
    "gone": b"x",
    ".git/HEAD": b"",
    ".git/hooks": None,
}
LEFT: dict[str, bytes | str | None] = {
    "src/main.py": b"one\n2\n",
    "Makefile": b"all:\n",
    "new/deep/file": b"deep",
    ".git/hooks/pre-commit": b"#!/bin/sh\n",
}


def call(*words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


def tree(top: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()
    }


def recorded(session: Kept) -> list[tuple[str, str]]:
    """Kind and path of the entries of the review ledger."""
    found = []
    for line in (session.folder / "review.jsonl").read_bytes().splitlines():
        entry, fault = parse(line)
        assert entry is not None, fault
        if "path" in entry.fields:
            found.append((entry.kind, os.path.relpath(entry.fields["path"], session.workspace)))
    return found


def test_all_arrives_but_what_is_refused_and_that_is_said(session: Kept) -> None:
    done = call()
    assert done.output.splitlines() == [
        "left: A .git/hooks/pre-commit: git runs what is in it: refused unless it is named, word for word",
        "6 applied, 1 left",
    ]
    assert done.exit_code == EXIT_LEFT
    assert tree(session.workspace) == {
        ".git/HEAD": b"",
        "Makefile": b"all:\n",
        "new/deep/file": b"deep",
        "src/main.py": b"one\n2\n",
    }
    assert sorted(recorded(session)) == [
        ("applied", "Makefile"),
        ("applied", "gone"),
        ("applied", "new"),
        ("applied", "new/deep"),
        ("applied", "new/deep/file"),
        ("applied", "src/main.py"),
        ("refused", ".git/hooks/pre-commit"),
    ]
    again = call()
    assert again.output.splitlines()[-1] == "0 applied, 1 left"
    assert again.exit_code == EXIT_LEFT


def test_what_is_refused_arrives_when_it_is_named(session: Kept) -> None:
    assert call(".git").exit_code == EXIT_LEFT
    assert not (session.workspace / ".git/hooks/pre-commit").exists()
    done = call(".git/hooks/pre-commit")
    assert (done.output, done.exit_code) == ("1 applied\n", 0)
    assert (session.workspace / ".git/hooks/pre-commit").read_bytes() == b"#!/bin/sh\n"
    assert not (session.workspace / "Makefile").exists(), "nothing else was named"


def test_all_but_leaves_what_is_named(session: Kept) -> None:
    done = call("--all-but", "src", ".git", "Makefile")
    assert (done.output, done.exit_code) == ("4 applied\n", 0)
    assert (session.workspace / "src/main.py").read_bytes() == b"one\ntwo\n"
    assert (session.workspace / "new/deep/file").read_bytes() == b"deep"
    assert not (session.workspace / "gone").exists()


def test_what_the_host_changed_too_is_left_with_both_sides(session: Kept) -> None:
    (session.workspace / "src/main.py").write_bytes(b"mine\n")
    done = call("src")
    assert done.exit_code == EXIT_LEFT
    lines = done.output.splitlines()
    assert lines[0].startswith("left: M src/main.py: ")
    assert lines[-1] == "0 applied, 1 left"
    assert "    -mine" in lines
    assert "    +2" in lines
    assert (session.workspace / "src/main.py").read_bytes() == b"mine\n"
    assert (session.upper / "src/main.py").read_bytes() == b"one\n2\n", "and it is still held"
    assert recorded(session) == [("refused", "src/main.py")]


def test_a_dry_run_does_nothing_and_says_the_same(session: Kept) -> None:
    before = tree(session.workspace)
    done = call("--dry-run")
    assert done.exit_code == EXIT_LEFT
    assert done.output.splitlines()[-1] == "6 would be applied, 1 left"
    assert "  D  gone" in done.output.splitlines()
    assert tree(session.workspace) == before
    assert not (session.folder / "review.jsonl").exists()


def test_json_is_one_object_with_all_lists(session: Kept) -> None:
    found = json.loads(call("--json", "src", ".git").output)
    assert set(found) == {"finished", "applied", "discarded", "left"}
    assert [each["path"] for each in found["applied"]] == [f"{session.workspace}/src/main.py"]
    assert [each["path"] for each in found["left"]] == [f"{session.workspace}/.git/hooks/pre-commit"]
    assert found["left"][0]["why"].endswith("word for word")


def test_when_nothing_is_left_there_is_nothing_to_apply(session: Kept) -> None:
    call()
    call(".git/hooks/pre-commit")
    done = call()
    assert (done.output, done.exit_code) == ("nothing to apply\n", 0)


def test_a_session_that_runs_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = held_session(state_in(tmp_path), tmp_path / "ws", HOST, LEFT)
    monkeypatch.chdir(tmp_path / "ws")
    lock = os.open(made.folder / "lock", os.O_RDONLY)
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(JailError, match="still runs") as caught:
        call()
    os.close(lock)
    assert caught.value.code == EXIT_USAGE
    assert call("src").exit_code == 0, "the control"


def test_a_session_that_holds_nothing_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, _ = write(state_in(tmp_path))
    done = call()
    assert (done.exit_code, done.output.split(":")[0]) == (0, f"session {folder.name} holds nothing")
    assert json.loads(call("--json").output)["applied"] == []


@pytest.mark.parametrize(
    "words", [["--all-but"], ["--walk", "--json"], ["--walk", "--dry-run"], ["--all-but", "last"]]
)
def test_a_wrong_command_line_does_nothing(session: Kept, words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        command.main(words, standalone_mode=False)


def test_walk_without_a_terminal_does_nothing(session: Kept) -> None:
    with pytest.raises(JailError, match="no terminal") as caught:
        call("--walk")
    assert caught.value.code == EXIT_USAGE
    assert not (session.workspace / "Makefile").exists()


def test_an_apply_that_was_interrupted_is_finished_first(
    session: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jail.hold import apply, decisions

    monkeypatch.setattr(apply, "unfinished", lambda _: "committed")
    monkeypatch.setattr(apply, "finish", lambda *_: apply.Applied((), (), ""))
    assert decisions.finished(str(session.folder), session.manifest) is not None
    assert call("src").output.splitlines()[0] == "an apply was interrupted, and is finished: 0 applied"


def test_names_and_contents_cannot_steer_the_terminal(session: Kept) -> None:
    (session.upper / "a\u202e\x1b[2J").write_bytes(b"\x1b[2J")
    done = call()
    assert all(line.isprintable() for line in done.output.splitlines())


def test_a_conflict_is_told_once(session: Kept) -> None:
    (session.workspace / "src/main.py").write_bytes(b"mine\n")
    assert call("src/main.py").output.count("changed on the host since the run began") == 1


def test_all_is_looked_at_once_however_much_is_applied(
    session: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = look.changes, []

    def counted(*words: Any) -> tuple[Change, ...]:
        calls.append(words)
        return real(*words)

    monkeypatch.setattr(look, "changes", counted)
    call()
    assert len(calls) == 1
    call(".git/hooks/pre-commit")
    assert len(calls) == 2
    assert list(session.upper.iterdir()) == [], "nothing is held any more, so the layer is emptied"
