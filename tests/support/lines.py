"""How much work a piece of Python is, as the number of lines that it executes.

Rule: two sizes of the same work are compared. A count is the same on a busy machine and on an idle one, which
no time is; what a call written in C does is one line.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def executed(work: Callable[[], object]) -> int:
    """The lines that `work` executes, in all functions that it calls."""
    count = 0

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
