"""`jail gc`: leftovers of crashes go, old sessions go when asked, what runs stays, and nothing leads it astray."""

import fcntl
import json
import os
import random
import time
from pathlib import Path
from typing import Final

import pytest

from jail.errors import JailError
from jail.hold import store
from jail.hold.store import Manifest
from jail.launch import gc
from jail.ledger import heads, place
from jail.ledger.beside import sessions_named
from jail.plan.held import OVERLAY, Held
from support.aftermath import left_by, look
from support.answers import new_jail
from support.installed import Installed
from support.jails import Jail
from support.joining import session
from support.ledgers import state_in, write
from support.overlays import Session

NOTHING = gc.Wishes(None, None, dry_run=False)
DAY: Final = 86400
KILLS: Final = 6


@pytest.fixture
def state(tmp_path: Path) -> str:
    return state_in(tmp_path)


def collect(state: str, wishes: gc.Wishes = NOTHING, cache: str = "") -> list[gc.Found]:
    return list(gc.collect(state, cache or os.path.join(state, "no-cache"), wishes))


def aged(folder: Path, days: float) -> Path:
    """Make all of a session as old as that."""
    then = time.time() - days * DAY
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (then, then), follow_symlinks=False)
    return folder


def names(state: str) -> set[str]:
    return set(os.listdir(os.path.join(state, place.SESSIONS)))


def test_where_nothing_ever_ran_there_is_nothing_to_do(state: str) -> None:
    assert collect(state) == []
    assert not os.path.exists(state)


def test_without_a_wish_no_session_goes(state: str) -> None:
    kept = {aged(write(state)[0], 1000).name, aged(write(state, end=False)[0], 1000).name}
    assert collect(state) == []
    assert kept <= names(state)


def test_what_is_older_goes_and_the_index_keeps_it(state: str) -> None:
    old, new = aged(write(state)[0], 31), write(state)[0]
    index = (Path(state) / place.SESSIONS / "heads.jsonl").read_bytes()
    found = collect(state, gc.Wishes(30 * DAY, None, dry_run=False))
    assert [each.what for each in found] == [f"session {old.name}"]
    assert found[0].size > 0
    assert not found[0].problem
    assert names(state) == {new.name, "heads.jsonl"}
    grown = (Path(state) / place.SESSIONS / "heads.jsonl").read_bytes()
    assert grown.startswith(index)
    assert sessions_named(state)[old.name] > 0.0 == sessions_named(state)[new.name]


def test_the_oldest_go_until_the_rest_is_small_enough(state: str) -> None:
    made = [write(state)[0] for _ in range(4)]
    for folder, days in zip(made, (1, 4, 2, 3), strict=True):
        (folder / "large").write_bytes(b"x" * 100_000)
        aged(folder, days)
    size = collect(state, gc.Wishes(0, None, dry_run=True))[0].size
    found = collect(state, gc.Wishes(None, 2 * size, dry_run=False))
    assert [each.what.split()[1] for each in found] == [made[1].name, made[3].name]
    assert names(state) == {made[0].name, made[2].name, "heads.jsonl"}


def test_a_dry_run_says_the_same_and_does_nothing(state: str) -> None:
    for days in (1, 40, 50):
        aged(write(state)[0], days)
    (Path(state) / place.SESSIONS / (gc.GOING + "20261130-141502-k3f9x2ab")).mkdir()
    before = names(state)
    wishes = gc.Wishes(30 * DAY, None, dry_run=True)
    said = collect(state, wishes)
    assert names(state) == before
    assert collect(state, wishes._replace(dry_run=False)) == said
    assert len(before - names(state)) == 3


def test_one_that_runs_is_never_touched(state: str) -> None:
    folder, lock = write(state, end=False, keep_lock=True)
    (folder / "socket").touch()
    aged(folder, 1000)
    assert collect(state, gc.Wishes(0, 0, dry_run=False)) == []
    assert (folder / "socket").exists()
    os.close(lock)
    assert [each.what for each in collect(state)] == [f"{folder.name}/socket"]
    assert len(collect(state, gc.Wishes(0, None, dry_run=False))) == 1
    assert folder.name not in names(state)


