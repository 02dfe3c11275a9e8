"""Caches and control groups that `jail gc` removes: whose they are, when they were used, which stay."""

import os
import shutil
import time
from pathlib import Path

import pytest

from jail.kernel import cgroups
from jail.launch import caches, gc, leftovers
from support.ledgers import state_in, write

DAY = 86400
NOTHING = gc.Wishes(None, None, dry_run=False)
OLD = gc.Wishes(30 * DAY, None, dry_run=False)


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return f"{os.path.realpath(tmp_path)}/.cache/jail"


@pytest.fixture
def state(tmp_path: Path) -> str:
    return state_in(tmp_path)


def made(cache: str, workspace: str, days: float = 0, size: int = 1000) -> Path:
    """A cache that was last used so many days ago: the folder that the command sees."""
    folder = Path(caches.place(cache, workspace, 1))
    caches.prepare(str(folder), workspace, (-1, -1))
    (folder / "content").write_bytes(b"x" * size)
    then = time.time() - days * DAY
    os.utime(folder.parent / "workspace", (then, then))
    return folder


def collect(state: str, cache: str, wishes: gc.Wishes = OLD) -> list[str]:
    return [each.what for each in gc.collect(state, cache, wishes)]


def listed(cache: str) -> list[leftovers.Cache]:
    fd = leftovers.open_caches(cache)
    try:
        return list(leftovers.listing(fd)) if fd >= 0 else []
    finally:
        if fd >= 0:
            os.close(fd)


def test_the_listing_says_whose_how_large_and_when_last_used(cache: str) -> None:
    assert listed(cache) == []
    folder = made(cache, "/srv/w\udcff", size=100_000)
    os.link(folder / "content", folder / "again")
    os.utime(folder.parent / "workspace", (1000, 1000))
    os.mkdir(f"{cache}/caches/not-one-of-ours")
    (found,) = listed(cache)
    assert (found.workspace, found.used) == ("/srv/w\udcff", 1000.0)
    assert 100_000 <= found.size < 200_000
    made(cache, "/srv/w\udcff")
    assert listed(cache)[0].used > 1000
    (folder.parent / "workspace").unlink()
    assert listed(cache)[0].workspace == ""


def test_caches_go_by_their_last_use_and_only_when_asked(state: str, cache: str) -> None:
    old, new = made(cache, "/old", 31), made(cache, "/new", 29)
    assert collect(state, cache, NOTHING) == []
    assert collect(state, cache, OLD._replace(dry_run=True)) == ["cache of /old"]
    assert old.exists()
    assert collect(state, cache) == ["cache of /old"]
    assert not old.parent.exists()
    assert (new / "content").exists()


def test_sessions_and_caches_go_together_from_the_oldest_on(state: str, cache: str) -> None:
    made(cache, "/older", 40, 100_000)
    ended = write(state)[0]
    kept = made(cache, "/newer", -1, 100_000)
    assert collect(state, cache, gc.Wishes(None, 150_000, dry_run=False)) == ["cache of /older"]
    assert collect(state, cache, gc.Wishes(None, 1000, dry_run=False)) == [
        f"session {ended.name}",
        "cache of /newer",
    ]
    assert not kept.exists()


def test_the_cache_of_a_workspace_with_a_running_session_stays(state: str, cache: str) -> None:
    used, other = made(cache, "/used", 40), made(cache, "/other", 40)
    _, lock = write(state, end=False, keep_lock=True, workspace="/used")
    assert collect(state, cache) == ["cache of /other"]
    assert (used / "content").exists()
    assert not other.exists()
    (used.parent / "workspace").write_bytes(b"")
    os.utime(used.parent / "workspace", (0, 0))
    assert collect(state, cache) == [], "it may be that of the session"
    os.close(lock)
    assert len(collect(state, cache)) == 1


def test_while_a_session_has_not_said_its_workspace_every_cache_stays(state: str, cache: str) -> None:
    folder, lock = write(state, end=False, keep_lock=True)
    (folder / "ledger.jsonl").unlink()
    made(cache, "/old", 40)
    assert collect(state, cache) == []
    os.close(lock)
    assert collect(state, cache) == ["cache of /old"]


