"""The trees that runs were given for writing: remembered once, by whole lines, within a bound, and read or refused."""

import os
import threading
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.ledger import written


@pytest.fixture
def state(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


def test_nothing_is_remembered_where_nothing_ran(state: str) -> None:
    assert written.read(f"{state}/none") == written.Trees()
    assert written.read(state) == written.Trees()


def test_each_tree_is_kept_once_whatever_its_name_is_made_of(state: str) -> None:
    trees = ["/home/ada/src", "/a\nb", "/a\\nb", "/a\\", "/\udcff", "/home/ada/src/deep"]
    written.remember(state, trees)
    written.remember(state, trees[:2])
    assert written.read(state).apart == set(trees)
    file = Path(state) / written.NAME
    assert len(file.read_bytes().splitlines()) == len(trees)
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(state) == [written.NAME], "nothing half written is left"


def test_what_is_known_is_not_written_again(state: str) -> None:
    written.remember(state, ["/a"])
    before = (Path(state) / written.NAME).stat()
    written.remember(state, ["/a"])
    assert (Path(state) / written.NAME).stat() == before


def test_sessions_that_start_at_once_forget_nothing_of_each_other(state: str) -> None:
    names = [f"/tree/{number}" for number in range(24)]
    threads = [threading.Thread(target=written.remember, args=(state, [name])) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert written.read(state).apart == set(names)


@pytest.mark.parametrize(
    ("lines", "most", "left"),
    [
        (["/a/1", "/b"], 2, ["/a/1", "/b"]),
        (["/a/1", "/a/2", "/b/1", "/c"], 3, ["/a/", "/b/1", "/c"]),
        (["/a/1", "/a/2", "/a/2/x", "/b/1"], 2, ["/a/", "/b/1"]),
        (["/a/", "/b/", "/c/d"], 2, ["/"]),
        (["/a", "/b", "/c"], 1, ["/"]),
    ],
)
def test_too_many_trees_are_folded_into_the_folder_that_holds_the_most(
    lines: list[str], most: int, left: list[str]
) -> None:
    assert written.fold(lines, most) == left


def test_no_tree_is_ever_forgotten_by_folding(state: str) -> None:
    names = [f"/srv/{number % 7}/{number}" for number in range(written.MOST + 40)]
    written.remember(state, names)
    found = written.read(state)
    assert len(found.lines) <= written.MOST
    for name in names:
        assert name in found.apart or any(name.startswith(f"{folder}/") for folder in found.folded)
    written.remember(state, names)
    assert written.read(state) == found


@pytest.mark.parametrize("wrong", ["a link", "a folder", "others may write it", "too large"])
def test_a_file_that_cannot_be_believed_is_refused_and_never_taken_for_empty(wrong: str, state: str) -> None:
    file = Path(state) / written.NAME
    if wrong == "a link":
        file.symlink_to("/dev/null")
    elif wrong == "a folder":
        file.mkdir()
    else:
        file.write_text("/a\n")
        file.chmod(0o666 if wrong == "others may write it" else 0o600)
        if wrong == "too large":
            os.truncate(file, written.MOST_BYTES + 1)
    with pytest.raises(JailError) as error:
        written.read(state)
    assert error.value.hint
    with pytest.raises(JailError):
        written.remember(state, ["/b"])
