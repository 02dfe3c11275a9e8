"""Applying what a session holds: the tree becomes what was chosen, whatever names, links and hosts do."""

import os
from pathlib import Path

import pytest

from jail.hold import change
from support.holding import Holding, lay, reasons, seen

BEFORE = {
    "kept": "kept",
    "changed": "old",
    "deleted": "old",
    "to-folder": "old",
    "to-file/in": "old",
    "to-file/sub/in": "old",
    "link": "→kept",
    "dir/a": "a",
    "dir/b": "b",
    "gone/sub/x": "x",
}
AFTER = {
    "kept": "kept",
    "changed": "new",
    "to-folder": None,
    "to-folder/in": "new",
    "to-file": "new",
    "link": "→/etc/shadow",
    "dir": None,
    "dir/a": "a",
    "new": None,
    "new/sub": None,
    "new/sub/file": "new",
    "new/-rf": "x",
    "empty": None,
}


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def all_kinds(held: Holding) -> Holding:
    """A tree and changes of every kind."""
    lay(held.tree, BEFORE)
    held.begin()
    lay(held.upper, {"changed": "new", "to-folder/in": "new", "to-file": "new", "link": "→/etc/shadow"})
    lay(held.upper, {"new/sub/file": "new", "new/-rf": "x", "empty": None})
    for path in ("deleted", "dir/b", "gone"):
        held.whiteout(path)
    return held


def test_every_kind_of_change_arrives_and_nothing_of_the_apply_is_left(held: Holding) -> None:
    all_kinds(held)
    applied = held.apply()
    assert (reasons(applied.conflicts), applied.problem) == ({}, "")
    assert seen(held.tree) == AFTER
    assert held.left() == []
    assert {kind for kind, _, _ in held.said} == {"applied"}
    assert len(held.said) == len(applied.done) == 18
    assert list(held.upper.rglob("*")) == []


def test_a_second_apply_of_the_same_list_changes_nothing(held: Holding) -> None:
    chosen = all_kinds(held).every()
    held.apply(chosen)
    before = {path: path.lstat().st_ino for path in held.tree.rglob("*")}
    again = held.apply([each for each in chosen if each.what != change.ADDED])
    assert seen(held.tree) == AFTER
    assert before == {path: path.lstat().st_ino for path in held.tree.rglob("*")}
    assert {each.path for each in again.conflicts} <= {
        "changed",
        "to-file",
        "link",
        "to-folder",
        "to-file/in",
        "to-file/sub",
        "to-file/sub/in",
    }
    assert held.left() == []


def test_what_is_not_chosen_stays_in_the_session(held: Holding) -> None:
    all_kinds(held)
    held.apply([held.change("changed"), held.change("dir/b")])
    assert seen(held.tree) == {**seen_before(), "changed": "new"}
    assert not (held.upper / "changed").exists()
    assert not (held.upper / "dir").exists()
    assert seen(held.upper)["new/sub/file"] == "new"


def seen_before() -> dict[str, str | None]:
    folders = {str(above) for name in BEFORE for above in Path(name).parents if str(above) != "."}
    return {**dict.fromkeys(folders), **{name: text for name, text in BEFORE.items() if name != "dir/b"}}


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


# --- what a name can be -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["-rf", "new\nline", "\udcff\udcfe", "\u202etxt", " ", "*", "x" * 255, ".jail-apply"]
)
def test_hostile_names_are_names(held: Holding, name: str) -> None:
    lay(held.upper, {name: "new", f"d/{name}": "new"})
    assert held.begin().apply().conflicts == ()
    assert seen(held.tree) == {name: "new", "d": None, f"d/{name}": "new"}


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc/x", "a//b", "./a", ".jail-apply-1/x"])
def test_a_path_that_is_none_is_refused(held: Holding, path: str) -> None:
    lay(held.upper, {"x": "new"})
    forged = held.begin().change("x")._replace(path=path)
    assert set(reasons(held.apply([forged]).conflicts)) == {path}
    assert seen(held.tree) == {}
    assert os.listdir(held.tree.parent) == ["ws", "session"] or len(os.listdir(held.tree.parent)) == 2


def test_a_path_longer_than_path_max_is_applied_and_dropped(held: Holding) -> None:
    name, depth = "d" * 250, 20
    fd = os.open(held.begin().upper, os.O_PATH)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    top = held.change(name)
    applied = held.apply([top._replace(path="/".join([name] * level)) for level in range(1, depth + 1)])
    assert (len(applied.done), applied.conflicts, applied.problem) == (depth, (), "")
    assert held.left() == []
    assert os.listdir(held.upper) == []
