"""Discarding what a session holds: the host shows again where it was, and nothing of the host is written."""

import os
from pathlib import Path

import pytest

from jail.hold import base, change, drop, look, store
from jail.hold.change import Change
from jail.hold.discard import HIDDEN, NOT_EMPTY, discard
from jail.plan.held import COPY, FILE, OVERLAY, Held
from support.holding import Holding, lay, reasons, seen
from support.overlays import Session

TREE = {
    **{
        name: f"{name}\n"
        for name in ("alpha", "beta", "d/one", "d/two", "s/in", "s/sub/in", "s/sub/more", "run")
    },
    "link": "→alpha",
    "folder": None,
    "gone/in": "in",
    "gone/sub/deep": "deep",
}
ACTS = """
echo new >alpha; mkdir -p n/m; echo x >n/m/f; ln -s ../alpha n/link; chmod 700 d; rm beta; mv d/one d/moved
rm -r s; mkdir s; echo other >s/other; rm -r folder; echo file >folder; mkfifo fifo
rm link; mkdir link; echo in >link/in; chmod 711 run; rm -r gone
"""
TREES = pytest.mark.parametrize("kind", [OVERLAY, COPY])


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


def session(tmp_path: Path, kind: str) -> Session:
    tree = tmp_path / "tree"
    tree.mkdir()
    lay(tree, TREE)
    made = Session(tmp_path / "session", tree, kind)
    made.snapshot()
    made.run(ACTS)
    return made


def listed(session: Session) -> list[Change]:
    return list(look.changes(str(session.folder), session.manifest))


def discarded(session: Session, chosen: list[Change]) -> list[Change]:
    return list(discard(str(session.folder), session.manifest, chosen, lambda *_: None).conflicts)


def view(session: Session) -> str:
    told = session.folder / "told"
    session.run(f"(find . -type f -exec grep -H '' {{}} + ; find . -printf '%p %y %m %l\\n') | sort >{told}")
    return told.read_text()


@TREES
def test_all_discarded_is_as_if_nothing_had_run(tmp_path: Path, kind: str) -> None:
    made = session(tmp_path, kind)
    before = seen(made.tree)
    assert discarded(made, listed(made)) == []
    assert listed(made) == []
    assert seen(made.tree) == before
    if kind == OVERLAY:
        drop.empty(str(made.folder), made.manifest)
        assert os.listdir(made.inside) == []
    told = view(made)
    os.rename(made.inside, tmp_path / "set-aside")
    made.inside.mkdir()
    if kind == COPY:
        assert seen(tmp_path / "set-aside") == before
    else:
        assert view(made) == told


@TREES
def test_each_one_alone_goes_and_the_rest_stays_as_listed(tmp_path: Path, kind: str) -> None:
    """Whatever is discarded first, the others are still there, whole."""
    made = session(tmp_path, kind)
    before = seen(made.tree)
    while chosen := listed(made):
        least = [each for each in chosen if not any(_beneath(each, other) for other in chosen)]
        one = least[len(chosen) % len(least)]
        assert discarded(made, [one]) == []
        left = {each.path for each in listed(made)}
        assert left == {each.path for each in chosen} - {one.path}, one
    assert seen(made.tree) == before


def _beneath(change: Change, other: Change) -> bool:
    """Whether `other` must go first: it lies in a folder that `change` made."""
    return change.new.kind == "folder" and other.path.startswith(f"{change.path}/")


def test_a_folder_with_something_left_in_it_stays(held: Holding) -> None:
    held.begin()
    lay(held.upper, {"new/a": "a", "new/b": "b"})
    left = held.discard([held.change("new"), held.change("new/a")])
    assert reasons(left.conflicts) == {"new": NOT_EMPTY}
    assert seen(held.upper) == {"new": None, "new/b": "b"}
    assert held.said == [("refused", "new", NOT_EMPTY), ("discarded", "new/a", "")]


@TREES
def test_what_a_file_in_place_of_its_folder_hides_comes_back_after_that(tmp_path: Path, kind: str) -> None:
    made = session(tmp_path, kind)
    made.run("rm -r d; echo file >d")
    changes = {each.path: each for each in listed(made)}
    assert reasons(discarded(made, [changes["d/two"]])) == {"d/two": HIDDEN}
    assert {"d", "d/two"} <= {each.path for each in listed(made)}
    assert discarded(made, [changes["d"], changes["d/two"]]) == []
    assert {"d", "d/two"}.isdisjoint(each.path for each in listed(made))


def test_what_can_never_be_applied_goes_whole(held: Holding) -> None:
    held.begin()
    lay(held.upper, {"odd\nname/a/b": "x"})
    os.chmod(held.upper / "odd\nname/a", 0)
    os.mkfifo(held.upper / "fifo")
    never = held.change("odd\nname")._replace(tier=change.NEVER)
    assert held.discard([never, held.change("fifo")]).conflicts == ()
    assert os.listdir(held.upper) == []


def test_a_held_file_has_its_first_content_again(tmp_path: Path) -> None:
    host = tmp_path / "config"
    host.write_text("first")
    folder = tmp_path / "session"
    thing = Held("f0", FILE, str(host), "a test")
    manifest = store.Manifest("s", str(tmp_path), os.geteuid(), os.getegid(), -1, 0, (), (thing,))
    lay(folder / "held", {"files/f0/config": "inside", "base/f0": "first"})
    (change_of_it,) = look.changes(str(folder), manifest)
    discard(str(folder), manifest, [change_of_it], lambda *_: None)
    assert (folder / "held/files/f0/config").read_text() == "first"
    assert list(look.changes(str(folder), manifest)) == []
    assert base.file_of(str(folder / "held"), "f0").endswith("base/f0")
    assert host.read_text() == "first"
