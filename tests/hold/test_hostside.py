"""The host's side of a held tree, asked for one path after the other."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.hold import opening
from jail.hold.hostside import HostSide


@pytest.fixture
def side(tmp_path: Path) -> Iterator[HostSide]:
    (tmp_path / "here/deep").mkdir(parents=True)
    (tmp_path / "here/deep/file").write_text("x")
    (tmp_path / "link").symlink_to("here")
    found = HostSide(str(tmp_path), strict=True)
    yield found
    found.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was opened beneath a folder."""
    found: list[str] = []
    really = opening.open_below
    monkeypatch.setattr(
        opening, "open_below", lambda fd, path, flags: found.append(path) or really(fd, path, flags)
    )
    return found


def test_of_a_folder_that_is_not_there_nothing_is_asked_again(side: HostSide, opened: list[str]) -> None:
    assert side.stat("new") is None
    for name in range(100):
        assert side.stat(f"new/{name}") is None
        assert side.stat(f"new/deep/{name}") is None
    assert opened == []
    for name in range(100):
        assert side.stat(f"here/new/deep/{name}") is None
    assert opened == ["here/new/deep"]


def test_what_is_beside_a_missing_folder_is_found(side: HostSide) -> None:
    assert side.stat("her") is None
    assert side.stat("here/deep/fil") is None
    assert side.stat("here/deep/file") is not None
    assert side.stat("link/deep") is None, "no symlink is followed"
    assert side.stat("link") is not None
    assert side.stat("here") is not None
    assert side.names("here") == ["deep"]


def test_of_a_tree_that_is_not_there_nothing_is(tmp_path: Path) -> None:
    side = HostSide(str(tmp_path / "absent"), strict=True)
    assert (side.stat(""), side.stat("a"), side.names("")) == (None, None, [])
    side.close()
    assert os.listdir(tmp_path) == []
