from collections.abc import Callable
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import store, waiting
from jail.hold.store import Manifest
from jail.plan.held import COPY, FILE, OVERLAY, Held

THINGS = {
    "t0": Held("t0", OVERLAY, "/w", "the workspace"),
    "f0": Held("f0", FILE, "/w/.git/config", "git"),
}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session that holds a tree and a file, and nothing in them yet."""
    held, tree = tmp_path / "held", tmp_path / "tree"
    tree.mkdir()
    for folder in ("t0/upper", "t0/work", "files/f0", "base"):
        (held / folder).mkdir(parents=True)
    (held / "files/f0/config").write_bytes(b"[core]\n")
    (held / "base/f0").write_bytes(b"[core]\n")
    things = (THINGS["t0"]._replace(path=str(tree)), THINGS["f0"])
    store.write_manifest(str(held), Manifest("s", "/w", 1, 1, -1, 7, (), things))
    return tmp_path


def test_a_session_without_a_manifest_and_one_without_changes_hold_nothing(
    session: Path, tmp_path: Path
) -> None:
    assert not waiting.waits(str(session))
    assert not waiting.waits(str(tmp_path / "absent"))


DEEDS: dict[str, Callable[[Path], object]] = {
    "a file was made": lambda held: (held / "t0/upper/new").touch(),
    "the config was changed": lambda held: (held / "files/f0/config").write_bytes(b"[core]\n\n"),
    "the config was removed": lambda held: (held / "files/f0/config").unlink(),
    "an apply was interrupted": lambda held: (held / "journal").touch(),
    "the tree itself was closed": lambda held: (held / "t0/upper").chmod(0o700),
    "the layer is gone": lambda held: (held / "t0/upper").rmdir(),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_any_of_these_is_a_yes(session: Path, deed: str) -> None:
    DEEDS[deed](session / "held")
    assert waiting.waits(str(session))


def test_a_copy_of_a_tree_is_a_yes_since_only_a_walk_could_tell(session: Path) -> None:
    (session / "held/t1/tree").mkdir(parents=True)
    things = (*THINGS.values(), Held("t1", COPY, "/x", "a copy"))
    store.write_manifest(str(session / "held"), Manifest("s", "/w", 1, 1, -1, 7, (), things))
    assert waiting.waits(str(session))


def test_a_manifest_that_cannot_be_read_is_an_error_and_no_answer(session: Path) -> None:
    (session / "held/manifest").write_bytes(b"{")
    with pytest.raises(JailError, match="cannot be read"):
        waiting.waits(str(session))
