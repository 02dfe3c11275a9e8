"""Finds policy files, reads them, and keeps what they say in a cache, so that a launch parses no TOML.

Rule: the only module of this room that touches files. A policy decides what a run may do, so one that anybody
may write is refused. What is kept (jail.kernel.cache) has as its key the content and everything else that
decides the result: the home folder, jail's and Python's version, and the state of the modules that judge, so
that an updated checkout does not trust what older checks let pass.
"""

import marshal
import os
import stat
import sys

from jail import __version__
from jail.errors import EXIT_USAGE, JailError
from jail.kernel import cache
from jail.kernel.digest import sha256_hex
from jail.light import Final
from jail.policy.value import Policy

LARGEST_FILE: Final = 1 << 20
"""Bytes of a policy file; the shipped one has 10 KiB, and no person writes more than this."""
_JUDGES: Final = ("parse.py", "shape.py", "check.py", "names.py", "paths.py", "limits.py", "value.py")
"""The modules of this room on which the result depends."""


def shipped_folder() -> str:
    """The folder of the shipped policies: `jail/policies` of a wheel, `policies` of a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "policies")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(package), "policies")


def shipped_names() -> list[str]:
    """The names of the shipped policies, sorted."""
    try:
        files = os.listdir(shipped_folder())
    except OSError:
        return []
    return sorted(file.removesuffix(".toml") for file in files if file.endswith(".toml"))


def find(name_or_path: str) -> str:
    """The absolute path of a policy: a bare name is a shipped one, `/` or `.toml` makes it a file."""
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        return os.path.abspath(name_or_path)
    names = shipped_names()
    if name_or_path in names:
        return os.path.join(shipped_folder(), f"{name_or_path}.toml")
    raise JailError(
        f"there is no shipped policy `{name_or_path}`",
        where="--policy",
        hint=f"shipped: {', '.join(names) or 'none (jail is not whole)'}; name a file of yours with a slash",
        code=EXIT_USAGE,
    )


def load(name_or_path: str, cache_folder: str | None, home: str) -> Policy:
    """The policy of that name or file; PolicyFaults where it is wrong, JailError where it
    cannot be read or anybody may write it.

    `home` is the home folder that `~` means. `cache_folder` is made (0700) where absent; None is no cache.
    """
    file = find(name_or_path)
    content = _content(file)
    source = (file, sha256_hex(content))
    if cache_folder is None:
        return _parsed(content, file, home)
    name = f"policy-{cache.key(file).hex()[:32]}"  # one for each file, whatever it says
    judges = cache.generation(os.path.dirname(os.path.abspath(__file__)), _JUDGES)
    key = cache.key("policy", source[1], home, __version__, sys.version, judges)
    kept = _kept(cache_folder, name, key)
    if kept is not None:
        return Policy._make((*kept, (source,)))
    policy = _parsed(content, file, home)
    cache.write(cache_folder, name, key, marshal.dumps(tuple(policy)[:-1]))
    return policy


def _parsed(content: bytes, file: str, home: str) -> Policy:
    from jail.policy.parse import parse

    return parse(content, file, home)


def _content(file: str) -> bytes:
    """The bytes of a regular file that not everybody may write, LARGEST_FILE at most.

    Its group may: with umask 002, as many systems have it, each person's own group may write all their files.
    O_NONBLOCK: opening a FIFO must not wait (open(2)).
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no path holds a NUL character"
        raise _unfit(
            file, f"cannot be opened: {reason}", "name a policy file that is there and readable"
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _unfit(file, "is not a regular file", "name the TOML file itself")
        if found.st_mode & stat.S_IWOTH:
            raise _unfit(
                file, "can be written by anybody", "look at what it says, then run `chmod o-w` on it"
            )
        content = _read(descriptor)
    except OSError as error:
        raise _unfit(file, f"cannot be read: {error.strerror}", "look at its file system") from None
    finally:
        os.close(descriptor)
    if content is None:
        raise _unfit(file, "is larger than 1 MiB", "name a policy file; is this one?")
    return content


def _unfit(file: str, what: str, hint: str) -> JailError:
    return JailError(f"the policy {what}", where=file, hint=hint, code=EXIT_USAGE)


def _read(descriptor: int) -> bytes | None:
    """All of a file, or None where it has more than LARGEST_FILE bytes, also if it grows meanwhile."""
    content = b""
    while len(content) <= LARGEST_FILE:
        part = os.read(descriptor, LARGEST_FILE + 1 - len(content))
        if not part:
            return content
        content += part
    return None


def _kept(folder: str, name: str, key: bytes) -> tuple[object, ...] | None:
    """The fields of the policy kept under `name` for `key`, or None for any reason whatever."""
    body = cache.read(folder, name, key)
    if body is None:
        return None
    try:
        fields = marshal.loads(body)  # noqa: S302 - the cache gives only what we wrote, by owner and digest
    except (EOFError, ValueError, TypeError):
        return None
    return fields if _fits(fields) else None


def _fits(fields: object) -> bool:
    """Whether `fields` are those of a Policy without its sources, each of its type."""
    kinds = (
        *("text",) * 2,
        *("texts",) * 5,
        bool,
        "texts",
        "pairs",
        "texts",
        *(int,) * 6,
        float,
        "texts",
    )
    if not isinstance(fields, tuple) or len(fields) != len(kinds):
        return False
    for kind, field in zip(kinds, fields, strict=True):
        if kind == "text":
            fits = type(field) is str
        elif kind == "texts":
            fits = type(field) is tuple and all(type(text) is str for text in field)
        elif kind == "pairs":
            fits = type(field) is tuple and all(
                type(pair) is tuple and [type(part) for part in pair] == [str, str] for pair in field
            )
        else:
            fits = type(field) is kind
        if not fits:
            return False
    return True
