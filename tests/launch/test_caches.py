"""The private caches on the host: whose they are, what is refused, and what is counted."""

import os
import time
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.kernel import files
from jail.launch import caches

NOBODY = (-1, -1)


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return f"{os.path.realpath(tmp_path)}/.cache/jail"


def test_each_workspace_and_uid_has_its_own_and_asking_makes_nothing(cache: str) -> None:
    asked = {caches.place(cache, workspace, uid) for workspace in ("/a", "/b") for uid in (1, 2)}
    assert len(asked) == 4
    assert all(path.startswith(f"{cache}/caches/") for path in asked)
    assert not os.path.exists(cache)


def test_it_is_made_once_and_kept(cache: str) -> None:
    folder = caches.place(cache, "/a", 1)
    first = caches.prepare(folder, "/a", NOBODY)
    Path(folder, "kept").write_text("x")
    assert caches.prepare(folder, "/a", NOBODY) == first
    assert Path(folder, "kept").exists()
    assert [Path(path).stat().st_mode & 0o777 for path in (folder, os.path.dirname(folder))] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300, 0o777, 0o2755])
def test_a_root_that_an_earlier_command_closed_or_opened_is_as_it_was_made(cache: str, mode: int) -> None:
    folder = caches.place(cache, "/a", 1)
    first = caches.prepare(folder, "/a", NOBODY)
    Path(folder, "kept").write_text("x")
    os.chmod(folder, mode)
    assert caches.prepare(folder, "/a", NOBODY) == first
    assert os.stat(folder).st_mode & 0o7777 == 0o700
    assert Path(folder, "kept").read_text() == "x"


def test_a_folder_that_was_made_later_at_the_same_path_has_another(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"

    def place() -> str:
        return caches.place(cache, str(workspace), 1)

    workspace.mkdir()
    first, inode = place(), workspace.stat().st_ino
    # The control: whatever else becomes of the folder, it is the same one.
    (workspace / "file").touch()
    workspace.chmod(0o750)
    os.utime(workspace, (1, 1))
    workspace.rename(tmp_path / "away")
    assert place() != first, "the folder is elsewhere"
    (tmp_path / "away").rename(workspace)
    assert place() == first
    (workspace / "file").unlink()
    workspace.rmdir()
    workspace.mkdir()
    again = workspace.stat().st_ino
    assert place() != first, (inode, again)
    # Where no file system says when, a folder is told by its inode.
    monkeypatch.setattr(files, "birth", lambda _: 0)
    second = place()
    (workspace / "file").touch()
    assert place() == second
    workspace.rename(tmp_path / "away")
    workspace.mkdir()
    assert place() != second


def test_the_birth_of_a_folder_is_when_it_was_made_whatever_became_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    before = time.time_ns() - 10**9  # what the kernel writes down may be a tick old
    folder.mkdir()
    born = files.birth(str(folder))
    assert before <= born <= time.time_ns()
    (folder / "x").touch()
    os.utime(folder, (1, 1))
    assert files.birth(str(folder)) == born
    assert files.birth("/proc") == 0, "a file system that does not say"
    with pytest.raises(FileNotFoundError):
        files.birth(f"{folder}/none")


def test_a_link_or_an_open_folder_in_its_place_is_refused(cache: str, tmp_path: Path) -> None:
    folder = caches.place(cache, "/a", 1)
    caches.prepare(folder, "/a", NOBODY)
    os.rmdir(folder)
    os.symlink(tmp_path, folder)
    with pytest.raises(JailError) as caught:
        caches.prepare(folder, "/a", NOBODY)
    assert caught.value.hint
    os.unlink(folder)
    os.chmod(os.path.dirname(folder), 0o777)
    with pytest.raises(JailError, match="cache"):
        caches.prepare(folder, "/a", NOBODY)


def test_there_is_none_where_others_may_write_or_nobody_can(cache: str, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "file").touch()
    assert caches.place(f"{open_to_all}/jail", "/a", 1) == ""
    assert caches.place(f"{tmp_path}/file/x/jail", "/a", 1) == ""
    assert caches.place("/proc/none/jail", "/a", 1) == ""
    os.makedirs(cache, 0o700)
    os.chmod(cache, 0o775)
    assert caches.place(cache, "/a", 1) == ""
    os.chmod(cache, 0o700)
    assert caches.place(cache, "/a", 1) != ""


@pytest.mark.root
def test_root_makes_it_for_the_owner_of_the_workspace(cache: str) -> None:
    folder = caches.place(cache, "/a", 1234)
    caches.prepare(folder, "/a", (1234, 1234))
    assert os.stat(folder).st_uid == 1234
    assert os.stat(os.path.dirname(folder)).st_uid == 0
