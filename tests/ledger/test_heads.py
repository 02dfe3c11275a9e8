import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.ledger import heads

SESSION = "20261130-141502-k3f9x2ab"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sessions" / SESSION
    made.mkdir(parents=True)
    return made


@pytest.fixture
def folder_fd(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY)


def test_a_head_is_put_into_place_whole_and_private(folder: Path, folder_fd: int) -> None:
    heads.put_head(folder_fd, str(folder), SESSION, 3, "ab")
    assert json.loads((folder / "head").read_bytes()) == {"hash": "ab", "seq": 3, "session": SESSION}
    assert os.listdir(folder) == ["head"]
    assert (folder / "head").stat().st_mode & 0o077 == 0
    os.close(folder_fd)


def test_a_head_that_cannot_be_written_is_an_error_with_its_errno(folder: Path, folder_fd: int) -> None:
    (folder / "head.new").symlink_to("elsewhere")
    with pytest.raises(JailError, match="head file") as caught:
        heads.put_head(folder_fd, str(folder), SESSION, 3, "ab")
    assert caught.value.where == f"{folder}/head (EEXIST)"
    os.close(folder_fd)


def test_the_index_lies_one_folder_higher_and_only_grows(folder: Path, folder_fd: int) -> None:
    heads.add_to_index(folder_fd, str(folder), SESSION, 0, "ab")
    heads.add_to_index(folder_fd, str(folder), SESSION, 7, "cd")
    found = [json.loads(line) for line in (folder.parent / "heads.jsonl").read_bytes().splitlines()]
    assert [(line["session"], line["seq"], line["hash"]) for line in found] == [
        (SESSION, 0, "ab"),
        (SESSION, 7, "cd"),
    ]
    assert (folder.parent / "heads.jsonl").stat().st_mode & 0o077 == 0
    os.close(folder_fd)


def test_half_a_line_of_a_killed_writer_does_not_swallow_the_next(folder: Path, folder_fd: int) -> None:
    index = folder.parent / "heads.jsonl"
    index.write_bytes(b'{"hash":"ab","se')
    heads.add_to_index(folder_fd, str(folder), SESSION, 0, "ab")
    half, line = index.read_bytes().splitlines()
    assert half == b'{"hash":"ab","se'
    assert json.loads(line)["seq"] == 0
    os.close(folder_fd)


def test_a_stopped_holder_of_the_index_lock_does_not_stop_a_launch_for_ever(
    folder: Path, folder_fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "INDEX_WAIT_S", 0.05)
    holder = os.open(folder.parent / "heads.jsonl", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(JailError, match="index of sessions") as caught:
        heads.add_to_index(folder_fd, str(folder), SESSION, 0, "ab")
    assert "EAGAIN" in caught.value.where
    os.close(holder)
    heads.add_to_index(folder_fd, str(folder), SESSION, 0, "ab")
    os.close(folder_fd)


def test_a_link_in_place_of_the_index_is_not_followed(tmp_path: Path, folder: Path, folder_fd: int) -> None:
    (folder.parent / "heads.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(JailError, match="index of sessions"):
        heads.add_to_index(folder_fd, str(folder), SESSION, 0, "ab")
    assert not (tmp_path / "target").exists()
    os.close(folder_fd)


def test_many_sessions_at_once_leave_only_whole_lines(folder: Path) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from jail.ledger import heads\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for n in range(50): heads.add_to_index(fd, sys.argv[1], sys.argv[3], n, 'ab')"
    )
    checkout = str(Path(heads.__file__).parents[2])
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), checkout, f"s{number}"])
        for number in range(4)
    ]
    assert [child.wait() for child in children] == [0] * 4
    found = [json.loads(line) for line in (folder.parent / "heads.jsonl").read_bytes().splitlines()]
    assert sorted((line["session"], line["seq"]) for line in found) == [
        (f"s{number}", n) for number in range(4) for n in range(50)
    ]
