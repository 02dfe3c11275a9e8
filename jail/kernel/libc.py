"""The binding to the C library: declares system calls, decides nothing.

Rule: every call into the kernel goes through `syscall`, whose one check turns -1 into a `KernelError` that
names the call, so that no return value is ever left unread. Numbers come from `jail.kernel.syscalls`.
"""

import ctypes
import errno
import os

from jail.light import TYPE_CHECKING, Callable, Final

if TYPE_CHECKING:
    from typing import TypeVar

    _Result = TypeVar("_Result")

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SYSCALL: Final = _LIBC.syscall
_SYSCALL.restype = ctypes.c_long

type_of_argument = int | bytes | str | None | ctypes.Array[ctypes.c_char] | ctypes.Structure


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


def named(call: str, function: "Callable[..., _Result]", *arguments: object) -> "_Result":
    """Call a function that makes one system call, and name that call where it is refused."""
    try:
        return function(*arguments)
    except OSError as error:
        raise KernelError(error.errno or 0, call) from error


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
