"""Bytes that claim to be lines of a ledger, as entries.

Rule: the bytes are hostile. One line is held at a time and never more than ENTRY_LIMIT of it; whatever does
not read as an entry becomes a sentence about it, never an exception.
"""

import json
import os
import stat
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from jail.errors import JailError
from jail.ledger.entries import ENTRY_LIMIT
from jail.ledger.failure import failure

_CHUNK: Final = 256 * 1024
"""Bytes of one read(2): more does not read faster."""
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "fields": dict,
    "kind": str,
    "prev": str,
    "seq": int,
    "time": (int, float),
    "vouches": str,
    "whole": str,
}


class Entry(NamedTuple):
    """One entry as it was read; its fields are what the file says, of any JSON type."""

    seq: int
    time: float
    kind: str
    vouches: str
    fields: dict[str, Any]
    prev: str


class Line(NamedTuple):
    """One line: its number from 1, its bytes without newline (None: above the limit), whether the newline was
    there.
    """

    number: int
    raw: bytes | None
    ended: bool


def open_regular(path: str, *, follow: bool = False) -> int:
    """A descriptor of the regular file at `path`; of a pipe or device planted there, JailError instead of a
    read that hangs.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags)
    except OSError as error:
        raise failure("read the ledger", path, error) from error
    except ValueError as error:
        raise JailError("cannot read the ledger: no file has such a name", where=path) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise JailError(
            "cannot read the ledger: not a regular file", where=path, hint="look at what lies there"
        )
    return fd


def lines(fd: int, limit: int = ENTRY_LIMIT) -> Iterator[Line]:
    """The lines of `fd` from where it stands; memory is bounded by `limit`. Raises OSError as read(2)
    does.
    """
    number, kept, over = 1, b"", False
    while chunk := os.read(fd, _CHUNK):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            raw = kept + part
            yield Line(number, None if over or len(raw) > limit else raw, ended=True)
            number, kept, over = number + 1, b"", False
        kept += rest
        if len(kept) > limit:
            kept, over = b"", True
    if kept or over:
        yield Line(number, None if over else kept, ended=False)


def parse(raw: bytes) -> tuple[Entry | None, str]:
    """The entry that `raw` is, or None and what is wrong with it."""
    try:
        found = json.loads(raw.decode("ascii"), parse_constant=_refuse)
    except RecursionError:
        return None, "nested too deep"
    except ValueError:
        return None, "not JSON in ASCII"
    if not isinstance(found, dict) or found.keys() != _TYPES.keys():
        return None, "not the fields of an entry"
    for name, kind in _TYPES.items():
        if not isinstance(found[name], kind) or isinstance(found[name], bool):
            return None, f"{name!r} is of the wrong type"
    try:
        when = float(found["time"])
    except OverflowError:
        return None, "'time' is out of range"
    return Entry(found["seq"], when, found["kind"], found["vouches"], found["fields"], found["prev"]), ""


def _refuse(name: str) -> float:
    raise ValueError(name)
