"""How much memory a family of processes takes, seen from outside: real processes and real pages.

Each program allocates, says so, and waits for the end of its input.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jail.kernel import files
from jail.launch import watch
from jail.launch.watch import Host, Watch
from support.running import waiting

MIB = 1 << 20
WAIT = "\nprint('ready', flush=True)\nsys.stdin.read()\n"
TOUCHED = "x = bytearray(b'x') * (100 << 20)"


def meminfo(total: int, available: int, shared: int = 0, swap: int = 0) -> str:
    fields = {
        "MemTotal": total,
        "MemAvailable": available,
        "Shmem": shared,
        "SwapTotal": 100,
        "SwapFree": swap,
    }
    return "".join(f"{name}:    {value << 10} kB\n" for name, value in fields.items())


ALL_IS_OURS, NOTHING_IS_OURS = meminfo(16_000, 0, shared=0), meminfo(16_000, 0, shared=1 << 30)
"""What the host had at the start, so that all or nothing of its shared memory is growth, whatever others do."""


@contextmanager
def running(program: str) -> Iterator[int]:
    """The pid of a shell, here process 1, and beneath it a Python that runs `program` and then waits."""
    command = ["/bin/sh", "-c", '"$@"; exit', "sh"]
    command += [sys.executable, "-I", "-S", "-c", f"import ctypes, mmap, os, sys\n{program}{WAIT}"]
    with waiting(command) as pid:
        yield pid


def of(pid: int, before: str = NOTHING_IS_OURS, memory: int = 1 << 40, processes: int = 4096) -> Watch:
    return Watch(pid, [], {"memory_bytes": memory, "processes": processes}, before)


def used(program: str) -> int:
    """MiB that a close look finds, whose limit is so low that it has to be taken."""
    with running(program) as pid:
        look = of(pid, ALL_IS_OURS, memory=MIB).look()
    assert look.over
    return int(look.said.split()[0])


FORKED = """
for number in range(4):
    if os.fork() == 0:
        os.close(1); sys.stdin.read(); os._exit(0)
"""
FIRST_THREAD_ENDS = """
import threading
def rest():
    x = bytearray(b'x') * (100 << 20)
    print('ready', flush=True)
    sys.stdin.read(); os._exit(0)
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
"""
VFORKED = """
libc = ctypes.CDLL(None)
x = bytearray(b'x') * (100 << 20)
kept = ctypes.create_string_buffer(1 << 16)
pause = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: libc.pause())
stack = ctypes.c_void_p((ctypes.addressof(kept) + (1 << 16)) & ~15)
child = libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), stack, 0x100 | 17, None)
print('ready', flush=True); sys.stdin.read(); os.kill(child, 9); os._exit(0)
"""


@pytest.mark.parametrize(
    ("sentence", "program", "least", "most"),
    [
        ("what is allocated and touched", TOUCHED, 100, 130),
        ("what is allocated and not touched", "x = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE)", 1, 30),
        ("pages shared by forks, once", TOUCHED + FORKED, 100, 160),
        ("pages of a process whose first thread has ended", FIRST_THREAD_ENDS, 100, 130),
        ("pages of two processes with one address space, once", VFORKED, 100, 130),
        ("a memfd that nobody maps", "os.write(os.memfd_create('x'), bytes(100 << 20))", 100, 130),
        (
            "shared anonymous pages of parent and child, once",
            "x = mmap.mmap(-1, 100 << 20); x.write(bytes(100 << 20))" + FORKED,
            100,
            150,
        ),
    ],
)
def test_a_close_look_counts(sentence: str, program: str, least: int, most: int) -> None:
    assert least <= used(program) <= most, sentence


GREW = meminfo(16_000, 0, shared=400), meminfo(16_000, 0, shared=0)
"""The host's shared memory now, and at the start."""
PARKED = (
    "a, b = socket.socketpair(); fd = os.memfd_create('x'); socket.send_fds(a, [b'x'], [fd]); os.close(fd)"
)


@pytest.fixture
def grew(monkeypatch: pytest.MonkeyPatch) -> str:
    """Somebody on this host took 400 MiB of shared memory; /proc/meminfo of the start."""
    real = files.content
    monkeypatch.setattr(files, "content", lambda path: GREW[0] if path == "/proc/meminfo" else real(path))
    return GREW[1]


