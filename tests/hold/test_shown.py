"""A change as a row, as a diff and as JSON."""

from pathlib import Path

import pytest

from jail.hold import shown
from jail.hold.change import DELETED, MODE, MODIFIED, RENAMED, SETTINGS, TIME, TYPE, Change, State
from jail.hold.gitkeys import Keys, Offered
from jail.hold.packages import REASON
from jail.report.changes import Row
from support.changed import FOLDER, Kept, change, file, kept, link, tree

OLD, NEW = b"one\ntwo\nthree\n", b"one\n2\nthree\n"
HOST: dict[str, bytes | str | None] = {
    "text": OLD,
    "gone": OLD,
    "from": OLD,
    "blob": b"\0" * 2000,
    "link": "text",
    "kind": OLD,
    "long": b"x" * 3_000_000,
    ".git/config": b"",
}
LEFT: dict[str, bytes | str | None] = {
    "text": NEW,
    "to": NEW,
    "fresh": NEW,
    "empty": b"",
    "blob": b"\0" * 3000,
    "link": "elsewhere",
    "kind": "text",
    "long": b"y" * 3_000_000,
    ".git/config": b"[branch]\n",
}


@pytest.fixture
def session(tmp_path: Path) -> Kept:
    return kept(tmp_path / "session", tmp_path / "ws", HOST, LEFT)


def modified(path: str, **parts: object) -> Change:
    old, new = HOST[path], LEFT[path]
    assert isinstance(old, bytes)
    assert isinstance(new, bytes)
    return change(path, MODIFIED, old=file(old), new=file(new), **parts)


ROWS = [
    (modified("text"), Row("M", "text", detail="14 B → 12 B", size=12)),
    (change("fresh", new=file(NEW)), Row("A", "fresh", detail="12 B", size=12)),
    (change("new", new=FOLDER), Row("A", "new/")),
    (
        change("link", MODIFIED, old=link("text"), new=link("elsewhere")),
        Row("M", "link", detail="to elsewhere"),
    ),
    (
        change("kind", TYPE, old=file(OLD), new=link("text")),
        Row("T", "kind", detail="file → symlink to text"),
    ),
    (change("gone", DELETED), Row("D", "gone")),
    (
        change("text", MODIFIED, old=file(OLD), new=file(NEW, 0o4755)),
        Row(
            "M",
            "text",
            detail="14 B → 12 B",
            mode="0644 → 4755, of which setuid and setgid are dropped",
            size=12,
        ),
    ),
    (
        change("fresh", new=file(NEW, 0o2755)),
        Row("A", "fresh", detail="12 B", mode="mode 2755, of which setuid and setgid are dropped", size=12),
    ),
    (
        change("link", MODIFIED, old=link("text"), new=link("/x"), tier="warned", reason="leads to /x"),
        Row("M", "link", "warned", "leads to /x"),
    ),
    (
        change("text", MODE, old=file(OLD), new=file(OLD, 0o755)),
        Row("m", "text", mode="0644 → 0755"),
    ),
    (change("text", TIME), Row("t", "text")),
    (
        change("to", RENAMED, source="from", old=file(OLD), new=file(NEW)),
        Row("R", "to", detail="was from", size=12),
    ),
    (
        change("a", tier="refused", reason="b", conflict="c", new=file("")),
        Row("A", "a", "refused", "b", "conflict: c", "0 B"),
    ),
    (
        change("x/node_modules/y/package.json", tier="warned", reason=f"{REASON}: main", new=file("")),
        Row(
            "A",
            "x/node_modules/y/package.json",
            "warned",
            f"{REASON}: main",
            detail="0 B",
            fold="x/node_modules",
        ),
    ),
    *(
        (change(path, tier=tier, reason=why, new=file("")), Row("A", path, tier, why, detail="0 B"))
        for path, tier, why in (
            ("node_modules/y/package.json", "warned", f"{REASON}: scripts: +postinstall"),
            ("node_modules/y/package.json", "warned", f"{REASON}: it cannot be read"),
            ("node_modules/.envrc", "warned", "direnv runs it"),
            ("node_modules/y/Makefile", "warned", "make runs it"),
            ("node_modules/y/Makefile", "warned", f"{REASON}: main"),
            ("node_modules/y/CLAUDE.md", "refused", "instructions"),
        )
    ),
    (
        change("node_modules/y", tier="warned", reason="a link that leads out", new=link("/etc")),
        Row("A", "node_modules/y", "warned", "a link that leads out"),
    ),
    (change(".git/a", new=file("")), Row("A", ".git/a", detail="0 B", fold=".git")),
    (
        change(".git/a", tier="warned", reason="b", new=file("")),
        Row("A", ".git/a", "warned", "b", detail="0 B"),
    ),
]


@pytest.mark.parametrize(("found", "row"), ROWS)
def test_a_change_as_a_row(session: Kept, found: Change, row: Row) -> None:
    review = session.review()._replace(changes=(found,))
    assert shown.row(review, found) == row


def test_paths_are_shown_as_they_can_be_typed(tmp_path: Path) -> None:
    things = [
        tree(str(tmp_path / "ws")),
        tree(str(tmp_path / "ws/sub"), "t1"),
        tree(str(tmp_path / "ws-other"), "t2"),
    ]
    review = kept(tmp_path / "s", tmp_path / "ws", things=things).review()
    assert shown.path_of(review, "t0", "a/b") == "a/b"
    assert shown.path_of(review, "t0", "") == "."
    assert shown.path_of(review, "t1", "a") == "sub/a"
    assert shown.path_of(review, "t1", "") == "sub"
    assert shown.path_of(review, "t2", "a") == f"{tmp_path}/ws-other/a"


