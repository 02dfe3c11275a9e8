"""`jail apply --walk`: only what is typed decides, and nothing before the last answer."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import click
import pytest

import jail
from jail.cli.walk import LINES, walk
from jail.hold import review
from jail.hold.decisions import Done
from support.changed import Kept

HOST: dict[str, bytes | str | None] = {"gone": b"x", "both": b"old", "src/main": b"old\n"}
LEFT: dict[str, bytes | str | None] = {
    "CLAUDE.md": b"obey\n",
    "a/1": b"one\n",
    "a/2": b"two\n",
    "a/sub/3": b"three\n",
    "both": b"new",
    "src/main": b"new\n",
    "node_modules/x/package.json": b'{"scripts": {"test": ""}}',
    "node_modules/y/package.json": b'{"scripts": {"test": ""}}',
    "\x1bpipe": b"",
}


@pytest.fixture
def session(session: Kept) -> Kept:
    """With a path that the host changed meanwhile."""
    (session.workspace / "both").write_bytes(b"mine")
    return session


def walked(session: Kept, answers: dict[str, str], otherwise: str = "") -> tuple[Done, list[str]]:
    """The walk with an answer for each path that is asked for, and the paths in their order."""
    found = review.reviewed(str(session.folder))
    asked: list[str] = []

    def ask(question: str) -> str:
        path = question.removeprefix("apply ").partition("?")[0].partition(" and ")[0]
        asked.append(path)
        return answers.get(path, otherwise) + "\n"

    return walk(found, found.changes, ask), asked


def paths(changes: object) -> set[str]:
    assert isinstance(changes, tuple)
    return {each.path for each in changes}


def host(session: Kept) -> set[str]:
    return {
        str(path.relative_to(session.workspace)) for path in session.workspace.rglob("*") if path.is_file()
    }


def test_each_is_asked_for_the_gravest_first_and_nothing_is_no(session: Kept) -> None:
    done, asked = walked(session, {})
    assert asked == [
        "CLAUDE.md",
        "node_modules/x/package.json",
        "gone",
        "src/main",
        "a",
        "a/1",
        "a/2",
        "a/sub",
        "a/sub/3",
        "node_modules",
        "node_modules/x",
    ]
    assert (done.applied, done.discarded) == ((), ())
    assert [change.path for change, _ in done.left] == ["\x1bpipe", "both"]
    assert host(session) == {"gone", "both", "src/main"}


def test_what_is_said_is_done(session: Kept) -> None:
    done, _ = walked(session, {"CLAUDE.md": "y", "src/main": "yes", "a/1": "Y", "a/2": "n"})
    assert paths(done.applied) == {"CLAUDE.md", "src/main", "a", "a/1"}
    assert host(session) == {"CLAUDE.md", "gone", "both", "src/main", "a/1"}
    assert (session.workspace / "both").read_bytes() == b"mine"


def test_discard_forgets(session: Kept) -> None:
    done, _ = walked(session, {"CLAUDE.md": "d", "a/sub/3": "d"})
    assert paths(done.discarded) == {"CLAUDE.md", "a/sub/3"}
    assert paths(review.reviewed(str(session.folder)).changes).isdisjoint(paths(done.discarded))
    assert host(session) == {"gone", "both", "src/main"}


def test_what_lies_in_a_folder_that_is_thrown_away_is_left(session: Kept) -> None:
    done, _ = walked(session, {"a/sub": "d", "a/sub/3": "y"})
    assert [change.path for change, why in done.left if "folder" in why] == ["a/sub/3"]
    assert (done.applied, done.discarded) == ((), ())


def test_all_of_a_folder_is_what_is_still_to_come_in_it(session: Kept) -> None:
    done, asked = walked(session, {"a/1": "a"})
    assert "a/2" not in asked
    assert "a/sub/3" not in asked
    assert paths(done.applied) == {"a", "a/1", "a/2", "a/sub", "a/sub/3"}


def test_all_of_a_folder_is_never_what_is_refused(session: Kept) -> None:
    (session.upper / "z").mkdir()
    for name in ("z/.mcp.json", "CLAUDE.md"):
        (session.upper / name).write_bytes(b"")
    done, asked = walked(session, {"CLAUDE.md": "a"})
    assert asked[:2] == ["CLAUDE.md", "z/.mcp.json"]
    assert "z/.mcp.json" not in paths(done.applied)
    assert "a/sub/3" in paths(done.applied)


def test_quit_does_what_was_said_until_then(session: Kept) -> None:
    done, asked = walked(session, {"CLAUDE.md": "y", "gone": "q"})
    assert asked[-1] == "gone"
    assert paths(done.applied) == {"CLAUDE.md"}


def test_rows_of_a_package_manager_are_one_question(session: Kept) -> None:
    done, _ = walked(session, {"node_modules/x/package.json": "y"})
    assert {path for path in paths(done.applied) if path.endswith("json")} == {
        "node_modules/x/package.json",
        "node_modules/y/package.json",
    }


def test_what_is_no_list_of_an_installed_package_is_asked_for_alone(session: Kept) -> None:
    odd = {
        "node_modules/.envrc": b"",
        "node_modules/z/Makefile": b"",
        "node_modules/z/package.json": b'{"scripts": {"postinstall": "x"}}',
    }
    (session.upper / "node_modules/z").mkdir()
    for path, content in odd.items():
        (session.upper / path).write_bytes(content)
    (session.upper / "node_modules/out").symlink_to("/etc")
    done, asked = walked(session, {"node_modules/x/package.json": "y"})
    assert {*odd, "node_modules/out"} <= set(asked)
    assert paths(done.applied).isdisjoint({*odd, "node_modules/out"})


def test_an_answer_that_is_none_is_asked_again(session: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter(["?", "x", "v", "y", *["n"] * 20])
    found = review.reviewed(str(session.folder))
    done = walk(found, found.changes, lambda _: next(answers))
    assert paths(done.applied) == {"CLAUDE.md"}
    shown = capsys.readouterr().out
    assert shown.count("y: apply it") == 2
    assert shown.count("+obey") == 2


def test_the_end_of_input_does_nothing(session: Kept) -> None:
    found = review.reviewed(str(session.folder))

    def ask(question: str) -> str:
        if "gone" in question:
            raise click.Abort
        return "y"

    with pytest.raises(click.Abort):
        walk(found, found.changes, ask)
    assert host(session) == {"gone", "both", "src/main"}
    assert not (session.folder / "review.jsonl").exists()


def test_a_long_diff_is_shown_in_part_and_that_is_said(
    session: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    (session.upper / "a/1").write_text("".join(f"{n}\n" for n in range(LINES + 50)))
    walked(session, {"a/1": "n"})
    shown = capsys.readouterr().out
    assert "… and more: v shows all" in shown
    assert f"+{LINES + 49}\n" not in shown


PROGRAM = "import sys; from jail.cli import main; sys.exit(main.main(sys.argv[1:]))"


def on_a_terminal(session: Kept, typed: bytes) -> tuple[int, str]:
    """`jail apply --walk` on a terminal: its exit code and what it printed."""
    ours, its = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(jail.__file__).parents[1]), "NO_COLOR": "1"}
    running = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, "apply", "--walk", "src", "CLAUDE.md"],
        cwd=session.workspace,
        env=environment,
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    os.write(ours, typed)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            said += os.read(ours, 1 << 16)
        except OSError:
            break
    code = running.wait(60)
    os.close(ours)
    return code, said.decode()


def test_on_a_terminal_it_asks_and_does(session: Kept) -> None:
    code, said = on_a_terminal(session, b"n\ny\n")
    assert "apply CLAUDE.md? [y]es [n]o" in said
    assert "1 applied" in said
    assert code == 0
    assert (session.workspace / "src/main").read_bytes() == b"new\n"


def test_the_end_of_input_on_a_terminal_does_nothing(session: Kept) -> None:
    code, _ = on_a_terminal(session, b"y\n\x04")
    assert code == 130
    assert host(session) == {"gone", "both", "src/main"}
