"""Where a session keeps what it holds: the manifest, and the copies of single files."""

import os
import stat
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import copies, store
from jail.hold.store import Manifest
from jail.plan.held import COPY, FILE, GIT_CONFIG, OVERLAY, Held


@pytest.fixture
def held(tmp_path: Path) -> Path:
    (tmp_path / "session/held/base").mkdir(parents=True)
    return tmp_path / "session/held"


def config(folder: Path, content: bytes = b"[core]\n", mode: int = 0o644) -> Held:
    path = folder / "config"
    path.write_bytes(content)
    path.chmod(mode)
    return Held("f0", FILE, str(path), "a test", GIT_CONFIG)


def test_a_manifest_is_read_as_it_was_written(held: Path) -> None:
    tree = Held("t0", OVERLAY, "/w/caf\udce9 \n", "why", "commands", ("/w/bin", "/w/sbin"))
    written = Manifest(
        "s", "/w", 1, 2, -1, 3, ("/usr/bin",), (tree,), "earlier", ("t0",), (("/w/caf\udce9", "why"),)
    )
    store.write_manifest(str(held), written)
    assert store.read_manifest(str(held.parent)) == written


def test_a_session_that_holds_nothing_has_no_manifest(tmp_path: Path) -> None:
    assert store.read_manifest(str(tmp_path)) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"held": 1}', b'{"held": [{}], "path": []}'])
def test_a_manifest_that_cannot_be_read_is_an_error_for_a_person(held: Path, content: bytes) -> None:
    (held / "manifest").write_bytes(content)
    with pytest.raises(JailError, match="cannot be read"):
        store.read_manifest(str(held.parent))


def test_a_held_file_has_a_copy_under_its_own_name_and_its_base(held: Path, tmp_path: Path) -> None:
    thing = config(tmp_path, b"[a]\n\tb = \xff\n", 0o4640)
    store.prepare(str(held), (thing,), 0, (-1, -1))
    copy, base = held / "files/f0/config", held / "base/f0"
    assert copy.read_bytes() == base.read_bytes() == b"[a]\n\tb = \xff\n"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (copy, base)] == [0o640, 0o640]
    assert copy.stat().st_ino != (tmp_path / "config").stat().st_ino


def test_a_run_that_goes_on_may_hold_one_file_more(held: Path, tmp_path: Path) -> None:
    thing = config(tmp_path)
    store.prepare_files(str(held), (thing,), (-1, -1))
    store.prepare_files(str(held), (thing._replace(name="f1"),), (-1, -1))
    assert sorted(os.listdir(held / "files")) == ["f0", "f1"]


def as_a_link(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def as_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


OTHER = {
    "gone": Path.unlink,
    "a link": as_a_link,
    "a pipe": as_a_pipe,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "too large": lambda path: os.truncate(path, store.FILE_BYTES + 1),
}


@pytest.mark.parametrize("how", OTHER)
def test_what_is_no_such_file_any_more_is_an_error_and_no_copy(how: str, held: Path, tmp_path: Path) -> None:
    thing = config(tmp_path)
    OTHER[how](tmp_path / "config")  # type: ignore[operator]  # one of the functions above
    with pytest.raises(OSError, match=r".+"):
        store.prepare_files(str(held), (thing,), (-1, -1))
    assert not (held / "files/f0").exists()


@pytest.mark.root
def test_a_copy_belongs_to_the_command_and_its_base_to_root(held: Path, tmp_path: Path) -> None:
    store.prepare_files(str(held), (config(tmp_path),), (60600, 60601))
    for path in ("files", "files/f0", "files/f0/config"):
        assert ((held / path).stat().st_uid, (held / path).stat().st_gid) == (60600, 60601)
    assert (held / "base/f0").stat().st_uid == 0


def test_a_tree_that_grew_past_the_bounds_of_a_copy_is_named(
    held: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").touch()
    monkeypatch.setattr(copies, "COPY_ENTRIES", 0)
    with pytest.raises(OSError, match="grown too large") as caught:
        store.prepare(str(held), (Held("t0", COPY, str(tree), ""),), 0, (-1, -1))
    assert caught.value.filename == str(tree)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755, 0o444])
def test_a_held_file_keeps_its_mode_so_that_nobody_is_told_of_another(
    held: Path, tmp_path: Path, mode: int
) -> None:
    before = os.umask(0o077)
    try:
        store.prepare(str(held), (config(tmp_path, b"x", mode),), 0, (-1, -1))
    finally:
        os.umask(before)
    assert [stat.S_IMODE((held / name).stat().st_mode) for name in ("files/f0/config", "base/f0")] == [
        mode,
        mode,
    ]
