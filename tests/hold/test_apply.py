"""Applying what a session holds: the tree becomes what was chosen, whatever names, links and hosts do."""

import ast
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jail.hold import change, journal, look, store, swap
from jail.hold.apply import apply
from jail.hold.change import Change
from jail.hold.stage import Instead
from jail.hold.transaction import Applied, Transaction
from jail.plan.held import COPY, FILE, GIT_CONFIG, OVERLAY, Held
from support import steps
from support.holding import Holding, lay, reasons, seen, state
from support.overlays import Session

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


def test_a_rename_is_both_or_neither(held: Holding) -> None:
    lay(held.tree, {"one": "1", "two": "2"})
    held.begin()
    for source, path in (("one", "one-moved"), ("two", "two-moved")):
        lay(held.upper, {path: (held.tree / source).read_text()})
        held.whiteout(source)
    chosen = [held.change("one-moved", source="one"), held.change("two-moved", source="two")]
    (held.tree / "two-moved").write_text("the host's")
    applied = held.apply(chosen)
    assert seen(held.tree) == {"one-moved": "1", "two": "2", "two-moved": "the host's"}
    assert set(reasons(applied.conflicts)) == {"two-moved"}


# --- the kernel's own layers --------------------------------------------------------------------------------

TREE = {
    **{
        name: f"{name}\n"
        for name in ("alpha", "beta", "d/one", "d/two", "s/in", "s/sub/in", "empty", "hard", "run")
    },
    "link": "→alpha",
    "folder": None,
}
ACTS = """
echo new >alpha; mkdir -p n/m; echo x >n/m/f; ln -s ../alpha n/link; chmod 700 d; rm beta; mv d/one d/moved
rm -r s; mkdir s; echo other >s/other; rm -r folder; echo file >folder; rm empty; mkdir empty; echo in >empty/in
rm link; ln -s beta link; chmod 711 run; chmod u+x hard2; chmod u-x hard2; touch -d @5 hard; cp run new-run; chmod 600 new-run
"""


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
        assert os.listdir(session.inside) == []


@pytest.mark.parametrize("kind", [OVERLAY, COPY])
def test_half_of_it_applied_leaves_the_other_half_listed_and_the_view_as_it_was(
    tmp_path: Path, kind: str
) -> None:
    session = listed(tmp_path, kind)
    session.run(ACTS)
    inside = view(session)
    every = list(look.changes(str(session.folder), session.manifest))
    first = [each for at, each in enumerate(every) if at % 2 or each.new.kind == "folder"]
    done = apply(str(session.folder), session.manifest, first, lambda *_: None).done
    rest = list(look.changes(str(session.folder), session.manifest))
    assert {each.path for each in rest} == {each.path for each in every} - {each.path for each in done}
    assert view(session) == inside
    assert applied_all(session).conflicts == ()
    assert whole(session.tree) == inside
    assert list(look.changes(str(session.folder), session.manifest)) == []


def listed(tmp_path: Path, kind: str) -> Session:
    tree = tmp_path / "tree"
    tree.mkdir()
    lay(tree, TREE)
    (tree / "hard2").hardlink_to(tree / "hard")
    session = Session(tmp_path / "session", tree, kind)
    (session.folder / "lock").touch()
    session.snapshot()
    return session


def applied_all(session: Session) -> Applied:
    every = list(look.changes(str(session.folder), session.manifest))
    return apply(str(session.folder), session.manifest, every, lambda *_: None)


def view(session: Session) -> dict[str, object]:
    """What the command sees, in a later mount of the same layers."""
    told = session.folder / "told"
    session.run(lambda: told.write_text(repr(whole(Path()))) and None)
    found: dict[str, object] = ast.literal_eval(told.read_text())
    return found


def whole(tree: Path) -> dict[str, object]:
    """Kind, bits, content and, of files, times of all that is in a tree."""
    found: dict[str, object] = {}
    for path in sorted(tree.rglob("*")):
        seen_as = state(path)._asdict()
        if seen_as["kind"] != "file":
            seen_as["mtime_ns"] = 0
        found[os.fsencode(path.relative_to(tree)).hex()] = tuple(seen_as.values())
    return found


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


# --- what a host does meanwhile -----------------------------------------------------------------------------


def edit(path: Path) -> None:
    path.write_text("the host's")


def replace(path: Path) -> None:
    path.with_name(".saved").write_text("the host's")
    path.with_name(".saved").replace(path)


HOST_ACTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "an edit in place": ("changed", edit),
    "an editor's rename": ("changed", replace),
    "a removal": ("changed", Path.unlink),
    "a change of mode": ("changed", lambda path: path.chmod(0o600)),
    "another file where one is added": ("new", edit),
    "a symlink where one is added": ("new", lambda path: path.symlink_to("changed")),
    "an edit of what is deleted": ("deleted", edit),
    "a file in a folder that is deleted": ("gone/more", edit),
    "a file in a folder that becomes a file": ("to-file/more", edit),
    "a folder where a file was": ("changed", lambda path: (path.unlink(), path.mkdir())),
}


