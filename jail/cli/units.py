"""Durations and sizes as they are typed on a command line, read as those of a policy are."""

from collections.abc import Callable
from typing import Final

from jail.errors import EXIT_USAGE, JailError
from jail.policy import amounts

_ENDLESS: Final = float("inf")


def seconds(option: str, text: str, example: str, most: float = _ENDLESS) -> float:
    """`text` as seconds, `most` of them at most; `option` and `example` are for the error, a JailError."""

    def read() -> float:
        hint = f"write {amounts.duration_text(most)} at most, as in {example}"
        return amounts.within(amounts.duration(text, example), text, 0, most, hint)

    return _read(option, read)


def size(option: str, text: str, example: str) -> int:
    """`text` as bytes; `option` and `example` are for the error, a JailError."""
    return int(_read(option, lambda: amounts.size(text, example)))


def _read(option: str, read: Callable[[], float]) -> float:
    try:
        return read()
    except amounts.UnfitError as unfit:
        raise JailError(unfit.message, where=option, hint=unfit.hint, code=EXIT_USAGE) from None
