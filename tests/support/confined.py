"""Run a program behind the system-call filter, or Landlock, or both, without the rest of the jail.

The walls cannot be taken off again, so they go up in a process of their own, which then execs the program.
Where the tests run as root the program runs as an unprivileged uid: as root it could do things that no
command inside can."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import jail
from support.shared import cache_of

UNPRIVILEGED = 65533
SOURCE = Path(jail.__file__).parent.parent

RUNNER = """
import json, os, sys
source, cache, filters, write, command = json.loads(sys.argv[1])
sys.path.insert(0, source)
from jail.kernel import landlock, seccomp, syscalls
from jail.kernel.libc import syscall
syscall("prctl(PR_SET_NO_NEW_PRIVS)", syscalls.number("prctl"), 38, 1, 0, 0, 0)
if filters:
    from jail.kernel.filters import compiled
    programs = compiled(cache)
if write is not None:
    paths = ("/", "/dev", "/proc", *write)
    root, dev, proc, *folders = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths]
    given = landlock.grants(root, folders, devices=[dev], proc=proc)
    landlock.restrict(given, landlock.known(landlock.abi()))
if filters:
    seccomp.install(programs.guard, "guard")
    seccomp.install(programs.deny, "deny")
os.execvp(command[0], command)
"""


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder that the unprivileged uid owns and can reach (pytest's own are 0700)."""
    with tempfile.TemporaryDirectory(prefix="jail-confined-") as name:
        if os.geteuid() == 0:
            os.chown(name, UNPRIVILEGED, UNPRIVILEGED)
        yield Path(name)


def confined(
    command: Sequence[str],
    folder: Path,
    *,
    filters: bool = True,
    write: Sequence[str] | None = None,
    text: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `command` in `folder`; `write` (None: no Landlock) lists what it may write, `text` is its standard
    input.
    """
    uid = UNPRIVILEGED if os.geteuid() == 0 else os.geteuid()
    arguments = json.dumps([str(SOURCE), str(cache_of(uid)), filters, write, list(command)])
    identity = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, "-I", "-c", RUNNER, arguments],
        cwd=folder,
        env=environment,
        input=text,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
        **identity,
    )


def python(code: str, folder: Path, *arguments: str, **walls: object) -> subprocess.CompletedProcess[str]:
    """As `confined`, with a Python program given as text."""
    return confined([sys.executable, "-I", "-c", code, *arguments], folder, **walls)  # type: ignore[arg-type]
