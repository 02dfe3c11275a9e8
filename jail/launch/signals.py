"""Which signals the caller's side passes on to a command, and how they come to its poll loop.

Rule: one table for the first command and for those that join, so that both hear the same. What the caller had
ignored (nohup, a background job) stays ignored.
"""

from jail.light import Final, Iterable, signal

FOR_GROUP: Final = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
FOR_PROCESS: Final = (signal.SIGTERM,)
"""A terminal signals a group (termios(3)), kill(1) one process; each is passed on as it would have come."""
ENDING: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
DELIVERY: Final = 3.0
"""Seconds that the last output may wait for its reader once the run was told to end."""


def catch(numbers: Iterable[int], wake: int) -> None:
    """Have each of `numbers` written to `wake`, the end of a pipe (signal.set_wakeup_fd)."""
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, only_wake)


def only_wake(number: int, frame: object) -> None:
    """The number arrives through the wake-up fd."""
