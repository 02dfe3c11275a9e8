"""Limits: their bounds, what an absent one means, and what a person may write for each.

Rule: an absent limit is the strict one below, never "no limit"; a number out of bounds is refused, not cut to
fit.
"""

from jail.light import Final, NamedTuple
from jail.policy import amounts


class Bound(NamedTuple):
    """One limit: the least and the most that make sense, what an absent key means, and how to write them."""

    least: float
    most: float
    absent: float
    range_text: str
    example: str


BOUNDS: Final = {
    # 64 MiB: below it interpreters and compilers are killed as they start.
    "memory": Bound(64 << 20, 64 << 40, 2 << 30, "64 MiB to 64 TiB", '"8 GiB"'),
    # Fewer than 16 processes cannot run a shell with a pipe and its helpers; more than 2²⁰ is no limit.
    "processes": Bound(16, 1 << 20, 1024, "16 to 1048576", "4096"),
    # 64: below it compilers fail oddly; 2²⁰ is the kernel's own ceiling (fs.nr_open, proc(5)).
    "open_files": Bound(64, 1 << 20, 4096, "64 to 1048576", "65536"),
    # A tmpfs lives in memory and swap (tmpfs(5)).
    "tmp": Bound(1 << 20, 1 << 40, 512 << 20, "1 MiB to 1 TiB", '"2 GiB"'),
    # On the host's disk, in the session's folder.
    "held": Bound(1 << 20, 1 << 40, 512 << 20, "1 MiB to 1 TiB", '"2 GiB"'),
    # A log of this length is one that nobody reads, and fills the disk of who keeps it.
    "output": Bound(64 << 10, 1 << 40, 256 << 20, "64 KiB to 1 TiB", '"1 GiB"'),
    "timeout": Bound(0.1, 30 * 86400.0, 3600.0, "0.1s to 30d", '"12h"; "0" is no limit'),
}


def count(key: str, value: int) -> int:
    """`value` for the limit `key`, within its bounds; else UnfitError."""
    return int(_within(key, value, _brief(value)))


def size(key: str, value: int | str) -> int:
    """Bytes from a number of bytes or text such as "2 GiB"; else UnfitError."""
    if isinstance(value, int):
        return int(_within(key, value, _brief(value)))
    return int(_within(key, amounts.size(value, BOUNDS[key].example), value))


def duration(key: str, text: str) -> float:
    """Seconds from text such as "90s", "45m", "12h"; "0" alone is 0.0, no limit; else UnfitError."""
    return 0.0 if text == "0" else _within(key, amounts.duration(text, BOUNDS[key].example), text)


def _within(key: str, value: float, shown: str) -> float:
    bound = BOUNDS[key]
    hint = f"write something from {bound.range_text}, as in {bound.example}"
    return amounts.within(value, shown, bound.least, bound.most, hint)


def _brief(value: int) -> str:
    """`value` in decimal; past 2⁶⁴ in words, as Python refuses to print long ones
    (sys.set_int_max_str_digits).
    """
    return str(value) if abs(value) < 1 << 64 else f"a number of {value.bit_length()} bits"
