"""Ending a running session from outside: `jail stop`.

Rule: first the supervisor is asked, which ends the command as a person would (SIGTERM, then SIGKILL) and
writes down that it was; where it does not answer in time, its process is signalled, and at last killed, which
kills all that is inside. It returns when nothing of the session is left.
"""

import os
import time

from jail.errors import JailError
from jail.launch import reach, wire
from jail.ledger import place
from jail.ledger.reader import glance
from jail.light import Final, NamedTuple, signal

ANSWER_WAIT: Final = 3.0
"""Seconds that a supervisor may need for the last output and its record."""
KILL_WAIT: Final = 10.0
"""Seconds after SIGKILL until the kernel has ended everything."""
_POLL: Final = 0.05

ASKED: Final = "asked"
SIGNALLED: Final = "signalled"
KILLED: Final = "killed"


class Stopped(NamedTuple):
    """How a session came to its end: `how` is ASKED, SIGNALLED or KILLED."""

    session: str
    how: str


def stop(folder: str, grace: float) -> Stopped:
    """End the session in `folder`: SIGTERM, SIGKILL after `grace` seconds. Raises JailError when it is still
    there after all.
    """
    name = os.path.basename(folder)
    start = glance(folder)[0]
    supervisor = None if start is None else reach.Supervisor.of(folder, start.fields.get("pid"))
    try:
        if _ask(folder, grace) and _gone(folder, grace + ANSWER_WAIT):
            return Stopped(name, ASKED)
        if not place.running(folder):
            return Stopped(name, ASKED)
        if supervisor is None:
            raise JailError(
                "the session does not answer, and the process that holds its lock is not known",
                where=os.path.join(folder, place.LOCK),
                hint="try again, as it may be starting; `fuser` on that file names the process",
            )
        for number in (signal.SIGTERM, signal.SIGCONT):
            supervisor.signal(number)
        if _gone(folder, grace):
            return Stopped(name, SIGNALLED)
        beneath = supervisor.beneath()
        supervisor.signal(signal.SIGKILL)
        if not (_gone(folder, KILL_WAIT) and all(each.wait(KILL_WAIT) for each in beneath)):
            raise JailError(
                f"the session is still there {KILL_WAIT:.0f} s after SIGKILL",
                where=f"process {supervisor.pid}",
                hint=f"a file system that does not answer holds it: see /proc/{supervisor.pid}/stack as root",
            )
        return Stopped(name, KILLED)
    finally:
        if supervisor is not None:
            supervisor.close()


def _ask(folder: str, grace: float) -> bool:
    """Whether the supervisor said in time that it stops; the connection may close at once after that."""
    try:
        link = reach.ask(folder, wire.stop(wire.Stop(grace)))
    except JailError:
        return False
    try:
        link.set_patience(ANSWER_WAIT)
        message = link.receive()
    except OSError:
        return False
    finally:
        link.close()
    return message is not None and message[0] in ("stopping", "ended")


def _gone(folder: str, seconds: float) -> bool:
    """Wait at most so long until nobody holds the lock: neither the supervisor nor anything of its own."""
    until = time.monotonic() + seconds
    while place.running(folder):
        if time.monotonic() > until:
            return False
        time.sleep(_POLL)
    return True
