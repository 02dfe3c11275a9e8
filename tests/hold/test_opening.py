"""Both sides of a held thing are opened beneath it: regular files only, and through no link."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.hold import opening
from jail.plan.held import COPY, FILE, OVERLAY, Held
from support.overlays import deepen, in_memory

SIDES = pytest.mark.parametrize("side", ["new", "host"])
Open = Callable[[str], int]


def opener(tmp_path: Path, side: str) -> tuple[Path, Open, Callable[[str], str]]:
    """The folder of one side of a held tree, and what opens and reads its names."""
    thing = Held("t0", OVERLAY, str(tmp_path / "tree"), "a test")
    top = tmp_path / ("tree" if side == "host" else "held/t0/upper")
    top.mkdir(parents=True)
    if side == "host":
        return (
            top,
            lambda path: opening.open_host(thing, path),
            lambda path: opening.link_host(thing, path),
        )
    return (
        top,
        lambda path: opening.open_new(str(tmp_path), thing, path),
        lambda path: opening.link_new(str(tmp_path), thing, path),
    )


@SIDES
def test_a_regular_file_is_opened_whatever_its_name_and_bits(tmp_path: Path, side: str) -> None:
    top, opened, _ = opener(tmp_path, side)
    for name in ("plain", "new\nline", "\udcff", "-rf"):
        (top / "d").mkdir(exist_ok=True)
        (top / "d" / name).write_text("x")
        os.chmod(top / "d" / name, 0)
        fd = opened(f"d/{name}")
        assert os.read(fd, 10) == b"x"
        assert not os.get_inheritable(fd)
        os.close(fd)
        assert (top / "d" / name).stat().st_mode & 0o777 == 0


def error_of(opened: Open, path: str) -> int | None:
    try:
        fd = opened(path)
    except OSError as error:
        return error.errno
    os.close(fd)
    return None


@SIDES
def test_nothing_leads_out_and_nothing_else_is_opened(tmp_path: Path, side: str) -> None:
    top, opened, _ = opener(tmp_path, side)
    (tmp_path / "outside").write_text("secret")
    (top / "folder").mkdir()
    os.mkfifo(top / "pipe")
    (top / "link").symlink_to(tmp_path / "outside")
    (top / "up").symlink_to(tmp_path)
    (top / "self").symlink_to("folder")
    (top / "folder/f").write_text("x")
    refused = {
        "folder": errno.ESTALE,
        "pipe": errno.ESTALE,
        "link": errno.ESTALE,
        "up/outside": errno.ELOOP,
        "self/f": errno.ELOOP,
        "../outside": errno.EXDEV,
        str(tmp_path / "outside"): errno.EXDEV,
        "absent": errno.ENOENT,
        "": errno.ESTALE,
    }
    for path, expected in refused.items():
        assert error_of(opened, path) == expected, path


@SIDES
def test_a_link_is_read_and_not_followed(tmp_path: Path, side: str) -> None:
    top, _, target = opener(tmp_path, side)
    (top / "d").mkdir()
    (top / "d/link").symlink_to("/etc/\udcff")
    assert target("d/link") == "/etc/\udcff"
    os.chmod(top / "d", 0)
    assert target("d/link") == "/etc/\udcff"
    os.chmod(top / "d", 0o700)


def test_a_path_may_be_longer_than_the_kernel_takes() -> None:
    with in_memory() as folder:
        deepen(folder, 2_100)
        top = opening.open_top(str(folder))
        fd = opening.open_below(top, "d/" * 2_100 + "leaf", os.O_RDONLY)
        assert os.fstat(fd).st_size == 0
        os.close(fd)
        os.close(top)


def test_each_kind_of_thing_has_its_folder_and_its_names() -> None:
    rows = [
        (Held("t0", OVERLAY, "/w/tree", ""), "/s/held/t0/upper", "/w/tree", "a/b"),
        (Held("t1", COPY, "/w/tree", ""), "/s/held/t1/tree", "/w/tree", "a/b"),
        (Held("f0", FILE, "/w/.git/config", ""), "/s/held/files/f0", "/w/.git", "config"),
    ]
    for thing, new, host, name in rows:
        assert opening.new_top("/s", thing) == new
        assert opening.host_top(thing) == host
        assert opening.name_in(thing, "" if thing.kind == FILE else "a/b") == name
