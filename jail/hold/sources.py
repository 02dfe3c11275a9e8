"""What lists of packages say: the parts of a package.json that changed, and where a lock file fetches from.

Rule: the texts are hostile, so they are read by loops whose time is linear in their length, and what cannot
be read is said, never passed over. A package.json is told by the keys that no tool could run anything from:
whatever else changed is named. Of a lock file the sources that its old text has not are told: for a registry
its host, for a repository and for files that anybody can put on a host its owner and name too.
"""

import json
from collections.abc import Iterator
from typing import Final

MOST_BYTES: Final = 8 << 20
"""A list that is longer is not read; the largest lock files of real projects have some 4 MiB."""
SHOWN: Final = 3
"""Names in one reason, then a count."""
WIDTH: Final = 60
"""Characters of one name."""
UNREAD: Final = "it cannot be read"

_LOCKS: Final = frozenset(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock deno.lock uv.lock poetry.lock "
    "pdm.lock pipfile.lock cargo.lock go.sum gemfile.lock composer.lock mix.lock podfile.lock".split()
)
_GO_SUM: Final = "go.sum"
_SCHEME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.")
_SCHEME_MOST: Final = 24
_URL_MOST: Final = 1024
_URL_END: Final = frozenset(" \t\r\n\"'<>(),;{}[]`|\\")
_ANYBODYS: Final = (
    ".git",
    "/tarball/",
    "/archive/",
    "/releases/",
    "/-/archive/",
    "tar.gz/",
    "/raw/",
    "/zip/",
)
"""In a URL of a host where anybody can put files: the first two parts of the path belong to its owner."""
_SHORT: Final = ("git@", "github:", "gitlab:", "bitbucket:", "gist:")
"""Forms of npm and git without `//`."""


def is_lock(name: str) -> bool:
    """Whether a canonical name is that of a file with the packages to install."""
    required = name.startswith(("requirements", "constraints")) and name.endswith((".txt", ".in"))
    return name in _LOCKS or required


def new_sources(name: str, old: bytes | None, new: bytes | None) -> str:
    """What a lock file of the canonical name `name` fetches from now and did not before, for a person; "" for
    nothing. `None`: not there, or not read.
    """
    if new is None or len(new) > MOST_BYTES:
        return UNREAD
    known = _sources(name, old) if old is not None and len(old) <= MOST_BYTES else set()
    found = [source for source in _sources(name, new) if source not in known]
    return f"new sources: {_some(found)}" if found else ""


def _sources(name: str, content: bytes) -> dict[str, None]:
    text = content.decode("utf-8", "surrogateescape")
    if name == _GO_SUM:
        return dict.fromkeys(line.partition(" ")[0][:_URL_MOST] for line in text.split("\n") if line.strip())
    return dict.fromkeys(source for source in (*_urls(text), *_short_forms(text)) if source)


def _urls(text: str) -> Iterator[str]:
    at = text.find("://")
    while at >= 0:
        start = at
        while start > 0 and at - start < _SCHEME_MOST and text[start - 1] in _SCHEME:
            start -= 1
        word = _word(text, at + 3)
        yield _source(text[start:at].lower(), word)
        at = text.find("://", at + 3 + len(word))


def _word(text: str, start: int) -> str:
    end = start
    while end < len(text) and end - start < _URL_MOST and text[end] not in _URL_END:
        end += 1
    return text[start:end]


def _source(scheme: str, rest: str) -> str:
    """The source of a URL: its host, and whose it is there; with the scheme where that is not https."""
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].lower()
    kind = scheme.rpartition("+")[2]
    shown = "" if kind == "https" else f"{kind}://"
    if "git" in scheme or any(mark in f"/{path}" for mark in _ANYBODYS):
        owned = "/".join(path.partition("#")[0].partition("?")[0].split("/")[:2]).removesuffix(".git")
        return f"{shown}{host}/{owned}".removesuffix("/")
    return f"{shown}{host}"


def _short_forms(text: str) -> Iterator[str]:
    for form in _SHORT:
        at = text.find(form)
        while at >= 0:
            word = _word(text, at + len(form))
            if word and not word.startswith("//") and (at == 0 or not text[at - 1].isalnum()):
                owner = "/".join(word.partition("#")[0].split("/")[:2]).removesuffix(".git")
                # `git@` in a URL was a user, and is found with the URL.
                if form != "git@" or ":" in owner:
                    yield f"{form}{owner}"
            at = text.find(form, at + len(form) + len(word))


def _some(names: list[str]) -> str:
    return ", ".join(map(_short, names[:SHOWN])) + _more(names)


def _more(names: list[str]) -> str:
    return f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""


def named(text: str) -> str:
    """A name from a file as it stands in a reason: quoted where it could be taken for more than one."""
    return _short(text if _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False))


_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:~^*#")


def _short(name: str) -> str:
    return name if len(name) <= WIDTH else name[: WIDTH - 1] + "…"
