"""Things taken away from a workspace: at once, whole, on one file system and across two."""

import os
import socket
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from jail.kernel import trees
from jail.launch import quarantine
from jail.launch.quarantine import KeptBack, Quarantine, Taken

SHM = Path("/dev/shm")
HERE, ACROSS = "one file system", "two file systems"


class Room:
    """A workspace folder and a quarantine, each with its fd."""

    def __init__(self, ws: Path, kept: Path) -> None:
        self.ws, self.kept = ws, kept
        self.fd = os.open(ws, os.O_RDONLY)
        self.quarantine_fd = os.open(kept, os.O_RDONLY)
        self.quarantine = Quarantine(self.quarantine_fd)

    def take(self, name: str) -> Taken:
        taken = self.quarantine.take(self.fd, name, name)
        assert taken is not None
        return taken


@pytest.fixture(params=[HERE, ACROSS])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    (tmp_path / "ws").mkdir()
    with tempfile.TemporaryDirectory(dir=SHM if request.param == ACROSS else tmp_path) as kept:
        across = os.stat(kept).st_dev != os.stat(tmp_path).st_dev
        if request.param == ACROSS and not across:
            pytest.skip("/dev/shm and the tests' folder are one file system here")
        room = Room(tmp_path / "ws", Path(kept))
        yield room
        for fd in (room.fd, room.quarantine_fd):
            for name in os.listdir(fd):
                trees.remove_tree(fd, name)  # of any depth, which what cleans up after us cannot
            os.close(fd)


def how(room: Room) -> str:
    return "moved" if os.stat(room.ws).st_dev == os.stat(room.kept).st_dev else "copied"


def test_a_file_is_gone_from_its_name_and_kept_with_its_content(room: Room) -> None:
    (room.ws / "CLAUDE.md").write_text("do evil")
    os.chmod(room.ws / "CLAUDE.md", 0o4755)
    taken = room.take("CLAUDE.md")
    assert taken == Taken("file", how(room), "0001-CLAUDE.md")
    assert os.listdir(room.ws) == []
    assert (room.kept / taken.kept).read_text() == "do evil"
    assert room.quarantine.digest(taken).hex == sha256(b"do evil").hexdigest()
    if taken.how == "copied":
        assert (room.kept / taken.kept).stat().st_mode & 0o7777 == 0o755


def test_a_tree_is_kept_whole_with_hostile_names_and_locked_folders(room: Room) -> None:
    top = room.ws / ".claude"
    for name in ("-rf", "new\nline", "\udcff", "locked"):
        (top / "deep" / name / "er").mkdir(parents=True)
        (top / "deep" / name / "er" / "file").write_text("x")
        (top / "deep" / name / "after").write_text("y")
    (top / "link").symlink_to("/etc/shadow")
    os.chmod(top / "deep/locked", 0)
    os.chmod(top, 0o500)
    taken = room.take(".claude")
    assert (taken.kind, taken.how) == ("folder", how(room))
    assert os.listdir(room.ws) == []
    os.chmod(room.kept / taken.kept / "deep/locked", 0o700)
    for name in ("-rf", "new\nline", "\udcff", "locked"):
        assert (room.kept / taken.kept / "deep" / name / "er/file").read_text() == "x"
        assert (room.kept / taken.kept / "deep" / name / "after").read_text() == "y"
    assert os.readlink(room.kept / taken.kept / "link") == "/etc/shadow"
    assert room.quarantine.digest(taken).complete


