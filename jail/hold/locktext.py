r"""What a lock file says whose format is lines: yarn, pnpm, go, bundler, pip and others.

Rule: the lines are not parsed as their tools do, so what a tool would decode is not guessed: a line with an
escape is not read but shown to a person, since `https\x3a//` is a source that no search finds. Lines that the
old file has too say nothing.
"""

from collections.abc import Iterator
from typing import Final

from jail.hold import urls
from jail.hold.locks import Found, nothing

_GO_SUM: Final = "go.sum"
_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_FILES: Final = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_BINARY: Final = ("\0", "\ufeff", "\udcff\udcfe", "\udcfe\udcff")
"""Marks of UTF-16 and the like, which pip would decode."""
_HASH: Final = "--hash="
_CONTENT: Final = frozenset("integrity checksum resolved resolution".split())


def of_lines(name: str, text: str, old: str) -> Found | None:
    """What the text of a lock file of this canonical name says; None where it cannot be known. `old`: the
    text that was there before, whose lines were read by somebody.
    """
    pip = name.startswith(("requirements", "constraints"))
    if pip:
        text = text.replace("\\\r\n", " ").replace("\\\n", " ")
    known = set(old.split("\n"))
    if any(line not in known and _is_encoded(line, pip=pip) for line in text.split("\n")):
        return None
    found = nothing()
    if name == _GO_SUM:
        for line in text.split("\n"):
            module, _, rest = line.partition(" ")
            version, _, digest = rest.partition(" ")
            if module:
                found.sources.setdefault(module[: urls.URL_MOST])
                found.contents.setdefault(f"{module}@{version}", set()).add(digest)
        return found
    found.sources.update(dict.fromkeys(urls.sources_in(text)))
    for line in text.split("\n"):
        if pip:
            _of_requirement(found, line.strip())
        else:
            _of_line(found, line)
    if not pip:
        _of_entries(found, text)
    return found


def _is_encoded(line: str, *, pip: bool) -> bool:
    if any(mark in line for mark in _BINARY) or (pip and line.startswith("#") and "coding" in line):
        return True
    return "\\" in line or "!!" in line


def _of_requirement(found: Found, line: str) -> None:
    line = line.partition(" #")[0]
    if not line or line.startswith("#"):
        return
    if line.startswith("-"):
        if not any(urls.sources_in(line)):
            found.sources.setdefault(line)
        return
    end = next((at for at, char in enumerate(line) if char not in _NAME), len(line))
    word = line.partition(";")[0].split(" ")[0]
    if not end or "/" in word or word.endswith(_FILES):
        if not any(urls.sources_in(line)):
            found.sources.setdefault(line.split(" ")[0])
        return
    name = line[:end].lower()
    found.packages.setdefault(name)
    pinned, *hashes = line.split(_HASH)
    if hashes:
        content = " ".join(sorted(each.strip() for each in hashes))
        found.contents.setdefault(pinned.split(";")[0].strip(), set()).add(content)


def _of_line(found: Found, line: str) -> None:
    """The heads of entries (yarn, pnpm, mix, bun), and lines of bundler and CocoaPods."""
    bare = line.strip()
    for name in _named(line, bare):
        found.packages.setdefault(name)
    key, colon, value = bare.removeprefix(":").partition(":")
    value = value.strip().strip("\"'")
    is_place = key in ("remote", "path", "directory", "tarball") and colon and value not in ("", ".")
    if is_place and not any(urls.sources_in(value)):
        found.sources.setdefault(value)


def _named(line: str, bare: str) -> Iterator[str]:
    indent = len(line) - len(line.lstrip(" "))
    if bare.startswith("- ") and bare.endswith((")", "):")) and indent == 2:  # CocoaPods
        yield bare[2:].strip("\"'").partition(" ")[0]
    elif bare.endswith(")") and " (" in bare and indent == 4:  # bundler
        yield bare.partition(" ")[0]
    elif bare.endswith(":") and indent <= 2 and not bare.startswith(("#", "-")):
        for each in bare[:-1].replace('"', "").replace("'", "").split(","):
            name = each.strip().removeprefix("/")
            at = name.find("@", 1)
            if at > 0:
                yield name[:at]
    elif bare.startswith('"') and indent <= 4:  # mix, bun
        name, quote, rest = bare[1:].partition('"')
        if quote and rest.lstrip().startswith((":", "=>")):
            yield name


def _of_entries(found: Found, text: str) -> None:
    """What each entry is: yarn and pnpm say it in lines of their own, others in one line or two."""
    name = version = ""
    content: list[str] = []
    for line in (*text.split("\n"), ":"):
        bare = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if bare.endswith(":") and indent <= 2:
            if name and (content or version):
                found.contents.setdefault(f"{name}@{version}", set()).add("; ".join(content))
            head = bare[:-1].replace('"', "").replace("'", "").removeprefix("/").partition(",")[0]
            name, _, version = head.rpartition("@")
            content = []
            continue
        key, _, value = bare.partition(" ")
        if key.rstrip(":") == "version":
            version = value.strip("\"'")
        elif key.rstrip(":") in _CONTENT and value:
            content.append(value)
        elif bare == "requiresBuild: true":
            found.scripts.setdefault(name)
        parts = bare.split('"', 4)
        if len(parts) == 5 and not parts[0] and indent <= 4 and "sha" not in parts[3]:
            found.contents.setdefault(f"{parts[1]} {parts[3]}", set()).add(parts[4])
        elif " sha256=" in bare:
            pinned, _, digest = bare.partition(" sha256=")
            found.contents.setdefault(pinned, set()).add(digest)
