"""Loading seccomp programs into this process, for good.

Rule: what is loaded here can never be taken off, by anyone; so these functions load what they are given and
report, and the order (guard, deny, the recorder's listener last) is the caller's. Filters only add up: the
strictest answer wins, and one that a program inside loads for itself can take away, never give (seccomp(2)).
"""

import ctypes
import os

from jail.errors import bug
from jail.kernel import bpf
from jail.kernel.libc import syscall
from jail.kernel.syscalls import number
from jail.light import Final, NamedTuple

_SET_MODE_FILTER: Final = 1  # SECCOMP_SET_MODE_FILTER of <linux/seccomp.h>
_SPEC_ALLOW: Final = 4  # SECCOMP_FILTER_FLAG_SPEC_ALLOW
_PR_GET_SECCOMP: Final = 21
_PR_GET_NO_NEW_PRIVS: Final = 39
MODE_FILTER: Final = 2
"""SECCOMP_MODE_FILTER, as PR_GET_SECCOMP and the Seccomp line of /proc/self/status give it."""


class Status(NamedTuple):
    """What the kernel says about this thread.

    `mode` is 0 (none) or MODE_FILTER; `filters` counts loaded programs, -1 where it is not told (no /proc, or
    Linux < 5.9).
    """

    mode: int
    filters: int
    no_new_privs: bool


class _Program(ctypes.Structure):
    """struct sock_fprog of <linux/filter.h>."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install(program: bytes, what: str) -> None:
    """Load `program`, an array of struct sock_filter, over this thread and all that it starts; `what` names
    it in errors.

    The process must have a single thread and no_new_privs set. Programs that do not treat speculation
    specially are not slowed down for it (SPEC_ALLOW): before Linux 5.16 every filter would else disable
    speculative store bypass, for half the speed of some interpreters, and against attacks inside one process
    only. Raises KernelError: EACCES without no_new_privs, EINVAL for a program that the kernel does not take,
    ENOMEM past 32768 instructions in all. Source: seccomp(2).
    """
    if not program or len(program) % bpf.INSTRUCTION_SIZE:
        raise bug(f"{what}: {len(program)} bytes are no seccomp program")
    loaded = _Program(len(program) // bpf.INSTRUCTION_SIZE, program)
    call = f"seccomp(SECCOMP_SET_MODE_FILTER, {what}, {loaded.length} instructions)"
    syscall(call, number("seccomp"), _SET_MODE_FILTER, _SPEC_ALLOW, loaded)


def status() -> Status:
    """The seccomp state of this thread: prctl(2), which needs no /proc, and the filter count of proc(5)."""
    mode = _prctl("PR_GET_SECCOMP", _PR_GET_SECCOMP)
    return Status(mode, _filters(), bool(_prctl("PR_GET_NO_NEW_PRIVS", _PR_GET_NO_NEW_PRIVS)))


def _prctl(name: str, option: int) -> int:
    return syscall(f"prctl({name})", number("prctl"), option, 0, 0, 0, 0)


def _filters() -> int:
    try:
        file = os.open("/proc/thread-self/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        content = os.read(file, 65536)
    finally:
        os.close(file)
    _, found, rest = content.partition(b"\nSeccomp_filters:")
    return int(rest.split(b"\n", 1)[0]) if found else -1
