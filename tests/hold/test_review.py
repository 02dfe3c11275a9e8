"""What is listed with which tier."""

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
    SETTINGS,
    TYPE,
    WARNED,
    State,
)
from jail.hold.choosing import chosen
from jail.plan.held import FILE, Held
from support.changed import FOLDER, Kept, change, kept, link, spread, tree


@pytest.fixture
def session(tmp_path: Path) -> Kept:
    return kept(tmp_path / "session", tmp_path / "ws", {".git/HEAD": b""}, {})


def test_every_change_has_its_tier(session: Kept) -> None:
    found = session.review(
        change("CLAUDE.md", MODIFIED),
        change("Makefile"),
        change("new", new=FOLDER),
        change("new/.husky/pre-commit"),
        change("pipe", new=State("special")),
        change("src/main", MODIFIED),
    )
    tiers = {each.path: each.tier for each in found.changes}
    assert [path for path, tier in tiers.items() if tier == NEVER] == ["pipe"]
    assert [path for path, tier in tiers.items() if tier == REFUSED] == [
        "CLAUDE.md",
        "new/.husky/pre-commit",
    ]
    assert [path for path, tier in tiers.items() if tier == WARNED] == ["Makefile"]


def test_settings_of_git_are_told_by_key(tmp_path: Path) -> None:
    config = '[branch "main"]\n\tremote = origin\n'
    evil = "[core]\n\tfsmonitor = ./x\n"
    made = kept(
        tmp_path / "s", tmp_path / "ws", {".git/config": b""}, {".git/config": (config + evil).encode()}
    )
    found = made.review(change(".git/config", SETTINGS))
    (only,) = found.changes
    assert (only.tier, only.reason) == (WARNED, "not offered: core.fsmonitor")
    assert [each.key for each in found.keys["t0", ".git/config"].offered] == ["branch.main.remote"]
    (made.upper / ".git/config").write_text(config)
    (only,) = made.review(change(".git/config", SETTINGS)).changes
    assert (only.tier, only.reason) == (PLAIN, "")
    (made.upper / ".git/config").write_text(evil)
    (only,) = made.review(change(".git/config", SETTINGS)).changes
    assert (only.tier, only.reason) == (NEVER, "not offered: core.fsmonitor")
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


@pytest.mark.parametrize("what", [TYPE, DELETED])
@pytest.mark.parametrize("path", ["notes", ".git/modules/sub/config", ".git/config.worktree"])
def test_of_a_held_file_only_the_content_arrives(tmp_path: Path, what: str, path: str) -> None:
    thing = Held("f0", FILE, str(tmp_path / "ws" / path), "a rule")
    made = kept(tmp_path / "s", tmp_path / "ws", {path: b""}, things=[thing])
    found = made.review(change("", what, tree="f0", new=link("../evil")))
    assert [each.tier for each in found.changes] == [NEVER]
    assert made.review(change("", MODIFIED, tree="f0")).changes[0].tier == {"notes": PLAIN}.get(
        path, NEVER if path.endswith("config") else REFUSED
    )


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
