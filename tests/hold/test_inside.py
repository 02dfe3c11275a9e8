"""What the command left is asked of the kernel no more often than it must be."""

import os
from pathlib import Path

import pytest

from jail.hold import inside


def test_a_name_is_looked_at_once_and_a_file_again_when_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in range(100):
        (tmp_path / f"file{name}").write_text("x")
        (tmp_path / f"link{name}").symlink_to("x")
    stats: list[object] = []
    stat, fstat = os.stat, os.fstat
    monkeypatch.setattr(os, "stat", lambda *args, **more: stats.append(args) or stat(*args, **more))
    monkeypatch.setattr(os, "fstat", lambda fd: stats.append(fd) or fstat(fd))
    top = os.open(tmp_path, os.O_RDONLY)
    left = inside.look(top, lambda *_: True)
    os.close(top)
    assert len(left.states) == 201
    assert 100 <= len(stats) < 110
