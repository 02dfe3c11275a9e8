"""Digests of contents: sha256sum's for ordinary files, and what is in them for sparse ones."""

import hashlib
import os
from pathlib import Path

import pytest

from jail.hold import digests

MIB = 1 << 20


def made(path: Path, size: int, **data: bytes) -> int:
    """A file of `size` bytes that is a hole but for the data at the offsets `atN`."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, size)
    for at, content in data.items():
        os.pwrite(fd, content, int(at.removeprefix("at")))
    return fd


def digest(fd: int, like: str = "") -> str:
    return digests.of_file(fd, os.fstat(fd).st_size, like)


@pytest.mark.parametrize("content", [b"", b"x", bytes(5000), b"x" * MIB, b"ab" * MIB])
def test_an_ordinary_file_has_the_digest_that_sha256sum_prints(tmp_path: Path, content: bytes) -> None:
    fd = made(tmp_path / "f", 0, at0=content)
    assert digest(fd) == hashlib.sha256(content).hexdigest()
    os.close(fd)


def test_a_sparse_file_is_told_by_what_is_in_it_wherever_its_holes_are(tmp_path: Path) -> None:
    one = made(tmp_path / "one", 8 * MIB, at5000000=b"middle", at0=b"start")
    same = made(tmp_path / "same", 8 * MIB, at0=b"start" + bytes(6 * MIB))
    os.pwrite(same, b"middle", 5_000_000)
    assert digest(one).startswith(digests.CELLS)
    assert digest(one) == digest(same)
    for other in (
        made(tmp_path / "moved", 8 * MIB, at5000001=b"middle", at0=b"start"),
        made(tmp_path / "longer", 8 * MIB + 1, at5000000=b"middle", at0=b"start"),
        made(tmp_path / "other", 8 * MIB, at5000000=b"muddle", at0=b"start"),
        made(tmp_path / "less", 8 * MIB, at5000000=b"middle"),
    ):
        assert digest(other).startswith(digests.CELLS)
        assert digest(other) != digest(one)
        os.close(other)
    os.close(one)
    os.close(same)


def test_the_form_of_another_digest_can_be_asked_for(tmp_path: Path) -> None:
    sparse = made(tmp_path / "sparse", 2 * MIB, at0=b"x")
    dense = made(tmp_path / "dense", 0, at0=b"x" + bytes(2 * MIB - 1))
    plain = hashlib.sha256(b"x" + bytes(2 * MIB - 1)).hexdigest()
    assert (digest(dense), digest(sparse, like=digest(dense))) == (plain, plain)
    assert digest(sparse) == digest(dense, like=digest(sparse)) != plain
    os.close(sparse)
    os.close(dense)


def test_eight_terabytes_of_nothing_cost_nothing(tmp_path: Path) -> None:
    fd = made(tmp_path / "f", 1 << 43, at8000000000000=b"x")
    assert len(digest(fd)) == len(digests.CELLS) + 64
    os.close(fd)


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = made(tmp_path / "f", 0, at0=b"x" * 3 * MIB)
    monkeypatch.setattr(digests, "DIGEST_BYTES", 3 * MIB)
    assert not digest(fd).startswith(digests.CELLS)
    monkeypatch.setattr(digests, "DIGEST_BYTES", 3 * MIB - 1)
    assert digest(fd).startswith(digests.CELLS)
    monkeypatch.setattr(digests, "DATA_BYTES", 3 * MIB - 1)
    assert digest(fd) == ""
    os.close(fd)


def test_a_target_is_digested_as_bytes() -> None:
    assert digests.of_target("a/\udcff") == hashlib.sha256(b"a/\xff").hexdigest()