@pytest.mark.parametrize(
    ("sentence", "program", "over"),
    [
        ("others took it", "", False),
        ("others took it while we have a memfd", "os.write(os.memfd_create('x'), bytes(16 << 20))", False),
        ("others took it while we map something small", "x = mmap.mmap(-1, 16 << 20)", False),
        ("it may be in flight", PARKED, True),
        ("it may be where our mapping reaches", "x = mmap.mmap(-1, 512 << 20)", True),
    ],
)
def test_what_the_host_grew_by_is_ours_only_where_we_may_hide_it(
    sentence: str, program: str, over: bool, grew: str
) -> None:
    with running(f"import socket\n{program}") as pid:
        watched = of(pid, grew, memory=256 * MIB)
        first, second = watched.look(), watched.look()
    assert not first.over, "what is only suspected is looked at twice"
    assert first.room == 0 or not over, "the second look comes at once"
    assert second.over is over, (sentence, second.said)


def test_a_suspicion_that_does_not_last_is_none(grew: str) -> None:
    with running(f"import socket\n{PARKED}") as hides, running("") as honest:
        watched = of(hides, grew, memory=256 * MIB)
        looks = []
        for pid in (hides, honest, hides, hides):
            watched._process_1 = pid
            looks.append(watched.look().over)
    assert looks == [False, False, False, True]


def test_what_others_gave_back_since_the_start_hides_nothing() -> None:
    with running("os.write(os.memfd_create('x'), bytes(100 << 20))") as pid:
        assert of(pid, NOTHING_IS_OURS, memory=64 * MIB).look().over


def test_a_mapped_file_of_the_host_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(100 * MIB))
    program = f"f = open({str(tmp_path / 'big')!r}); x = mmap.mmap(f.fileno(), 0, prot=1); sum(x[::4096])"
    with running(program) as pid:
        assert not of(pid, memory=64 * MIB).look().over


def test_below_the_limit_the_room_is_told() -> None:
    with running(TOUCHED) as pid:
        look = of(pid, memory=1 << 30).look()
    assert not look.over
    assert 700 * MIB < look.room < 924 * MIB


def test_files_in_memory_count_whoever_made_them() -> None:
    fd = os.open("/dev/shm", os.O_PATH | os.O_DIRECTORY)
    file = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
    with running("") as pid:
        least = of(pid, memory=MIB).look().said
        os.write(file, bytes(64 * MIB))
        look = Watch(pid, [fd], {"memory_bytes": MIB, "processes": 4096}, NOTHING_IS_OURS).look()
    os.close(file)
    os.close(fd)
    assert int(look.said.split()[0]) >= int(least.split()[0]) + 64


def test_children_of_every_thread_and_their_children_are_found() -> None:
    program = """
import threading
def fork():
    if os.fork() == 0:
        os.close(1)
        if os.fork() == 0:
            pass
        sys.stdin.read(); os._exit(0)
thread = threading.Thread(target=lambda: (fork(), stop.wait())); stop = threading.Event()
thread.daemon = True
thread.start()
fork()
import time; time.sleep(0.1)
"""
    with running(program) as pid:
        pids, tasks = watch.family(pid)
        by_psutil, threads = watch._family_without_children_files(pid)
    assert pids[0] == pid
    assert set(pids) == set(by_psutil)
    assert len(pids) == 6
    assert tasks == threads == 7


def test_a_process_that_is_gone_takes_nothing() -> None:
    with running("") as pid:
        pass
    look = of(pid).look()
    assert (look.over, look.crowded) == (False, False)
    assert watch._family_without_children_files(pid) == ([], 0)


@pytest.mark.parametrize(("processes", "crowded"), [(4, True), (64, False)])
def test_as_many_processes_as_allowed_are_noticed(processes: int, *, crowded: bool) -> None:
    with running("if os.fork() == 0:\n    os.close(1); sys.stdin.read(); os._exit(0)") as pid:
        assert of(pid, processes=processes).look().crowded is crowded


@pytest.mark.parametrize(
    ("sentence", "before", "now", "short"),
    [
        ("much is left", 9000, 8000, False),
        ("little is left, and it was ours", 9000, 500, True),
        ("little is left, and little was there", 700, 500, False),
    ],
)
def test_a_host_that_runs_out_of_memory_while_it_was_ours_to_take(
    sentence: str, before: int, now: int, *, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.content
    monkeypatch.setattr(
        files, "content", lambda path: meminfo(16_000, now) if path == "/proc/meminfo" else real(path)
    )
    with running("") as pid:
        look = of(pid, meminfo(16_000, before), memory=8 << 30).look()
    assert look.over is short, sentence
    assert ("short of memory" in look.said) is short


def test_the_figures_of_the_host() -> None:
    assert Host.read(meminfo(16_000, 9000, shared=50, swap=90)) == (
        9000 * MIB,
        1000 * MIB,
        50 * MIB,
        10 * MIB,
    )
    assert Host.read("") == (0, 0, 0, 0)
