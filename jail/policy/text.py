"""A policy with the origin of each of its values, as lines for a person and as plain values for JSON.

Rule: every field is shown, in the order of a file, and a value that nobody wrote is shown as well, as what an
absent key means. Of the environment the values are shown: they stand in files that the person can read.
"""

import os
from typing import Any, Final

from jail.policy.amounts import duration_text, size_text
from jail.policy.check import WORKSPACE
from jail.policy.compose import Composed
from jail.policy.draft import KEYS, Draft, Item, Origin
from jail.policy.flags import CHANGES
from jail.policy.shape import shown
from jail.policy.value import Policy

WIDTH: Final = 34
"""Columns of a value; a longer one moves its origin to the right."""
_KEY_WIDTH: Final = 22
_FLAGS: Final = {
    field: f"--{option.replace('_', '-')}" for option, fields in CHANGES.items() for field in fields
}
"""Field → the flag of the command line that can change it; `hold` has two."""


def lines(made: Composed, policy: Policy) -> list[str]:
    """Each value and its origin, a line each; `policy` is `made` with the flags of the command line."""
    draft = flagged(made.draft, policy)
    about = f": {policy.description}" if policy.description else ""
    found = [f"{'policy':{_KEY_WIDTH}}{policy.name}{about}", f"{'digest':{_KEY_WIDTH}}{policy.digest}"]
    found += [
        f"{'made of' if not place else '':{_KEY_WIDTH}}{file}"
        for place, (file, _) in enumerate(policy.sources)
    ]
    found.append("")
    for field, path in KEYS.items():
        if field in ("name", "description"):
            continue
        key = shown(path)
        items = draft.get(field, [])
        for item in items:
            found.append(f"{key:{_KEY_WIDTH}}{_text(field, item.value):{WIDTH}}  {_origin(item.origin)}")
            key = ""
        if not items:
            found.append(f"{key:{_KEY_WIDTH}}nothing")
    return found


def values(made: Composed, policy: Policy) -> dict[str, Any]:
    """The same as plain values: sizes in bytes, times in seconds, and for each its origin."""
    draft = flagged(made.draft, policy)
    return {
        "name": policy.name,
        "description": policy.description,
        "level": made.level or None,
        "digest": policy.digest,
        "sources": [{"file": file, "sha256": digest} for file, digest in policy.sources],
        "values": {
            shown(path): [{"value": item.value, **item.origin._asdict()} for item in draft.get(field, [])]
            for field, path in KEYS.items()
        },
    }


def flagged(draft: Draft, policy: Policy) -> Draft:
    """The draft of `policy`: what it has beside the draft, or in its place, came from the command line."""
    found = dict(draft)
    for field, flag in _FLAGS.items():
        now = getattr(policy, field)
        origin = Origin(f"flag {flag}", "", "")
        kept = draft.get(field, [])
        if type(now) is tuple:
            known = {item.value: item for item in kept}
            if field == "hold":  # a path of --hold-path is absolute
                known.setdefault(WORKSPACE, Item(WORKSPACE, Origin("flag --hold", "", "")))
            found[field] = [known.get(value, Item(value, origin)) for value in now]
        else:
            found[field] = kept if kept and kept[-1].value == now else [Item(now, origin)]
    return found


def _text(field: str, value: Any) -> str:
    if field == "set_values":
        return f'{value[0]} = "{value[1]}"'
    if field.endswith("_bytes"):
        return size_text(value)
    if field == "timeout":
        return f"{duration_text(value)}{'' if value else ' (no limit)'}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _origin(origin: Origin) -> str:
    """Who said it; of a file that has more than one key of that name, the key: the file stands above."""
    named = {"your file", "your policy", "project"}
    return f"{origin.who}, {os.path.basename(origin.file)}" if origin.who in named else origin.who
