"""The person's git identity and hooks folder, from their own configuration, never from a workspace.

Rule: git is run here because only git knows its includes; by absolute path, in a clean environment, at `/`,
for a bounded time, on files of the person. What it said is kept (jail.kernel.cache), keyed by those files,
unless they include others.
"""

import os

from jail import __version__
from jail.kernel import cache
from jail.light import Final, Mapping, NamedTuple

CONFIG_BYTES: Final = 1 << 20
VALUE_CHARACTERS: Final = 1000
_NAME: Final = "git-identity"


class Personal(NamedTuple):
    """`name` and `email` as git would sign with ("" where the person has none); `hooks_path`: their
    core.hooksPath, and `branch` their init.defaultBranch, or "".
    """

    name: str
    email: str
    hooks_path: str
    branch: str


def personal(home: str, environ: Mapping[str, str], cache_folder: str) -> Personal:
    """What the person's git configuration says of them; GIT_AUTHOR_NAME and _EMAIL, then GIT_COMMITTER_…, go
    before it.

    Never raises for a configuration that cannot be read: there is no identity then.
    """
    xdg = environ.get("XDG_CONFIG_HOME", "")
    if not xdg.startswith("/"):
        xdg = f"{home}/.config"
    values = _of_files(home, xdg, cache_folder)
    name = environ.get("GIT_AUTHOR_NAME") or environ.get("GIT_COMMITTER_NAME") or values.get("user.name", "")
    email = (
        environ.get("GIT_AUTHOR_EMAIL") or environ.get("GIT_COMMITTER_EMAIL") or values.get("user.email", "")
    )
    return Personal(
        _clean(name),
        _clean(email),
        values.get("core.hookspath", ""),
        _clean(values.get("init.defaultbranch", "")),
    )


def _clean(value: str) -> str:
    """A value without what git refuses in an identity (ident.c: crud, angle brackets, line ends)."""
    return "".join(
        char for char in value[:VALUE_CHARACTERS] if char.isprintable() and char not in "<>"
    ).strip()


def _of_files(home: str, xdg: str, cache_folder: str) -> dict[str, str]:
    files = (f"{home}/.gitconfig", f"{xdg}/git/config")
    stamps = tuple(map(_stamp, files))
    if not any(stamps):
        return {}
    maker = cache.generation(os.path.dirname(os.path.abspath(__file__)), ("gitidentity.py",))
    key = cache.key(_NAME, __version__, maker, *files, *stamps)
    raw = cache.read(cache_folder, _NAME, key)
    if raw is None:
        raw = _output(home, xdg)
        if raw is not None and not any(map(_includes, files)):
            cache.write(cache_folder, _NAME, key, raw)
    return _parsed(raw or b"")


def _stamp(path: str) -> str:
    """What changes with the file's content; "" where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_mtime_ns} {found.st_size} {found.st_ino}"


def _includes(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"include" in file.read(CONFIG_BYTES).lower()
    except OSError:
        return False


def _parsed(raw: bytes) -> dict[str, str]:
    r"""The answer of `git config -z --get-regexp`: "key\nvalue\0" each; the last one of a key counts."""
    values: dict[str, str] = {}
    for item in os.fsdecode(raw).split("\0"):
        key, _, value = item.partition("\n")
        if key:
            values[key] = value
    return values


def _output(home: str, xdg: str) -> bytes | None:
    """What git says, or None when there is no git, it failed (1: no such key, is an answer), or took too
    long.
    """
    from jail.hold import hostgit  # what it said last is kept

    keys = r"^(user\.(name|email)|core\.hookspath|init\.defaultbranch)$"
    arguments = ("--global", "--includes", "-z", "--get-regexp", keys)
    said = hostgit.config(arguments, {"HOME": home, "XDG_CONFIG_HOME": xdg})
    return said.output if said is not None and said.code in (0, 1) else None
