"""What a lock file that was parsed says: where it fetches from, which packages, with which content.

Rule: formats are many and new ones come, so nothing is asked of a format but that it is a tree: each mapping
with a name or a version is a package, wherever it stands, and what lies in it belongs to it. Trees are walked
by a loop of our own, since who wrote them chose how deep they are.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from jail.hold import urls

_ON_THIS_MACHINE: Final = ("./", "../", "/", "~/", ".\\", "..\\")
_PLACES: Final = frozenset("path url resolved tarball directory editable subdirectory link".split())
"""Keys whose value is a place, a relative one too; "." is the project itself."""
_CONTENT: Final = frozenset(
    "integrity checksum hash hashes shasum sha1 sha256 sha512 reference resolved url resolution rev".split()
)
"""Keys that say what the package is: with another value the same version is another content."""
_SCRIPTS: Final = ("hasInstallScript", "requiresBuild")
_NOT_FETCHED: Final = frozenset("bin funding homepage support authors bugs repository engines".split())
"""Keys of a package that say something to people, or name files in it."""


class Found(NamedTuple):
    """What a lock file says. `sources`, `packages`: by name, in their order; `contents`: by name and version
    what the package is; `scripts`: packages that run some on installing.
    """

    sources: dict[str, None]
    packages: dict[str, None]
    contents: dict[str, set[str]]
    scripts: dict[str, None]


def nothing() -> Found:
    """Of a file that is not there."""
    return Found({}, {}, {}, {})


def of_tree(tree: object) -> Found:
    """What a tree of mappings, lists and values says, as JSON and TOML give it."""
    found = nothing()
    todo: list[tuple[object, str, str]] = [(tree, "", "")]
    while todo:
        node, key, owner = todo.pop()
        if isinstance(node, Mapping):
            owner = _package(found, node, key, owner)
            for name in node:
                _note_source(found, name, "")
            names = [name for name in node if name not in _NOT_FETCHED]
            todo += [(node[name], name[: urls.URL_MOST], owner) for name in reversed(names)]
        elif isinstance(node, list):
            todo += [(value, key, owner) for value in reversed(node)]
        elif isinstance(node, str):
            _note_source(found, node, key)
            if "://" in key:  # deno: a URL and the digest of what it gave
                found.contents.setdefault(key, set()).add(node)
    return found


def _package(found: Found, node: Mapping[str, object], key: str, owner: str) -> str:
    """Note what a mapping says of a package; whose what lies in it is. Names are cut, as they come again."""
    content = "; ".join(
        f"{each}={node[each]}" for each in sorted(_CONTENT & node.keys()) if _is_said(node[each])
    )
    name, version = _named(node, key)
    if not isinstance(node.get("name"), str):
        if not (version or content) or key in _CONTENT:
            return owner
        if owner and not version:  # one file of a package
            found.contents.setdefault(f"{owner}/{_file(node)}", set()).add(content)
            return owner
    if not name:
        return owner
    found.packages.setdefault(name)
    whole = f"{name}@{version}" if version else name
    found.contents.setdefault(whole, set()).add(content)
    if any(node.get(word) is True for word in _SCRIPTS):
        found.scripts.setdefault(name)
    fetched, base = node.get("resolved"), name.rpartition("/")[2]
    other = isinstance(fetched, str) and not any(f"/{base}{end}" in fetched for end in "/-")
    if isinstance(fetched, str) and "://" in fetched and other:
        found.sources.setdefault(f"{fetched.rpartition('/')[2][: urls.URL_MOST]} as {name}")
    return whole


def _named(node: Mapping[str, object], key: str) -> tuple[str, str]:
    """Name and version of a mapping: of its own, or as npm and deno have them in the key."""
    name, version = node.get("name"), node.get("version")
    version = version[: urls.URL_MOST] if isinstance(version, str) else ""
    if isinstance(name, str):
        return name[: urls.URL_MOST], version
    key = key.rpartition("node_modules/")[2]
    before, _, after = key.rpartition("@")
    return (before, after) if before and not version else (key, version)


def _is_said(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    )


def _file(node: Mapping[str, object]) -> str:
    place = next((node[key] for key in ("file", "filename", "url") if isinstance(node.get(key), str)), "")
    return str(place).rpartition("/")[2][: urls.URL_MOST]


def _note_source(found: Found, text: str, key: str) -> None:
    met = dict.fromkeys(urls.sources_in(text)) if ":" in text else {}
    if met:
        found.sources.update(met)
    elif text.startswith(_ON_THIS_MACHINE) or (key in _PLACES and text not in ("", ".")):
        found.sources.setdefault(text[: urls.URL_MOST])


def differences(old: Found, new: Found) -> Iterator[tuple[str, list[str]]]:
    """What the new one has and the old one had not: a word for it, and which."""
    yield "new sources", [source for source in new.sources if source not in old.sources]
    yield "scripts on installing", [name for name in new.scripts if name not in old.scripts]
    changed = [
        key for key, kinds in new.contents.items() if key in old.contents and kinds - old.contents[key]
    ]
    yield "another content of the same version", changed
    yield "new packages", [name for name in new.packages if name not in old.packages]
