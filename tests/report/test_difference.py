"""A unified diff: true, as diff(1) has it where lines say enough, and bounded whatever the texts are."""

import random
import subprocess
from pathlib import Path

import pytest

from jail.report import difference as module
from jail.report.difference import MOST_BYTES, difference

NO_NEWLINE = "\\ No newline at end of file"


def patched(old: bytes, lines: list[str]) -> bytes:
    """What patch(1) makes of `old`: applied here, hunk by hunk, so that every line is checked."""
    source = old.decode("utf-8", "surrogateescape").split("\n")
    if source[-1] == "":
        source.pop()
    made: list[str] = []
    at = 0
    ends = True
    for number, line in enumerate(lines):
        if line.startswith("@@"):
            start, _, count = line.split()[1].removeprefix("-").partition(",")
            begin = int(start) - (0 if count == "0" else 1)
            made += source[at:begin]
            at = begin
        elif line.startswith("\\"):
            ends = ends and not lines[number - 1].startswith(("+", " "))
        elif line.startswith("-"):
            assert source[at] == line[1:]
            at += 1
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert source[at] == line[1:]
            made.append(source[at])
            at += 1
    rest = source[at:]
    made += rest
    if rest and not old.endswith(b"\n"):
        ends = False
    return ("\n".join(made) + ("\n" if ends and made else "")).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (b"", b"", []),
        (b"a\n", b"a\n", []),
        (b"", b"a\nb\n", ["@@ -0,0 +1,2 @@", "+a", "+b"]),
        (b"a\n", b"", ["@@ -1 +0,0 @@", "-a"]),
        (b"a\nb\nc\n", b"a\nx\nc\n", ["@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]),
        (b"a", b"a\n", ["@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"]),
        (b"a\r\n", b"a\n", ["@@ -1 +1 @@", "-a\r", "+a"]),
        (b"a\0", b"b\0", ["binary, 2 B → 2 B"]),
        (b"a", b"b\0", ["binary, 1 B → 2 B"]),
        (b"a\0", b"", ["binary, 2 B → 0 B"]),
        (b"", b"#!/bin/sh\nevil\n\0", ["@@ -0,0 +1,3 @@", "+#!/bin/sh", "+evil", "+\0", NO_NEWLINE]),
        (b"\x7fELF\0", b"#!/bin/sh\n", ["binary before, 5 B", "@@ -0,0 +1 @@", "+#!/bin/sh"]),
        (b"\xff\n", b"\xfe\n", ["@@ -1 +1 @@", "-\udcff", "+\udcfe"]),
        (
            b"x" * (MOST_BYTES + 1),
            b"",
            ["too long to compare line by line, 1.0 MiB → 0 B"],
        ),
    ],
)
def test_a_diff_is_these_lines(old: bytes, new: bytes, lines: list[str]) -> None:
    assert list(difference(old, new)) == lines


def test_hunks_have_three_lines_around_them_and_are_one_where_these_meet() -> None:
    old = [f"{number}\n" for number in range(40)]
    new = [*old]
    new[10], new[16], new[30] = "x\n", "y\n", "z\n"
    found = list(difference("".join(old).encode(), "".join(new).encode()))
    assert [line for line in found if line.startswith("@@")] == ["@@ -8,13 +8,13 @@", "@@ -28,7 +28,7 @@"]


def test_it_is_the_diff_of_diff_where_lines_are_their_own(tmp_path: Path) -> None:
    source = Path(module.__file__).read_text(encoding="utf-8")
    kept = [line for number, line in enumerate(source.splitlines(keepends=True)) if number % 17]
    kept[40:40] = ["one more\n", "and another\n"]
    (tmp_path / "old").write_text(source, encoding="utf-8")
    (tmp_path / "new").write_text("".join(kept), encoding="utf-8")
    asked = ["/usr/bin/diff", "-u", "--minimal", "old", "new"]
    wanted = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    found = list(difference(source.encode(), "".join(kept).encode()))
    ours = [line for line in found if line[0] in "+-"]
    theirs = [line for line in wanted.splitlines()[2:] if line[0] in "+-"]
    assert sorted(ours) == sorted(theirs)
    assert patched(source.encode(), found) == "".join(kept).encode()


@pytest.mark.parametrize("seed", range(60))
def test_the_new_text_is_what_the_diff_makes_of_the_old_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    if seed % 3 == 0:
        monkeypatch.setattr(module, "SMALL", chance.choice([0, 4, 50]))

    def text(base: list[str]) -> list[str]:
        lines = [line for line in base if chance.random() > 0.2]
        for _ in range(chance.randrange(8)):
            lines.insert(chance.randrange(len(lines) + 1), chance.choice("abcdefgh\udcff") + "\n")
        return lines

    base = [chance.choice(["a\n", "b\n", "", f"{number}\n", "\r\n"]) or "\n" for number in range(60)]
    ends = [chance.random() < 0.5 for _ in range(2)]
    old, new = (
        ("".join(text(base)).removesuffix("\n") + ("\n" if end else "")).encode("utf-8", "surrogateescape")
        for end in ends
    )
    assert patched(old, list(difference(old, new))) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x\n" * 50_000, "y\n" * 50_000),
        ("a\nb\n" * 30_000, "b\na\n" * 30_000),
        ("".join(f"{n}\n" for n in range(30_000)), "".join(f"{n}\n" for n in reversed(range(30_000)))),
        (
            "".join(f"{n}\n" + "x\n" * 90 for n in range(1500)),
            "".join("x\n" * 89 + f"{n}\n" for n in range(1500)),
        ),
        ("x" * 500_000, "y" * 500_000),
    ],
    ids=["all others", "all the same two", "backwards", "many small ones", "one line"],
)
def test_texts_that_cost_a_common_diff_the_square_of_their_length_end(old: str, new: str) -> None:
    assert patched(old.encode(), list(difference(old.encode(), new.encode()))) == new.encode()
