"""Changes deeper than any path can say: listed as far as one can name them, and then by the folder."""

import os
import time
from pathlib import Path

import pytest

from jail.hold import look, names, opening
from jail.kernel import trees
from jail.plan.held import COPY, OVERLAY
from support.looking import found, held
from support.overlays import deepen, in_memory

TREES = pytest.mark.parametrize("kind", [OVERLAY, COPY])


@TREES
def test_a_tree_of_ten_thousand_levels_is_listed_as_far_as_a_path_can_name_it(kind: str) -> None:
    with in_memory() as folder:
        session = held(folder, kind)
        session.run(lambda: (os.mkdir("deep"), deepen(Path("deep"), 10_000))[1])
        changes = found(session)
        assert {each.what for each in changes} == {"added"}
        assert len(changes) == 2047
        assert len(changes[-1].path) == 4096
        assert names.complaint(changes[-1].path, changes[-1].new)
        assert not names.complaint(changes[-2].path, changes[-2].new)


@TREES
def test_a_change_deeper_than_any_path_is_told_by_the_folder_that_it_is_in(kind: str) -> None:
    with in_memory() as folder:
        session = held(folder, kind, snapshot=False)
        (session.tree / "deep").mkdir()
        deepen(session.tree / "deep", 2_100)
        session.started_ns = 1 << 62
        session.snapshot()
        assert found(session) == []
        time.sleep(0.02)

        def act() -> None:
            top = os.open(".", os.O_RDONLY)
            leaf = opening.open_below(top, "deep/" + "d/" * 2_100 + "leaf", os.O_WRONLY)
            os.write(leaf, b"changed")

        session.run(act)
        (change,) = found(session)
        assert (change.what, change.conflict, len(change.path)) == ("modified", look.BEYOND, 4096)
        assert names.complaint(change.path, change.new)


@TREES
def test_every_path_of_a_deep_folder_that_was_deleted_is_listed(kind: str) -> None:
    with in_memory() as folder:
        session = held(folder, kind, snapshot=False)
        (session.tree / "d/deep").mkdir()
        deepen(session.tree / "d/deep", 2_100)
        session.started_ns = 1 << 62
        session.snapshot()

        def act() -> None:
            fd = os.open(".", os.O_RDONLY)
            trees.remove_tree(fd, "d")
            os.close(fd)

        session.run(act)
        changes = found(session)
        assert {each.what for each in changes} == {"deleted"}
        assert [each.conflict for each in changes] == [""] * 2107
        assert max(len(each.path) for each in changes) == len("d/deep/") + 2 * 2100 + len("leaf")
