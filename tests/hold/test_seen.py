"""What stands on the host: known by inode, size and time, and the bits that it has or gets."""

import os
import stat
from pathlib import Path

import pytest

from jail.hold import look
from jail.hold.change import State
from jail.hold.seen import Seen, mode_for, same
from support.holding import Holding, lay, reasons


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def test_bits_that_nobody_gains_holes_times_and_attributes(held: Holding) -> None:
    held.begin()
    with (held.upper / "sparse").open("wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 29)
        file.write(b"data")
    lay(held.upper, {"setuid": "x", "folder/in": "x", "closed": "x", "shut/in": "x"})
    os.symlink("x", held.upper / "link")
    os.setxattr(held.upper / "setuid", "user.mark", b"x")
    for name, bits in {"setuid": 0o6777, "folder": 0o3777, "closed": 0, "shut": 0}.items():
        os.utime(held.upper / name, ns=(1, 10**18 + 123_456_789))
        os.chmod(held.upper / name, bits)
    os.utime(held.upper / "link", ns=(1, 10**18), follow_symlinks=False)
    chosen = list(look.changes(str(held.session), held.manifest))
    applied = held.apply(chosen)
    assert (reasons(applied.conflicts), applied.problem) == ({}, "")
    bits = {
        name: stat.S_IMODE((held.tree / name).stat().st_mode)
        for name in ("setuid", "folder", "closed", "shut")
    }
    assert bits == {"setuid": 0o775, "folder": 0o775, "closed": 0, "shut": 0}
    assert {(held.tree / name).stat().st_mtime_ns for name in bits} == {10**18 + 123_456_789}
    assert (held.tree / "link").lstat().st_mtime_ns == 10**18
    assert os.listxattr(held.tree / "setuid") == []
    assert (held.tree / "sparse").stat().st_blocks < 100
    assert (held.tree / "sparse").stat().st_size == 1 << 30
    (held.tree / "shut").chmod(0o700)
    assert (held.tree / "shut/in").read_text() == "x"
    assert held.left() == []


def test_bits_that_the_host_has_already_stay(held: Holding) -> None:
    lay(held.tree, {"folder/in": "x", "open": "x"})
    os.chmod(held.tree / "folder", 0o2775)
    os.chmod(held.tree / "open", 0o666)
    held.begin()
    lay(held.upper, {"folder": None, "open": "y"})
    os.chmod(held.upper / "folder", 0o2750)
    os.chmod(held.upper / "open", 0o666)
    held.apply([held.change("folder"), held.change("open")])
    assert stat.S_IMODE((held.tree / "folder").stat().st_mode) == 0o2750
    assert stat.S_IMODE((held.tree / "open").stat().st_mode) == 0o666


FILE = Seen("file", 7, 0o644, 3, 5)
OTHERS: dict[str, tuple[Seen, Seen | None, bool]] = {
    "the same": (FILE, FILE, True),
    "nothing": (FILE, None, False),
    "another file": (FILE, FILE._replace(inode=8), False),
    "other bits": (FILE, FILE._replace(mode=0o600), False),
    "another size": (FILE, FILE._replace(size=4), False),
    "another time": (FILE, FILE._replace(mtime_ns=6), False),
    "another kind with its number": (FILE, FILE._replace(kind="symlink"), False),
    "a folder in which something happened": (
        FILE._replace(kind="folder"),
        FILE._replace(kind="folder", mode=0o700, mtime_ns=6),
        True,
    ),
    "another folder": (FILE._replace(kind="folder"), FILE._replace(kind="folder", inode=8), False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_tells_that_it_is_still_the_same(name: str) -> None:
    before, after, expected = OTHERS[name]
    assert same(before, after) is expected


@pytest.mark.parametrize(
    ("kind", "new", "there", "expected"),
    [
        ("file", 0o7777, None, 0o775),
        ("file", 0o7777, Seen("file", 1, 0o7777, 0, 0), 0o777),
        ("folder", 0o7777, None, 0o775),
        ("folder", 0o7777, Seen("folder", 1, 0o7777, 0, 0), 0o3777),
        ("folder", 0o7777, Seen("file", 1, 0o7777, 0, 0), 0o775),
        ("file", 0o600, Seen("file", 1, 0o666, 0, 0), 0o600),
    ],
)
def test_no_bit_is_gained_that_the_same_kind_on_the_host_had_not(
    kind: str, new: int, there: Seen | None, expected: int
) -> None:
    assert mode_for(State(kind, new), there) == expected
