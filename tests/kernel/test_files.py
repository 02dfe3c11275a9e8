"""Reading small files of the kernel; tests of openat2 and rename are with those who use them."""

import os
from pathlib import Path

import pytest

from jail.kernel import files


def test_all_of_a_file_is_read_and_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"\xff" + b"x" * (files._PIECE + 10))
    found = files.content(str(tmp_path / "long"))
    assert (len(found), found[0]) == (files._PIECE + 11, "\udcff")
    for absent in (tmp_path / "none", tmp_path, Path("/proc/self/mem")):
        assert files.content(str(absent)) == ""
    before = len(os.listdir("/proc/self/fd"))
    files.content(str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_two_names_change_places_in_one_step_and_both_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").mkdir()
    fd = os.open(tmp_path, os.O_RDONLY)
    files.exchange(fd, "one", fd, "two")
    assert ((tmp_path / "one").is_dir(), (tmp_path / "two").read_text()) == (True, "1")
    with pytest.raises(FileNotFoundError):
        files.exchange(fd, "one", fd, "three")
    files.sync(fd)
    os.close(fd)
    with pytest.raises(OSError, match="syncfs"):
        files.sync(fd)


def test_only_an_empty_folder_is_removed_and_all_else_is_left_or_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "in").mkdir(parents=True)
    (tmp_path / "file").touch()
    fd = os.open(tmp_path, os.O_PATH)
    assert files.remove_empty(fd, "empty")
    assert not files.remove_empty(fd, "full")
    for name, error in (("empty", FileNotFoundError), ("file", NotADirectoryError)):
        with pytest.raises(error):
            files.remove_empty(fd, name)
    os.close(fd)
    assert sorted(os.listdir(tmp_path)) == ["file", "full"]
