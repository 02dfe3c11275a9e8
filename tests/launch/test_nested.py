"""What is taken out of git dirs at the end of a run."""

import os
from pathlib import Path

import pytest

from jail.launch import nested, quarantine
from jail.launch.changes import Changed


def offence(folder: int, name: str) -> Changed:
    return Changed(f"sub/{name}", "file", "runs", "", offends=True, folder=folder, name=name)


def keeper(folder: Path) -> nested.Nested:
    folder.mkdir()
    return nested.Nested(os.open(folder, os.O_RDONLY), quarantine.KeptBack(1 << 20))


def test_each_is_taken_by_the_folder_that_it_lies_in(tmp_path: Path) -> None:
    (tmp_path / "sub/hooks").mkdir(parents=True)
    (tmp_path / "sub/hooks/x").write_text("x")
    folder = os.open(tmp_path / "sub", os.O_RDONLY)
    (tmp_path / "sub").rename(tmp_path / "moved")
    ours = keeper(tmp_path / "kept")
    taken = ours.take(offence(folder, "hooks/x"))
    assert taken is not None
    assert taken.how == "moved"
    assert ours.take(offence(folder, "hooks/x")) is None
    assert ours.take(offence(folder, "none/x")) is None
    assert ours.finish() == 0
    assert (tmp_path / "kept" / taken.kept).read_text() == "x"
    os.close(folder)


def test_what_is_more_than_is_kept_is_removed_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "KEPT", 1)
    (tmp_path / "sub").mkdir()
    folder = os.open(tmp_path / "sub", os.O_RDONLY)
    ours = keeper(tmp_path / "kept")
    for name in ("a", "b", "c"):
        (tmp_path / "sub" / name).write_text("x")
        assert ours.take(offence(folder, name)) is not None
    assert ours.finish() == 2
    assert os.listdir(folder) == []
    assert len(list((tmp_path / "kept").iterdir())) == 1
    os.close(folder)


@pytest.mark.parametrize(
    ("path", "tier", "told"),
    [
        ("CLAUDE.md", "refused", True),
        (".git/rebase-merge/git-rebase-todo", "warned", True),
        ("Makefile", "warned", False),
    ],
)
def test_the_end_speaks_of_what_nobody_expects(path: str, tier: str, told: bool) -> None:
    assert nested.is_told(Changed(path, "file", "", "", tier=tier)) is told
