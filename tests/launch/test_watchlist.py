"""Where absent names are watched."""

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
