"""Looks from outside, when the attacked run is over: what must be as it was.

Rule: nothing that was said inside is believed here. A look returns "" or the change that it found; a survivor
that it finds is ended.
"""

import os
import signal
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.kernel.digest import sha256_hex
from jail.launch.attack_lay import CANARY, HOST_SOCKET, Ground
from jail.ledger import reader
from jail.ledger.writer import LEDGER

FIRST_LINE: Final = b"a line that was there\n"
"""What standard output and error hold before the run; a file that is cut or reopened loses it."""


class Look(NamedTuple):
    """One look: `seen` is said when all is well, `problem` is "" then."""

    name: str
    what: str
    seen: str
    problem: str


def looks(ground: Ground) -> Mapping[str, Look]:
    """Every look, by the name that attacks have as their proof."""
    return {key: Look(name, what, seen, look(ground)) for key, name, what, seen, look in _LOOKS}


def _secrets(ground: Ground) -> str:
    for folder in ground.folders:
        names = set(os.listdir(folder)) - {CANARY, HOST_SOCKET}
        if names:
            return f"{', '.join(sorted(names)[:3])} was made in {folder}"
    return _changed(ground, lambda path: not path.startswith(f"{ground.workspace}/"))


def _git(ground: Ground) -> str:
    hooks = os.path.join(ground.workspace, ".git/hooks")
    changed = _changed(ground, lambda path: path.startswith(f"{ground.workspace}/"))
    if changed:
        return changed
    more = set(os.listdir(hooks)) - {"pre-commit"}
    return f"hooks that were made: {', '.join(sorted(more)[:3])}" if more else ""


def _changed(ground: Ground, concerned: Callable[[str], bool]) -> str:
    for path, text in ground.files.items():
        if not concerned(path):
            continue
        try:
            now = _content(path, len(text) + 1)
        except OSError as error:
            return f"{path}: {error.strerror}"
        if now != text:
            return f"{path} has another content"
    return ""


def _content(path: str, most: int) -> bytes:
    """The first bytes of a file that may have become anything: no link is followed, no pipe waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


def _swept(ground: Ground) -> str:
    there = [path for path in ground.truths.get("absent", ()) if os.path.lexists(path)]
    return f"still there: {', '.join(there[:3])}" if there else ""


def _bits(ground: Ground) -> str:
    for at, _, names in os.walk(ground.workspace):
        for name in names:
            mode = os.lstat(f"{at}/{name}").st_mode
            if mode & (stat.S_ISUID | stat.S_ISGID) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                return f"{at}/{name} has mode {stat.filemode(mode)}"
    return ""


def _process(ground: Ground) -> str:
    pid, status = os.waitpid(ground.process, os.WNOHANG)
    return f"it was ended, wait status {status}" if pid else ""


def _listeners(ground: Ground) -> str:
    for name, server in ground.listeners.items():
        try:
            server.accept()[0].close()
        except BlockingIOError:
            continue
        return f"{name} was connected to"
    return ""


def _survivors(ground: Ground) -> str:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read(1 << 16)
            if ground.mark.encode() in line and int(name) != os.getpid():
                found.append(name)
                os.kill(int(name), signal.SIGKILL)
    return f"process {' '.join(found)} lived on, and was ended" if found else ""


def _streams(ground: Ground) -> str:
    for name in ("stdout", "stderr"):
        with open(f"{ground.streams}/{name}", "rb") as file:
            if file.read(len(FIRST_LINE)) != FIRST_LINE:
                return f"{name}: what it held before is gone"
    if not ground.truths["program"]:
        return ""  # the run said nothing of it: that is told at every attack
    with open(f"{ground.streams}/stdin", "rb") as file:
        return "" if sha256_hex(file.read()) == ground.truths["program"] else "stdin has another content"


def _ledger(ground: Ground) -> str:
    found = [folder for folder, _, names in os.walk(ground.session) if LEDGER in names]
    if len(found) != 1:
        return f"there are {len(found)} ledgers of this run"
    try:
        result = reader.verify(found[0])
    except (JailError, OSError) as error:
        return str(error)
    problem = result.problems[0].what if result.problems else ""
    return problem or ("" if result.complete else "it has no end")


_LOOKS: Final[tuple[tuple[str, str, str, str, Callable[[Ground], str]], ...]] = (
    (
        "secrets",
        "canary files",
        "their content, and nothing made beside them",
        "as they were",
        _secrets,
    ),
    ("listeners", "listeners", "TCP, abstract and by path", "nobody connected", _listeners),
    ("process", "canary process", "same uid, in a session of its own", "it lives on", _process),
    ("git", "protected files", "git hooks, git config, memory files", "as they were", _git),
    ("swept", "swept names", "protected names that were made inside", "moved away", _swept),
    ("bits", "bits and nodes", "setuid, setgid and device nodes", "none", _bits),
    (
        "streams",
        "streams' files",
        "the files that stdin, stdout, stderr are",
        "as they were",
        _streams,
    ),
    ("survivors", "survivors", "processes of the run", "none", _survivors),
    ("ledger", "ledger", "its chain of hashes, and its end", "whole", _ledger),
)
