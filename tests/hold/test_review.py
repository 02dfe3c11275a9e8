"""What is listed with which tier, and what of it a path chooses."""

from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.hold import review
from jail.hold.change import (
    DELETED,
    MODIFIED,
    NEVER,
    PLAIN,
    REFUSED,
    RENAMED,
    SETTINGS,
    TYPE,
    WARNED,
    State,
)
from jail.hold.review import Review, chosen, meant
from jail.plan.held import FILE, Held
from support.changed import FOLDER, Kept, change, file, kept, link, spread, tree
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


def test_every_change_has_its_tier(session: Kept) -> None:
    tiers = {each.path: each.tier for each in session.review(*CHANGES).changes}
    assert [path for path, tier in tiers.items() if tier == NEVER] == ["pipe"]
    assert [path for path, tier in tiers.items() if tier == REFUSED] == [
        "CLAUDE.md",
        "new/deep/.husky/pre-commit",
    ]
    assert [path for path, tier in tiers.items() if tier == WARNED] == ["Makefile"]


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
    kept_back = review.without_filled(found, every_other)
    assert "new" not in [each.path for each in kept_back], "what stays held lies in it"
    assert "old" in [each.path for each in kept_back]


def test_settings_of_git_are_told_by_key(tmp_path: Path) -> None:
    config = '[branch "main"]\n\tremote = origin\n'
    evil = "[core]\n\tfsmonitor = ./x\n"
    made = kept(
        tmp_path / "s", tmp_path / "ws", {".git/config": b""}, {".git/config": (config + evil).encode()}
    )
    found = made.review(change(".git/config", SETTINGS))
    (only,) = found.changes
    assert (only.tier, only.reason) == (WARNED, "some of it never: core.fsmonitor")
    assert [each.key for each in found.keys["t0", ".git/config"].offered] == ["branch.main.remote"]
    (made.upper / ".git/config").write_text(config)
    (only,) = made.review(change(".git/config", SETTINGS)).changes
    assert (only.tier, only.reason) == (PLAIN, "")
    (made.upper / ".git/config").write_text(evil)
    (only,) = made.review(change(".git/config", SETTINGS)).changes
    assert (only.tier, only.reason) == (NEVER, "never: core.fsmonitor")
    (made.upper / ".git/config").unlink()
    (only,) = made.review(change(".git/config", SETTINGS)).changes
    assert only.tier == NEVER


def test_a_setting_that_the_host_changed_too_is_a_conflict(tmp_path: Path) -> None:
    config = tmp_path / "ws/.git/config"
    thing = Held("f0", FILE, str(config), "settings of git", "git-config")
    made = kept(tmp_path / "s", tmp_path / "ws", {".git/config": b""}, things=[thing])
    text = '[branch "main"]\n\tremote = {}\n'
    spread(made.folder / "held", {"files/f0/config": text.format("new").encode(), "base/f0": b""})
    found = change("", SETTINGS, tree="f0")
    met = {
        "": "",
        text.format("new"): "",
        text.format("mine"): "the host has another value for branch.main.remote by now",
        "[user]\n\tname = x\n": "",
        "[broken\n": "the host's git config cannot be read: section in line 1",
    }
    for host, conflict in met.items():
        config.write_text(host)
        assert made.review(found).changes[0].conflict == conflict
    config.unlink()
    assert made.review(found).changes[0].conflict == "the host's git config cannot be read"


@pytest.mark.parametrize("what", [TYPE, DELETED])
@pytest.mark.parametrize("deliver", ["git-config", ""], ids=["held by itself", "held by a rule"])
def test_what_stands_in_the_place_of_a_held_config_never_arrives(
    tmp_path: Path, what: str, deliver: str
) -> None:
    """A link to a file of the work would bring every key along."""
    thing = Held("f0", FILE, str(tmp_path / "ws/.git/config"), "settings of git", deliver)
    made = kept(tmp_path / "s", tmp_path / "ws", {".git/HEAD": b"", ".git/config": b""}, things=[thing])
    found = made.review(change("", what, tree="f0", new=link("../evil")))
    assert [each.tier for each in found.changes] == [NEVER]
    for words in ([], [str(thing.path)]):
        assert chosen(found, words, str(tmp_path)).taken == ()


def test_commands_that_another_folder_of_path_has_too_are_shadows(tmp_path: Path) -> None:
    venv, system = tmp_path / "ws/.venv/bin", tmp_path / "system"
    for folder, name in ((venv, "mine"), (system, "git"), (system, "Tool")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    thing = tree(str(tmp_path / "ws/.venv"), "t0", [str(venv)])
    path = [str(venv), str(tmp_path / "absent"), str(system)]
    made = kept(tmp_path / "s", tmp_path / "ws", things=[thing], path=path)
    names = ("git", "GIT", "tool", "mine", "fresh")
    found = made.review(*(change(f"bin/{name}") for name in names))
    assert {each.path: each.reason for each in found.changes} == {
        "bin/git": f"shadows {system}/git",
        "bin/GIT": f"shadows {system}/git",
        "bin/tool": f"shadows {system}/Tool",
        "bin/mine": "",
        "bin/fresh": "",
    }


def test_a_session_that_holds_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(JailError, match="holds nothing") as caught:
        review.reviewed(str(tmp_path))
    assert caught.value.code == EXIT_USAGE


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
