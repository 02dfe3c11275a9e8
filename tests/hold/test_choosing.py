"""What of a list of changes a path chooses."""

from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.hold import choosing
from jail.hold.change import (
    DELETED,
    MODIFIED,
    RENAMED,
    TYPE,
    State,
)
from jail.hold.choosing import chosen, meant
from jail.hold.review import Review
from support.changed import FOLDER, Kept, change, file, kept, link
from support.lines import executed


@pytest.fixture
def session(tmp_path: Path) -> Kept:
    return kept(tmp_path / "session", tmp_path / "ws", {".git/HEAD": b""}, {})


CHANGES = (
    change("CLAUDE.md", MODIFIED),
    change("Makefile"),
    change("new", new=FOLDER),
    change("new/a"),
    change("new/deep", new=FOLDER),
    change("new/deep/.husky", new=FOLDER),
    change("new/deep/.husky/pre-commit"),
    change("old", DELETED, old=FOLDER),
    change("old/a", DELETED),
    change("old/b", RENAMED, source="old/c"),
    change("pipe", new=State("special")),
    change("src/both", MODIFIED, conflict="the host changed it"),
    change("src/main", MODIFIED),
    change("src-other/x", MODIFIED),
)


def took(found: Review, *words: str, cwd: str = "", all_but: bool = False) -> list[str]:
    cwd = cwd or found.manifest.workspace
    return [each.path for each in chosen(found, words, cwd, all_but=all_but).taken]


def left(found: Review, *words: str, all_but: bool = False) -> dict[str, str]:
    whole = chosen(found, words, found.manifest.workspace, all_but=all_but)
    return {each.path: why for each, why in whole.left}


def test_without_a_path_all_is_chosen_but_what_is_refused_or_in_conflict(session: Kept) -> None:
    found = session.review(*CHANGES)
    assert left(found) == {
        "CLAUDE.md": "instructions or settings of an agent: refused unless it is named, word for word",
        "new/deep/.husky/pre-commit": "hooks of git: refused unless it is named, word for word",
        "pipe": next(each.reason for each in found.changes if each.path == "pipe"),
        "src/both": "the host changed it",
    }
    assert took(found) == [each.path for each in CHANGES if each.path not in left(found)]


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["src/main"], ["src/main"]),
        (["src"], ["src/main"]),
        (["./src/"], ["src/main"]),
        (["src/../src/main"], ["src/main"]),
        (["src", "Makefile"], ["Makefile", "src/main"]),
        (["src-other"], ["src-other/x"]),
        # refused: by its own name alone
        (["CLAUDE.md"], ["CLAUDE.md"]),
        (["./CLAUDE.md"], ["CLAUDE.md"]),
        *(
            ([word], [])
            for word in ("CLAUDE.md/", "./CLAUDE.md/", "new/../CLAUDE.md", "././CLAUDE.md", ".//CLAUDE.md")
        ),
        (["new/../CLAUDE.md", "CLAUDE.md"], ["CLAUDE.md"]),
        (["new/deep/.husky/pre-commit/"], []),
        (["new"], ["new", "new/a", "new/deep", "new/deep/.husky"]),
        (["."], None),
        (
            ["new/deep/.husky/pre-commit"],
            ["new", "new/deep", "new/deep/.husky", "new/deep/.husky/pre-commit"],
        ),
        # a new folder comes along, a folder in which something stays cannot go
        (["new/deep"], ["new", "new/deep", "new/deep/.husky"]),
        (["old/a"], ["old/a"]),
        # by where it was
        (["old/c"], ["old/b"]),
        # never, and in conflict: by nothing
        (["pipe"], []),
        (["src/both"], []),
    ],
)
def test_a_path_chooses_itself_and_all_beneath(session: Kept, words: list[str], taken: list[str]) -> None:
    found = session.review(*CHANGES)
    assert took(found, *words) == (took(found) if taken is None else taken)


def test_a_path_is_relative_to_the_current_folder_and_else_to_the_workspace(session: Kept) -> None:
    found = session.review(*CHANGES, change("src/src", MODIFIED))
    workspace = found.manifest.workspace
    assert took(found, "main", cwd=f"{workspace}/src") == ["src/main"]
    assert took(found, "Makefile", cwd=f"{workspace}/src") == ["Makefile"]
    assert took(found, "src", cwd=f"{workspace}/src") == ["src/src"]
    assert took(found, "src/main", cwd="/") == ["src/main"]
    assert took(found, f"{workspace}/src/main", cwd="/") == ["src/main"]
    assert took(found, "/") == took(found)


@pytest.mark.parametrize(
    "word", ["absent", "sr", "src/mai", "src/main/x", "*", "src/*", "..", "../x", "new/", "", "~"]
)
def test_a_path_that_means_no_change_is_an_error_that_names_it(session: Kept, word: str) -> None:
    found = session.review(change("src/main", MODIFIED))
    fine = word in ("", "..")
    if fine:  # the folder itself, and one above it: all beneath
        assert took(found, word) == ["src/main"]
        return
    with pytest.raises(JailError, match="nothing that is held lies at") as caught:
        took(found, word, "src")
    assert caught.value.code == EXIT_USAGE
    assert word in caught.value.message


