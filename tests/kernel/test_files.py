"""Reading small files of the kernel; tests of openat2 and rename are with those who use them."""

import os
from pathlib import Path

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
