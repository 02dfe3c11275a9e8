"""The two sides of a held thing, read through nothing that could lead elsewhere."""

import os
from pathlib import Path

import pytest

from jail.hold import sources
from jail.hold.sides import Sides
from jail.plan.held import COPY, FILE, Held
from support.changed import kept, spread, tree


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    host = {"a": b"host", "sub/b": b"host b", "link": "a", ".git/HEAD": b"", ".git/refs": None}
    new = {"a": b"new", "sub/b": b"new b", "link": "sub/b", "folder": None, ".git/objects": None}
    made = kept(tmp_path / "session", tmp_path / "ws", host, new)
    return Sides(str(made.folder), made.manifest.held[0])


def test_a_file_is_read_on_both_sides(sides: Sides) -> None:
    assert (sides.old("a"), sides.new("a")) == (b"host", b"new")
    assert (sides.old("sub/b"), sides.new("sub/b")) == (b"host b", b"new b")
    assert (sides.old_target("link"), sides.target("link")) == ("a", "sub/b")
    assert sides.base() is None


def test_of_other_kinds_there_is_no_content(sides: Sides, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session/held/t0/upper/pipe")
    for path in ("absent", "folder", "link", "pipe", "a/x", "x/y/z"):
        assert sides.new(path) is None, path
    for path in ("absent", "folder", "a"):
        assert sides.target(path) == "", path


def test_no_link_is_followed_on_the_way(sides: Sides, tmp_path: Path) -> None:
    upper = tmp_path / "session/held/t0/upper"
    spread(tmp_path / "outside", {"secret": b"secret", "link": "x"})
    for name, target in (("up", "../../../../outside"), ("away", f"{tmp_path}/outside")):
        (upper / name).symlink_to(target)
        assert (upper / name / "secret").read_bytes() == b"secret", "the control"
        assert sides.new(f"{name}/secret") is None
        assert sides.target(f"{name}/link") == ""
        assert sides.has(name) == []
    assert sides.new("../../../../outside/secret") is None


def test_what_is_too_long_is_not_read(sides: Sides, tmp_path: Path) -> None:
    path = tmp_path / "ws/long"
    path.touch()
    os.truncate(path, sources.MOST_BYTES)
    found = sides.old("long")
    assert found is not None
    assert len(found) == sources.MOST_BYTES
    os.truncate(path, sources.MOST_BYTES + 1)
    assert sides.old("long") is None


def test_the_names_in_a_folder_are_those_that_the_command_left(sides: Sides) -> None:
    assert sides.has(".git") == ["objects"]
    assert sides.has("a") == sides.has("absent") == []


def test_a_held_file_has_a_base_and_a_copied_tree_lies_elsewhere(tmp_path: Path) -> None:
    config = tmp_path / "ws/.git/config"
    things = [
        Held("f0", FILE, str(config), "settings of git", "git-config"),
        Held("t1", COPY, str(tmp_path / "ws/copied"), "a copy"),
        tree(str(tmp_path / "ws/absent"), "t2"),
    ]
    made = kept(
        tmp_path / "s", tmp_path / "ws", {".git/config": b"host", "copied/a": b"host a"}, things=things
    )
    spread(made.folder / "held", {"files/f0/config": b"new", "base/f0": b"base", "t1/tree/a": b"new a"})
    file, copied, absent = (Sides(str(made.folder), thing) for thing in things)
    assert (file.base(), file.old(""), file.new("")) == (b"base", b"host", b"new")
    assert (copied.old("a"), copied.new("a")) == (b"host a", b"new a")
    assert (absent.old("a"), absent.new("a"), absent.target("a"), absent.has("")) == (None, None, "", [])