def test_a_session_that_begins_meanwhile_keeps_its_cache(state: str, cache: str) -> None:
    folder = made(cache, "/w", 40)
    (found,) = listed(cache)
    _, lock = write(state, end=False, keep_lock=True, workspace="/w")
    fd = leftovers.open_caches(cache)
    with pytest.raises(OSError, match="a session runs"):
        leftovers.remove_cache(fd, found, state)
    assert (folder / "content").exists()
    os.close(lock)
    leftovers.remove_cache(fd, found, state)
    os.close(fd)
    assert not folder.exists()


def test_closed_and_deep_trees_and_links_out_of_them_are_no_hindrance(
    state: str, cache: str, tmp_path: Path
) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "content").touch()
    folder = made(cache, "/go", 40)
    (folder / "mod/pkg@v1").mkdir(parents=True)
    (folder / "mod/pkg@v1/file.go").touch(0o444)
    (folder / "mod/out").symlink_to(treasure)
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 200, dir_fd=fd)
        above, fd = fd, os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(above)
    os.close(fd)
    for path in (folder / "mod/pkg@v1", folder / "mod"):
        path.chmod(0o555)
    assert collect(state, cache) == ["cache of /go"]
    assert not folder.parent.exists()
    assert (treasure / "content").exists()


def test_what_is_not_jails_or_was_begun_is_told_apart(state: str, cache: str) -> None:
    folder = made(cache, "/begun", 40)
    top = folder.parent.parent
    os.rename(folder.parent, top / f".gone-{folder.parent.name}")
    for name in ("mine", ".gone-mine", "ab" * 15, "AB" * 16):
        (top / name).mkdir()
        os.utime(top / name, (0, 0))
    assert collect(state, cache, NOTHING) == [f"cache .gone-{folder.parent.name}"]
    assert collect(state, cache) == []
    assert sorted(os.listdir(top)) == sorted(["mine", ".gone-mine", "ab" * 15, "AB" * 16])


def test_a_folder_that_others_may_write_is_left_alone(state: str, cache: str) -> None:
    folder = made(cache, "/w", 40)
    for open_to_all in (cache, f"{cache}/caches"):
        os.chmod(open_to_all, 0o777)
        assert collect(state, cache) == []
        os.chmod(open_to_all, 0o700)
    shutil.move(f"{cache}/caches", f"{cache}/elsewhere")
    os.symlink(f"{cache}/elsewhere", f"{cache}/caches")
    assert collect(state, cache) == []
    assert Path(f"{cache}/elsewhere/{folder.parent.name}").exists()


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for a control group that holds ours, all without a process in them."""
    folder = tmp_path / "groups"
    folder.mkdir()
    monkeypatch.setattr(cgroups, "leftovers", lambda: sorted(map(str, folder.iterdir())))
    return folder


def test_groups_of_sessions_that_run_or_begin_stay_and_the_others_go(
    state: str, cache: str, groups: Path
) -> None:
    running, lock = write(state, end=False, keep_lock=True)
    crashed = write(state, end=False)[0]
    old = "20261101-141502"
    os.rename(running, running.parent / f"{old}-aaaaaaaa")
    os.rename(crashed, running.parent / f"{old}-bbbbbbbb")
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    stay = [
        f"jail-{old}-aaaaaaaa",
        f"jail-{now}-cccccccc",
        f"jail-supervisor-{os.getpid()}",
        "jail-mine",
        "jail-20269999-999999-aaaaaaaa",
    ]
    go = [f"jail-{old}-bbbbbbbb", f"jail-{old}-dddddddd", f"jail-supervisor-{1 << 23}"]
    for name in (*stay, *go):
        (groups / name).mkdir()
    assert collect(state, cache, NOTHING) == [f"control group {name}" for name in go]
    assert sorted(os.listdir(groups)) == sorted(stay)
    os.close(lock)
    assert collect(state, cache, NOTHING) == [f"control group {stay[0]}"]


def test_a_group_of_another_user_is_nobodys_here(
    state: str, cache: str, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (groups / "jail-20261101-141502-aaaaaaaa").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert leftovers.groups(state) == []
    monkeypatch.undo()
    monkeypatch.setattr(cgroups, "leftovers", lambda: sorted(map(str, groups.iterdir())))
    assert len(leftovers.groups(state)) == 1


def test_a_group_that_is_used_again_is_told_and_stays(state: str, cache: str, groups: Path) -> None:
    (groups / "jail-20261101-141502-aaaaaaaa" / "inside").mkdir(parents=True)
    (found,) = gc.collect(state, cache, NOTHING)
    assert found.problem == "Directory not empty"
