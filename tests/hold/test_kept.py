"""The session's side: what the command closed is opened, and is as closed as before when all is done."""

import errno
import os
from pathlib import Path

import pytest

from jail.hold.kept import RESTORED, Kept
from support.holding import Holding, lay


@pytest.fixture
def held(tmp_path: Path) -> Holding:
    return Holding(tmp_path).begin()


def kept(held: Holding, *, changing: bool) -> Kept:
    return Kept(str(held.session), held.thing, changing=changing)


def modes(held: Holding) -> dict[str, int]:
    """The bits of each closed folder of `chain`, the outermost first; it must be opened to be looked into."""
    found, path = {}, held.upper
    for name in ("shut", "in"):
        path /= name
        found[name] = path.stat().st_mode & 0o777
        path.chmod(0o700)
    return found


@pytest.mark.parametrize("bits", [0, 0o400, 0o600, 0o500])
def test_closed_folders_can_be_changed_and_have_their_bits_again(held: Holding, bits: int) -> None:
    lay(held.upper, {"shut/in/file": "x", "shut/in/more": "x"})
    for path in ("shut/in", "shut"):
        (held.upper / path).chmod(bits)
    inside = kept(held, changing=True)
    folder, name = inside.place("shut/in/file")
    os.unlink(name, dir_fd=inside.folder(folder))
    inside.close()
    assert modes(held) == {"shut": bits, "in": bits}
    assert os.listdir(held.upper / "shut/in") == ["more"]


def test_no_more_folders_are_kept_open_than_are_given_their_bits_again(held: Holding) -> None:
    many = RESTORED + 8
    lay(held.upper, {f"{number:03}/file": "x" for number in range(many)})
    for number in range(many):
        (held.upper / f"{number:03}").chmod(0)
    inside = kept(held, changing=True)
    assert all(inside.look(f"{number:03}/file") is not None for number in range(many))
    inside.close()
    bits = [(held.upper / f"{number:03}").stat().st_mode & 0o777 for number in range(many)]
    assert bits == [0] * RESTORED + [0o700] * (many - RESTORED)


def test_who_only_reads_changes_no_bits(held: Holding) -> None:
    lay(held.upper, {"shut/in/file": "closed"})
    (held.upper / "shut/in/file").chmod(0)
    (held.upper / "shut/in").chmod(0)
    before = (held.upper / "shut/in").stat()
    inside = kept(held, changing=False)
    fd = inside.file("shut/in/file")
    assert os.read(fd, 100) == b"closed"
    os.close(fd)
    inside.close()
    after = (held.upper / "shut/in").stat()
    assert (before.st_mode, before.st_ctime_ns) == (after.st_mode, after.st_ctime_ns)
    (held.upper / "shut/in").chmod(0o700)


@pytest.mark.parametrize("kind", ["a fifo", "a folder", "a link"])
def test_only_a_regular_file_is_opened_for_reading(held: Holding, kind: str) -> None:
    path = held.upper / "there"
    {
        "a fifo": lambda: os.mkfifo(path),
        "a folder": path.mkdir,
        "a link": lambda: path.symlink_to("/etc/passwd"),
    }[kind]()
    inside = kept(held, changing=False)
    with pytest.raises(OSError, match="not a regular file") as refused:
        inside.file("there")
    assert refused.value.errno == errno.ESTALE
    inside.close()


def test_what_hides_a_path_is_what_is_no_folder_above_it(held: Holding) -> None:
    lay(held.upper, {"file": "x", "link": "→folder", "folder/in": "x"})
    held.whiteout("gone")
    inside = kept(held, changing=False)
    hidden = {path: inside.is_hidden(f"{path}/a/b") for path in ("file", "link", "folder", "gone", "absent")}
    inside.close()
    assert hidden == {"file": True, "link": True, "folder": False, "gone": True, "absent": False}
