"""What a package.json says: the parts of it that changed and that some program obeys.

Rule: it is told by the keys that no tool could run anything from: whatever else changed is named. What a
package manager runs by itself on installing stands first, and no number cuts it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from jail.hold.sources import MOST_BYTES, SHOWN, UNREAD, named
from jail.plan import autoexec

_ROW: Final = autoexec.row_of(autoexec.TOP, "package.json")
REASON: Final = _ROW.reason if _ROW is not None else ""
"""Why a package.json is shown at all."""
_TEXT_KEYS: Final = frozenset(
    "name version description keywords homepage bugs license licenses author contributors maintainers "
    "funding repository private files readme os cpu engines sideEffects types typings".split()
)
"""Keys of a package.json that say something to people (package.json(5)); files, os and cpu leave out, and
name no program."""
_LIFECYCLE: Final = (
    "preinstall install postinstall preprepare prepare postprepare prepublish prepublishOnly prepack"
    " dependencies"
).split()
"""Scripts that npm runs when nobody called them, the first three of an installed package too
(npm-scripts, Life Cycle Operation Order)."""
_ON_INSTALL: Final = tuple(f"{sign}{name}" for sign in "+~" for name in _LIFECYCLE[:3])


def is_ordinary(reason: str) -> bool:
    """Whether the reason of a warning is one that each installed package gives: its package.json came or
    changed, and nothing of it runs on installing.
    """
    start, _, told = reason.partition(": ")
    words = told.replace(";", " ").split()
    return (
        start == REASON and bool(told) and told != UNREAD and not any(word in words for word in _ON_INSTALL)
    )


def package_changes(old: bytes | None, new: bytes | None) -> str:
    """What of a package.json changed that some program obeys: "scripts: +postinstall; main"; "" for
    nothing.
    """
    after = _package(new)
    if after is None:
        return UNREAD
    before = {} if old is None else _package(old)
    if before is None:
        return "what was there before cannot be read"
    try:
        every = [key for key in {"scripts": 0, **before, **after} if key not in _TEXT_KEYS]
        keys = [key for key in every if before.get(key) != after.get(key)]
        return "; ".join(_told(key, before.get(key), after.get(key)) for key in keys[:SHOWN]) + _more(keys)
    except RecursionError:  # nested as deep as it could just be read
        return UNREAD


def _package(content: bytes | None) -> dict[str, Any] | None:
    if content is None or len(content) > MOST_BYTES:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _told(key: str, before: object, after: object) -> str:
    if not isinstance(before, Mapping | None) or not isinstance(after, Mapping | None):
        return named(key)
    old, new = before or {}, after or {}
    changed = [("+", name) for name in new if name not in old]
    changed += [("~", name) for name in new if name in old and new[name] != old[name]]
    changed += [("-", name) for name in old if name not in new]
    first = []
    if key == "scripts":
        first = [each for name in _LIFECYCLE for each in changed if each[1] == name and each[0] != "-"]
    rest = [each for each in changed if each not in first]
    shown = [*first, *rest[: max(0, SHOWN - len(first))]]
    signs = " ".join(f"{sign}{named(name)}" for sign, name in shown)
    more = f" and {len(changed) - len(shown)} more" if len(shown) < len(changed) else ""
    return f"{named(key)}: {signs}{more}" if changed else named(key)


def _more(names: list[str]) -> str:
    return f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
