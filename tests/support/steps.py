"""Every call into the kernel that a piece of work makes, and the work done with one of them failing.

Rule: the calls are counted in a run that nothing disturbs, never written down, so that a new one is tested by
itself. Nothing waits for the disk, since no test here takes the machine's power away. Each run is a forked child in which the calls of `os` and of jail.kernel.libc go through a counter: the
Nth raises its error without being made, or the child is killed in its place. That is every point that there
is: strace counts each call by name and process, and takes thirty times as long.
"""

import errno
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jail.errors import JailError
from jail.kernel import libc

FILLING = frozenset(
    "create mkdir write pwrite fsync syncfs symlink ftruncate replace rename renameat2 mknod setxattr".split()
)
"""Calls that can say ENOSPC. `create`: open(2) with O_CREAT."""
CHANGING = FILLING | frozenset("unlink rmdir chmod fchmod utime chown fchown removexattr".split())
WAITING = frozenset(["fsync", "syncfs"])
READING = frozenset("open stat fstat lstat readlink pread read lseek scandir listdir getxattr access".split())
ENDED, REFUSED, DEFECT = 0, 3, 4
KILL = "SIGKILL"


class Counter:
    """Counts calls, and has one of them fail."""

    def __init__(self, at: int, fault: str) -> None:
        self.made: list[str] = []
        self._at = at
        self._fault = fault

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            said = str(arguments[0]).partition("(")[0] if name == "syscall" else name
            if name == "open" and arguments[1] & os.O_CREAT:
                said = "create"
            self.made.append(said)
            if len(self.made) == self._at:
                if self._fault == KILL:
                    os.kill(os.getpid(), signal.SIGKILL)
                number = getattr(errno, self._fault)
                if name == "syscall":
                    raise libc.KernelError(number, str(arguments[0]))
                raise OSError(number, os.strerror(number))
            return None if said in WAITING else call(*arguments, **named)

        return counted


def _counted(work: Callable[[], object], counter: Counter) -> int:
    real = {name: getattr(os, name) for name in CHANGING | READING if hasattr(os, name)}
    syscall = libc.syscall
    for name, call in real.items():
        setattr(os, name, counter.wrap(name, call))
    libc.syscall = counter.wrap("syscall", syscall)
    try:
        work()
    except JailError:
        return REFUSED
    except BaseException:  # noqa: BLE001 - a child: whatever it is, the test tells of it
        traceback.print_exc()
        return DEFECT
    finally:
        libc.syscall = syscall
        for name, call in real.items():
            setattr(os, name, call)
    return ENDED


@contextmanager
def unsynced() -> Iterator[None]:
    """Nothing waits for the disk."""
    fsync, syscall = os.fsync, libc.syscall
    os.fsync = lambda _: None
    libc.syscall = lambda call, *rest: 0 if call in WAITING else syscall(call, *rest)
    try:
        yield
    finally:
        os.fsync, libc.syscall = fsync, syscall


def count(work: Callable[[], object]) -> list[str]:
    """The names of the calls that `work` makes, in order. It is really done, in a child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        counter = Counter(0, "")
        code = _counted(work, counter)
        os.write(writer, "\n".join(counter.made).encode())
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as file:
        made = file.read().split("\n")
    _, status = os.waitpid(pid, 0)
    assert status == 0
    return made


def failing(work: Callable[[], object], at: int, fault: str) -> int:
    """Do it with the call number `at` (from 1) failing: how the child ended, -9 for a kill."""
    pid = os.fork()
    if pid == 0:
        os._exit(_counted(work, Counter(at, fault)))
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
