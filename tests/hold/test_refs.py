"""Which refs of git moved, wherever git keeps them."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from jail.hold import refs
from jail.hold.change import ADDED, DELETED, MODIFIED, RENAMED, Change
from support.changed import FOLDER, WORKSPACE, Sides, change, file, link

ONE, TWO = "1" * 40, "2" * 40
GIT = {".git/HEAD": b"ref: refs/heads/main\n"}


def told(
    changes: list[Change], old: Mapping[str, str | bytes], new: Mapping[str, str | bytes]
) -> dict[str, tuple[str, ...]]:
    sides = [
        {path: text.encode() if isinstance(text, str) else text for path, text in each.items()}
        for each in (old, new)
    ]
    found = refs.moved(changes, Sides({**GIT, **sides[0]}, sides[1]), {"t0": WORKSPACE})
    return {path: lines for (_, path), lines in found.items()}


MAIN = ".git/refs/heads/main"


@pytest.mark.parametrize(
    ("changes", "old", "new", "lines"),
    [
        (
            [change(MAIN, MODIFIED)],
            {MAIN: ONE},
            {MAIN: TWO},
            {MAIN: (f"refs/heads/main {ONE[:12]} → {TWO[:12]}",)},
        ),
        ([change(MAIN, ADDED)], {}, {MAIN: TWO}, {MAIN: (f"refs/heads/main none → {TWO[:12]}",)}),
        ([change(MAIN, DELETED)], {MAIN: ONE}, {}, {MAIN: (f"refs/heads/main {ONE[:12]} → none",)}),
        ([change(MAIN, MODIFIED)], {MAIN: ONE}, {MAIN: f"{ONE}\n"}, {}),
        ([change(MAIN, ADDED, new=link())], {}, {}, {MAIN: ("refs/heads/main none → a symlink",)}),
        ([change(f"{MAIN}", ADDED, new=FOLDER)], {}, {}, {}),
        (
            [change(".git/refs/heads/b", RENAMED, source=MAIN)],
            {MAIN: ONE},
            {".git/refs/heads/b": ONE},
            {".git/refs/heads/b": (f"refs/heads/main {ONE[:12]} → none", f"refs/heads/b none → {ONE[:12]}")},
        ),
        (
            [change(".git/HEAD", MODIFIED)],
            {},
            {".git/HEAD": "ref: refs/heads/x"},
            {".git/HEAD": ("HEAD ref: refs/heads/main → ref: refs/heads/x",)},
        ),
        # what was only packed did not move
        (
            [change(MAIN, DELETED), change(".git/packed-refs", ADDED)],
            {MAIN: ONE},
            {".git/packed-refs": f"# pack-refs with: peeled\n{ONE} refs/heads/main\n"},
            {},
        ),
        (
            [change(".git/packed-refs", MODIFIED)],
            {".git/packed-refs": f"{ONE} refs/a\n{ONE} refs/b\n{ONE} refs/c\n"},
            {".git/packed-refs": f"{TWO} refs/a\n{ONE} refs/b\n{ONE} refs/d\n"},
            {
                ".git/packed-refs": (
                    f"refs/a {ONE[:12]} → {TWO[:12]}",
                    f"refs/c {ONE[:12]} → none",
                    f"refs/d none → {ONE[:12]}",
                )
            },
        ),
        # a loose one counts before a packed one
        (
            [change(".git/packed-refs", ADDED)],
            {MAIN: ONE},
            {".git/packed-refs": f"{TWO} refs/heads/main"},
            {},
        ),
        # names that are no git dir's
        ([change("src/refs/x", ADDED)], {}, {"src/refs/x": ONE}, {}),
        ([change(".git/logs/refs/heads/main", ADDED)], {}, {".git/logs/refs/heads/main": ONE}, {}),
        ([change("HEAD", ADDED)], {}, {"HEAD": ONE}, {}),
        (
            [change("b/refs/x", ADDED)],
            {"b/HEAD": "", "b/objects/x": ""},
            {"b/refs/x": ONE},
            {"b/refs/x": (f"refs/x none → {ONE[:12]}",)},
        ),
    ],
)
def test_each_ref_that_moved_is_a_line(
    changes: list[Change], old: dict[str, str], new: dict[str, str], lines: dict[str, tuple[str, ...]]
) -> None:
    assert told(changes, old, new) == lines


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_what_git_status_passes_over_is_named(tmp_path: Path, flag: str) -> None:
    git = ("git", "-C", str(tmp_path))
    subprocess.run((*git, "init", "-q"), check=True)
    for name in ("a", "b" * 70, "c"):
        (tmp_path / name).write_text("x")
    subprocess.run((*git, "add", "."), check=True)
    old = (tmp_path / ".git/index").read_bytes()
    subprocess.run((*git, "update-index", flag, "b" * 70), check=True)
    new = (tmp_path / ".git/index").read_bytes()
    found = change(".git/index", MODIFIED, old=file(old), new=file(new))
    note = "git status may not show all: compare with `jail changes`"
    assert told([found], {".git/index": old}, {".git/index": new}) == {
        ".git/index": (f"marked as unchanged: {'b' * 70}: {note}",)
    }
    assert told([found], {".git/index": new}, {".git/index": new}) == {}
    assert told([found], {".git/index": new}, {".git/index": old}) == {}
    for broken in (new[:40], b"DIRC\0\0\0\4" + new[8:], b""):
        assert told([found], {".git/index": old}, {".git/index": broken}) == {
            ".git/index": (f"its flags cannot be read: {note}",)
        }
