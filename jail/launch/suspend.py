"""Jail as a job of the caller's shell: stopped by SIGTSTP, and continued (`fg`, `bg`).

Rule: who stops us stops all that is inside, else the command would go on with nobody who sweeps, keeps time
or relays. Process 1 and the keeper go on: they die when we are killed, and put mounts back meanwhile. The
terminal is the shell's while we are stopped. We stop by the signal's own default, so that the kernel refuses
where nobody could continue us (setpgid(2), orphaned process groups).
"""

import os

from jail.launch import init
from jail.launch.processes import Processes
from jail.launch.streams import Streams
from jail.light import signal


def suspend(streams: Streams, processes: Processes) -> None:
    """Stop, after SIGTSTP; returns when we were continued, and everything inside is."""
    processes.order(init.TO_ALL, signal.SIGSTOP)
    streams.suspend()
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, handler)
    streams.enter()
    processes.order(init.TO_ALL, signal.SIGCONT)


def resume(streams: Streams, processes: Processes) -> None:
    """SIGCONT came, after a SIGSTOP too: where we are in front the terminal is ours; the command hears it."""
    streams.enter()
    processes.order(init.TO_GROUP, signal.SIGCONT)
