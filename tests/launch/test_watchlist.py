"""Where absent names are watched."""

import os
from pathlib import Path

from jail.launch import watchlist
from jail.launch.watchlist import Place
from jail.plan.facts import Guarded


def absent(*paths: str) -> list[Guarded]:
    return [Guarded(path, "absent", "why") for path in paths]


def test_each_name_is_watched_from_the_deepest_folder_that_holds_it() -> None:
    found = watchlist.places(
        ["/ws", "/ws/.git", "/ws/.git/modules/a"],
        absent(
            "/ws/CLAUDE.md", "/ws/.github/hooks", "/ws/.git/info/attributes", "/ws/.git/modules/a/commondir"
        ),
        [Guarded("/ws/claude.md", "file", "why"), Guarded("/elsewhere", "file", "why")],
    )
    assert {place.folder: (place.names, place.present) for place in found} == {
        "/ws": ((("CLAUDE.md", "why"), (".github/hooks", "why")), ("claude.md",)),
        "/ws/.git": ((("info/attributes", "why"),), ()),
        "/ws/.git/modules/a": ((("commondir", "why"),), ()),
    }


def test_a_path_that_only_begins_like_a_folder_is_not_in_it() -> None:
    assert watchlist.places(["/src/repo"], absent("/src/repo-evil/CLAUDE.md"), []) == ()


def test_names_are_kept_by_components_and_merged() -> None:
    tree = watchlist.tree([(".github/hooks", "one"), ("CLAUDE.md", "two")])
    watchlist.merge(tree, watchlist.tree([(".github/prompts", "three"), ("X", "four")]))
    assert set(tree.below) == {".github", "claude.md", "x"}
    assert {name: node.reason for name, node in tree.below[".github"].below.items()} == {
        "hooks": "one",
        "prompts": "three",
    }
    assert Place("/ws", ()).present == ()


def test_a_node_is_found_in_any_spelling() -> None:
    tree = watchlist.tree([(".github/hooks", "one")])
    hooks = tree.at(".GitHub/HOOKS")
    assert hooks is not None
    assert hooks.reason == "one"
    assert tree.at(".github/prompts") is None
    assert tree.at("a/b/c") is None


def test_of_what_stood_at_launch_the_links_above_watched_names_are_known_by_their_target(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/below").symlink_to("there")
    for name in (".github", "link", "CLAUDE.md"):
        (tmp_path / name).symlink_to("real")
    names = watchlist.tree([(".github/hooks", "x"), ("link/below/name", "x"), ("file/name", "x")])
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        stood = watchlist.Stood(fd, names, (".github", "CLAUDE.md", "link/below", "file", ".GITHUB"))
        assert watchlist.target(fd, "real/below") == "there"
        assert watchlist.target(fd, "link/below") == "", "another link is not followed"
        assert watchlist.target(fd, "real") == ""
        assert watchlist.target(fd, "gone") == ""
    finally:
        os.close(fd)
    assert stood.as_link(".github") == "real"
    for path in ("CLAUDE.md", "link/below", "file", ".GITHUB", "link"):
        assert stood.as_link(path) == ""
    assert ".github" in stood
    assert "link" not in stood
    stood.forget(".github")
    stood.forget("never there")
    assert ".github" not in stood
    assert stood.as_link(".github") == ""


def test_a_label_is_short_and_harmless() -> None:
    assert watchlist.label("é\n/.mcp json") == "___.mcp_json"
    assert len(watchlist.label("x" * 300)) == 80
