"""How much memory a family of processes takes, seen from outside: real processes and real pages.

Each program allocates, says so, and waits for the end of its input.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jail.kernel import files
from jail.launch import watch
from jail.launch.watch import Host, Watch
from support.running import until

MIB = 1 << 20
WAIT = "\nprint('ready', flush=True)\nsys.stdin.read()\n"
TOUCHED = "x = bytearray(b'x') * (100 << 20)"


# Others on this host take and give back shared memory meanwhile, so what was there before is told, not read.
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


@contextmanager
def running(program: str) -> Iterator[int]:
    """The pid of a Python that runs `program` and then waits."""
    command = [sys.executable, "-I", "-S", "-c", f"import ctypes, mmap, os, sys\n{program}{WAIT}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=60)


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


@pytest.mark.parametrize(
    ("sentence", "program", "least", "most"),
    [
        ("what is allocated and touched", TOUCHED, 100, 130),
        ("what is allocated and not touched", "x = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE)", 1, 30),
        ("pages shared by forks, once", TOUCHED + FORKED, 100, 160),
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


def test_of_a_process_that_closed_itself_to_us_all_growth_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    real = files.content
    monkeypatch.setattr(
        files,
        "content",
        lambda path: meminfo(16_000, 0, shared=200) if path == "/proc/meminfo" else real(path),
    )
    closed = "ctypes.CDLL(None).prctl(4, 0); os.write(os.memfd_create('x'), bytes(100 << 20))"
    child = (
        "read, write = os.pipe()\n"
        f"if os.fork() == 0: {closed}; os.close(1); os.write(write, b'x'); sys.stdin.read(); os._exit(0)\n"
        "os.read(read, 1)\n"
    )
    with running(child) as pid:
        look = of(pid, meminfo(16_000, 0, shared=90), memory=MIB).look()
    assert look.over
    assert 110 <= int(look.said.split()[0]) <= 150
    # Process 1 itself is jail's own, and closed: of it nothing is guessed.
    with running("ctypes.CDLL(None).prctl(4, 0)") as pid:
        look = of(pid, meminfo(16_000, 0, shared=90), memory=MIB).look()
    assert int(look.said.split()[0]) < 60


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
    with running("") as pid:
        without = of(pid).look().room
        look = Watch(pid, [fd], {"memory_bytes": 1 << 40, "processes": 4096}, NOTHING_IS_OURS).look()
        os.ftruncate(file := os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR), 0)
        os.write(file, bytes(64 * MIB))
        more = Watch(pid, [fd], {"memory_bytes": 1 << 40, "processes": 4096}, NOTHING_IS_OURS).look()
    os.close(file)
    os.close(fd)
    assert look.room <= without
    assert look.room - more.room > 32 * MIB


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
"""
    with running(program) as pid:
        assert until(lambda: watch.family(pid)[1] == 6, 60)
        pids, tasks = watch.family(pid)
        by_psutil, threads = watch._family_without_children_files(pid)
    assert pids[0] == pid
    assert set(pids) == set(by_psutil)
    assert len(pids) == 5
    assert tasks == threads == 6


def test_a_process_that_is_gone_takes_nothing() -> None:
    with running("") as pid:
        pass
    look = of(pid).look()
    assert (look.over, look.crowded) == (False, False)
    assert watch._family_without_children_files(pid) == ([], 0)


@pytest.mark.parametrize(("processes", "crowded"), [(3, True), (64, False)])
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


def test_growth_of_shared_memory_and_swap_is_since_the_start_and_never_negative() -> None:
    before = Host.read(meminfo(16_000, 9000, shared=50, swap=90))
    assert Host.read(meminfo(16_000, 9000, shared=70, swap=60)).since(before) == (20 * MIB, 30 * MIB)
    assert Host.read(meminfo(16_000, 9000, shared=10, swap=100)).since(before) == (0, 0)
    assert Host.read("") == (0, 0, 0, 0)
