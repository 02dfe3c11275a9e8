"""Added and deleted files of one content are one rename, and every other pair is not."""

import pytest

from jail.hold import renames
from jail.hold.change import ABSENT, ADDED, DELETED, TYPE, Change, State


def added(path: str, digest: str, size: int = 3, conflict: str = "") -> Change:
    return Change("t0", path, ADDED, ABSENT, State("file", 0o644, size, 0, digest), ABSENT, "", conflict)


def deleted(path: str, size: int = 3, conflict: str = "", kind: str = "file") -> Change:
    return Change(
        "t0", path, DELETED, State(kind, 0o644, size), ABSENT, State(kind, 0o644, size), "", conflict
    )


ONE, TWO = deleted("d/one"), deleted("d/two")
CASES = [
    ("same content", [added("a", "X"), ONE], {"d/one": "X"}, ["R d/one > a"]),
    ("other content", [added("a", "X"), ONE], {"d/one": "Y"}, ["A a", "D d/one"]),
    ("empty", [added("a", "X", 0), deleted("d", 0)], {"d": "X"}, ["A a", "D d"]),
    ("no digest", [added("a", ""), ONE], {"d/one": ""}, ["A a", "D d/one"]),
    ("one source only", [added("a", "X"), added("b", "X"), ONE], {"d/one": "X"}, ["R d/one > a", "A b"]),
    ("in order", [added("a", "X"), added("b", "X"), ONE, TWO], {"d/one": "X", "d/two": "X"}, ["R d/one > a", "R d/two > b"]),
    ("the same last name first", [added("a", "X"), added("n/one", "X"), ONE, TWO], {"d/one": "X", "d/two": "X"}, ["R d/two > a", "R d/one > n/one"]),
    ("added in conflict", [added("a", "X", 3, "!"), ONE], {"d/one": "X"}, ["A a", "D d/one"]),
    ("deleted in conflict", [added("a", "X"), deleted("d", 3, "!")], {"d": "X"}, ["A a", "D d"]),
    ("a link deleted", [added("a", "X"), deleted("d", 3, "", "symlink")], {"d": "X"}, ["A a", "D d"]),
    ("another change", [added("a", "X"), ONE._replace(what=TYPE)], {"d/one": "X"}, ["A a", "T d/one"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "contents", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_pairs(changes: list[Change], contents: dict[str, str], expected: list[str]) -> None:
    found = renames.paired(changes, lambda path, _like: contents[path])
    letters = {"added": "A", "deleted": "D", "renamed": "R", "type": "T"}
    assert [
        f"{letters[each.what]} {each.source + ' > ' if each.source else ''}{each.path}" for each in found
    ] == expected


def test_only_deleted_files_of_an_added_size_are_read() -> None:
    asked: list[tuple[str, str]] = []

    def digest(path: str, like: str) -> str:
        asked.append((path, like))
        return "X"

    renames.paired(
        [added("a", "cells:X", 5), added("b", "X", 3), ONE, deleted("other", 4), deleted("e", 5)], digest
    )
    assert asked == [("e", "cells:"), ("d/one", "plain")]


def test_a_rename_tells_what_the_source_was() -> None:
    (change,) = renames.paired([added("a", "X"), ONE], lambda _path, _like: "X")
    assert change.old == ONE.old._replace(digest="X")
    assert (change.new.digest, change.now) == ("X", ABSENT)
