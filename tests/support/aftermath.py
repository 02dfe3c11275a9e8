"""What a run may not leave behind: processes, mounts, a session that seems to run, a ledger that does not
verify.

Rule: namespaces, devpts instances and detached mounts live by a process, a mount or an open file; where no
process and no mount is left of a run, nothing else is. Every process of a run is a fork of the command
`jail`, or was started inside with a mark among its arguments: its command line tells.
"""

import time
from pathlib import Path
from typing import NamedTuple

from jail.ledger import place
from jail.ledger.reader import verify
from support.jails import Jail, survivors


class Before(NamedTuple):
    """What there was before a run: the mounts that this process sees, and the folders of sessions."""

    mounts: tuple[str, ...]
    sessions: frozenset[str]


def look(jail: Jail) -> Before:
    """What there is now."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    # An image that somebody mounts meanwhile is not jail's: it mounts no block device, and binds none of those.
    mounts = tuple(line for line in text.splitlines() if " /dev/loop" not in line)
    return Before(mounts, frozenset(map(str, jail.sessions())))


def left_by(jail: Jail, mark: str, before: Before, patience: float = 0.0) -> list[str]:
    """What is wrong after a run of `jail` whose processes have `mark` in their command line.

    `patience`: seconds that processes may still take to end; 0 for a run that says itself when it is over.
    """
    end = time.monotonic() + patience
    while ((alive := survivors(mark)) or _running(jail, before)) and time.monotonic() < end:
        time.sleep(0.005)
    now = look(jail)
    wrong = [f"process {pid} lives on: {_command_line(pid)}" for pid in alive]
    wrong += [f"mount left: {line}" for line in now.mounts if line not in before.mounts]
    wrong += [f"mount gone: {line}" for line in before.mounts if line not in now.mounts]
    wrong += [f"{Path(folder).name} counts as running" for folder in _running(jail, before)]
    for folder in map(Path, sorted(now.sessions - before.sessions)):
        wrong += broken(folder)
    return wrong


def _running(jail: Jail, before: Before) -> list[str]:
    """Of a process that ends the command line goes before its files do, and with them the lock."""
    return [folder for folder in look(jail).sessions - before.sessions if place.running(folder)]


def broken(session: Path) -> list[str]:
    """What `jail verify` finds wrong in a session that nobody writes any more; that it has no end is nothing
    wrong.
    """
    found = verify(str(session))
    return [f"ledger of {session.name} is broken: line {line}: {what}" for line, what in found.problems]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "gone meanwhile"
