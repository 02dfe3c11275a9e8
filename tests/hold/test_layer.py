"""The upper layer: what goes from it changes nothing else of what a later mount shows."""

import os
import stat
from pathlib import Path

import pytest

from jail.hold import look
from jail.hold.account import Account
from jail.hold.apply import apply
from jail.plan.held import COPY, OVERLAY
from support.applied import ACTS, applied_all, listed, view, whole
from support.holding import Holding, lay, seen


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path)


@pytest.mark.parametrize("kind", [OVERLAY, COPY])
def test_half_of_it_applied_leaves_the_other_half_listed_and_the_view_as_it_was(
    tmp_path: Path, kind: str
) -> None:
    session = listed(tmp_path, kind)
    session.run(ACTS)
    inside = view(session)
    every = list(look.changes(str(session.folder), session.manifest))
    first = [each for at, each in enumerate(every) if at % 2 or each.new.kind == "folder"]
    done = apply(str(session.folder), session.manifest, first, Account(lambda *_: None)).done
    rest = list(look.changes(str(session.folder), session.manifest))
    assert {each.path for each in rest} == {each.path for each in every} - {each.path for each in done}
    assert view(session) == inside
    assert applied_all(session).conflicts == ()
    assert whole(session.tree) == inside
    assert list(look.changes(str(session.folder), session.manifest)) == []


def test_a_file_comes_back_into_a_folder_that_was_deleted(held: Holding) -> None:
    lay(held.tree, {"d/a": "a", "d/b": "b", "d/sub/c": "c"})
    held.begin()
    held.whiteout("d")
    changes = {each.path: each for each in look.changes(str(held.session), held.manifest)}
    assert set(changes) == {"d", "d/a", "d/b", "d/sub", "d/sub/c"}
    assert held.discard([changes["d/a"], changes["d"]]).conflicts == ()
    assert {each.path for each in look.changes(str(held.session), held.manifest)} == {
        "d/b",
        "d/sub",
        "d/sub/c",
    }
    assert seen(held.tree) == {"d": None, "d/a": "a", "d/b": "b", "d/sub": None, "d/sub/c": "c"}


def test_what_the_host_made_in_a_hidden_folder_since_shows(held: Holding) -> None:
    lay(held.tree, {"d/a": "a"})
    held.begin()
    held.opaque("d")
    lay(held.upper, {"d/new": "new"})
    lay(held.tree, {"d/host": "host"})
    (a,) = [each for each in look.changes(str(held.session), held.manifest) if each.path == "d/new"]
    held.discard([a])
    assert sorted(os.listdir(held.upper / "d")) == ["a"]
    assert stat.S_ISCHR((held.upper / "d/a").lstat().st_mode)
    assert {each.path for each in look.changes(str(held.session), held.manifest)} == {"d/a"}
