"""The sources that a text names: where a package manager would fetch from.

Rule: a text is hostile, so it is read by loops whose time is linear in its length. Of a URL the host is told,
and for a repository or a file that anybody can put on a host its owner and name too; of what lies on this
machine the path.
"""

from collections.abc import Iterator
from typing import Final

_SCHEME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.")
_SCHEME_MOST: Final = 24
URL_MOST: Final = 1024
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
_HERE: Final = ("file:", "link:", "portal:", "exec:", "patch:")
"""Forms of npm, yarn and pnpm for what lies on this machine."""


def sources_in(text: str) -> Iterator[str]:
    """The sources in a text, each as often as it stands there."""
    yield from (source for source in (*_urls(text), *_forms(text, _SHORT), *_forms(text, _HERE)) if source)


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
    while end < len(text) and end - start < URL_MOST and text[end] not in _URL_END:
        end += 1
    return text[start:end]


def _source(scheme: str, rest: str) -> str:
    """The source of a URL: its host, and whose it is there; with the scheme where that is not https."""
    kind = scheme.rpartition("+")[2]
    if kind == "file":
        return f"file://{rest}"
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].lower()
    shown = "" if kind == "https" else f"{kind}://"
    if "git" in scheme or any(mark in f"/{path}" for mark in _ANYBODYS):
        owned = "/".join(path.partition("#")[0].partition("?")[0].split("/")[:2]).removesuffix(".git")
        return f"{shown}{host}/{owned}".removesuffix("/")
    return f"{shown}{host}"


def _forms(text: str, forms: tuple[str, ...]) -> Iterator[str]:
    for form in forms:
        at = text.find(form)
        while at >= 0:
            word = _word(text, at + len(form))
            if word and not word.startswith("//") and (at == 0 or not text[at - 1].isalnum()):
                yield f"{form}{word}" if form in _HERE else _short_form(form, word)
            at = text.find(form, at + len(form) + len(word))


def _short_form(form: str, word: str) -> str:
    owner = "/".join(word.partition("#")[0].split("/")[:2]).removesuffix(".git")
    # `git@` in a URL was a user, and is found with the URL.
    return f"{form}{owner}" if form != "git@" or ":" in owner else ""
