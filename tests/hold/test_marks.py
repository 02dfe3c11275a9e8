"""The marks of an upper layer: made as the kernel makes them, and told from what only looks like one."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.hold import marks


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_a_whiteout_is_a_device_and_nothing_else_is_one(folder: int, tmp_path: Path) -> None:
    marks.make_whiteout(folder, "gone")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    told = {each.name: marks.is_whiteout(each.lstat()) for each in tmp_path.iterdir()}
    assert told == {"gone": True, "fifo": False, "empty": False}
    assert not marks.is_whiteout(os.stat("/dev/null"))
    with pytest.raises(FileExistsError):
        marks.make_whiteout(folder, "empty")


def test_a_folder_hides_what_is_beneath_it_until_it_shows_it(folder: int, tmp_path: Path) -> None:
    assert not marks.is_opaque(folder)
    marks.hide(folder)
    assert marks.is_opaque(folder)
    assert os.getxattr(tmp_path, "user.overlay.opaque") == b"y"
    marks.show(folder)
    assert not marks.is_opaque(folder)
    os.setxattr(tmp_path, "user.overlay.opaque", b"x")  # overlayfs.rst: of xwhiteouts, and not opaque
    assert not marks.is_opaque(folder)


@pytest.mark.parametrize("number", [errno.ENODATA, errno.EOPNOTSUPP, errno.EIO, errno.EACCES])
def test_a_mark_that_cannot_be_read_is_not_taken_for_none(
    folder: int, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def failing(*_: object) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "getxattr", failing)
    if number in (errno.ENODATA, errno.EOPNOTSUPP):
        assert not marks.is_opaque(folder)
        return
    with pytest.raises(OSError, match=os.strerror(number)):
        marks.is_opaque(folder)
