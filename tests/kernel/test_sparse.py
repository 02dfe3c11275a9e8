"""Files with holes: their data are found and copied, and the holes are neither read nor filled."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.kernel import sparse

TERABYTES = 8 << 40


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[int, int]]:
    source = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    target = os.open(tmp_path / "b", os.O_RDWR | os.O_CREAT)
    yield source, target
    os.close(source)
    os.close(target)


def test_a_file_without_holes_is_all_data(two: tuple[int, int]) -> None:
    fd, _ = two
    assert list(sparse.pieces(fd, 0)) == []
    assert not sparse.has_holes(fd, 0)
    os.write(fd, b"x" * (sparse.PIECE + 5))
    assert list(sparse.pieces(fd, sparse.PIECE + 5)) == [(0, sparse.PIECE), (sparse.PIECE, 5)]
    assert list(sparse.pieces(fd, 7)) == [(0, 7)]
    assert not sparse.has_holes(fd, sparse.PIECE + 5)


def test_holes_of_terabytes_cost_nothing_and_stay(two: tuple[int, int]) -> None:
    fd, out = two
    os.ftruncate(fd, TERABYTES)
    os.pwrite(fd, b"middle", 4 << 40)
    assert sparse.has_holes(fd, TERABYTES)
    ((at, length),) = sparse.pieces(fd, TERABYTES)
    assert at <= 4 << 40 < at + length
    sparse.copy(fd, out, TERABYTES)
    copied = os.fstat(out)
    assert copied.st_size == TERABYTES
    assert copied.st_blocks * 512 <= 1 << 20
    assert os.pread(out, 6, 4 << 40) == b"middle"


def test_a_hole_alone_has_no_data(two: tuple[int, int]) -> None:
    fd, out = two
    os.ftruncate(fd, 5 << 20)
    assert list(sparse.pieces(fd, 5 << 20)) == []
    sparse.copy(fd, out, 5 << 20)
    assert os.fstat(out).st_size == 5 << 20
    assert os.fstat(out).st_blocks == 0
