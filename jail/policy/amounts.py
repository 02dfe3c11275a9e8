"""Sizes and durations as they are written and as they are shown: in policies, options, plans and lists.

Rule: what is exact is shown so that it reads back as the same amount, and can be copied from `jail policy
show` or `jail plan` into a file; what was measured is shown rounded, in the same units. A number without a
unit is refused, but for 0, which needs none: nobody should have to guess what `--older-than 30` would delete.
"""

from jail.light import Final, Mapping

SIZE_UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
"""Unit → bytes, from the smallest on."""
DURATION_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Unit → seconds, from the smallest on."""
_DIGITS: Final = "0123456789"
_INFINITE: Final = float("inf")
"""What a number becomes that has more digits than any amount."""
_FEW: Final = 10
"""Fewer of a unit are shown with one decimal place where they were measured."""


class UnfitError(ValueError):
    """An amount that cannot be used: `message` says why, `hint` what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def size(text: str, example: str) -> float:
    """Bytes from text such as "2 GiB"; else UnfitError, whose hint has the `example`."""
    return _read(text, SIZE_UNITS, "size", example)


def duration(text: str, example: str) -> float:
    """Seconds from text such as "90s" or "12h"; else UnfitError, whose hint has the `example`."""
    return _read(text, DURATION_UNITS, "duration", example)


def within(value: float, shown: str, least: float, most: float, hint: str) -> float:
    """`value`, as the person wrote it in `shown`; UnfitError where it is out of bounds."""
    if least <= value <= most:
        return value
    raise UnfitError(f"`{shown}` is too {'small' if value < least else 'large'}", hint)


def _read(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    unit = text.lstrip(_DIGITS + ".")
    number = text[: len(text) - len(unit)]
    whole, dot, part = number.partition(".")
    factor = 1.0 if text == "0" else units.get(unit.removeprefix(" "))
    if factor and whole.isdigit() and (part.isdigit() if dot else True):
        value = float(number) * factor
        if value < _INFINITE:
            return value
    hint = f"write a number and one of {', '.join(units)}, as in {example}"
    raise UnfitError(f"`{text}` is not a {what}", hint)


def size_text(count: int) -> str:
    """`2 GiB`, `1536 MiB`, `1000 B`: exact, in the largest unit that divides it."""
    for unit, factor in reversed(SIZE_UNITS.items()):
        if count and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} B"


def duration_text(seconds: float) -> str:
    """`12h`, `90m`, `0.5s`: exact, in the largest unit that divides it; 0 is `0`."""
    for unit, factor in reversed(DURATION_UNITS.items()):
        if seconds and seconds % factor == 0:
            return f"{seconds / factor:.0f}{unit}"
    return f"{seconds!r}s" if seconds else "0"


def limit_text(seconds: float) -> str:
    """A duration after which something is ended; 0 is no limit."""
    return duration_text(seconds) if seconds else "no limit"


def measured_size(count: int) -> str:
    """`912 B`, `31 MiB`, `2.5 GiB`: rounded, in the largest unit of which there is one."""
    unit, factor = _largest(count, SIZE_UNITS)
    places = 1 if count < _FEW * factor and factor > SIZE_UNITS["KiB"] else 0
    return f"{count / factor:.{places}f} {unit}"


def measured_duration(seconds: float) -> str:
    """`5s`, `12m`, `3h`, `8d`: in the largest unit of which there is one, the rest cut off."""
    unit, factor = _largest(seconds, DURATION_UNITS)
    return f"{int(seconds / factor) if factor > 1 else round(seconds)}{unit}"


def _largest(value: float, units: Mapping[str, float]) -> tuple[str, float]:
    first, *rest = units.items()
    return next(((unit, factor) for unit, factor in reversed(rest) if abs(value) >= factor), first)
