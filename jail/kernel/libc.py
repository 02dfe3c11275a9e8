"""The binding to the C library: declares system calls, decides nothing.

Rule: every call into the kernel goes through `syscall`, whose one check turns -1 into a `KernelError` that
names the call, so that no return value is ever left unread. Numbers are those of <asm/unistd.h>; calls made
after 5.1 have the same number on every architecture.
"""

import ctypes
import errno
import os

from jail.light import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SYSCALL: Final = _LIBC.syscall
_SYSCALL.restype = ctypes.c_long

type_of_argument = int | bytes | str | None | ctypes.Array[ctypes.c_char] | ctypes.Structure

OPEN_TREE: Final = 428
MOVE_MOUNT: Final = 429
FSOPEN: Final = 430
FSCONFIG: Final = 431
FSMOUNT: Final = 432
PIDFD_OPEN: Final = 434
CLOSE_RANGE: Final = 436
OPENAT2: Final = 437
MOUNT_SETATTR: Final = 442
_PER_ARCHITECTURE: Final = {
    # name: (x86_64, aarch64)
    "capset": (126, 91),
    "fstatfs": (138, 44),
    "keyctl": (250, 219),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "renameat2": (316, 276),
    "seccomp": (317, 277),
    "setns": (308, 268),
    "statx": (332, 291),
    "umount2": (166, 39),
    "unshare": (272, 97),
}
_ARCHITECTURES: Final = ("x86_64", "aarch64")


class KernelError(OSError):
    """A system call that the kernel refused: `call` says which and on what, `errno` why."""

    def __new__(cls, number: int, call: str) -> "KernelError":  # noqa: ARG004, PYI034 - one signature; another class, at times
        """As OSError does, give ENOENT and its kin the class that `except FileNotFoundError` catches."""
        return super().__new__(_BY_ERRNO.get(number, cls), number, os.strerror(number))

    def __init__(self, number: int, call: str) -> None:
        super().__init__(number, os.strerror(number))
        self.call = call

    def __str__(self) -> str:
        return f"{self.call}: {self.strerror} ({errno.errorcode.get(self.errno or 0, self.errno)})"


class _AbsentError(KernelError, FileNotFoundError):
    pass


class _ThereError(KernelError, FileExistsError):
    pass


class _DeniedError(KernelError, PermissionError):
    pass


class _NoFolderError(KernelError, NotADirectoryError):
    pass


_BY_ERRNO: Final[dict[int, type[KernelError]]] = {
    errno.ENOENT: _AbsentError,
    errno.EEXIST: _ThereError,
    errno.EACCES: _DeniedError,
    errno.EPERM: _DeniedError,
    errno.ENOTDIR: _NoFolderError,
}


def number(name: str) -> int:
    """The number of a system call older than the common table, on this machine; KeyError for a machine that
    is not known.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise KernelError(errno.ENOSYS, f"{name} on {machine}")
    return _PER_ARCHITECTURE[name][_ARCHITECTURES.index(machine)]


def syscall(call: str, number: int, *arguments: "type_of_argument") -> int:
    """Make system call `number`; `call` is its text for errors.

    Integers are passed as C long, str as file system bytes, structures by reference. Returns the result;
    raises KernelError.
    """
    result = int(_SYSCALL(ctypes.c_long(number), *map(_argument, arguments)))
    if result == -1:
        raise KernelError(ctypes.get_errno(), call)
    return result


def _argument(value: "type_of_argument") -> object:
    if isinstance(value, int):
        return ctypes.c_long(value)
    if isinstance(value, str):
        return ctypes.c_char_p(os.fsencode(value))
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    if isinstance(value, ctypes.Structure):
        return ctypes.byref(value)
    return value
