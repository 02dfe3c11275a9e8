"""The two sides of all things of a session, by absolute path."""

from pathlib import Path

import pytest

from jail.hold.merged import Merged
from jail.hold.sides import Sides
from jail.plan.held import FILE, Held
from support.changed import kept, spread, tree


@pytest.fixture
def merged(tmp_path: Path) -> Merged:
    """A held tree `ws/sub` with a held file in it, in a workspace that is not held."""
    top = tmp_path / "ws"
    things = (tree(str(top / "sub")), Held("f0", FILE, str(top / "beside"), "a file"))
    host: dict[str, bytes | str | None] = {
        "HEAD": b"",
        "objects": None,
        "beside": b"host",
        "sub/HEAD": b"host",
        "sub/link": "host",
        "sub/refs": None,
    }
    made = kept(tmp_path / "s", top, host, {"HEAD": b"new", "link": "new", "Objects/x": b""}, things=things)
    spread(made.folder / "held", {"files/f0/beside": b"new"})
    names = {thing.name: thing for thing in things}
    return Merged(names, {name: Sides(str(made.folder), thing) for name, thing in names.items()})


def test_a_held_path_has_two_sides_and_another_one(merged: Merged, tmp_path: Path) -> None:
    top = tmp_path / "ws"
    assert (merged.old(f"{top}/sub/HEAD"), merged.new(f"{top}/sub/HEAD")) == (b"host", b"new")
    assert (merged.old(f"{top}/beside"), merged.new(f"{top}/beside")) == (b"host", b"new")
    assert (merged.old(f"{top}/HEAD"), merged.new(f"{top}/HEAD")) == (b"", None)
    assert merged.targets(f"{top}/sub/link") == ("new", "host")
    assert merged.target(f"{top}/sub/link") == "new"
    assert [merged.holds(f"{top}/{name}") for name in ("sub", "sub/x", "beside", "HEAD")] == [
        True,
        True,
        True,
        False,
    ]


def test_the_names_of_a_git_dir_are_those_of_both_sides(merged: Merged, tmp_path: Path) -> None:
    top = tmp_path / "ws"
    assert merged.names(f"{top}/sub") == {"head", "objects", "refs"}
    assert merged.names(str(top)) == {"head", "objects"}
    assert merged.names(f"{top}/absent") == frozenset()


def test_what_the_host_has_is_told_through_closed_folders_too(merged: Merged, tmp_path: Path) -> None:
    top = tmp_path / "ws"
    assert [merged.kind(f"{top}/{name}") for name in ("sub", "beside", "sub/link", "none", "beside/x")] == [
        "folder",
        "file",
        "symlink",
        "absent",
        "absent",
    ]
    (top / "sub").chmod(0)
    try:
        assert merged.kind(f"{top}/sub/HEAD") == "file"
        assert sorted(merged.had(f"{top}/sub")) == ["HEAD", "link", "refs"]
        assert (top / "sub").stat().st_mode & 0o777 == 0
    finally:
        (top / "sub").chmod(0o700)
