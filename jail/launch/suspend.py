"""Jail as a job of the caller's shell: stopped by SIGTSTP, and continued (`fg`, `bg`).

Rule: who stops us stops all that is inside, else the command would go on with nobody who sweeps, keeps time
or relays. Process 1 and the keeper go on: they die when we are killed, and put mounts back meanwhile. The
terminal is the shell's while we are stopped. We stop by the signal's own default, so that the kernel refuses
where nobody could continue us (setpgid(2), orphaned process groups).

Two ways lead here. SIGTSTP comes to us, from kill(1) or from the shell. Or the command was stopped, since it
stopped itself: ^Z is a byte on the way to it, and its own terminal stopped it, or it took the key for that
(vim does). Then leader.py tells, and the caller's terminal does what it would have done with ^Z: it stops the
whole group that is in front, us among the others.
"""

import os

from jail.launch import init
from jail.launch.processes import Processes
from jail.launch.streams import Streams
from jail.light import signal


def suspend(streams: Streams, processes: Processes) -> None:
    """Stop, after SIGTSTP; returns when we were continued, and everything inside is."""
    _stop(streams, processes, os.getpid())


def follow(streams: Streams, processes: Processes) -> None:
    """Stop, since the command was stopped; when we are continued it is. Where nobody could continue us we do
    not stop, and the command goes on at once: so it does without jail after a SIGTSTP.
    """
    _stop(streams, processes, 0)
    processes.order(init.TO_GROUP, signal.SIGCONT)


def resume(streams: Streams, processes: Processes) -> None:
    """SIGCONT came after a SIGSTOP: where we are in front the terminal is ours; the command hears it."""
    streams.enter()
    processes.order(init.TO_GROUP, signal.SIGCONT)


def stop_ourselves(target: int) -> None:
    """Be stopped by SIGTSTP to `target`, which we are in (kill(2)); returns when we were continued."""
    handlers = [
        (number, signal.signal(number, signal.SIG_DFL)) for number in (signal.SIGTSTP, signal.SIGCONT)
    ]
    os.kill(target, signal.SIGTSTP)
    for number, handler in handlers:
        signal.signal(number, handler)


def _stop(streams: Streams, processes: Processes, target: int) -> None:
    processes.tell(init.FREEZE, init.COMMAND)
    streams.suspend()
    stop_ourselves(target)
    streams.enter()
    processes.tell(init.THAW, init.COMMAND)
