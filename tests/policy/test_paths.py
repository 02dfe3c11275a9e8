"""Paths by component."""

import pytest

from jail.policy.paths import beneath, between, deepest, overlaps


@pytest.mark.parametrize(
    ("path", "folder", "answer"),
    [
        ("/src/repo", "/src/repo", True),
        ("/src/repo/a", "/src/repo", True),
        ("/src/repo-evil", "/src/repo", False),
        ("/src", "/src/repo", False),
        ("/anything", "/", True),
        ("/", "/", True),
        ("./in/the/workspace", "/", False),
    ],
)
def test_beneath(path: str, folder: str, answer: bool) -> None:
    assert beneath(path, folder) is answer


def test_overlaps_asks_both_ways() -> None:
    assert overlaps("/a", "/a/b")
    assert overlaps("/a/b", "/a")
    assert not overlaps("/a/b", "/a/c")


def test_the_deepest_folder_wins() -> None:
    assert deepest("/a/b/c", ["/a", "/a/b", "/x"]) == "/a/b"
    assert deepest("/y", ["/a"]) == ""


@pytest.mark.parametrize(
    ("path", "folder", "answer"),
    [
        ("/a/b/c/d", "/a", ["/a/b", "/a/b/c"]),
        ("/a/b", "/a", []),
        ("/a", "/a", []),
        ("/a/b", "/", ["/a"]),
    ],
)
def test_between_lists_the_folders_on_the_way(path: str, folder: str, answer: list[str]) -> None:
    assert between(path, folder) == answer