def test_a_name_that_looks_like_a_pattern_is_a_name(session: Kept) -> None:
    found = session.review(change("*", MODIFIED), change("a", MODIFIED))
    assert took(found, "*") == ["*"]


def test_all_but_leaves_what_is_named_and_names_nothing_that_is_refused(session: Kept) -> None:
    found = session.review(*CHANGES)
    assert took(found, "new", "old", "pipe", "src/both", all_but=True) == [
        "Makefile",
        "src/main",
        "src-other/x",
    ]
    assert took(found, "new/deep", all_but=True)[:3] == ["Makefile", "new", "new/a"]
    assert "CLAUDE.md" in left(found, "src", all_but=True)
    assert took(found, "CLAUDE.md", all_but=True) == took(found)
    assert "CLAUDE.md" not in left(found, "CLAUDE.md", all_but=True), "it was not meant"


def test_a_folder_in_which_something_stays_cannot_go(session: Kept) -> None:
    gone = [change("d", DELETED, old=FOLDER), change("d/CLAUDE.md", DELETED), change("d/x", DELETED)]
    found = session.review(*gone)
    assert took(found) == ["d/x"]
    assert left(found) == {
        "d": "something in it stays as it is",
        "d/CLAUDE.md": "instructions or settings of an agent: refused unless it is named, word for word",
    }
    assert took(found, "d/CLAUDE.md") == ["d/CLAUDE.md"]
    assert took(found, ".", "d/CLAUDE.md") == ["d", "d/CLAUDE.md", "d/x"]
    typed = change("d", TYPE, old=FOLDER, new=file())
    assert took(session.review(typed, *gone[1:])) == ["d/x"]
    assert took(session.review(gone[0], change("d/y", RENAMED, source="d/x", conflict="z"))) == []


def test_what_lies_in_a_new_folder_that_is_left_is_left(session: Kept) -> None:
    folder = change("d", TYPE, old=file(), new=FOLDER, conflict="the host has another file")
    found = session.review(folder, change("d/x"))
    assert took(found) == took(found, "d/x") == []
    assert left(found, "d/x") == {"d/x": "the folder that it lies in is not applied"}
    link_to = change("e", TYPE, old=FOLDER, new=link())
    assert took(session.review(link_to, change("e/x", DELETED))) == ["e", "e/x"]


def test_what_is_discarded_is_what_was_meant_however_grave(session: Kept) -> None:
    found = session.review(*CHANGES)
    workspace = found.manifest.workspace
    assert meant(found, (), workspace) == found.changes
    assert [each.path for each in meant(found, ("pipe", "src"), workspace)] == [
        "pipe",
        "src/both",
        "src/main",
    ]
    every_other = meant(found, ("new/a",), workspace, all_but=True)
    assert "new" in [each.path for each in every_other]
    thrown, stay = choosing.thrown(found, every_other)
    assert "new" not in [each.path for each in thrown], "what stays held lies in it"
    assert "old" in [each.path for each in thrown]
    assert stay == (), "nobody who keeps what is in it meant it"


def test_what_something_else_covers_is_discarded_with_that_or_not_at_all(session: Kept) -> None:
    cover = change("d", TYPE, old=FOLDER, new=file())
    found = session.review(cover, change("d/s", DELETED, old=FOLDER), change("d/s/x", DELETED), change("e"))
    assert choosing.thrown(found, found.changes) == (found.changes, ())
    (thrown, stay) = choosing.thrown(found, found.changes[2:])
    assert [each.path for each in thrown] == ["e"]
    ((covered, why),) = stay
    assert covered.path == "d/s/x"
    assert why == f"{found.manifest.workspace}/d is in place of its folder: discard that first"
    moved = session.review(cover, change("y", RENAMED, source="d/x"))
    assert [each.path for each, _ in choosing.thrown(moved, moved.changes[1:]).left] == ["y"]


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_path_that_means_nothing_names_each_place_once(session: Kept, elsewhere: bool) -> None:
    found = session.review(*CHANGES)
    workspace = found.manifest.workspace
    with pytest.raises(JailError) as caught:
        meant(found, ("absent",), "/elsewhere" if elsewhere else workspace)
    assert caught.value.where == (f"/elsewhere, and the workspace {workspace}" if elsewhere else workspace)


def test_many_changes_and_many_paths_are_chosen_in_one_pass(session: Kept) -> None:
    """Of ten times as many changes and ten times as many paths, and not a hundred times the work."""
    steps = []
    for many in (20, 200):
        words = [f"{a:03}" for a in range(many)]
        paths = [f"{word}/{c}" for word in words for c in range(10)]
        found = session.review(*(change(path) for path in paths))
        assert took(found, *words) == paths
        steps.append(executed(lambda: chosen(found, words, found.manifest.workspace)))  # noqa: B023 - called at once
    assert steps[1] <= 11 * steps[0]
