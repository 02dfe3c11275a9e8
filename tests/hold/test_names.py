"""Names that are never applied, and their neighbours that are."""

import pytest

from jail.hold import names
from jail.hold.change import ABSENT, UNKNOWN, State

CONTENT = State("file", 0o644, 1, 0, "ab" * 32)
NEVER = {
    "leads out": ["..", "a/..", "../a", ".", "a/./b", "a//b", "/a", "a/", "a\0b"],
    "another spelling of .git": [
        ".GIT", ".gIt/config", "sub/.Git", ".g\u200cit", ".git ", ".git.", ".git . .", "git~1", "GIT~1/hooks",
        ".\uff27it", ".git::$INDEX_ALLOCATION",
        "a\\.git\\config", ".\u200bgit",
    ],
    "control character": ["a\nb", "a\r", "\t", "\x1b[31m", "a\x7f", "a\x85b", "\x9b"],
    "too long": ["a" * 256, "é" * 128, "a/" * 2048, "é/" * 1366],
    "ours": [".jail-apply-0123", "d/.jail-apply-", ".JAIL-apply-x"],
}  # fmt: skip
APPLIED = [
    "",
    "a",
    ".git",
    ".git/config",
    "sub/.git/HEAD",
    ".gitignore",
    ".github/x",
    "git",
    "a.git",
    "...",
    "..a",
    "a" * 255,
    "a/" * 2047 + "a",
    "-rf",
    " ",
    "a b",
    "\udcff\udcfe",
    "e\u0301",
    "a\u202eb",
    ".jail-apply",
    "x.jail-apply-1",
    "C:\\temp",
    "a:b",
    "$(id)",
    "*",
]


@pytest.mark.parametrize("path", [path for paths in NEVER.values() for path in paths])
def test_odd_names_are_never_applied(path: str) -> None:
    assert names.complaint(path, CONTENT)


@pytest.mark.parametrize("path", APPLIED)
def test_every_other_name_is(path: str) -> None:
    assert names.complaint(path, CONTENT) == ""
    assert names.complaint(path, ABSENT) == ""
    assert names.complaint(path, State("folder", 0o755)) == ""


@pytest.mark.parametrize("path", NEVER["control character"])
def test_what_is_deleted_may_have_control_characters(path: str) -> None:
    assert names.complaint(path, ABSENT) == ""


@pytest.mark.parametrize("path", NEVER["another spelling of .git"] + NEVER["too long"] + NEVER["ours"])
def test_what_is_deleted_is_refused_for_all_else(path: str) -> None:
    assert names.complaint(path, ABSENT)


@pytest.mark.parametrize(
    "new", [State("socket", 0o755), State("special"), UNKNOWN, State("file", 0o644, 1 << 62)]
)
def test_what_has_no_content_that_can_be_compared_is_never_applied(new: State) -> None:
    assert names.complaint("a", new)
    assert names.complaint("", new)


def test_a_path_is_too_long_by_its_bytes_whatever_its_characters() -> None:
    for letter, size in (("a", 1), ("é", 2), ("\udcff", 1), ("🐙", 4)):
        assert not names.is_too_long(letter * (names.PATH_BYTES // size))
        assert names.is_too_long(letter * (names.PATH_BYTES // size + 1))


def test_a_deep_folder_is_looked_at_once_and_not_for_each_name_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    wrong = names._wrong

    def counting(name: str, *, made: bool) -> str:
        asked.append(name)
        return wrong(name, made=made)

    monkeypatch.setattr(names, "_wrong", counting)
    folder = "/".join(["hooks"] * 500)
    assert not any(names.complaint(f"{folder}/{number}", CONTENT) for number in range(100))
    assert len(asked) == 500 + 100