def test_a_symlink_is_taken_itself_and_never_followed(room: Room, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("stays")
    (room.ws / ".mcp.json").symlink_to(tmp_path / "outside")
    taken = room.take(".mcp.json")
    assert taken.kind == "symlink"
    assert os.readlink(room.kept / taken.kept) == str(tmp_path / "outside")
    assert (tmp_path / "outside/file").read_text() == "stays"


def test_sockets_and_pipes_are_gone_and_recorded(room: Room) -> None:
    (room.ws / "d").mkdir()
    os.mkfifo(room.ws / "d/pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{room.fd}/d/sock")
    listener.close()
    os.mkfifo(room.ws / "alone")
    folder, alone = room.take("d"), room.take("alone")
    assert os.listdir(room.ws) == []
    if how(room) == "copied":
        assert set(folder.lost) == {"pipe", "sock"}
        assert len(alone.lost) == 1
    assert alone.kind == "special"
    assert room.quarantine.digest(alone).hex == ""


def test_what_is_not_there_is_no_error(room: Room) -> None:
    assert room.quarantine.take(room.fd, "nothing", "nothing") is None


def test_the_same_name_again_and_again_is_kept_each_time(room: Room) -> None:
    for number in range(5):
        (room.ws / "x").write_text(f"{number}")
        assert (room.kept / room.take("x").kept).read_text() == f"{number}"


def test_past_the_bound_things_are_removed_and_counted(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "KEPT", 3)
    for number in range(10):
        (room.ws / "x").mkdir()
        (room.ws / f"x/{number}").write_text("x")
        room.take("x")
    assert room.quarantine.counted == 7
    assert len(os.listdir(room.kept)) == 3
    assert os.listdir(room.ws) == []


def test_a_large_thing_stays_beside_under_a_neutral_name_until_the_end(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "LIVE_BYTES", 10)
    (room.ws / "x").mkdir()
    (room.ws / "x/big").write_text("more than ten bytes")
    taken = room.take("x")
    assert not (room.ws / "x").exists()
    became = room.quarantine.finish()
    if how(room) == "moved":
        assert became == {}
        return
    assert (taken.how, taken.kept.startswith(".jail-swept-")) == ("left", True)
    assert became[taken.kept].how == "copied"
    assert (room.kept / became[taken.kept].kept / "big").read_text() == "more than ten bytes"
    assert os.listdir(room.ws) == []


def test_a_thing_too_large_even_at_the_end_is_left_whole(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    if how(room) == "moved":
        return
    monkeypatch.setattr(quarantine, "LIVE_ENTRIES", 1)
    monkeypatch.setattr(quarantine, "COPY_ENTRIES", 1)
    (room.ws / "x").mkdir()
    for number in range(5):
        (room.ws / f"x/{number}").write_text("x")
    taken = room.take("x")
    became = room.quarantine.finish()
    assert became[taken.kept].how == "left"
    assert len(os.listdir(room.ws / taken.kept)) == 5
    assert os.listdir(room.kept) == []


def test_a_deep_tree_is_taken(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "LIVE_ENTRIES", 2000)
    fd = os.dup(room.fd)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    taken = room.take("d")
    assert taken.how == how(room)
    assert not (room.ws / "d").exists()
    room.quarantine.finish()
    assert os.listdir(room.ws) == []
    assert room.quarantine.digest(taken).complete


def test_what_the_kernel_refuses_to_move_is_said(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    (room.ws / "x").write_text("x")
    monkeypatch.setattr(quarantine, "_rename", refuse)
    taken = room.take("x")
    assert taken.how == "stuck"
    assert "busy" in taken.kept


@pytest.mark.parametrize("mode", [0, 0o400, 0o500])
def test_a_closed_folder_does_not_keep_its_names(room: Room, mode: int) -> None:
    (room.ws / "x").mkdir(mode=0o500)
    os.chmod(room.ws, mode)
    assert room.take("x").how == how(room)
    assert os.listdir(room.ws) == []


@pytest.mark.parametrize("call", ["stat", "copy"])
def test_an_error_in_one_piece_is_that_pieces(room: Room, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    (room.ws / "x").write_text("x")
    with monkeypatch.context() as patch:
        if call == "stat":
            patch.setattr(quarantine, "_look", refuse)
        else:
            patch.setattr(trees, "copy", refuse)
        taken = room.take("x")
        became = room.quarantine.finish()
    if call == "stat":
        assert taken.how == "stuck"
    elif how(room) == "copied":
        assert (taken.how, became[taken.kept].how) == ("left", "left")
        assert os.listdir(room.ws) == [taken.kept]


def test_what_is_left_holds_few_fds_and_counts_as_kept(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    if how(room) == "moved":
        return
    monkeypatch.setattr(quarantine, "LIVE_BYTES", 1)
    monkeypatch.setattr(quarantine, "OPEN_FOLDERS", 3)
    monkeypatch.setattr(quarantine, "KEPT", 5)
    before = len(os.listdir("/proc/self/fd"))
    hows = []
    for number in range(8):
        (room.ws / "x").write_text("long" if number < 5 else "")
        hows.append(room.take("x").how)
    assert hows == ["left"] * 3 + ["counted"] * 2 + ["copied"] * 2 + ["counted"]
    assert len(os.listdir("/proc/self/fd")) - before == 3
    assert {taken.how for taken in room.quarantine.finish().values()} == {"copied"}
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_bytes_of_all_copies_are_bounded_together(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    if how(room) == "moved":
        return
    monkeypatch.setattr(quarantine, "COPY_BYTES", 10)
    hows = []
    for _ in range(3):
        (room.ws / "x").write_text("12345")
        hows.append(room.take("x").how)
    assert hows == ["copied", "copied", "left"]


def test_a_copy_past_what_may_be_kept_is_refused_and_the_piece_stays_under_its_neutral_name(
    room: Room,
) -> None:
    kept_back = KeptBack(10)
    keeper = Quarantine(room.quarantine_fd, kept_back)
    hows = []
    for _ in range(3):
        (room.ws / "x").write_text("12345")
        taken = keeper.take(room.fd, "x", "x")
        assert taken is not None
        hows.append(taken.how)
    if how(room) == "moved":
        assert hows == ["moved"] * 3
        assert kept_back.refused is False
    else:
        assert hows == ["copied", "copied", "left"]
        assert kept_back.refused
        assert kept_back.full(room.quarantine_fd)
    keeper.finish()
    assert len(os.listdir(room.ws)) == hows.count("left")
    assert all((room.ws / name).read_text() == "12345" for name in os.listdir(room.ws))


def test_what_grows_after_it_was_moved_is_weighed(room: Room) -> None:
    kept_back = KeptBack(64 << 10)
    (room.kept / "tree").mkdir()
    (room.kept / "tree/small").write_bytes(bytes(1000))
    os.truncate(room.kept / "tree/small", 1 << 30)  # a hole takes nothing
    assert not kept_back.full(room.quarantine_fd)
    (room.kept / "tree/big").write_bytes(bytes(128 << 10))
    assert kept_back.full(room.quarantine_fd)


def test_a_weighing_ends_after_so_many_names(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (room.kept / f"{number}").write_bytes(bytes(64 << 10))
    kept_back = KeptBack(100 << 10)
    assert kept_back.full(room.quarantine_fd)
    monkeypatch.setattr(quarantine, "WEIGHED", 1)
    assert not kept_back.full(room.quarantine_fd)


def test_holes_are_not_written(room: Room) -> None:
    with open(room.ws / "x", "wb") as file:
        file.write(b"begin")
        file.seek(1 << 30)
        file.write(b"end")
        file.truncate((1 << 30) + (1 << 20))
    taken = room.take("x")
    assert taken.how == how(room)
    kept = room.kept / taken.kept
    assert kept.stat().st_size == (1 << 30) + (1 << 20)
    assert kept.stat().st_blocks * 512 < 1 << 20
    with open(kept, "rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(1 << 30)
        assert file.read(4) == b"end\0"
