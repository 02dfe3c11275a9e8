"""What is applied or thrown away leaves the session, whatever stands where its folder was."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jail.hold import apply as applier
from jail.hold import review
from jail.hold.choosing import chosen, meant, thrown
from jail.hold.decisions import Done, carry_out
from jail.hold.names import STAGING_PREFIX
from jail.plan.held import COPY, OVERLAY
from support.holding import lay, seen
from support.overlays import Session

TREE = {"a": "a", "k/e/f": "another", "d/e/f": "f", "d/e/deep/x": "x", "d/g": "g"}
ANCESTORS = {
    "link": "rm -r d; ln -s a d",
    "link to a folder that has such names": "rm -r d; ln -s k d",
    "file": "rm -r d; echo x >d",
    "whiteout": "rm -r d",
    "opaque": "rm -r d; mkdir d; echo new >d/new",
    "opaque, with the folder in it again": "rm -r d; mkdir -p d/e; echo new >d/e/new",
    "link, in an opaque folder": "rm -r d; mkdir d; ln -s ../k/e d/e",
    "file, in a folder that was there": "rm -r d/e; echo x >d/e",
    "link, deeper": "rm -r d/e/deep; ln -s ../../k d/e/deep",
    "new, and a file in it": "mkdir -p n/m; echo x >n/m/f; ln -s m n/l",
}
PARTS = ("d/e/deep/x", "d/e", "n/m")
KINDS = pytest.mark.parametrize("kind", [OVERLAY, COPY])
CASES = pytest.mark.parametrize("ancestor", ANCESTORS)


def session(tmp_path: Path, kind: str, act: str) -> Session:
    tree = tmp_path / "tree"
    tree.mkdir()
    lay(tree, TREE)
    made = Session(tmp_path / "session", tree, kind)
    (made.folder / "lock").touch()
    made.snapshot()
    made.run(f"echo x >ok; {act}")
    return made


def view(made: Session) -> str:
    """The tree as the command sees it."""
    told = made.folder / "told"
    made.run(
        f"find . -printf '%p %y %l\\n' | sort >{told}; find . -type f -exec grep -H '' {{}} + | sort >>{told}"
    )
    return told.read_text()


def paths(made: Session) -> list[str]:
    return [each.path for each in review.reviewed(str(made.folder)).changes]


def applied(made: Session, *words: str) -> Done:
    found = review.reviewed(str(made.folder))
    whole = chosen(found, words, str(made.tree))
    return carry_out(found, whole.taken, left=whole.left)


def discarded(made: Session, *words: str) -> Done:
    found = review.reviewed(str(made.folder))
    whole = thrown(found, meant(found, words, str(made.tree)))
    return carry_out(found, discard=whole.taken, left=whole.left)


def nothing_left(made: Session) -> bool:
    staged = [path for path in made.tree.iterdir() if path.name.startswith(STAGING_PREFIX)]
    return not staged and not applier.unfinished(str(made.folder))


@KINDS
@CASES
def test_all_of_it_is_applied_once(tmp_path: Path, kind: str, ancestor: str) -> None:
    made = session(tmp_path, kind, ANCESTORS[ancestor])
    before = view(made)
    done = applied(made)
    assert (done.left, done.problem) == ((), "")
    assert paths(made) == []
    assert nothing_left(made)
    assert view(made) == before
    assert applied(made) == Done((), (), (), "")


@KINDS
@CASES
def test_all_of_it_is_discarded_once(tmp_path: Path, kind: str, ancestor: str) -> None:
    made = session(tmp_path, kind, ANCESTORS[ancestor])
    before = seen(made.tree)
    done = discarded(made)
    assert done.left == ()
    assert paths(made) == []
    assert seen(made.tree) == before
    made.run("test -f d/e/f; test -f d/e/deep/x; test -f d/g; test ! -e ok; test ! -e n; test a = `cat a`")
    assert discarded(made) == Done((), (), (), "")


@KINDS
@CASES
@pytest.mark.parametrize("act", [applied, discarded])
def test_a_part_of_it_goes_and_the_rest_stays_as_listed(
    tmp_path: Path, kind: str, ancestor: str, act: Callable[..., Done]
) -> None:
    """Part after part, and then all the rest."""
    made = session(tmp_path, kind, ANCESTORS[ancestor])
    for part in PARTS:
        listed = paths(made)
        if not any(_beneath(path, part) for path in listed):
            continue
        done = act(made, part)
        assert done.problem == ""
        gone = {each.path for each in (*done.applied, *done.discarded)}
        # A folder comes back with what comes back into it.
        above = {path for path in listed if _beneath(part, path)}
        left = set(paths(made))
        assert left - above == set(listed) - gone - above, part
        assert left.isdisjoint(gone)
        assert nothing_left(made)
    last = applied(made)
    assert (last.left, last.problem) == ((), "")
    assert paths(made) == []
    assert nothing_left(made)


def _beneath(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/")
