"""kill -9, ENOSPC and EIO at each call of an apply: every path is old or new, an error leaves all of it old, and
the next call finishes what was begun.
"""

import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import look
from jail.hold.names import STAGING_PREFIX
from jail.kernel import mounts, namespaces
from support import steps
from support.holding import Holding, lay, seen

BEFORE = {"changed": "old", "deleted": "old", "dir/b": "b", "to-file/in": "in", "moved": "content"}
AFTER = {
    "changed": "new",
    "to-file": "new",
    "new": None,
    "new/link": "→x",
    "dir": None,
    "moved-to": "content",
}


@pytest.fixture(autouse=True)
def _unsynced() -> Iterator[None]:
    with steps.unsynced():
        yield


def holding(folder: Path) -> Holding:
    """A session with a change of each kind: of content, to another kind, added, deleted, renamed, of mode."""
    folder.mkdir()
    held = Holding(folder)
    lay(held.tree, BEFORE)
    os.chmod(held.tree / "dir", 0o755)
    held.begin()
    lay(
        held.upper, {"changed": "new", "to-file": "new", "new/link": "→x", "dir": None, "moved-to": "content"}
    )
    os.chmod(held.upper / "dir", 0o700)
    for path in ("deleted", "dir/b", "moved"):
        held.whiteout(path)
    return held


def apply(held: Holding) -> None:
    held.finish()
    held.apply(list(look.changes(str(held.session), held.manifest)))


def tree(held: Holding) -> dict[str, str | None]:
    return {name: text for name, text in seen(held.tree).items() if not name.startswith(STAGING_PREFIX)}


def mode(held: Holding) -> int:
    return (held.tree / "dir").stat().st_mode & 0o777


def finished(held: Holding, point: str) -> list[str]:
    """What is not, after one more call, as if nothing had happened."""
    apply(held)
    listed = list(look.changes(str(held.session), held.manifest))
    found = [tree(held), mode(held), held.left(), listed, seen(held.upper)]
    return [
        f"{point}: {got}"
        for got, wanted in zip(found, [AFTER, 0o700, [], [], {}], strict=True)
        if got != wanted
    ]


def applied_at(held: Holding, fault: str, at: int) -> int:
    chosen = list(look.changes(str(held.session), held.manifest))
    return steps.failing(lambda: held.apply(chosen), at, fault)


def calls(folder: Path) -> list[str]:
    held = holding(folder)
    chosen = list(look.changes(str(held.session), held.manifest))
    made = steps.count(lambda: held.apply(chosen))
    assert finished(held, "no fault") == []
    return made


def points(made: list[str], fault: str) -> Iterator[tuple[int, str]]:
    """Number and name of the calls that are made to fail: all that change something. Of those that read, for
    EIO, one in each state that the tree is in between two changes, and one of each name.
    """
    read_in_this_state = False
    names: set[str] = set()
    for at, name in enumerate(made, 1):
        if name in steps.CHANGING:
            read_in_this_state = False
            if fault == "EIO" or name in steps.FILLING:
                yield at, name
        elif fault == "EIO" and (not read_in_this_state or name not in names):
            read_in_this_state = True
            names.add(name)
            yield at, name


def test_an_undisturbed_apply_is_what_the_faults_are_measured_by(tmp_path: Path) -> None:
    made = calls(tmp_path / "x")
    assert {"renameat2", "syncfs", "fsync", "pwrite", "mkdir", "symlink", "rmdir"} <= set(made)


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_an_error_at_any_call_leaves_all_old_or_all_new_and_the_next_call_finishes(
    tmp_path: Path, fault: str
) -> None:
    made = calls(tmp_path / "count")
    wrong: list[str] = []
    ends = set()
    for at, name in points(made, fault):
        held = holding(tmp_path / f"{at}")
        before = tree(held)
        code = applied_at(held, fault, at)
        ends.add(code)
        found = tree(held)
        expected = before if code == steps.REFUSED else AFTER
        if code not in (steps.ENDED, steps.REFUSED) or found != expected:
            wrong.append(f"{fault} at {at} {name} of {len(made)}: {code} {found}")
        wrong += finished(held, f"{at} {name}")
    assert wrong == []
    assert ends == {steps.ENDED, steps.REFUSED}


