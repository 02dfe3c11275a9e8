"""What is kept comes back; whatever is odd about it does not."""

import os
import stat
from pathlib import Path

import pytest

from jail.kernel import cache

KEY = cache.key("one", "two")
BODY = b"an artefact" * 10
HEAD = 77


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def kept(folder: Path) -> Path:
    cache.write(str(folder), "artefact", KEY, BODY)
    assert cache.read(str(folder), "artefact", KEY) == BODY
    (found,) = folder.iterdir()
    return found


def test_no_two_lists_of_parts_have_one_key() -> None:
    assert len({cache.key("a", "b"), cache.key("ab"), cache.key("a", "", "b"), cache.key("b", "a")}) == 4


def test_file_and_folder_are_for_us_alone(kept: Path) -> None:
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_a_strange_umask_changes_nothing(folder: Path) -> None:
    before = os.umask(0o277)
    try:
        folder.mkdir()
        folder.chmod(0o700)
        cache.write(str(folder), "artefact", KEY, BODY)
    finally:
        os.umask(before)
    assert cache.read(str(folder), "artefact", KEY) == BODY


ODD = {
    "empty": b"",
    "torn": lambda good: good[:-8],
    "longer": lambda good: good + bytes(8),
    "one bit of the body": lambda good: good[:-3] + bytes([good[-3] ^ 1]) + good[-2:],
    "one bit of the key": lambda good: good[:20] + bytes([good[20] ^ 1]) + good[21:],
    "one bit of the digest": lambda good: good[:60] + bytes([good[60] ^ 1]) + good[61:],
    "another body": lambda good: good[:HEAD] + b"allow all",
    "huge": lambda good: good + bytes(cache.LARGEST),
}


@pytest.mark.parametrize("oddity", ODD)
def test_odd_contents_are_nothing(folder: Path, kept: Path, oddity: str) -> None:
    make = ODD[oddity]
    kept.write_bytes(make if isinstance(make, bytes) else make(kept.read_bytes()))
    assert cache.read(str(folder), "artefact", KEY) is None


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602, 0o400, 0o4600])
def test_a_file_of_another_mode_is_nothing(folder: Path, kept: Path, mode: int) -> None:
    kept.chmod(mode)
    assert cache.read(str(folder), "artefact", KEY) is None


def test_a_link_a_second_name_or_a_pipe_in_its_place_is_nothing(folder: Path, kept: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert cache.read(str(folder), "artefact", KEY) is None
    kept.unlink()
    os.link(elsewhere, kept)
    assert cache.read(str(folder), "artefact", KEY) is None
    kept.unlink()
    os.mkfifo(kept, 0o600)
    assert cache.read(str(folder), "artefact", KEY) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o702])
def test_a_folder_that_others_may_write_is_not_used(folder: Path, kept: Path, mode: int) -> None:
    before = kept.read_bytes()
    folder.chmod(mode)
    assert cache.read(str(folder), "artefact", KEY) is None
    cache.write(str(folder), "artefact", KEY, b"other")
    assert [path.read_bytes() for path in folder.iterdir()] == [before]


def test_a_folder_that_is_a_link_or_cannot_be_made_is_not_used(folder: Path, kept: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    for path in (link, kept / "below a file", Path("/proc/nowhere")):
        assert cache.read(str(path), "artefact", KEY) is None
        cache.write(str(path), "artefact", KEY, b"other")
    assert cache.read(str(folder), "artefact", KEY) == BODY


def test_a_full_disk_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.os, "write", lambda *_: 10)
    cache.write(str(folder), "artefact", KEY, BODY)
    assert list(folder.iterdir()) == []


def test_an_edited_module_is_another_generation(tmp_path: Path) -> None:
    module = tmp_path / "rules.py"
    module.write_text("one")
    os.utime(module, ns=(1, 1))
    first = cache.generation(str(tmp_path), ("rules.py", "absent.py"))
    os.utime(module, ns=(2, 2))
    assert cache.generation(str(tmp_path), ("rules.py", "absent.py")) != first
