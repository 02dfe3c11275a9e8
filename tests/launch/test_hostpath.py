"""PATH as a shell of the host has it: where an entry may lead, and what decides that."""

import os
from pathlib import Path

import pytest

from jail.launch import hostpath
from jail.launch.watchlist import SHADOWS
from jail.plan.facts import Guarded, Searched
from support.attempts import lay


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = Path(os.path.realpath(tmp_path))
    lay(home, {"work/real/bin/x": "", "work/sub/bin/x": "", "work/file": "", "out/git": "", "out/ls": ""})
    return home


def searched(text: str, home: Path, folder: str = "work") -> tuple[Searched, ...]:
    return hostpath.searched(
        text.replace("~~", str(home)), f"{home}/work", f"{home}/{folder}", f"{home}/home"
    )


def ways(text: str, home: Path, folder: str = "work") -> list[list[str]]:
    return [[os.path.relpath(way, home) for way in each.ways] for each in searched(text, home, folder)]


def guards(text: str, home: Path, *trees: str) -> tuple[dict[str, str], dict[str, str]]:
    """Path → kind or verb, of what is there and of what is absent."""
    found = hostpath.guards(searched(text, home), [f"{home}/{tree}" for tree in trees or ("work",)])
    present, absent = ({os.path.relpath(each.path, home): each for each in side} for side in found)
    said = {path: each.verb if each.verb == "pin" else each.kind for path, each in present.items()}
    return said, {path: each.kind for path, each in absent.items()}


def test_an_entry_has_each_spelling_that_links_give_it_and_the_canonical_one_last(home: Path) -> None:
    (home / "work/.venv").symlink_to("env")
    (home / "work/env").symlink_to("real")
    assert ways("~~/work/.venv/bin", home) == [["work/.venv/bin", "work/env/bin", "work/real/bin"]]
    assert ways("~~/work//real/./bin/", home) == [["work/real/bin"]]


def test_links_in_circles_end(home: Path) -> None:
    (home / "work/l").symlink_to("l")
    (found,) = searched("~~/work/l/bin", home)
    assert len(found.links) == 40


def test_a_relative_entry_is_looked_for_in_the_workspace_and_where_the_person_is(home: Path) -> None:
    assert ways("bin", home, "work/sub") == [["work/bin"], ["work/sub/bin"]]
    assert ways("~/bin", home) == [["work/~/bin"], ["home/bin"]]


@pytest.mark.parametrize("text", ["", ".", "./", "~~/work", "~~"])
def test_the_folder_that_people_work_in_is_loose(text: str, home: Path) -> None:
    assert [each.loose for each in searched(text, home)] == [True]
    assert [each.loose for each in searched("~~/work/sub", home, "work/sub")] == [False]


def test_a_link_a_turn_a_file_and_what_is_not_there_decide(home: Path) -> None:
    (home / "work/.venv").symlink_to("real")
    assert guards("~~/work/.venv/bin", home) == ({"work/.venv": "symlink"}, {})
    assert guards("~~/work/sub/../real/bin", home) == ({"work/sub": "pin"}, {})
    assert guards("~~/work/none/../real/bin", home) == ({}, {"work/none": "absent"})
    assert guards("~~/work/file", home) == ({"work/file": "file"}, {})
    assert guards("~~/work/none:~~/out/none", home) == ({}, {"work/none": "absent"})
    assert guards("~~/work/.venv/bin:~~/out/none", home, "out") == ({}, {"out/none": "absent"})


def test_in_a_loose_folder_names_of_later_entries_are_watched_and_what_stands_is_kept(home: Path) -> None:
    (home / "work/git").symlink_to("file")
    (home / "work/ls").mkdir()
    assert guards("~~/work:~~/out", home) == ({"work/git": "symlink"}, {"work/*": "commands"})
    assert guards("~~/out:~~/work", home) == ({}, {"work/*": "commands"})
    found = searched("~~/work:~~/out", home)
    spelt = hostpath.spelt([Guarded(f"{home}/work/*", "commands", SHADOWS)], found)
    assert spelt == [Guarded(f"{home}/work/{name}", "absent", SHADOWS) for name in ("git", "ls")]
    assert hostpath.spelt([], found) == []


def test_a_path_folder_is_held_with_its_environment_unless_that_was_given(home: Path) -> None:
    lay(home, {"work/real/pyvenv.cfg": "", "work/node_modules/.bin/x": ""})

    def trees(text: str, *written: str) -> list[str]:
        found = hostpath.trees_of(searched(text, home), tuple(f"{home}/{tree}" for tree in written))
        return [os.path.relpath(tree, home) for _, tree in found]

    assert trees("~~/work/real/bin", "work") == ["work/real"]
    assert trees("~~/work/real/bin", "work", "work/real") == ["work/real/bin"]
    assert trees("node_modules/.bin", "work") == ["work/node_modules"]
    assert trees("node_modules/.bin", "work", "work/node_modules") == ["work/node_modules/.bin"]
    assert trees("~~/out", "work") == []
    assert trees("~~/out", "out") == ["out"]
    assert trees("~~/work:", "work") == []
