"""The binding to inotify(7): what the kernel says, parsed; and what it says after its queue ran over."""

import os
import select
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.kernel import inotify
from jail.kernel.inotify import Event, Inotify
from jail.kernel.libc import KernelError


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[tuple[Inotify, int]]:
    watch = Inotify()
    fd = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield watch, fd
    os.close(fd)
    watch.close()


def raw(watch: int, mask: int, name: bytes = b"") -> bytes:
    return struct.pack("iIII", watch, mask, 0, len(name)) + name


@pytest.mark.parametrize(
    ("content", "events"),
    [
        (b"", []),
        (raw(1, 256, b"a\0\0\0"), [Event(1, 256, "a")]),
        (raw(1, 256, b"new\nline\0\0\0\0"), [Event(1, 256, "new\nline")]),
        (raw(1, 256, b"\xff\0"), [Event(1, 256, "\udcff")]),
        (raw(2, 1024) + raw(1, 128, b"b\0"), [Event(2, 1024, ""), Event(1, 128, "b")]),
        (raw(-1, inotify.IN_Q_OVERFLOW), [Event(-1, inotify.IN_Q_OVERFLOW, "")]),
    ],
)
def test_events_are_parsed_as_the_kernel_lays_them_out(content: bytes, events: list[Event]) -> None:
    assert inotify.parse(content) == events


@pytest.mark.parametrize("content", [b"\0", raw(1, 2)[:15], raw(1, 256, b"abcd")[:-1]])
def test_half_an_event_is_an_error_and_not_a_guess(content: bytes) -> None:
    with pytest.raises(ValueError, match="inotify event"):
        inotify.parse(content)


def test_creations_links_and_renames_into_a_folder_are_seen(
    tmp_path: Path, watching: tuple[Inotify, int]
) -> None:
    watch, fd = watching
    wd = watch.add(fd, inotify.IN_CREATE | inotify.IN_MOVED_TO)
    assert watch.read() == []
    (tmp_path / "made").write_text("x")
    os.link(tmp_path / "made", tmp_path / "linked")
    (tmp_path / "symlink").symlink_to("made")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.rename(tmp_path / "made", tmp_path / "renamed")
    assert select.select([watch], [], [], 60)[0]
    events = watch.read()
    assert {event.watch for event in events} == {wd}
    assert {event.name for event in events} == {"made", "linked", "symlink", "folder", "pipe", "renamed"}


def test_the_watch_stays_on_the_inode_when_the_folder_is_renamed(
    tmp_path: Path, watching: tuple[Inotify, int]
) -> None:
    watch, _ = watching
    (tmp_path / "a").mkdir()
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    wd = watch.add(fd, inotify.IN_CREATE)
    os.rename(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/wrong").write_text("x")
    (tmp_path / "b/right").write_text("x")
    assert [(event.watch, event.name) for event in watch.read()] == [(wd, "right")]
    os.close(fd)


def test_a_queue_that_ran_over_says_so(tmp_path: Path, watching: tuple[Inotify, int]) -> None:
    watch, fd = watching
    watch.add(fd, inotify.IN_MOVED_FROM | inotify.IN_MOVED_TO)
    (tmp_path / "0").touch()
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if queue > 100_000:
        pytest.skip("the queue of this host is too long to be filled in a test")
    for number in range(queue // 2 + 10):
        os.rename(f"{number % 2}", f"{1 - number % 2}", src_dir_fd=fd, dst_dir_fd=fd)
    overflowed = False
    while events := watch.read():
        overflowed = overflowed or any(event.overflow for event in events)
    assert overflowed


def test_a_watch_that_ended_with_its_folder_can_be_removed_again(
    tmp_path: Path, watching: tuple[Inotify, int]
) -> None:
    watch, _ = watching
    (tmp_path / "a").mkdir()
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    wd = watch.add(fd, inotify.IN_CREATE)
    os.close(fd)
    os.rmdir(tmp_path / "a")
    assert any(event.mask & inotify.IN_IGNORED for event in watch.read())
    watch.remove(wd)


def test_a_refusal_names_the_call(tmp_path: Path, watching: tuple[Inotify, int]) -> None:
    watch, _ = watching
    (tmp_path / "file").write_text("x")
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(KernelError, match="inotify_add_watch"):
        watch.add(fd, inotify.IN_CREATE)
    os.close(fd)
