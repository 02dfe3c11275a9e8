"""Which running session writes a tree."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.ledger import place, writers
from jail.ledger.place import Session


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state/jail")


@pytest.fixture
def other(state: str) -> Iterator[Session]:
    """A session that runs."""
    found = place.new_session(state)
    yield found

    os.close(found.lock_fd)


def mine(state: str) -> str:
    return f"{state}/sessions/20200101-000000-00000000"


@pytest.mark.parametrize(
    ("writes", "holds", "tree", "met"),
    [
        (["/w"], [], "/w", True),
        (["/w"], [], "/w/a/b", True),
        (["/w/a"], [], "/w", True),
        (["/w-other"], [], "/w", False),
        (["/w"], ["/w/a"], "/w/a", False),
        (["/w"], ["/w/a"], "/w/a/b", False),
        (["/w"], ["/w/a"], "/w/b", True),
        (["/w/a/out"], ["/w/a"], "/w/a/out", True),
        ([], ["/w"], "/w", False),
        (["/w\n\udcff"], [], "/w\n\udcff/x", True),
    ],
)
def test_a_tree_that_a_running_session_writes_is_refused(
    state: str, other: Session, writes: list[str], holds: list[str], tree: str, met: bool
) -> None:
    writers.note(other.folder, writes, holds)
    if not met:
        writers.refuse(mine(state), [tree])
        return
    with pytest.raises(JailError, match=other.id) as raised:
        writers.refuse(mine(state), ["/elsewhere", tree])
    assert raised.value.code == EXIT_USAGE
    assert f"jail stop {other.id}" in raised.value.hint
    writers.refuse(other.folder, [tree])


def test_who_has_not_said_it_yet_may_write_anything(state: str, other: Session) -> None:
    with pytest.raises(JailError, match=other.id):
        writers.refuse(mine(state), ["/w"])


def test_a_session_that_has_ended_is_no_obstacle(state: str) -> None:

    found = place.new_session(state)
    writers.note(found.folder, ["/w"], [])
    os.close(found.lock_fd)
    writers.refuse(mine(state), ["/w"])