BODY = ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
DIFFS = [
    (modified("text"), ["M text", "--- a/text", "+++ b/text", *BODY]),
    (
        change("fresh", new=file(NEW)),
        ["A fresh", "--- /dev/null", "+++ b/fresh", "@@ -0,0 +1,3 @@", "+one", "+2", "+three"],
    ),
    (
        change("gone", DELETED, old=file(OLD)),
        ["D gone", "--- a/gone", "+++ /dev/null", "@@ -1,3 +0,0 @@", "-one", "-two", "-three"],
    ),
    (change("empty", new=file(b"")), ["A empty"]),
    (modified("blob"), ["M blob", "binary, 2 KiB → 3 KiB"]),
    (modified("long"), ["M long", "too long to compare line by line, 2.9 MiB → 2.9 MiB"]),
    (
        change("to", RENAMED, source="from", old=file(OLD), new=file(NEW)),
        ["R to", "renamed from from", "--- a/to", "+++ b/to", *BODY],
    ),
    (change("to", RENAMED, source="from", old=file(NEW), new=file(NEW)), ["R to", "renamed from from"]),
    (
        change("text", MODE, old=file(OLD), new=file(OLD, 0o755)),
        ["m text", "mode 0644 → 0755"],
    ),
    (
        change("link", MODIFIED, old=link("text"), new=link("elsewhere")),
        ["M link", "-link to text", "+link to elsewhere"],
    ),
    (
        change("kind", TYPE, old=file(OLD), new=link("text")),
        [
            "T kind",
            "file → symlink",
            "+link to text",
            "--- a/kind",
            "+++ /dev/null",
            "@@ -1,3 +0,0 @@",
            "-one",
            "-two",
            "-three",
        ],
    ),
    (change("text", TIME, old=file(OLD), new=file(OLD, mtime_ns=10**18)), ["t text"]),
    (change("absent", new=file(NEW)), ["A absent", "it cannot be read"]),
    (
        change("fresh", new=file(NEW), tier="refused", reason="why"),
        [
            "A fresh",
            "  refused: why",
            "--- /dev/null",
            "+++ b/fresh",
            "@@ -0,0 +1,3 @@",
            "+one",
            "+2",
            "+three",
        ],
    ),
    (
        modified("text", conflict="the host changed it", now=file(OLD, 0o600, 1796048102 * 10**9)),
        [
            "M text",
            "  conflict: the host changed it",
            "  when the run began: file, mode 0644, 14 B",
            "  host: file, mode 0600, 14 B, 2026-11-30 14:15:02 UTC",
            "  session: file, mode 0644, 12 B",
            "mode 0600 → 0644",
            "--- a/text",
            "+++ b/text",
            *BODY,
        ],
    ),
]


@pytest.mark.parametrize(("found", "lines"), DIFFS)
def test_a_change_as_a_diff(session: Kept, found: Change, lines: list[str]) -> None:
    assert list(shown.diff(session.review(), found)) == lines


def test_settings_of_git_are_lines_of_keys(session: Kept) -> None:
    found = change(".git/config", SETTINGS, old=file(b"", 0o600))
    review = session.review(found)
    assert shown.row(review, review.changes[0]).mode == "", "the mode of a config is the host's"
    lines = list(shown.diff(review, review.changes[0]))
    assert lines[0] == "S .git/config"
    assert all(line[0] in "+-! " for line in lines[1:])
    assert shown.as_object(review, review.changes[0])["settings"].keys() == {"offered", "refused"}


def test_a_setting_forges_no_other_one(session: Kept) -> None:
    found = change(".git/config", SETTINGS, old=file(b"", 0o600))
    review = session.review(found)
    offered = (
        Offered("branch.x.description", (), ("x; +remote.up.url = good",)),
        Offered("submodule.a; +remote.up.url = good.url", (), ("../lib",)),
        Offered("remote.o.url", (), ("https://x.example/" + "a" * 9000,)),
    )
    review = review._replace(keys={("t0", ".git/config"): Keys(offered, ())})
    detail = shown.row(review, review.changes[0]).detail
    assert '+branch.x.description = "x; +remote.up.url = good"; ' in detail
    assert '+"submodule.a; +remote.up.url = good.url" = ../lib' in detail
    assert len(detail) < 600


def test_the_object_has_all_of_it(session: Kept) -> None:
    found = change(
        "to", RENAMED, source="from", old=file(OLD), new=State("file", 0o755, 12, 5, "ab"), conflict="c"
    )
    workspace = session.workspace
    assert shown.as_object(session.review(), found) == {
        "path": f"{workspace}/to",
        "what": "renamed",
        "source": f"{workspace}/from",
        "tier": "plain",
        "reason": None,
        "conflict": "c",
        "old": {"kind": "file", "mode": "0644", "bytes": 14, "mtime_ns": None, "sha256": file(OLD).digest},
        "new": {"kind": "file", "mode": "0755", "bytes": 12, "mtime_ns": 5, "sha256": "ab"},
        "host": {"kind": "absent", "mode": None, "bytes": None, "mtime_ns": None, "sha256": None},
        "refs": None,
        "settings": None,
    }
