"""A file's content copied and digested in one reading, its holes kept."""

import hashlib
import os
from pathlib import Path

import pytest

from jail.hold import content, digests

FILES = {
    "empty": [],
    "small": [(0, b"small")],
    "a hole first": [(1 << 20, b"end")],
    "a hole last": [(0, b"start"), (3 << 20, b"")],
    "holes between": [(0, b"a" * 5000), (1 << 21, b"b" * 5000), (5 << 20, b"c")],
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("like", ["", digests.CELLS])
def test_the_copy_is_equal_and_as_sparse(tmp_path: Path, name: str, like: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for at, piece in FILES[name]:
            file.seek(at)
            file.write(piece)
        file.truncate(max([at + len(piece) for at, piece in FILES[name]], default=0))
    ours, theirs = os.open(source, os.O_RDONLY), os.open(target, os.O_RDWR | os.O_CREAT)
    digest = content.copy(ours, theirs, like)
    whole = source.read_bytes()
    assert target.read_bytes() == whole
    assert target.stat().st_blocks <= source.stat().st_blocks
    assert digest == (digests.of_file(ours, len(whole), like) if like else hashlib.sha256(whole).hexdigest())
    os.close(ours)
    os.close(theirs)
