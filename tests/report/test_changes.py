"""The list of changes: golden texts, nothing hidden by a number, nothing that steers a terminal."""

import os
from pathlib import Path

import pytest

from jail.report import changes
from jail.report.changes import MOST, Row, as_lines

GOLDEN = Path(__file__).parents[1] / "golden"


def texts(rows: list[Row], **options: bool) -> list[str]:
    return [line.text for line in as_lines(rows, **options)]


LISTS = {
    "changes-all-kinds": [
        Row("A", ".git/hooks/pre-commit", "refused", "git runs what is in it", size=20),
        Row("A", ".git/objects/ab/cdef", size=400),
        Row("A", "docs/more.md", size=5000, detail="4.9 KiB"),
        Row("A", "pipe", "never", "a FIFO"),
        Row("D", "old.txt"),
        Row("D", "CLAUDE.md", "refused", "instructions or settings of an agent"),
        Row(
            "M",
            "package.json",
            "warned",
            "npm, yarn and pnpm run its scripts: scripts: +postinstall",
            size=90,
        ),
        Row("M", "src/both.py", conflict="the host changed its content", size=9),
        Row("M", "src/main.py", detail="1.2 KiB → 1.3 KiB", size=1331),
        Row("R", "src/new.py", detail="was src/old.py", size=12),
        Row("M", ".git/refs/heads/main", detail="refs/heads/main 1 → 2", moves=("refs/heads/main 1 → 2",)),
        Row("M", ".git/packed-refs", detail="2 refs", moves=("refs/a 1 → 2", "refs/b none → 3"), fold=".git"),
        Row("S", ".git/config", detail="+branch.main.remote=origin"),
        Row("T", "link", detail="file → symlink to main.py"),
        Row("m", "run.sh", mode="0644 → 0755"),
        Row("M", "both.sh", detail="1 B → 2 B", mode="0644 → 0755"),
        Row("t", "stamp"),
    ],
    "changes-one": [Row("M", "src/main.py", detail="1.2 KiB → 1.3 KiB", size=1331)],
    "changes-a-package-manager": [
        Row("A", "Makefile", "warned", "make runs it", size=1),
        *(
            Row("A", f"web/node_modules/{n}/package.json", "warned", "npm", fold="web/node_modules")
            for n in range(9)
        ),
        Row("A", "one/node_modules/x/package.json", "warned", "npm", fold="one/node_modules"),
        *(Row("A", f"web/node_modules/{n}/index.js", size=9, fold="web/node_modules") for n in range(500)),
        *(Row("A", f".git/objects/{n}", size=9, fold=".git") for n in range(500)),
        Row("D", ".git/objects/x", fold=".git"),
        *(Row("A", f"src/{n}.js", size=1000) for n in range(MOST + 5)),
    ],
}


@pytest.mark.parametrize("name", LISTS)
def test_the_list_is_this_text(name: str) -> None:
    found = "".join(f"{text}\n" for text in texts(LISTS[name]))
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("JAIL_GOLDEN") == "write":
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_no_change_is_a_line_too() -> None:
    assert texts([]) == ["no changes"]


def test_what_a_list_of_additions_would_hide_is_shown_first_and_whole() -> None:
    rows = [Row("A", f"new/{number}") for number in range(200)]
    rows[50:50] = [Row("D", f"gone/{number}") for number in range(5)]
    found = texts(rows)
    assert found[0] == "deleted (5)"
    assert found[1:6] == [f"  D  gone/{number}" for number in range(5)]
    assert found[-2] == f"  and {200 - MOST} more: --all lists them"
    assert len(texts(rows, every=True)) == 200 + 5 + 3


@pytest.mark.parametrize(
    "row",
    [
        Row("D", "x"),
        Row("m", "x"),
        Row("M", "x", mode="0644 → 0755"),
        Row("T", "x"),
        Row("S", "x"),
        Row("M", "x", moves=("refs/heads/x 1 → 2",), fold=".git"),
        Row("A", "x", "never"),
        Row("A", "x", "refused"),
        Row("A", "x", "warned"),
        Row("A", "x", conflict="y"),
    ],
)
def test_no_number_cuts_what_a_person_must_see(row: Row) -> None:
    found = texts([row._replace(path=f"{number}") for number in range(3000)])
    assert len(found) == 3000 + 2
    assert not any("more" in text for text in found)


def test_each_change_stands_once() -> None:
    rows = LISTS["changes-all-kinds"]
    shown = [text for text in texts(rows, every=True) if text.startswith("  ") and text[2] != " "]
    assert len(shown) == len(rows)
    assert sorted(changes.ordered(rows)) == list(range(len(rows)))
    assert [rows[at].path in text for at, text in zip(changes.ordered(rows), shown, strict=True)] == [
        True
    ] * len(rows)


HOSTILE = {
    "escape": "a\x1b[2J\x1b]8;;http://evil\x07b",
    "bidi": "a\u202egnp.exe",
    "carriage return": "src/x\rREADME",
    "newline": "a\n  D  forged",
    "c1": "a\x9b31m",
    "no UTF-8": "a\udcff",
    "zero width": "a\u200bb",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["path", "reason", "conflict", "detail", "mode", "fold"])
def test_nothing_steers_a_terminal(name: str, field: str) -> None:
    row = Row("A", "x", "warned")._replace(**{field: HOSTILE[name]})
    for text in texts([row, row]):
        assert text.isprintable()
        assert "\u202e" not in text
        assert "\u200b" not in text
    for text in texts([Row("M", "x", moves=(HOSTILE[name],) * 2)]):
        assert text.isprintable()


def test_only_the_letter_and_the_heading_have_a_colour() -> None:
    for line in as_lines(LISTS["changes-all-kinds"]):
        assert line.text.lstrip().startswith(line.word)
        assert bool(line.colour) <= bool(line.word)
