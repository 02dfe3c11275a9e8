"""`jail changes`: the list, the diff and the JSON of what a session holds."""

import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from jail.cli.changes import command
from jail.errors import JailError
from jail.hold import store
from jail.hold.review import Review
from support.changed import Kept, held_session
from support.ledgers import state_in, write

HOST: dict[str, bytes | str | None] = {
    "src/main.py": b"one\ntwo\n",
    "gone": b"x",
    ".git/HEAD": b"",
    ".git/config": b"",
    ".git/objects": None,
    ".git/refs": None,
}
LEFT: dict[str, bytes | str | None] = {
    "src/main.py": b"one\n2\n",
    "Makefile": b"all:\n",
    ".git/hooks/pre-commit": b"#!/bin/sh\n",
    "\x1b[2J\u202eevil": b"\x1b]8;;http://x\x07\r\n",
}


def call(*words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


def test_the_list_names_each_change_the_gravest_first(session: Kept) -> None:
    done = call()
    assert done.exit_code == 0
    name = session.folder.name
    assert done.output.splitlines() == [
        "cannot be applied (1)",
        "  A  \\x1b[2J\\u202eevil  a newline or other control character in its name; 16 B",
        "refused: applied only when named, word for word (1)",
        "  A  .git/hooks/pre-commit  git runs what is in it; 10 B",
        "look at these: they run on somebody's machine, or lead out (1)",
        "  A  Makefile  make runs it; 5 B",
        "deleted (1)",
        "  D  gone",
        "modified (1)",
        "  M  src/main.py  8 B → 6 B",
        "added (1)",
        "  A  .git/hooks/",
        "6 changes: 1 that cannot be applied, 1 refused unless named, 1 to look at, 1 deleted, 1 modified, 1 added; 37 B to write",
        f"`jail apply {name}` applies 4 of them, `jail apply --walk {name}` asks for each",
    ]


@pytest.mark.parametrize("words", [["last"], ["ID"], ["BEGINNING"]])
def test_a_session_is_named_by_its_id_a_beginning_of_it_or_last(session: Kept, words: list[str]) -> None:
    named = {"ID": session.folder.name, "BEGINNING": session.folder.name[:20]}
    assert call(*(named.get(word, word) for word in words)).output == call().output


def test_where_nothing_is_applied_unnamed_the_last_line_names_what_there_is_to_do(session: Kept) -> None:
    name = session.folder.name
    graver = call(".git/hooks/pre-commit").output.splitlines()[-1]
    assert graver == (
        f"only what is named can be applied: `jail apply {name} PATH`; `jail discard {name} PATH` forgets it"
    )


def test_where_nothing_can_be_applied_the_last_line_says_how_to_forget_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = held_session(state_in(tmp_path), tmp_path / "ws", {}, {})
    os.mkfifo(made.upper / "pipe")
    never = call().output.splitlines()[-1]
    assert never == f"nothing of it can be applied as it is; `jail discard {made.folder.name}` forgets it"


def test_what_would_be_written_of_a_file_is_what_is_on_the_disk(session: Kept) -> None:
    with (session.upper / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert call().output.splitlines()[-2].endswith("; 37 B to write")


@pytest.mark.parametrize("words", [(), ("last",)])
def test_what_the_session_holds_is_read_once(
    session: Kept, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    asked: list[str] = []
    read = store.read_manifest
    monkeypatch.setattr(store, "read_manifest", lambda folder: asked.append(folder) or read(folder))
    assert "6 changes" in call(*words).output
    assert asked == [str(session.folder)]


def test_paths_choose_what_is_listed(session: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "1 change: 1 modified" in call("src").output
    assert "1 change: 1 modified" in call("last", "src/main.py").output
    monkeypatch.chdir(session.workspace / "src")
    assert "1 change: 1 modified" in call("main.py").output
    with pytest.raises(JailError, match="nothing that is held lies at absent"):
        call("absent")


def test_a_diff_shows_what_changed_and_steers_nothing(session: Kept) -> None:
    done = call("--diff", "src")
    assert done.output.splitlines()[:8] == [
        "M src/main.py",
        "--- a/src/main.py",
        "+++ b/src/main.py",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
        "",
    ]
    every = call("--diff").output
    assert "+\\x1b]8;;http://x\\x07\\x0d" in every
    assert all(line.isprintable() for line in every.splitlines())
    assert "\u202e" not in every


def test_json_is_one_object_a_line(session: Kept) -> None:
    lines = [json.loads(line) for line in call("--json").output.splitlines()]
    assert len(lines) == 6
    assert len({tuple(sorted(line)) for line in lines}) == 1, "each has all the keys"
    found = {line["path"]: (line["what"], line["tier"]) for line in lines}
    assert found[f"{session.workspace}/Makefile"] == ("added", "warned")
    assert found[f"{session.workspace}/gone"] == ("deleted", "plain")
    assert call("--json", "src").output.count("\n") == 1
    with pytest.raises(click.UsageError):
        command.main(["--json", "--diff"], standalone_mode=False)


def test_all_lists_what_is_told_as_a_number(session: Kept) -> None:
    for number in range(3):
        (session.upper / f".git/objects-{number}").write_text("y")
    assert "  4 in .git: --all lists them" in call().output.splitlines()
    assert "  A  .git/objects-0  1 B\n" in call("--all").output


def test_a_session_that_runs_can_be_listed_and_says_that_it_runs(
    session: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jail.ledger.place.running", lambda _: True)
    last = call().output.splitlines()[-1]
    assert last == f"session {session.folder.name} is running: what it holds may change until it ends"


def test_an_apply_that_was_interrupted_is_said(session: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jail.hold.apply.unfinished", lambda _: "committed")
    assert "an apply was interrupted: `jail apply" in call().output.splitlines()[-1]


def test_a_session_that_holds_nothing_is_said_and_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, _ = write(state_in(tmp_path))
    done = call()
    assert (done.exit_code, done.output) == (
        0,
        f"session {folder.name} holds nothing: what its command wrote is in place\n",
    )
    assert call("--json").output == ""


def test_nothing_changed_is_said(session: Kept) -> None:
    for name in ("src/main.py", "Makefile", ".git/hooks/pre-commit", "gone"):
        os.unlink(session.upper / name)
    for name in os.listdir(session.upper):
        if "evil" in name:
            os.unlink(session.upper / name)
    (session.upper / ".git/hooks").rmdir()
    assert call().output == "no changes\n"


def test_colours_are_for_terminals_alone(session: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in call().output
    coloured = CliRunner().invoke(command, ["--diff"], color=True)
    assert "\x1b" not in coloured.output, "a pipe is no terminal, whatever the variable says"


def test_a_long_list_of_additions_hides_no_deletion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    host: dict[str, bytes | str | None] = {f"gone{n}": b"" for n in range(5)}
    new: dict[str, bytes | str | None] = {f"a/{n}": f"{n}".encode() for n in range(200)}
    made = held_session(state_in(tmp_path), tmp_path / "ws", host, new, gone=list(host))
    assert isinstance(made.review(), Review)
    lines = call().output.splitlines()
    assert lines[:6] == ["deleted (5)", *(f"  D  gone{n}" for n in range(5))]
    assert "  and 141 more: --all lists them" in lines
