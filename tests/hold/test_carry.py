"""What a session holds moves to another, and is compared with what its command saw."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import base, carry, inside, store
from jail.kernel import walk
from jail.ledger import heads, reviewed
from jail.ledger.reader import verify
from jail.plan.held import OVERLAY
from support.ledgers import state_in, write
from support.overlays import Session


class Pair:
    """A session that holds the tree `tree`, whose command did something, and one that will go on from it."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        for path in ("dir/inner", "gone", "kept"):
            (self.tree / path).mkdir(parents=True)
        for name in ("a", "b", "dir/c", "dir/inner/d", "gone/e", "kept/f"):
            (self.tree / name).write_text(name)
        self.old, self.new = write(state_in(folder))[0], write(state_in(folder))[0]
        self.session = Session(self.old, self.tree, OVERLAY)
        self.session.snapshot()
        self.session.run("echo more >> a; rm -r gone; rm -r dir; mkdir dir; echo x > dir/new; echo y > dir/c")
        self.manifest = self.session.manifest._replace(session=self.old.name)

    def carry(self) -> None:
        carry.carry(str(self.old), self.manifest, str(self.new), self.new.name)

    def relist(self) -> base.Entries:
        """The base of all, once the new run has taken its own."""
        tree = os.open(self.tree, os.O_PATH)
        base.snapshot(tree, base.file_of(str(self.new / "held"), "t0"), 1 << 62)
        os.close(tree)
        return base.read(str(self.new / "held"), "t0", lambda _: True)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_it_lies_in_exactly_one_and_the_old_one_says_who_has_it(pair: Pair) -> None:
    pair.carry()
    assert not (pair.old / "held").exists()
    assert (pair.new / "held" / "t0" / "upper" / "a").read_text() == "amore\n"
    assert reviewed.resumed_by(str(pair.old)) == pair.new.name
    assert verify(str(pair.old)).state == "intact"
    found = json.loads((pair.old / "review.jsonl").read_bytes())
    assert (found["kind"], found["fields"]) == ("resumed", {"by": pair.new.name})
    assert os.listdir(pair.new / "held" / "t0" / "work") == []


def test_what_the_command_changed_keeps_the_base_that_it_saw(pair: Pair) -> None:
    before = base.read(str(pair.session.held), "t0", lambda _: True)
    for name in ("a", "b", "gone/e", "dir/c", "kept/f"):
        (pair.tree / name).write_text("of the host")
    (pair.tree / "dir/theirs").write_text("made by the host, in a folder that the command has made anew")
    (pair.tree / "gone/theirs").write_text("the same")
    (pair.tree / "kept/theirs").write_text("in one that it left alone")
    pair.carry()
    after = pair.relist()
    for path in ("", "a", "dir", "dir/c", "dir/inner", "dir/inner/d", "gone", "gone/e"):
        assert after[path] == before[path], path
    for path in ("dir/new", "dir/theirs", "gone/theirs"):
        assert after[path] == base.ABSENT, path
    for path in ("b", "kept/f", "kept/theirs"):
        assert after[path].mtime_ns == (pair.tree / path).stat().st_mtime_ns, path


def test_what_was_pinned_for_a_path_that_is_not_held_any_more_is_forgotten(pair: Pair) -> None:
    base.pin(str(pair.session.held), "t0", {"kept/f": base.ABSENT, "a": base.ABSENT})
    pair.carry()
    after = pair.relist()
    assert after["kept/f"].kind == "file"
    assert after["a"] == base.ABSENT


def test_a_base_that_was_never_taken_stays_unknown_for_what_is_held(pair: Pair) -> None:
    (pair.session.held / "base" / "t0").unlink()
    pair.carry()
    after = pair.relist()
    assert after["a"] == base.UNKNOWN
    assert after["b"].kind == "file"


