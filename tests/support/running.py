"""Runs of jail that are still going on: who their processes are on the host, and whether any of them is left.

Rule: a process is its pid and its start time, so that a number that was given out again is not mistaken for
it. Only processes that descend from a run started here are ever signalled.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from support.jails import PATIENCE, Jail


class Process(NamedTuple):
    """A process of this host."""

    pid: int
    started: int

    def alive(self) -> bool:
        """Whether it still exists; one that waits to be reaped is dead."""
        found = _stat(self.pid)
        return found is not None and found[2] == self.started and found[0] not in "ZX"

    def stopped(self) -> bool:
        """Whether SIGSTOP has reached it."""
        found = _stat(self.pid)
        return found is not None and found[2] == self.started and found[0] == "T"


class Family(NamedTuple):
    """The processes of one run; `inside` are the command and all that it started."""

    supervisor: Process
    keeper: Process
    process_1: Process
    inside: tuple[Process, ...]

    def left(self) -> list[Process]:
        """Those that still live."""
        every = (self.supervisor, self.keeper, self.process_1, *self.inside)
        return [process for process in every if process.alive()]


class Running:
    """One `jail run`, started; end it with `wait`, or leave the `with` block, which kills it."""

    def __init__(
        self,
        jail: Jail,
        *command: str | Path,
        options: Sequence[str | Path] = (),
        prepare: Callable[[], object] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.status_file = jail.home.parent / f"status-{time.monotonic_ns()}.json"
        options = ("--status-file", self.status_file, *options)
        streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = jail.popen(*command, options=options, preexec_fn=prepare, **streams)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def line(self) -> str:
        """The next line that the command prints, without its newline; what follows is left to `wait`."""
        assert self.process.stdout is not None
        found = bytearray()
        # Byte by byte: what a buffer has read ahead, Popen.communicate would not see.
        while (byte := os.read(self.process.stdout.fileno(), 1)) not in (b"", b"\n"):
            found += byte
        return found.decode()

    def has_said_more(self) -> bool:
        """Whether the command has printed something that `line` has not read."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def say(self, text: str) -> Self:
        """Write to the command's standard input (`stdin=PIPE`)."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()
        return self

    def ready(self) -> Self:
        """Wait until the command prints `ready`."""
        met = self.line()
        assert met == "ready", met + str(self.process.communicate(timeout=PATIENCE))
        return self

    def family(self) -> Family:
        """Who is who, by parenthood: supervisor → keeper → process 1 → the rest."""
        supervisor = _process(self.process.pid)
        children = _children()
        (keeper,) = children[self.process.pid]
        (process_1,) = children[keeper.pid]
        return Family(supervisor, keeper, process_1, tuple(_beneath(process_1, children)))

    def signal(self, number: int) -> Self:
        """Signal the supervisor, as a person or a script does."""
        self.process.send_signal(number)
        return self

    def wait(self) -> int:
        """Read the rest, wait for the end, return the exit code (negative: a signal ended the supervisor)."""
        self.output, self.errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def status(self) -> dict[str, Any]:
        """What --status-file says."""
        found: dict[str, Any] = json.loads(self.status_file.read_text(encoding="ascii"))
        return found


def until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether `condition` becomes true within that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def kill(process: Process) -> None:
    """SIGKILL, by pidfd, so that it reaches this process or none."""
    handle = os.pidfd_open(process.pid)
    try:
        if process.alive():
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


def _process(pid: int) -> Process:
    found = _stat(pid)
    assert found is not None, f"process {pid} is gone"
    return Process(pid, found[2])


def _beneath(parent: Process, children: Mapping[int, list[Process]]) -> list[Process]:
    found = []
    for child in children.get(parent.pid, []):
        found += [child, *_beneath(child, children)]
    return found


def _children() -> dict[int, list[Process]]:
    """Parent → children, of every process, in one look at each."""
    found: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            found.setdefault(stat[1], []).append(Process(int(name), stat[2]))
    return found


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and start time (proc_pid_stat(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])


@contextmanager
def waiting(command: Sequence[str]) -> Iterator[int]:
    """The pid of a program that says `ready` and then waits for the end of its stdin."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=10)
