"""Which shared memory processes hold: real objects, real processes, and every place where one can be put away.

Rule: each place has the same object without it as its control: 64 MiB are found, and nothing after it was given back.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jail.launch import sharedmemory
from jail.launch.sharedmemory import Held
from support.running import waiting

MIB = 1 << 20
PRELUDE = """
import ctypes, mmap, os, shutil, socket, sys, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
SIZE = 64 << 20
def memfd(size=SIZE):
    fd = os.memfd_create("x")
    for _ in range(size >> 20): os.write(fd, bytes(1 << 20))
    return fd
def mapped(fd, length, flags=mmap.MAP_SHARED):
    return libc.mmap(None, ctypes.c_size_t(length), 3, flags, fd, ctypes.c_long(0))
def wait():
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
"""


@contextmanager
def running(program: str) -> Iterator[int]:
    command = [sys.executable, "-I", "-S", "-c", f"{PRELUDE}\n{program}\nwait()"]
    with waiting(command) as pid:
        yield pid


def found(program: str) -> Held:
    with running(program) as pid:
        return sharedmemory.held([pid])


OWN_TABLE = """
# A thread with a table of its own, as clone(2) makes it where CLONE_FILES is not said.
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p((ctypes.addressof(stack) + (1 << 16)) & ~15)
fd = memfd()
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x100 | 0x200 | 0x800 | 0x10000, None)
os.close(fd)
"""
EXECUTED = """
fd = os.memfd_create("x")
shutil.copyfileobj(open(os.path.realpath("/bin/sleep"), "rb"), file := open(os.dup(fd), "wb"))
for _ in range(64): file.write(bytes(1 << 20))
file.close()
os.set_inheritable(fd, False)
print("ready", flush=True)
os.execve(fd, ["sleep", "20"], {})
"""
NAMED = r"""
fd = os.memfd_create("x\x0b1-2 rw-s 0 00:01 z /SYSV\u2028 00:01 \n 00:01 y")
os.truncate(fd, SIZE); mapped(fd, SIZE); os.close(fd)
"""
ANONYMOUS = "x = mmap.mmap(-1, SIZE); x.write(bytes(SIZE))\n"


@pytest.mark.parametrize(
    ("place", "program"),
    [
        ("a descriptor", "fd = memfd()"),
        ("two descriptors of one object", "fd = memfd(); other = os.dup(fd)"),
        ("a descriptor of a thread's own table", OWN_TABLE),
        ("a descriptor, a part mapped", "fd = memfd(); mapped(fd, 4096)"),
    ],
)
def test_what_is_open_counts_with_what_it_takes_once(place: str, program: str) -> None:
    assert found(program) == (64 * MIB, 0, False), place


def test_of_an_object_that_is_executed_all_counts() -> None:
    command = [sys.executable, "-I", "-S", "-c", f"{PRELUDE}\n{EXECUTED}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while not os.readlink(f"/proc/{process.pid}/exe").startswith("/memfd:"):
            pass
        held = sharedmemory.held([process.pid])
        process.kill()
    assert 64 * MIB <= held.known < 66 * MIB


@pytest.mark.parametrize(
    ("place", "program"),
    [
        ("shared anonymous pages", ANONYMOUS),
        ("and not one of them in the table of pages", ANONYMOUS + "x.madvise(mmap.MADV_DONTNEED)"),
        ("a mapping whose descriptor is closed", "fd = memfd(); mapped(fd, SIZE); os.close(fd)"),
        ("a private one", "fd = memfd(); mapped(fd, SIZE, mmap.MAP_PRIVATE); os.close(fd)"),
        ("under a name that looks like lines of a list", NAMED),
        ("its last page alone", "x = mapped(-1, SIZE, 0x21); libc.munmap(ctypes.c_void_p(x), SIZE - 4096)"),
    ],
)
def test_what_is_only_mapped_counts_as_far_as_mappings_reach(place: str, program: str) -> None:
    held = found(program)
    assert held.known + held.reach == 64 * MIB, place
    assert not held.hidden


@pytest.mark.root
def test_root_is_told_what_an_object_takes_of_which_one_page_is_mapped() -> None:
    assert found("fd = memfd(); mapped(fd, 4096); os.close(fd)") == (64 * MIB, 0, False)


SEND = "a, b = socket.socketpair(); fd = memfd(); socket.send_fds(a, [b'x'], [fd]); os.close(fd)\n"


@pytest.mark.parametrize(
    ("place", "program", "hidden"),
    [
        ("a socket pair with nothing in it", "a, b = socket.socketpair(); a.send(b'x')", False),
        ("a descriptor in flight", SEND, True),
        ("received", SEND + "fd = socket.recv_fds(b, 1, 1)[1][0]", False),
        ("in flight in a socket in flight", SEND + "c, d = socket.socketpair(); socket.send_fds(c, [b'x'], [b.fileno()])", True),
        ("a process that closed itself to us, with a memfd", "fd = memfd(1); libc.prctl(4, 0)", True),
        ("a process that closed itself to us, with one in flight", SEND + "libc.prctl(4, 0)", True),
        ("more descriptors than are looked at", "fds = [os.dup(0) for _ in range(40)]", True),
    ],
)  # fmt: skip
def test_something_may_be_hidden_in(
    place: str, program: str, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place.startswith("more"):
        monkeypatch.setattr(sharedmemory, "DESCRIPTORS", 40)
    assert found(program).hidden is (hidden and not (os.getuid() == 0 and "closed" in place)), place


def test_what_has_ended_holds_nothing_and_hides_nothing() -> None:
    with running("") as pid:
        pass
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert sharedmemory.held([pid, child]) == (0, 0, False)
    os.waitpid(child, 0)


def test_segments_count_attached_or_not() -> None:
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    before_fd = os.open("/proc/sysvipc/shm", os.O_RDONLY)
    before = sharedmemory.segments(before_fd)
    segment = libc.shmget(0, 4 * MIB, 0o1600)
    place = libc.shmat(segment, None, 0)
    try:
        assert sharedmemory.segments(before_fd) == before
        ctypes.memset(place, 1, 4 * MIB)
        libc.shmdt(ctypes.c_void_p(place))
        assert sharedmemory.segments(before_fd) == before + 4 * MIB
    finally:
        libc.shmctl(segment, 0, None)
        os.close(before_fd)


def test_more_segments_than_one_read_tells() -> None:
    libc = ctypes.CDLL(None)
    made = [libc.shmget(0, 4096, 0o1600) for _ in range(60)]
    fd = os.open("/proc/sysvipc/shm", os.O_RDONLY)
    libc.shmat.restype = ctypes.c_void_p
    try:
        before = sharedmemory.segments(fd)
        for segment in made:
            ctypes.memset(libc.shmat(segment, None, 0), 1, 4096)
        assert sharedmemory.segments(fd) == before + 60 * 4096
    finally:
        for segment in made:
            libc.shmctl(segment, 0, None)
        os.close(fd)