@pytest.mark.parametrize("bits", [0, 0o400, 0o100])
def test_a_folder_that_the_command_closed_stays_closed_and_covers_what_it_has(pair: Pair, bits: int) -> None:
    (pair.tree / "kept/left alone").write_text("not touched inside")
    pair.session.snapshot()
    pair.session.run(f"echo x > kept/f; mkdir kept/new; chmod {bits:o} kept/new kept")
    before = base.read(str(pair.session.held), "t0", lambda _: True)
    pair.carry()
    for name in ("f", "left alone"):
        (pair.tree / "kept" / name).write_text("of the host")
    kept = pair.new / "held/t0/upper/kept"
    assert kept.stat().st_mode & 0o777 == bits
    after = pair.relist()
    kept.chmod(0o700)
    (kept / "new").chmod(0o700)
    assert after["kept/f"] == before["kept/f"]
    assert after["kept/new"] == base.ABSENT
    alone = after["kept/left alone"]
    assert alone.mtime_ns == (pair.tree / "kept/left alone").stat().st_mtime_ns


def test_a_tree_that_the_command_closed_as_a_whole_is_taken_too(pair: Pair) -> None:
    before = base.read(str(pair.session.held), "t0", lambda _: True)
    pair.session.run("chmod 0 .")
    pair.carry()
    upper = pair.new / "held/t0/upper"
    assert upper.stat().st_mode & 0o777 == 0
    upper.chmod(0o700)
    (pair.tree / "a").write_text("of the host")
    assert pair.relist()["a"] == before["a"]


BOUNDS = {"memory": (inside, "LEFT_BYTES", 5000), "a listing": (walk, "FOLDER_ENTRIES", 2)}


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_is_past_the_bounds_of_a_look_is_not_taken(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """Else the names that were not seen would get what the host has by then for their base."""
    monkeypatch.setattr(*BOUNDS[bound])
    with pytest.raises(JailError, match="too many names"):
        pair.carry()
    assert (pair.old / "held" / "manifest").exists()


FAULTS: dict[str, Callable[[Pair], object]] = {
    "a damaged review ledger": lambda pair: (pair.old / "review.head").write_bytes(b"x"),
    "a folder in the way": lambda pair: (pair.new / "held" / "x").mkdir(parents=True),
    "no layer": lambda pair: (pair.session.held / "t0" / "upper").rename(pair.session.held / "elsewhere"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_where_it_cannot_be_taken_it_stays_with_its_bases(pair: Pair, fault: str) -> None:
    FAULTS[fault](pair)
    with pytest.raises(JailError):
        pair.carry()
    assert (pair.old / "held" / "manifest").exists()
    assert base.read(str(pair.session.held), "t0", lambda path: path == "a")["a"].kind == "file"


def test_where_a_mark_of_the_layer_cannot_be_read_nothing_is_taken(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a folder that was removed and made anew would be taken for one that was only entered."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getxattr", _broken)
        with pytest.raises(JailError, match="cannot take over"):
            pair.carry()
    assert (pair.old / "held" / "manifest").exists()


def _broken(*_: object) -> bytes:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_killed_at_any_call_it_lies_in_exactly_one(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each system call that changes something is the last one once; the next try finds all of it."""
    names = ("rename", "replace", "unlink", "mkdir")
    done = 0
    for last in range(100):
        pid = os.fork()
        if pid == 0:
            left = [last]
            for name in names:
                monkeypatch.setattr(os, name, _dying(getattr(os, name), left))
            pair.carry()
            os._exit(0)
        done = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        here = [each for each in (pair.old, pair.new) if (each / "held").exists()]
        assert len(here) == 1
        held = str(here[0] / "held")
        assert base.read(held, "t0", lambda path: path in ("a", "gone/e"))["a"].kind == "file"
        assert store.read_manifest(str(here[0])) is not None
        if done == 0:
            break
    assert done == 0
    assert last >= 4
    assert (pair.new / "held").exists()


def _dying(real: Callable[..., object], left: list[int]) -> Callable[..., object]:
    def call(*arguments: object, **named: object) -> object:
        if left[0] == 0:
            os._exit(9)
        left[0] -= 1
        return real(*arguments, **named)

    return call


def test_the_marks_of_the_old_review_go_on(pair: Pair) -> None:
    pair.carry()
    assert json.loads((pair.old / heads.REVIEW_HEAD).read_bytes())["seq"] == 0
