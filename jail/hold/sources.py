"""What the lock files of packages say: where they fetch from, and what.

Rule: what cannot be read is said, never passed over, and what a tool would decode is decoded as it does: JSON
and TOML are parsed, of other formats no line with an escape is taken for read. What the old file has not is
told: sources (of a registry its host, of a repository its owner and name, what lies on this machine),
packages, those that run scripts on installing, and another content under the same version.
"""

import json
from collections.abc import Sequence
from typing import Final

from jail.hold import locks, locktext

MOST_BYTES: Final = 8 << 20
"""A list that is longer is not read; the largest lock files of real projects have some 4 MiB."""
TOML_BYTES: Final = 4 << 20
"""The same for TOML, which takes a second or more for each MiB."""
DOTS: Final = 1000
"""In one line of TOML: a key of n parts takes the square of that (tomllib)."""
SHOWN: Final = 3
"""Names in one reason, then a count."""
WIDTH: Final = 60
"""Characters of one name."""
UNREAD: Final = "it cannot be read"

_JSON: Final = frozenset("package-lock.json npm-shrinkwrap.json deno.lock pipfile.lock composer.lock".split())
_TOML: Final = frozenset("uv.lock poetry.lock pdm.lock cargo.lock pylock.toml".split())
_LINES: Final = frozenset(
    "yarn.lock pnpm-lock.yaml bun.lock go.sum gemfile.lock mix.lock podfile.lock".split()
)
_PIP: Final = (".txt", ".in")


def is_lock(name: str) -> bool:
    """Whether a canonical name is that of a file with the packages to install."""
    required = name.startswith(("requirements", "constraints")) and name.endswith(_PIP)
    return name in _JSON or name in _TOML or name in _LINES or required


def new_sources(name: str, old: bytes | None, new: bytes | None) -> str:
    """What a lock file of the canonical name `name` fetches now and did not before, for a person; "" for
    nothing. `None`: not there, or not read.
    """
    before = b"" if old is None or len(old) > MOST_BYTES else old
    after = None if new is None or len(new) > MOST_BYTES else _read(name, new, before)
    if after is None:
        return UNREAD
    known = (_read(name, before, before) or locks.nothing()) if before else locks.nothing()
    told = []
    for what, found in locks.differences(known, after):
        if what == "new packages" and found:
            told.append(f"{len(found)} new package{'s' if len(found) > 1 else ''}: {_some(found)}")
        elif found:
            told.append(f"{what}: {_some(found)}")
    return "; ".join(told)


def _read(name: str, content: bytes, old: bytes) -> locks.Found | None:
    """What a lock file says; None where that cannot be known."""
    try:
        if name in _JSON:
            return locks.of_tree(json.loads(content.decode("utf-8"))) if content.strip() else locks.nothing()
        text = content.decode("utf-8", "surrogateescape")
        if name in _TOML:
            return _of_toml(text)
        return locktext.of_lines(name, text, old.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _of_toml(text: str) -> locks.Found | None:
    if len(text) > TOML_BYTES or any(line.count(".") > DOTS for line in text.split("\n")):
        return None
    import tomllib  # most reviews have none to read

    return locks.of_tree(tomllib.loads(text))


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(named, names[:SHOWN])) + _more(names)


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""


def named(text: str) -> str:
    """A name from a file as it stands in a reason: quoted where it could be taken for more than one."""
    return _short(text if _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False))


_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:~^*#=+<>!%&?[]"
)


def _short(name: str) -> str:
    return name if len(name) <= WIDTH else name[: WIDTH - 1] + "…"
