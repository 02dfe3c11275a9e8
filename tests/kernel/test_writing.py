"""Files made and written."""

import os
from pathlib import Path

import pytest

from jail.kernel import writing


def test_a_file_is_made_emptied_or_gone_on_with_and_no_link_is_followed(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_PATH)

    def written(name: str, how: int, content: bytes) -> bytes:
        out = writing.create(name, how, folder=fd)
        writing.write_all(out, content)
        os.close(out)
        return (tmp_path / name).read_bytes()

    assert written("one", os.O_EXCL, b"first") == b"first"
    assert written("one", os.O_APPEND, b" and more") == b"first and more"
    assert written("one", os.O_TRUNC, b"anew") == b"anew"
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        writing.create("one", folder=fd)
    (tmp_path / "link").symlink_to("one")
    for how in (os.O_EXCL, os.O_APPEND, os.O_TRUNC):
        with pytest.raises(OSError, match="link"):
            writing.create("link", how, folder=fd)
    os.close(fd)
    assert (tmp_path / "one").read_bytes() == b"anew"


def test_all_is_written_though_the_system_takes_it_by_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    out = writing.create(str(tmp_path / "x"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, piece: real(fd, piece[:3]))
        writing.write_all(out, b"0123456789")
        writing.write_all(out, b"")
    os.close(out)
    assert (tmp_path / "x").read_bytes() == b"0123456789"
