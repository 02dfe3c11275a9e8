"""Times and sizes as they are typed on a command line: `90s`, `30d`, `5GiB`.

Rule: the units are those of the policy. A number without one is refused, but for 0, which needs none: nobody
should have to guess what `--older-than 30` would delete.
"""

import math
from collections.abc import Mapping

from jail.errors import EXIT_USAGE, JailError
from jail.policy.limits import DURATION_UNITS, SIZE_UNITS


def seconds(option: str, text: str) -> float:
    """`text` as seconds; `option` is for the error. Raises JailError."""
    return _read(option, text, DURATION_UNITS, "a time", "30d")


def size(option: str, text: str) -> int:
    """`text` as bytes; `option` is for the error. Raises JailError."""
    return int(_read(option, text, SIZE_UNITS, "a size", "5GiB"))


def _read(option: str, text: str, units: Mapping[str, float], what: str, example: str) -> float:
    unit = text.lstrip("0123456789.")
    number = text[: len(text) - len(unit)]
    factor = 1 if number == "0" and not unit else units.get(unit.strip())
    try:
        value = float(number) * factor if factor is not None and text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        hint = f"write a number and one of {', '.join(units)}, as in {example}"
        raise JailError(f"{text!r} is not {what}", where=option, hint=hint, code=EXIT_USAGE)
    return value
