"""The error of a command that could not be executed inside, for `run`, `shell` and `exec`.

Rule: the message is that of env(1), name and errno, so that nobody has to learn a new one; what to do depends
on where the program is: whoever has it on the host is told which option gives it. Imported only then.
"""

import errno
import os
from collections.abc import Mapping

from jail.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, JailError


def not_executed(program: str, number: int, environ: Mapping[str, str]) -> JailError:
    """`number`: the errno of execve(2); `environ`: the caller's, whose PATH says where the host has it.

    The code is 127 for what is not there, else 126.
    """
    missing = number in (errno.ENOENT, errno.ENOTDIR)
    return JailError(
        f"{program}: {os.strerror(number)}",
        where="inside the jail, at the command's exec",
        hint=_where_else(program, environ) if missing else _why(number),
        code=EXIT_NOT_FOUND if missing else EXIT_NOT_EXECUTABLE,
    )


def _why(number: int) -> str:
    if number == errno.EACCES:
        return "make it executable (`chmod +x`), or start it by its interpreter; a folder is no program"
    if number == errno.ENOEXEC:
        return "begin it with a `#!` line, or build it for this machine"
    return "see execve(2) for this error"


def _where_else(program: str, environ: Mapping[str, str]) -> str:
    """For a program that the host has and the jail does not show: the option that gives it."""
    folders = [""] if "/" in program else environ.get("PATH", "").split(":")
    for folder in folders:
        path = os.path.join(folder, program)
        if path.startswith("/") and os.access(path, os.X_OK):
            real = os.path.realpath(path)
            return f"on the host it is {real}: give its folder with --read {os.path.dirname(real)}"
    return "`jail plan` shows what is there; a script needs its interpreter, too"
