"""The words that every attack is written in: rows, tries, system calls by number, and what a try met.

Rule: a try is one call. It returns when it worked, which a wall must not let happen; raises OSError when it
was refused, and the errno's name is what was met; raises AbsentError where there was nothing to see, which
only its own look can tell. Nothing here judges: that is done outside, where nobody inside can write.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

Truths = dict[str, Any]
"""What the host side prepared, and says of it: JSON values by name."""
Try = tuple[str, Callable[[], object]]
"""A label and the call."""
WORKED: Final = "worked"
ABSENT: Final = "absent"
UNTRIED: Final = "untried"


class Attack(NamedTuple):
    """One row of the table.

    `wall`: the one that must answer; `tries`: what is attempted, for a person; `held`: what a try meets where
    the wall answers (names of errnos and signals, ABSENT; WORKED for a control); `proof`: the name of a look
    from outside that decides, "" where the answers inside do; `known`: CVEs or the public name of a case in
    which this way was open, "" for none.
    """

    wall: str
    name: str
    tries: str
    deed: Callable[[Truths], Iterator[Try]]
    held: frozenset[str]
    proof: str = ""
    known: str = ""


class AbsentError(Exception):
    """There was nothing to be had."""


class UntriedError(Exception):
    """The machine or the host has not what the attack needs; the text says what."""


LIBC: Final = ctypes.CDLL(None, use_errno=True)
MORE_CALLS: Final = {
    # name: (x86-64, aarch64), beside those that the host side sends
    "capset": (126, 91),
    "getpid": (39, 172),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "shmctl": (31, 195),
    "shmget": (29, 194),
}
"""<asm/unistd_64.h>, <asm-generic/unistd.h>"""
AT_FDCWD: Final = -100


def number(truths: Truths, name: str) -> int:
    """The number of a system call on this machine. Raises UntriedError where it has none."""
    found = truths["calls"].get(name)
    if found is None and name in MORE_CALLS:
        found = MORE_CALLS[name][os.uname().machine != "x86_64"]
    if found is None:
        raise UntriedError(f"this machine has no {name}")
    return int(found)


def raw(call: int, *words: object) -> int:
    """A system call by its number; integers are whole registers. Raises OSError."""
    registers = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(call), *registers)
    if result == -1:
        found = ctypes.get_errno()
        raise OSError(found, os.strerror(found))
    return int(result)


def calls(truths: Truths, *rows: tuple[object, ...]) -> Iterator[Try]:
    """A try for each (name, argument, …) whose call this machine has; the name may be `name: label`."""
    for name, *words in rows:
        call = str(name).partition(":")[0]
        try:
            found = number(truths, call)
        except UntriedError:
            continue
        yield str(name), lambda found=found, words=words: raw(found, *words)  # type: ignore[misc]  # bound now


def met(error: OSError) -> str:
    """The name of what refused a try."""
    if error.errno is None:
        return type(error).__name__
    return errno.errorcode.get(error.errno, str(error.errno))


def absent_if(holds: bool, otherwise: str) -> str:
    """What an own look found: AbsentError when the wall holds, else the text of what was there."""
    if holds:
        raise AbsentError
    return otherwise


def opened(path: str, flags: int, mode: int = 0o600) -> None:
    """Open and close."""
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode))


def content(path: str, most: int = 4096) -> bytes:
    """The first bytes of a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)
