"""Applying what a session holds: the tree becomes what was chosen, whatever names, links and hosts do."""

import os
from pathlib import Path

import pytest

from jail.hold import change, drop, look, store
from jail.hold.account import Account
from jail.hold.apply import apply
from jail.hold.stage import Instead
from jail.plan.held import COPY, FILE, GIT_CONFIG, OVERLAY, Held
from support.applied import ACTS, applied_all, listed, view, whole
from support.holding import Holding, lay, reasons, seen

BEFORE = {
    "kept": "kept",
    "changed": "old",
    "deleted": "old",
    "to-folder": "old",
    "to-file/in": "old",
    "to-file/sub/in": "old",
    "link": "→kept",
    "dir/a": "a",
    "dir/b": "b",
    "gone/sub/x": "x",
}
AFTER = {
    "kept": "kept",
    "changed": "new",
    "to-folder": None,
    "to-folder/in": "new",
    "to-file": "new",
    "link": "→/etc/shadow",
    "dir": None,
    "dir/a": "a",
    "new": None,
    "new/sub": None,
    "new/sub/file": "new",
    "new/-rf": "x",
    "empty": None,
}


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def all_kinds(held: Holding) -> Holding:
    """A tree and changes of every kind."""
    lay(held.tree, BEFORE)
    held.begin()
    lay(held.upper, {"changed": "new", "to-folder/in": "new", "to-file": "new", "link": "→/etc/shadow"})
    lay(held.upper, {"new/sub/file": "new", "new/-rf": "x", "empty": None})
    for path in ("deleted", "dir/b", "gone"):
        held.whiteout(path)
    return held


def test_every_kind_of_change_arrives_and_nothing_of_the_apply_is_left(held: Holding) -> None:
    all_kinds(held)
    applied = held.apply()
    assert (reasons(applied.conflicts), applied.problem) == ({}, "")
    assert seen(held.tree) == AFTER
    assert held.left() == []
    assert {kind for kind, _, _ in held.said} == {"applied"}
    assert len(held.said) == len(applied.done) == 18
    assert list(held.upper.rglob("*")) == []


def test_a_second_apply_of_the_same_list_changes_nothing(held: Holding) -> None:
    chosen = all_kinds(held).every()
    held.apply(chosen)
    before = {path: path.lstat().st_ino for path in held.tree.rglob("*")}
    again = held.apply([each for each in chosen if each.what != change.ADDED])
    assert seen(held.tree) == AFTER
    assert before == {path: path.lstat().st_ino for path in held.tree.rglob("*")}
    assert {each.path for each in again.conflicts} == {"changed", "to-file", "link"}
    assert held.left() == []


def test_what_is_not_chosen_stays_in_the_session(held: Holding) -> None:
    all_kinds(held)
    held.apply([held.change("changed"), held.change("dir/b")])
    assert seen(held.tree) == {**seen_before(), "changed": "new"}
    assert not (held.upper / "changed").exists()
    assert not (held.upper / "dir").exists()
    assert seen(held.upper)["new/sub/file"] == "new"


def seen_before() -> dict[str, str | None]:
    folders = {str(above) for name in BEFORE for above in Path(name).parents if str(above) != "."}
    return {**dict.fromkeys(folders), **{name: text for name, text in BEFORE.items() if name != "dir/b"}}


# --- the kernel's own layers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OVERLAY, COPY])
def test_the_tree_becomes_what_the_command_saw_and_nothing_is_listed_any_more(
    tmp_path: Path, kind: str
) -> None:
    session = listed(tmp_path, kind)
    session.run(ACTS)
    inside = view(session)
    applied = applied_all(session)
    assert (reasons(applied.conflicts), applied.problem) == ({}, "")
    assert whole(session.tree) == inside
    assert list(look.changes(str(session.folder), session.manifest)) == []
    assert view(session) == inside
    if kind == OVERLAY:
        drop.empty(str(session.folder), session.manifest)
        assert os.listdir(session.inside) == []
        assert view(session) == inside


