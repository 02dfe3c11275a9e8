"""The host's git, run by jail: for configuration files alone, never in a repository of an agent.

Rule: by absolute path, in a clean environment that names no repository and no other configuration, at `/`,
with no input, for a bounded time; what it prints is bounded too.
"""

import os
import select
import time

from jail.light import Final, Mapping, NamedTuple, Sequence, signal

GITS: Final = ("/usr/bin/git", "/usr/local/bin/git", "/bin/git")
SECONDS: Final = 2.0
"""git answers in 3 ms; a home folder on a sleeping network disk must not hold up the launch."""
OUTPUT_BYTES: Final = 1 << 16
NOWHERE: Final = "/nonexistent"
"""A home folder that no host has (hier(7) knows none of that name)."""


class Said(NamedTuple):
    """`code`: git's exit code, negative for a signal; `output`: what it printed."""

    code: int
    output: bytes


def path() -> str:
    """The git of this host; "" where there is none."""
    return next((found for found in GITS if os.access(found, os.X_OK)), "")


def config(arguments: Sequence[str | bytes], environ: Mapping[str, str]) -> Said | None:
    """`git config ARGUMENTS`; `environ` goes before the clean environment. None where there is no git, or it
    took longer than SECONDS or printed more than OUTPUT_BYTES.
    """
    git = path()
    if not git:
        return None
    argv = [git, "-C", "/", "config", *arguments]
    clean = {"PATH": "/usr/bin:/bin", "HOME": NOWHERE, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    reading, writing = os.pipe()
    try:
        pid = os.posix_spawn(
            git,
            argv,
            {**clean, **environ},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(reading)
        return None
    finally:
        os.close(writing)
    try:
        output = _read_until(reading, time.monotonic() + SECONDS)
        if output is None:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(reading)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if output is None else Said(code, output)


def _read_until(fd: int, deadline: float) -> bytes | None:
    raw = b""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while len(raw) <= OUTPUT_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return None
        chunk = os.read(fd, OUTPUT_BYTES)
        if not chunk:
            return raw
        raw += chunk
    return None