def test_half_made_and_half_removed_sessions_go_when_their_maker_is_gone(state: str) -> None:
    kept = write(state)[0]
    sessions = kept.parent
    stale, fresh, made, going = (
        sessions / f"{prefix}20261130-141502-k3f9x2a{end}"
        for prefix, end in ((".new-", "a"), (".new-", "b"), (".new-", "c"), (".gone-", "d"))
    )
    for folder in (stale, fresh, made, going):
        folder.mkdir(0o700)
        (folder / "lock").touch()
    aged(stale, 1)
    aged(made, 1)
    with (made / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert {each.what for each in collect(state)} == {stale.name, going.name}
    assert names(state) == {kept.name, fresh.name, made.name, "heads.jsonl"}


def test_what_is_not_jails_stays(state: str) -> None:
    sessions = write(state)[0].parent
    strangers = (
        "notes",
        ".new-",
        ".gone-nonsense",
        ".hidden",
        "20261130-141502-k3f9x2abc",
        "heads.jsonl.bak",
    )
    for name in strangers:
        (sessions / name).mkdir()
        aged(sessions / name, 400)
    collect(state, gc.Wishes(0, 0, dry_run=False))
    assert names(state) == {*strangers, "heads.jsonl"}


def test_no_link_leads_it_out(state: str, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "lock").touch()
    (treasure / "socket").touch()
    folder = write(state)[0]
    for name in (
        "20200101-000000-aaaaaaaa",
        ".gone-20200101-000000-aaaaaaaa",
        ".new-20200101-000000-bbbbbbbb",
    ):
        (folder.parent / name).symlink_to(treasure)
        os.utime(folder.parent / name, (0, 0), follow_symlinks=False)
    (folder / "swept").mkdir()
    (folder / "swept" / "way-out").symlink_to(treasure)
    (folder / "swept" / "hard").hardlink_to(treasure / "lock")
    aged(folder, 400)
    collect(state, gc.Wishes(0, 0, dry_run=False))
    assert sorted(os.listdir(treasure)) == ["lock", "socket"]
    assert not folder.exists()
    assert (folder.parent / "20200101-000000-aaaaaaaa").is_symlink(), "it is no session"


@pytest.mark.usefixtures("emptied")
def test_deep_closed_and_oddly_named_trees_go_too(state: str) -> None:
    folder = write(state)[0]
    (folder / "swept").mkdir()
    fd = os.open(folder / "swept", os.O_RDONLY)
    for depth in range(600):
        name = "d" * 200 if depth % 2 else "\n\x1b[2J"
        os.mkdir(name, dir_fd=fd)
        above, fd = fd, os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(above)
    os.close(os.open(os.fsencode("\udcff"), os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.fchmod(fd, 0)
    os.close(fd)
    os.mkfifo(folder / "swept" / "fifo")
    (found,) = collect(state, gc.Wishes(0, None, dry_run=False))
    assert not found.problem
    assert names(state) == {"heads.jsonl"}


def test_what_cannot_be_removed_is_told_and_the_rest_goes(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, other = (aged(write(state)[0], days) for days in (50, 40))
    real = gc.trees.remove_tree

    def refusing(parent: int, name: str) -> None:
        if name.endswith(stuck.name):
            raise PermissionError(1, "Operation not permitted")
        real(parent, name)

    monkeypatch.setattr(gc.trees, "remove_tree", refusing)
    found = collect(state, gc.Wishes(30 * DAY, None, dry_run=False))
    assert [each.problem for each in found] == ["Operation not permitted", ""]
    assert names(state) == {gc.GOING + stuck.name, "heads.jsonl"}
    monkeypatch.undo()
    assert [each.why for each in collect(state)] == ["its removal was interrupted"]
    assert all(sessions_named(state).values())
    assert not other.exists()
    assert names(state) == {"heads.jsonl"}


def test_on_a_full_disk_the_index_is_told_when_there_is_room_again(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = aged(write(state)[0], 31)
    real, refused = heads.add_removal, list[str]()

    def full(sessions: int, name: str) -> None:
        if f"{gc.GOING}{name}" in names(state):
            refused.append(name)
            raise JailError("the disk is full")
        real(sessions, name)

    monkeypatch.setattr(heads, "add_removal", full)
    (found,) = collect(state, gc.Wishes(30 * DAY, None, dry_run=False))
    assert (found.problem, refused) == ("", [old.name])
    assert sessions_named(state)[old.name] > 0.0


def test_the_folder_that_the_kernel_works_in_goes_with_a_session(state: str, tmp_path: Path) -> None:
    """An overlay leaves work/work without any permission bit."""
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    (tree / "d/file").write_text("x")
    folder = write(state)[0]
    held = Session(folder, tree, OVERLAY)
    held.run("echo y >d/file; rm d/file; echo z >d/file")
    assert (folder / "held/t0/work/work").stat().st_mode & 0o777 == 0
    (found,) = collect(state, gc.Wishes(0, None, dry_run=False, held=True))
    assert (found.problem, found.kept, folder.exists()) == ("", "", False)


def apart(installed: Installed, folder: Path) -> Jail:
    """A jail whose caches are its own: those of other tests look unused from here, and would go."""
    jail = new_jail(installed, folder)
    return jail._replace(environment={**jail.environment, "XDG_CACHE_HOME": f"{folder}-cache"})


def test_artefacts_of_other_versions_go_from_the_cache(installed: Installed, tmp_path: Path) -> None:
    jail = apart(installed, tmp_path / "cached")
    assert jail.run("true").returncode == 0
    cache = tmp_path / "cached-cache" / "jail"
    kept = set(os.listdir(cache))
    (cache / "other").write_bytes((cache / "filters").read_bytes())
    (cache / ".filters.17.abcdef12").write_bytes(b"half")
    (cache / "toolchain").mkdir()
    (cache / "toolchain" / "file").write_text("jail cache 1\n")
    (cache / "note").write_text("not an artefact")
    for name in ("other", ".filters.17.abcdef12", "note", "toolchain"):
        os.utime(cache / name, (0, 0))
    done = jail.call("gc")
    assert done.returncode == 0, done.stderr
    assert set(os.listdir(cache)) == {*kept, "toolchain", "note"}
    assert "2 removed" in done.stdout


def test_the_command_says_what_it_removed(installed: Installed, tmp_path: Path) -> None:
    jail = apart(installed, tmp_path / "said")
    assert jail.call("gc").stdout == "nothing to remove\n"
    assert jail.call("gc", "--json").stdout == "[]\n"
    assert jail.run("true").returncode == 0
    with session(jail) as running:
        done = jail.call("gc", "--older-than", "0", "--dry-run")
        assert done.stdout.splitlines()[-1].startswith("1 would go,"), done.stdout
        done = jail.call("gc", "--older-than", "0", "--dry-run", "--json")
        (found,) = json.loads(done.stdout)
        assert (found["what"][:7], found["problem"], found["removed"]) == ("session", None, False)
        assert found["bytes"] > 0
        done = jail.call("gc", "--older-than", "0", "--keep", "0")
        assert (done.returncode, done.stdout.splitlines()[-1][:10]) == (0, "1 removed,")
        assert [folder.name for folder in jail.sessions()] == [running.id]
        assert running.lives()
    assert "1 more ran, removed by `jail gc`" in jail.call("sessions").stdout
    for wrong in (("--older-than", "30"), ("--keep", "5"), ("--older-than", "-1d")):
        assert jail.call("gc", *wrong).returncode == 2


@pytest.mark.parametrize("seed", range(KILLS))
def test_e15_after_kill_9_at_a_random_point_nothing_is_left(
    installed: Installed, tmp_path: Path, seed: int
) -> None:
    jail = apart(installed, tmp_path / "killed")
    mark = f"e15-{os.getpid()}-{seed}"
    before = look(jail)
    process = jail.popen("sh", "-c", "sleep 60; :", mark)
    time.sleep(random.Random(seed).uniform(0.0, 0.5))
    process.kill()
    process.wait()
    _make_old(jail)
    assert left_by(jail, mark, before, patience=5.0) == []
    done = jail.call("gc", "--older-than", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    sessions = jail.home / ".local/state/jail/sessions"
    left = set(os.listdir(sessions)) if sessions.exists() else set()
    assert left <= {"heads.jsonl"}
    assert jail.call("gc").stdout == "nothing to remove\n"


def _make_old(jail: Jail) -> None:
    """What is half made is left to its maker for a minute: let that pass."""
    sessions = jail.home / ".local/state/jail/sessions"
    for folder in sessions.glob(".new-*"):
        aged(folder, 1)


def test_a_crashed_session_that_is_kept_loses_its_socket(installed: Installed, tmp_path: Path) -> None:
    with session(apart(installed, tmp_path / "crashed")) as found:
        found.running.process.kill()
        found.running.wait()
        assert found.path.exists()
        done = found.jail.call("gc")
        assert f"{found.id}/socket" in done.stdout
        assert not found.path.exists()
        assert (found.folder / "ledger.jsonl").exists()
        assert found.jail.call("gc").stdout == "nothing to remove\n"


def holding(folder: Path) -> Path:
    """Let the session in `folder` hold a change."""
    upper = folder / "held" / "t0" / "upper"
    upper.mkdir(parents=True)
    (upper / "new").touch()
    thing = Held("t0", OVERLAY, "/w", "the workspace")
    manifest = Manifest(folder.name, "/w", os.getuid(), os.getgid(), -1, 7, (), (thing,))
    store.write_manifest(str(folder / "held"), manifest)
    return folder


def test_one_that_holds_changes_is_kept_and_said_to_be_unless_they_may_go(state: str) -> None:
    kept, gone = aged(holding(write(state)[0]), 40), aged(write(state)[0], 40)
    wishes = gc.Wishes(30 * DAY, None, dry_run=False)
    found = {each.what: each.kept for each in collect(state, wishes)}
    assert found == {f"session {kept.name}": gc.HOLDS, f"session {gone.name}": ""}
    assert names(state) == {kept.name, "heads.jsonl"}
    assert [each.kept for each in collect(state, wishes._replace(held=True))] == [""]
    assert names(state) == {"heads.jsonl"}


def test_what_is_held_meanwhile_is_seen_before_the_session_goes(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = aged(write(state)[0], 40)
    wishes = gc.Wishes(30 * DAY, None, dry_run=False)
    collected = gc.collect(state, os.path.join(state, "no-cache"), wishes)
    monkeypatch.setattr(gc, "_unwanted", lambda every, _: [(holding(folder) and old, "x") for old in every])
    assert [each.problem for each in collected] == [gc.HOLDS]
    assert (folder / "held").exists()
