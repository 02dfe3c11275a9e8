"""The program inside: each attack in a forked child with a limit of time, one line of JSON for each.

Rule: an attack that hangs, ends its process or is killed is answered for by this process, as what it did; it
can never pass as held. The first line says that the program runs at all and the last that it got to the end,
so that what lies between them is whole.
"""

import json
import os
import select
import signal
import sys
import time
from typing import Final

from .table import ATTACKS
from .words import UNTRIED, WORKED, AbsentError, Attack, Truths, UntriedError, met

SECONDS: Final = 3.0
"""Until an attack is given up; each takes milliseconds."""
MOST: Final = 1 << 20
_TEXT: Final = 300


def main(truths: Truths) -> None:
    """Run the attacks that `truths` names, in the order of the table."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # sent to everybody by one of the attacks
    truths["leaked"] = leaked()
    say({"hello": sys.version.split(maxsplit=1)[0], "pid": os.getpid()})
    for attack in ATTACKS:
        if attack.name in truths["attacks"]:
            say({"attack": attack.name, "met": apart(attack, truths)})
    say({"end": True})


def say(value: object) -> None:
    """One line, in one write: a child that is killed leaves no half of it."""
    os.write(1, json.dumps(value).encode() + b"\n")


def leaked() -> list[str]:
    """What descriptors above 2 lead to; asked before this program opens any."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                found.append(f"{name} -> {os.readlink(f'/proc/self/fd/{name}')}")
            except OSError:
                continue  # the descriptor of the listing itself
    return found


def apart(attack: Attack, truths: Truths) -> list[list[str]]:
    """What the tries of an attack met: [label, met, text] for each, or what became of them all."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        _be(theirs, attack, truths)
    os.close(theirs)
    raw = _read(ours, time.monotonic() + SECONDS)
    os.close(ours)
    if raw is None:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if raw is None:
        return [["", "hung", f"no answer within {SECONDS:g} s"]]
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return [["", name, f"the attack's process was killed by {name}"]]
    try:
        found: list[list[str]] = json.loads(raw)
    except ValueError:
        return [["", "no answer", f"the attack's process ended with {os.WEXITSTATUS(status)}"]]
    return found


def _be(fd: int, attack: Attack, truths: Truths) -> None:
    found = []
    try:
        for label, call in attack.deed(truths):
            found.append([label, *_tried(call)])
    except UntriedError as reason:
        found.append(["", UNTRIED, str(reason)[:_TEXT]])
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is no proof that a wall holds
        found.append(["", "failed", f"{type(error).__name__}: {error}"[:_TEXT]])
    os.write(fd, json.dumps(found).encode())
    os._exit(0)


def _tried(call: object) -> list[str]:
    try:
        value = call()  # type: ignore[operator]  # a Try has a call
    except AbsentError as found:
        return ["absent", str(found)[:_TEXT]]
    except OSError as error:
        return [met(error), (error.strerror or str(error))[:_TEXT]]
    return [WORKED, "" if value is None else str(value)[:_TEXT]]


def _read(fd: int, deadline: float) -> bytes | None:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    raw = b""
    while len(raw) < MOST:
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        part = os.read(fd, 1 << 16)
        if not part:
            break
        raw += part
    return raw
