"""Work at the end of a run that a signal cuts short, instead of ending jail before its ledger has an end.

Rule: from the end of the command on nobody hears signals (supervise.py), and what is still to do may take a
while: then ^C, SIGTERM and the like end that work alone. Python runs the handler between two of its steps, so
the work must be such that it may end anywhere: what is half applied is finished later (hold/journal.py).
"""

from jail.launch.signals import ENDING
from jail.light import Callable, signal


class CutShort(BaseException):
    """A signal came; no `except Exception` may take it for an error of the work."""


def until_signal(act: Callable[[], None]) -> bool:
    """Do `act`; False where a signal of ENDING that is not ignored cut it short."""
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in ENDING}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _cut)
        act()
    except CutShort:
        return False
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return True


def _cut(number: int, frame: object) -> None:  # noqa: ARG001 - as signal(7) has handlers
    raise CutShort