def edited(held: Holding) -> Holding:
    lay(
        held.tree, {"changed": "old", "deleted": "old", "gone/in": "old", "to-file/in": "old", "other/x": "x"}
    )
    held.begin()
    lay(held.upper, {"changed": "new", "new": "new", "to-file": "new", "other/x": "y"})
    held.whiteout("deleted")
    held.whiteout("gone")
    return held


@pytest.mark.parametrize("act", HOST_ACTS)
@pytest.mark.parametrize("when", ["after the list", "while it is applied"])
def test_what_the_host_changed_stays_and_is_a_conflict_of_that_path_alone(
    held: Holding, monkeypatch: pytest.MonkeyPatch, act: str, when: str
) -> None:
    path, do = HOST_ACTS[act]
    chosen = edited(held).every()
    if when == "after the list":
        do(held.tree / path)
    else:
        real = swap.forward
        pending = [lambda: do(held.tree / path)]

        def forward(*arguments: Any) -> None:
            while pending:
                pending.pop()()
            real(*arguments)

        monkeypatch.setattr(swap, "forward", forward)
    applied = held.apply(chosen)
    top = path.partition("/")[0]
    assert {each.path for each in applied.conflicts} == {top}, seen(held.tree)
    assert seen(held.tree)["other/x"] == "y"
    if do in (edit, replace):
        assert (held.tree / path).read_text() == "the host's"
    assert held.left() == []
    if top in seen(held.upper):
        assert state(held.upper / top) == next(each.new for each in chosen if each.path == top)


