"""Amounts as a person writes them in a policy: the reverse of what limits reads.

Rule: what is shown reads back as the same amount, so that a value can be copied from `jail policy show`.
"""

from jail.policy.limits import DURATION_UNITS, SIZE_UNITS


def size_text(count: int) -> str:
    """`2 GiB`, `1536 MiB`; bytes that no unit divides are the plain number."""
    for unit, size in reversed(SIZE_UNITS.items()):
        if count and count % size == 0:
            return f"{count // size} {unit}"
    return str(count)


def duration_text(seconds: float) -> str:
    """`12h`, `90m`, `0.5s`; 0 is `0`, never."""
    for unit, size in reversed(DURATION_UNITS.items()):
        if seconds and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds!r}s" if seconds else "0"