# --- what a name can be -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["-rf", "new\nline", "\udcff\udcfe", "\u202etxt", " ", "*", "x" * 255, ".jail-apply"]
)
def test_hostile_names_are_names(held: Holding, name: str) -> None:
    lay(held.upper, {name: "new", f"d/{name}": "new"})
    assert held.begin().apply().conflicts == ()
    assert seen(held.tree) == {name: "new", "d": None, f"d/{name}": "new"}


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc/x", "a//b", "./a", ".jail-apply-1/x"])
def test_a_path_that_is_none_is_refused(held: Holding, path: str) -> None:
    lay(held.upper, {"x": "new"})
    forged = held.begin().change("x")._replace(path=path)
    assert set(reasons(held.apply([forged]).conflicts)) == {path}
    assert seen(held.tree) == {}
    assert set(os.listdir(held.tree.parent)) == {"ws", "session"}


@pytest.mark.usefixtures("emptied")
def test_a_path_longer_than_path_max_is_applied_and_dropped(held: Holding) -> None:
    name, depth = "d" * 250, 20
    fd = os.open(held.begin().upper, os.O_PATH)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    top = held.change(name)
    applied = held.apply([top._replace(path="/".join([name] * level)) for level in range(1, depth + 1)])
    assert (len(applied.done), applied.conflicts, applied.problem) == (depth, (), "")
    assert held.left() == []
    assert os.listdir(held.upper) == []


# --- what arrives -------------------------------------------------------------------------------------------


def test_only_the_kinds_that_are_content_are_applied(held: Holding) -> None:
    held.begin()
    os.mkfifo(held.upper / "fifo")
    (held.upper / "swapped").write_text("x")
    fifo, swapped = held.change("fifo"), held.change("swapped")
    (held.upper / "swapped").unlink()
    os.mkfifo(held.upper / "swapped")
    never = held.change("fifo")._replace(path="refused", new=swapped.new, tier=change.NEVER, reason="never")
    applied = held.apply([fifo, swapped, never])
    assert set(reasons(applied.conflicts)) == {"fifo", "swapped", "refused"}
    assert os.listdir(held.tree) == []


def test_a_git_config_gets_the_content_of_who_read_its_keys(held: Holding) -> None:
    lay(held.tree, {"g/config": "host"})
    held.begin()
    lay(held.upper, {"g/config": "session"})
    chosen = [held.change("g/config", change.SETTINGS)]
    applied = apply(
        str(held.session), held.manifest, chosen, Account(held.record), lambda _: Instead(b"merged")
    )
    assert applied.conflicts == ()
    assert (held.tree / "g/config").read_text() == "merged"
    assert (held.upper / "g/config").read_text() == "session"


@pytest.mark.parametrize(("deliver", "host_has"), [(GIT_CONFIG, "host"), ("", "first")])
def test_a_held_file_gets_its_content_and_a_new_base(tmp_path: Path, deliver: str, host_has: str) -> None:
    host = tmp_path / "config"
    host.write_text(host_has)
    os.utime(host, (0, 0))
    folder = tmp_path / "session"
    thing = Held("f0", FILE, str(host), "a test", deliver)
    manifest = store.Manifest("s", str(tmp_path), os.geteuid(), os.getegid(), -1, 0, (), (thing,))
    lay(folder / "held", {"files/f0/config": "session", "base/f0": "first"})
    chosen = list(look.changes(str(folder), manifest))
    instead = Instead(b"merged", b"next") if deliver else None
    done = apply(str(folder), manifest, chosen, Account(lambda *_: None), lambda _: instead)
    assert (reasons(done.conflicts), done.problem) == ({}, "")
    assert host.read_text() == ("merged" if deliver else "session")
    assert seen(folder / "held") == {
        "base": None,
        "base/f0": "next" if deliver else "session",
        "files": None,
        "files/f0": None,
        "files/f0/config": "session",
    }
    assert set(os.listdir(tmp_path)) == {"session", "config"}
