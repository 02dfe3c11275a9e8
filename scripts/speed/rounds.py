"""How it is measured: rounds, not blocks, and never a single time.

Rule: each round runs every candidate once, in an order that turns by one from round to round, so that a noisy
moment meets all of them. What is shown are medians, quartiles, and the median of the rounds' ratios to one of
them: times of this machine say little about another, and what slows a whole round down cancels in its ratio.
"""

import statistics
from collections.abc import Callable
from typing import NamedTuple

MS_PER_S = 1e3


class Row(NamedTuple):
    """One line of the table: times in ms, or memory in MiB (`unit`), and the ratio to the base."""

    measure: str
    candidate: str
    median: float
    low: float
    high: float
    ratio: float
    rounds: int
    unit: str = "ms"


def in_turns(trials: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Name → one number of each round."""
    found: dict[str, list[float]] = {name: [] for name in trials}
    names = list(trials)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(trials[name]())
    return found


def rows(measure: str, found: dict[str, list[float]], base: str, unit: str = "ms") -> list[Row]:
    """One row a candidate, compared with `base`."""
    made = []
    for name, numbers in found.items():
        low, middle, high = statistics.quantiles(numbers, n=4)
        ratio = statistics.median(one / other for one, other in zip(numbers, found[base], strict=True))
        made.append(Row(measure, name, middle, low, high, ratio, len(numbers), unit))
    return made
