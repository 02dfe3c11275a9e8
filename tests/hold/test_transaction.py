"""One apply as a whole: renames are both or neither, a folder is there for what is in it, a list is as it was chosen."""

import os
from pathlib import Path

import pytest

from support.holding import Holding, lay, reasons, seen


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def test_a_rename_is_both_or_neither(held: Holding) -> None:
    lay(held.tree, {"one": "1", "two": "2"})
    held.begin()
    for source, path in (("one", "one-moved"), ("two", "two-moved")):
        lay(held.upper, {path: (held.tree / source).read_text()})
        held.whiteout(source)
    chosen = [held.change("one-moved", source="one"), held.change("two-moved", source="two")]
    (held.tree / "two-moved").write_text("the host's")
    applied = held.apply(chosen)
    assert seen(held.tree) == {"one-moved": "1", "two": "2", "two-moved": "the host's"}
    assert set(reasons(applied.conflicts)) == {"two-moved"}


def test_what_changed_in_the_session_since_the_list_is_refused(held: Holding) -> None:
    held.begin()
    lay(held.upper, {"file": "listed", "link": "→listed"})
    chosen = held.every()
    (held.upper / "file").write_text("swappd")
    (held.upper / "link").unlink()
    (held.upper / "link").symlink_to("swapped")
    assert set(reasons(held.apply(chosen).conflicts)) == {"file", "link"}
    assert os.listdir(held.tree) == []


def test_a_folder_that_is_not_chosen_takes_what_is_in_it_along(held: Holding) -> None:
    held.begin()
    lay(held.upper, {"new/file": "x"})
    applied = held.apply([held.change("new/file")])
    assert "is not applied with it" in reasons(applied.conflicts)["new/file"]
    assert os.listdir(held.tree) == []


@pytest.mark.root
def test_root_gives_each_path_the_owner_of_its_place(held: Holding) -> None:
    lay(held.tree, {"theirs/file": "old", "file": "old"})
    for path, owner in {"theirs": 1234, "theirs/file": 2345, "file": 3456, ".": 4567}.items():
        os.chown(held.tree / path, owner, owner)
    held.begin()
    lay(held.upper, {"theirs/file": "new", "theirs/new/sub": "new", "file": "new", "new": "→x"})
    assert held.apply().conflicts == ()
    owners = {str(path.relative_to(held.tree)): path.lstat().st_uid for path in held.tree.rglob("*")}
    assert owners == {
        "theirs": 1234,
        "theirs/file": 2345,
        "theirs/new": 1234,
        "theirs/new/sub": 1234,
        "file": 3456,
        "new": 4567,
    }