def test_a_late_write_through_an_open_file_goes_back_to_its_place(
    held: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = edited(held).every()
    file = (held.tree / "changed").open("r+")
    real = swap.completed

    def late(*arguments: Any) -> None:
        file.write("late")
        file.flush()
        real(*arguments)

    lay(held.upper, {"folder/x": "x"})
    monkeypatch.setattr(swap, "completed", late)
    applied = held.apply([*chosen, held.change("folder"), held.change("folder/x")])
    file.close()
    assert {each.path for each in applied.conflicts} == {"changed"}
    assert (held.tree / "changed").read_text() == "late"
    assert held.left() == []


@pytest.mark.parametrize("when", ["after the list", "while it is applied"])
def test_a_symlink_in_place_of_a_parent_leads_nowhere(
    held: Holding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    outside = tmp_path / "outside"
    lay(outside, {"x": "outside", "sub/x": "outside"})
    chosen = edited(held).every()

    def swapped() -> None:
        (held.tree / "other").rename(tmp_path / "moved")
        (held.tree / "other").symlink_to(outside)

    if when == "after the list":
        swapped()
    else:
        commit = Transaction.commit
        monkeypatch.setattr(Transaction, "commit", lambda work: (swapped(), commit(work)))
    applied = held.apply(chosen)
    assert {each.path for each in applied.conflicts} == {"other/x"}
    assert seen(outside) == {"sub": None, "sub/x": "outside", "x": "outside"}


# --- what arrives -------------------------------------------------------------------------------------------


def test_bits_that_nobody_gains_holes_times_and_attributes(held: Holding) -> None:
    held.begin()
    with (held.upper / "sparse").open("wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 29)
        file.write(b"data")
    lay(held.upper, {"setuid": "x", "folder/in": "x", "closed": "x", "shut/in": "x"})
    os.symlink("x", held.upper / "link")
    os.setxattr(held.upper / "setuid", "user.mark", b"x")
    for name, bits in {"setuid": 0o6777, "folder": 0o3777, "closed": 0, "shut": 0}.items():
        os.utime(held.upper / name, ns=(1, 10**18 + 123_456_789))
        os.chmod(held.upper / name, bits)
    os.utime(held.upper / "link", ns=(1, 10**18), follow_symlinks=False)
    chosen = list(look.changes(str(held.session), held.manifest))
    applied = held.apply(chosen)
    assert (reasons(applied.conflicts), applied.problem) == ({}, "")
    bits = {
        name: stat.S_IMODE((held.tree / name).stat().st_mode)
        for name in ("setuid", "folder", "closed", "shut")
    }
    assert bits == {"setuid": 0o775, "folder": 0o775, "closed": 0, "shut": 0}
    assert {(held.tree / name).stat().st_mtime_ns for name in bits} == {10**18 + 123_456_789}
    assert (held.tree / "link").lstat().st_mtime_ns == 10**18
    assert os.listxattr(held.tree / "setuid") == []
    assert (held.tree / "sparse").stat().st_blocks < 100
    assert (held.tree / "sparse").stat().st_size == 1 << 30
    (held.tree / "shut").chmod(0o700)
    assert (held.tree / "shut/in").read_text() == "x"
    assert held.left() == []


def test_bits_that_the_host_has_already_stay(held: Holding) -> None:
    lay(held.tree, {"folder/in": "x", "open": "x"})
    os.chmod(held.tree / "folder", 0o2775)
    os.chmod(held.tree / "open", 0o666)
    held.begin()
    lay(held.upper, {"folder": None, "open": "y"})
    os.chmod(held.upper / "folder", 0o2750)
    os.chmod(held.upper / "open", 0o666)
    held.apply([held.change("folder"), held.change("open")])
    assert stat.S_IMODE((held.tree / "folder").stat().st_mode) == 0o2750
    assert stat.S_IMODE((held.tree / "open").stat().st_mode) == 0o666


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


def test_what_changed_in_the_session_since_the_list_is_refused(held: Holding) -> None:
    held.begin()
    lay(held.upper, {"file": "listed", "link": "→listed"})
    chosen = held.every()
    (held.upper / "file").write_text("swappd")
    (held.upper / "link").unlink()
    (held.upper / "link").symlink_to("swapped")
    assert set(reasons(held.apply(chosen).conflicts)) == {"file", "link"}
    assert os.listdir(held.tree) == []


def test_a_folder_that_is_not_chosen_takes_what_is_in_it_along(held: Holding) -> None:
    held.begin()
    lay(held.upper, {"new/file": "x"})
    applied = held.apply([held.change("new/file")])
    assert "is not applied with it" in reasons(applied.conflicts)["new/file"]
    assert os.listdir(held.tree) == []


def test_a_folder_that_may_not_be_written_is_a_conflict(held: Holding) -> None:
    lay(held.tree, {"shut/file": "old", "open": "old"})
    os.chmod(held.tree / "shut", 0o500)
    held.begin()
    lay(held.upper, {"shut/file": "new", "open": "new"})
    applied = held.apply([held.change("shut/file"), held.change("open")])
    assert reasons(applied.conflicts) == {"shut/file": "you may not write its folder on the host"}
    assert seen(held.tree) == {"shut": None, "shut/file": "old", "open": "new"}
    os.chmod(held.tree / "shut", 0o700)


def test_a_git_config_gets_the_content_of_who_read_its_keys(held: Holding) -> None:
    lay(held.tree, {"g/config": "host"})
    held.begin()
    lay(held.upper, {"g/config": "session"})
    chosen = [held.change("g/config", change.SETTINGS)]
    applied = apply(str(held.session), held.manifest, chosen, held.record, lambda _: b"merged")
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
    done = apply(str(folder), manifest, chosen, lambda *_: None, lambda _: instead)
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


def test_a_planted_staging_folder_is_nobodys(held: Holding) -> None:
    lay(held.tree, {".jail-apply-0123456789abcdef/1": "planted"})
    held.begin()
    lay(held.upper, {"file": "x"})
    assert held.finish() is None
    held.apply([held.change("file")])
    assert seen(held.tree) == {
        ".jail-apply-0123456789abcdef": None,
        ".jail-apply-0123456789abcdef/1": "planted",
        "file": "x",
    }


def test_what_was_staged_and_then_forged_is_never_applied(held: Holding) -> None:
    """Whoever writes the workspace after a kill can write the staging folder too."""
    chosen = edited(held).every()
    first = steps.count(lambda: None)
    assert first == [""]
    at = next(number for number in range(1, 400) if left_committed(held, chosen, number))
    assert at
    (folder,) = held.tree.glob(".jail-apply-*")
    for slot in folder.iterdir():
        if slot.is_file():
            slot.write_text("forged")
    applied = held.finish()
    assert applied is not None
    assert "forged" not in seen(held.tree).values()
    assert {each.conflict for each in applied.conflicts} == {"what was staged for it was changed"}


def left_committed(held: Holding, chosen: list[Change], at: int) -> bool:
    """Whether a kill at this call leaves an apply that has committed; one that has not is tidied up."""
    with steps.unsynced():
        steps.failing(lambda: held.apply(chosen), at, steps.KILL)
    if journal.state(str(held.session)) == journal.COMMITTED:
        return True
    held.finish()
    return False


@pytest.mark.root
def test_root_gives_each_path_the_owner_of_its_place(held: Holding) -> None:
    lay(held.tree, {"theirs/file": "old", "file": "old"})
    for path, owner in {"theirs": 1234, "theirs/file": 2345, "file": 3456, ".": 4567}.items():
        os.chown(held.tree / path, owner, owner)
    held.begin()
    lay(held.upper, {"theirs/file": "new", "theirs/new/sub": "new", "file": "new", "new": "→x"})
    assert held.apply().conflicts == ()
    owners = {str(path.relative_to(held.tree)): path.lstat().st_uid for path in held.tree.rglob("*")}
    assert owners == {
        "theirs": 1234,
        "theirs/file": 2345,
        "theirs/new": 1234,
        "theirs/new/sub": 1234,
        "file": 3456,
        "new": 4567,
    }
