"""A policy while it is being made: each value with its origin; and which key of a file is which field.

Rule: KEYS and WITHOUT are the only places where keys and fields are joined, and a test holds them against the
shape of a file, so that a new key cannot be forgotten in the merge.
"""

from typing import Any, Final, NamedTuple

from jail.policy.check import VERBS, resolved


class Origin(NamedTuple):
    """Where a value comes from: who said it ("level overnight", "part system", "your file", "project",
    "flag --write", "built in"), in which file, at which key; "" where there is none.
    """

    who: str
    file: str
    key: str


class Item(NamedTuple):
    """One value, or one entry of a list, with its origin; an entry of `set_values` is a (name, value)."""

    value: Any
    origin: Origin


Draft = dict[str, list[Item]]
"""Field of Policy → its entries; one item for a field that is no list."""

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "name": ("name",),
    "description": ("description",),
    "system": ("files", "system"),
    "write": ("files", "write"),
    "hold": ("files", "hold"),
    "read": ("files", "read"),
    "hide": ("files", "hide"),
    "toolchains": ("toolchains", "use"),
    "gpu": ("toolchains", "gpu"),
    "pass_names": ("environment", "pass"),
    "set_values": ("environment", "set"),
    "terminal": ("terminal", "allow"),
    "deliver": ("hold", "deliver"),
    "memory_bytes": ("limits", "memory"),
    "processes": ("limits", "processes"),
    "open_files": ("limits", "open_files"),
    "tmp_bytes": ("limits", "tmp"),
    "held_bytes": ("limits", "held"),
    "output_bytes": ("limits", "output"),
    "timeout": ("limits", "timeout"),
    "accept": ("accept", "losses"),
}
"""Field of Policy → the key of a file that fills it."""

WITHOUT: Final[dict[str, tuple[str, ...]]] = {
    **{verb: (verb,) for verb in VERBS},
    "toolchains": ("toolchains",),
    "environment": ("pass_names", "set_values"),
    "terminal": ("terminal",),
    "deliver": ("deliver",),
    "losses": ("accept",),
}
"""Key under [without] → the fields from which it takes."""


def named(field: str, item: Item, home: str) -> str:
    """By what an entry of a list is known: its path as from `resolved`, its name, or itself."""
    if field in VERBS:
        return resolved(item.value, home)
    return str(item.value[0] if field == "set_values" else item.value)
