"""How a script begins: which program the kernel would run it with (execve(2), "Interpreter scripts").

Rule: read within a bound, from regular files alone, and nothing of it is run.
"""

import os
import stat

from jail.light import Final

FIRST_LINE: Final = 512
"""Bytes: the kernel itself reads 256 of a `#!` line (BINPRM_BUF_SIZE); pip's long form has three lines."""


def read(path: str) -> bytes:
    """How a file begins; nothing of a special file, and no wait for one."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        return os.read(fd, FIRST_LINE) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def interpreter(start: bytes) -> str:
    """The absolute path of the interpreter that a script names; "" when there is none.

    Where it is too long for the kernel, or has a space in it, pip and uv write `#!/bin/sh` and then a line
    that both sh and Python read: `'''exec' "/long path/python" "$0" "$@"`.
    """
    if not start.startswith(b"#!"):
        return ""
    lines = os.fsdecode(start).splitlines()
    words = lines[0][2:].split()
    if words and words[0] == "/bin/sh" and len(lines) > 1 and lines[1].startswith("'''exec' "):
        rest = lines[1][len("'''exec' ") :].strip()
        quote = rest[:1]
        return rest[1:].partition(quote)[0] if quote in ('"', "'") else rest.partition(" ")[0]
    return words[0] if words and words[0].startswith("/") else ""
