"""Which session and which paths the words of a command line mean."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from jail.cli.apply import command as apply
from jail.cli.changes import command as changes
from jail.cli.discard import command as discard
from jail.cli.held import CONFLICT_LINES, named, show_left, show_nothing
from jail.errors import JailError
from jail.hold import review
from jail.ledger.review import ReviewLedger
from support.changed import held_session
from support.ledgers import state_in, write


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return [write(state_in(tmp_path))[0].name for _ in range(2)]


@pytest.mark.parametrize(
    ("words", "which", "paths"),
    [
        ([], 1, ()),
        (["last"], 1, ()),
        (["FIRST"], 0, ()),
        (["FIRST", "a"], 0, ("a",)),
        (["BEGINNING", "a", "b"], 0, ("a", "b")),
        (["last", "last"], 1, ("last",)),
        (["a", "b"], 1, ("a", "b")),
        (["./last"], 1, ("./last",)),
        (["./FIRST"], 1, ("./FIRST",)),
        (["2x"], 1, ("2x",)),
        (["src/main.py"], 1, ("src/main.py",)),
    ],
)
def test_the_first_word_is_a_session_where_it_can_be_one(
    sessions: list[str], words: list[str], which: int, paths: tuple[str, ...]
) -> None:
    first = sessions[0]
    beginning = next(first[:n] for n in range(1, 30) if not sessions[1].startswith(first[:n]))
    said = {"FIRST": first, "BEGINNING": beginning}
    found = named(tuple(said.get(word, word) for word in words))
    assert Path(found.folder).name == sessions[which]
    assert found[1:] == (paths, None, 0)


@pytest.mark.parametrize("word", ["20200101-000000-00000000", "-", "2"])
def test_a_session_that_is_not_there_or_not_one_is_an_error(sessions: list[str], word: str) -> None:
    with pytest.raises(JailError):
        named((word,))


def test_before_the_first_session_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(JailError, match="no session"):
        named(())


def test_without_a_name_the_newest_with_changes_of_this_workspace_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = state_in(tmp_path)
    here, there = (held_session(state, tmp_path / name, {}, {"a": b""}).folder for name in ("ws", "other"))
    last = write(state)[0]
    (tmp_path / "ws" / "in it").mkdir()
    expected = {"ws": here, "ws/in it": here, "other": there, ".": last}
    for place, folder in expected.items():
        monkeypatch.chdir(tmp_path / place)
        for words in ((), ("a",)):
            found = named(words)
            assert found[:2] == (str(folder), words), place
            assert (found.manifest is not None) == (folder != last)
        assert Path(named(("last",))[0]).name == last.name


def test_of_another_project_nothing_is_applied_that_was_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was held here is applied, and a run elsewhere has ended since."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = state_in(tmp_path)
    held_session(state, tmp_path / "ws", {}, {})
    there = held_session(state, tmp_path / "other", {}, {"a": b""}).folder
    monkeypatch.chdir(tmp_path / "ws")
    for words in ((), ("a",)):
        with pytest.raises(JailError, match="no session holds changes of the workspace") as caught:
            named(words)
        assert there.name in caught.value.hint
        assert named(words, reading=True).folder == str(there)
    assert named(("last",)).folder == named((there.name,)).folder == str(there)
    for command in (apply, discard):
        assert CliRunner().invoke(command, ()).exit_code == 1
        assert not (tmp_path / "other/a").exists()
        assert (there / "held/t0/upper/a").exists()


def test_of_several_with_changes_of_this_workspace_it_is_said_which_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = state_in(tmp_path)
    first = held_session(state, tmp_path / "ws", {}, {"a": b""}).folder
    monkeypatch.chdir(tmp_path / "ws")
    calls = ((changes, ()), (apply, ("--dry-run",)), (discard, ("--dry-run",)))
    for command, options in calls:
        assert "of this workspace" not in CliRunner().invoke(command, options).output
    write(state)
    told = f"session {first.name}, the newest with changes of this workspace"
    for command, options in calls:
        assert CliRunner().invoke(command, options).output.splitlines()[0] == told
    second = held_session(state, tmp_path / "ws", {}, {"a": b""}).folder
    held_session(state, tmp_path / "other", {}, {"a": b""})
    told = f"session {second.name}, the newest of 2 with changes of this workspace"
    for command, options in calls:
        assert CliRunner().invoke(command, options).output.splitlines()[0] == told
        for quiet in ("--json", first.name):
            assert told not in CliRunner().invoke(command, (*options, quiet)).output


def test_a_session_that_holds_nothing_is_said_with_the_one_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = state_in(tmp_path)
    holding = held_session(state, tmp_path / "ws", {}, {"a": b""})
    newest = write(state)[0]
    show_nothing(str(newest))
    assert capsys.readouterr().out.splitlines() == [
        f"session {newest.name} holds nothing: what its command wrote is in place",
        f"the newest that holds changes: jail changes {holding.folder.name}",
    ]


def test_a_session_that_another_went_on_from_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, _ = write(state_in(tmp_path))
    ledger = ReviewLedger.open(str(folder), folder.name)
    ledger.append("resumed", by="20261130-141502-k3f9x2ab")
    ledger.close()
    show_nothing(str(folder))
    assert (
        capsys.readouterr().out
        == f"session {folder.name} holds nothing: session 20261130-141502-k3f9x2ab went on from it\n"
    )


def test_of_a_long_conflict_the_beginning_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = held_session(state_in(tmp_path), tmp_path / "ws", {"a": b"old"}, {"a": b"x\n" * 500})
    (made.workspace / "a").write_bytes(b"mine\n")
    found = review.reviewed(str(made.folder))
    show_left(found, tuple((each, each.conflict) for each in found.changes))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"left: M a: {found.changes[0].conflict}"
    assert "    -mine" in lines
    assert lines[-1] == "    … and more: jail changes --diff shows all"
    assert len(lines) == CONFLICT_LINES + 2
