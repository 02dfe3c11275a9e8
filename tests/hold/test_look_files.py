"""What changed in a held file, which has no tree around it: it is compared by its content."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.hold import look, store
from jail.plan.held import FILE, GIT_CONFIG, Held
from support.looking import digest, told, wipe, write


class Sides(NamedTuple):
    """Where a held file is."""

    new: Path
    host: Path


CONFIG: dict[str, tuple[Callable[[Sides], object], list[str]]] = {
    "nothing": (lambda at: at.new.read_text(), []),
    "touched": (lambda at: (os.utime(at.new), os.chmod(at.new, 0o600)), []),
    "a key": (lambda at: at.new.write_text("[a]\nb = 1\n"), ["S "]),
    "a key, and another on the host": (
        lambda at: (at.new.write_text("[a]\nb = 1\n"), write(at.host, "[c]\n")),
        ["S "],
    ),
    "the same on the host": (lambda at: (at.new.write_text("x"), write(at.host, "x")), []),
    "deleted": (lambda at: at.new.unlink(), ["D "]),
    "a link": (lambda at: (at.new.unlink(), at.new.symlink_to("/etc/passwd")), ["T "]),
    "a pipe": (lambda at: (at.new.unlink(), os.mkfifo(at.new)), ["T "]),
    "closed": (lambda at: (at.new.write_text("x"), at.new.chmod(0)), ["S "]),
    "gone from the host": (lambda at: (at.new.write_text("x"), at.host.unlink()), [f"S : {look.VANISHED}"]),
    "with its folder": (lambda at: (at.new.write_text("x"), wipe(at.host.parent)), [f"S : {look.VANISHED}"]),
    "a link on the host": (
        lambda at: (at.new.write_text("x"), at.host.unlink(), at.host.symlink_to("/etc/passwd")),
        [f"S : {look.CHANGED}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("act", CONFIG)
def test_a_held_file_is_compared_by_its_content(tmp_path: Path, act: str) -> None:
    do, expected = CONFIG[act]
    host = tmp_path / "repository/config"
    host.parent.mkdir()
    thing = Held("f0", FILE, str(host), "a test", GIT_CONFIG)
    manifest = store.Manifest("s", str(tmp_path), 0, 0, -1, 0, (), (thing,))
    assert list(look.changes(str(tmp_path), manifest)) == []
    new = tmp_path / "held/files/f0/config"
    new.parent.mkdir(parents=True)
    base_file = tmp_path / "held/base/f0"
    base_file.parent.mkdir()
    for path in (host, new, base_file):
        path.write_text("[core]\n")
    do(Sides(new, host))
    changes = list(look.changes(str(tmp_path), manifest))
    assert told(changes) == expected
    assert all(each.old == each.old._replace(kind="file", digest=digest("[core]\n")) for each in changes)
    if expected:
        base_file.unlink()
        assert all(each.conflict == look.NOT_WHOLE for each in look.changes(str(tmp_path), manifest))


PLAIN: dict[str, tuple[Callable[[Sides], object], list[str]]] = {
    "changed": (lambda at: at.new.write_text("x"), ["M "]),
    "another on the host": (
        lambda at: (at.new.write_text("x"), write(at.host, "y")),
        [f"M : {look.CHANGED}"],
    ),
    "the same on the host": (lambda at: (at.new.write_text("x"), write(at.host, "x")), []),
    "git obeys it": (lambda at: (at.new.write_text("x"), write(at.host.parent / "HEAD", "")), ["S "]),
}


@pytest.mark.parametrize("act", PLAIN)
def test_a_file_that_a_rule_holds_is_a_whole_unless_git_obeys_it(tmp_path: Path, act: str) -> None:
    do, expected = PLAIN[act]
    sides = Sides(tmp_path / "held/files/f0/config", tmp_path / "repository/config")
    base_file = tmp_path / "held/base/f0"
    for path in (*sides, base_file):
        path.parent.mkdir(parents=True)
        path.write_text("fact\n")
    do(sides)
    thing = Held("f0", FILE, str(sides.host), "a test")
    manifest = store.Manifest("s", str(tmp_path), 0, 0, -1, 0, (), (thing,))
    assert told(list(look.changes(str(tmp_path), manifest))) == expected