def test_a_kill_before_any_change_leaves_each_path_old_or_new_and_the_next_call_finishes(
    tmp_path: Path,
) -> None:
    made = calls(tmp_path / "count")
    wrong: list[str] = []
    for at, name in enumerate(made, 1):
        if name not in steps.CHANGING - steps.WAITING:
            continue
        held = holding(tmp_path / f"{at}")
        before = tree(held)
        assert applied_at(held, steps.KILL, at) == -9
        found = tree(held)
        wrong += [
            f"killed at {at} {name}: {path} is {found.get(path, 'absent')}"
            for path in {*before, *AFTER, *found}
            if found.get(path, "absent") not in (before.get(path, "absent"), AFTER.get(path, "absent"))
        ]
        wrong += finished(held, f"{at} {name}")
    assert wrong == []


def test_a_kill_of_the_call_that_finishes_is_finished_by_the_next(tmp_path: Path) -> None:
    renames = [at for at, name in enumerate(calls(tmp_path / "count"), 1) if name == "renameat2"]
    wrong: list[str] = []
    for first in (renames[0], renames[len(renames) // 2], renames[-1]):
        held = holding(tmp_path / f"{first}")
        assert applied_at(held, steps.KILL, first) == -9
        made = 0
        for fault in (steps.KILL, "EIO"):
            for at in range(1, 400, 7):
                code = steps.failing(held.finish, at, fault)
                made += code in (-9, steps.REFUSED)
                if code == steps.ENDED:
                    break
        assert made > 3
        wrong += finished(held, f"{first}")
    assert wrong == []


def test_what_the_host_does_after_a_kill_is_never_lost(tmp_path: Path) -> None:
    """Whichever side wins a path, the host's text is in the tree, or in the folder that the problem names."""
    made = calls(tmp_path / "count")
    renames = [at for at, name in enumerate(made, 1) if name == "renameat2"]
    last = max(at for at, name in enumerate(made, 1) if name == "rmdir")
    for at in [*renames, renames[-1] + 1, last]:
        for path in ("changed", "deleted", "to-file", "new", "dir/late", "moved", "moved-to"):
            held = holding(tmp_path / f"{at}-{path.replace('/', '-')}")
            assert applied_at(held, steps.KILL, at) == -9
            mine = held.tree / path
            mine = mine / "mine" if mine.is_dir() else mine
            mine.with_name("put").write_text("the host's")
            mine.with_name("put").replace(mine)
            finished_once = held.finish()
            assert finished_once is not None
            texts = [file.read_text() for file in held.tree.rglob("*") if file.is_file()]
            assert "the host's" in texts, (at, path, finished_once)
            kept = [name for name in held.left() if name.startswith(STAGING_PREFIX)]
            assert bool(kept) == bool(finished_once.problem), (at, path, finished_once)


def test_a_disk_that_is_really_full_leaves_the_tree_untouched(tmp_path: Path) -> None:
    """A file system of one MiB in a mount namespace of a child."""
    held = Holding(tmp_path)
    held.begin()
    lay(held.upper, {"a": "small", "b": "large" * 400_000})
    chosen = [held.change("a"), held.change("b")]
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            uid, gid = os.geteuid(), os.getegid()
            namespaces.unshare(("user", "mount"))
            mounts.make_all_private()
            namespaces.map_ids(uid, gid)
            small = mounts.new_filesystem("tmpfs", {"size": "1m"}, mounts.ATTR_NOSUID)
            at = os.open(held.tree, os.O_PATH)
            mounts.attach(small, at, "a small disk")
            with pytest.raises(JailError, match="No space left") as told:
                held.apply(chosen)
            assert "nothing was changed" in told.value.hint
            assert (os.listdir(held.tree), held.left()) == ([], [])
            held.apply(chosen[:1])
            assert seen(held.tree) == {"a": "small"}
            code = 0
        except BaseException:  # noqa: BLE001 - a child: whatever it is, the test tells of it
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
