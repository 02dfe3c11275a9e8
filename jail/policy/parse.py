"""TOML → one file of a policy, judged alone, with every fault at once: file, key, what is wrong, what to do.

Rule: only a cache miss imports this module, as tomllib and pydantic cost several bare interpreters. pydantic
judges the shape (unknown keys, types, missing keys) and the light checks, which the command line shares,
judge whatever has the right shape, so that one wrong key hides no other fault. What is absent is denied.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from jail.policy import amounts, limits
from jail.policy.check import (
    VERBS,
    Entry,
    Fault,
    PolicyFaults,
    clean_home,
    contradictions,
    path_complaint,
    resolved,
)
from jail.policy.names import pass_complaint, set_complaint
from jail.policy.shape import SHAPES, Found, Path, at, shaped, shown
from jail.policy.value import DELIVERIES, LOSSES, TERMINAL, TOOLCHAINS

_MOST_ENTRIES: Final = 1000
"""Entries of one array: a path costs a mount, and a host has only so many (fs.mount-max, proc(5))."""
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1000
_NAME_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


LEVEL: Final = "level"
PART: Final = "part"
OWN: Final = "policy"
USER: Final = "user"
PROJECT: Final = "project"
"""The kinds of file: a shipped level, a shipped part, what --policy names, the person's file, a project's."""


class Document(NamedTuple):
    """One file, judged alone: its kind, its path, and its tables as TOML has them."""

    kind: str
    file: str
    tables: dict[str, Any]


class Shipped(NamedTuple):
    """The names that `base` and `parts` may hold."""

    levels: Sequence[str]
    parts: Sequence[str]


NONE: Final = Shipped((), ())


def parse(content: bytes, file: str, home: str, kind: str = OWN, shipped: Shipped = NONE) -> Document:
    """The file as its kind may be; PolicyFaults with every fault of it.

    `file` is the name shown; `home` the home folder that `~` means.
    """
    home = clean_home(home)
    text = _decoded(content, file)
    document = _document(text, file)
    found = shaped(document)
    found += [*_described(document), *_paths(document, home), *_names(document), *_amounts(document)]
    for table, key, known, one in _VOCABULARIES:
        found += _known_names(document, (table, key), known, one)
    found += _known_names(document, ("parts",), dict.fromkeys(shipped.parts, ""), "part")
    found += [*_of_its_kind(document, kind), *_base(document, shipped.levels)]
    if found:
        found.sort(key=_order(document))
        faults = [Fault(file, shown(one.path), one.message, one.hint) for one in found]
        raise PolicyFaults(f"the policy {file}", faults)
    return Document(kind, file, document)


_REFUSED: Final[dict[str, dict[str, tuple[str, str]]]] = {
    LEVEL: {
        "base": ("a shipped level starts from nothing", "remove the key"),
        "without": ("a shipped level has nothing to take away from", "remove the table"),
    },
    PART: {
        "name": ("a part has the name of its file", "remove the key"),
        "base": ("a part starts from nothing", "remove the key"),
        "parts": ("parts use no parts", "name each part in the policy itself"),
        "without": ("a part has nothing to take away from", "remove the table"),
    },
}
"""Keys at the top that a kind of file does not take: why, and what to do."""


def _of_its_kind(document: dict[str, Any], kind: str) -> Iterator[Found]:
    """What this kind of file must have, and may not have."""
    if kind in (LEVEL, OWN) and "name" not in document:
        yield Found(("name",), "missing", f"write {SHAPES[('name',)].example}")
    for key, (message, hint) in _REFUSED.get(kind, {}).items():
        if key in document:
            yield Found((key,), message, hint)
    if kind == OWN and "without" in document and "base" not in document:
        hint = "remove the table, or name the level to start from: " + SHAPES[("base",)].example
        yield Found(("without",), "this policy has no `base`, so there is nothing to take away from", hint)
    if kind == USER or (kind == OWN and "base" in document):
        for path in LISTS:
            if at(document, path) == []:
                hint = "remove the key; what is to be taken away stands under [without]"
                yield Found(path, "an empty list adds nothing, and takes nothing away", hint)


def _base(document: dict[str, Any], levels: Sequence[str]) -> Iterator[Found]:
    name = document.get("base")
    if isinstance(name, str) and name not in levels:
        close = difflib.get_close_matches(name[:_LONGEST_NAME], levels, n=1)
        guess = f"; did you mean `{close[0]}`?" if close else ""
        hint = f"known: {', '.join(levels)}; a file cannot be a base"
        yield Found(("base",), f"unknown level `{name[:80]}`{guess}", hint)


LISTS: Final[tuple[tuple[str, ...], ...]] = (
    *(("files", verb) for verb in VERBS),
    ("toolchains", "use"),
    ("environment", "pass"),
    ("terminal", "allow"),
    ("hold", "deliver"),
    ("accept", "losses"),
)
"""The keys that take arrays, apart from `parts` and what stands under [without]."""


def _decoded(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        where = f"line {before.count(10) + 1}, byte {error.start - (before.rfind(10) + 1) + 1}"
        fault = Fault(file, where, f"not UTF-8: {error.reason}", "save the file as UTF-8 (TOML 1.0.0)")
        raise PolicyFaults(f"the policy {file}", [fault]) from None


_NO_KEY: Final = re.compile(
    r'''
      \# [^\n]*
    | """ (?: [^\\] | \\ (?: . | \Z ) )*? (?: "{3,5} | \Z )
    | '{3} .*? (?: '{3,5} | \Z )
    | "   (?: [^"\\\n] | \\. )* "?
    | '   [^'\n]* '?
    ''',
    re.DOTALL | re.VERBOSE,
)
"""Comments and strings of TOML 1.0.0; one that does not end takes the rest, so that no text is read twice."""
_BETWEEN_KEYS: Final = re.compile(r"[\n=,\[\]{}]")
_MOST_DOTS: Final = 16
"""Dots of one key; [environment.set] has one. tomllib's time grows with their square."""


def _too_deep(text: str) -> int:
    """The line of the first key with more dots than any policy has, 0 for none."""
    bare = _NO_KEY.sub(lambda found: "\n" * found[0].count("\n") + "_", text)
    at = 0
    for part in _BETWEEN_KEYS.split(bare):
        if part.count(".") > _MOST_DOTS:
            return bare.count("\n", 0, at) + 1
        at += len(part) + 1
    return 0


def _document(text: str, file: str) -> dict[str, Any]:
    line = _too_deep(text)
    if line:
        what = f"not TOML that can be a policy: a key of more than {_MOST_DOTS} dots"
        raise PolicyFaults(f"the policy {file}", [Fault(file, f"line {line}", what, _FIRST)])
    try:
        return tomllib.loads(text)
    except RecursionError:
        what, where = "tables or arrays are nested too deeply", "the file"
    except ValueError as error:  # TOMLDecodeError, and int() for numbers of thousands of digits
        message, _, place = str(error).rpartition(" (at ")
        what, where = f"not TOML: {message or place}", place.removesuffix(")") if message else "the file"
        if where == "end of document":
            where = f"line {text.count(chr(10)) + 1}, the end of the file"
    fault = Fault(file, where, what, _FIRST)
    raise PolicyFaults(f"the policy {file}", [fault])


_FIRST: Final = "correct this first: until then nothing else can be checked"


def _described(document: dict[str, Any]) -> Iterator[Found]:
    name, description = document.get("name"), document.get("description")
    if isinstance(name, str) and not (name and set(name) <= _NAME_LETTERS and len(name) <= _LONGEST_NAME):
        hint = "write lower-case letters, digits, `-` and `_`, 64 at most"
        yield Found(("name",), "an empty name" if not name else f"`{name[:80]}` is not a name", hint)
    if isinstance(description, str) and not 0 < len(description) <= _LONGEST_DESCRIPTION:
        what = "an empty description" if not description else "a description of more than 1000 characters"
        yield Found(("description",), what, "say in a sentence what the policy is for, or remove the key")


def _paths(document: dict[str, Any], home: str) -> Iterator[Found]:
    entries: list[Entry] = []
    where: dict[str, Path] = {}
    for table, verb in (*(("files", verb) for verb in VERBS), *(("without", verb) for verb in VERBS)):
        for path, text in _strings(document, (table, verb)):
            if isinstance(path[-1], str):
                yield Found(
                    path, f"more than {_MOST_ENTRIES} entries", "name folders instead of what is in them"
                )
            elif complaint := path_complaint(text, verb, home):
                yield Found(path, *complaint)
            elif table == "files":
                where[shown(path)] = path
                entries.append(Entry(verb, shown(path), resolved(text, home)))
    for entry, message, hint in contradictions(entries):
        yield Found(where[entry.label], message, hint)


def _names(document: dict[str, Any]) -> Iterator[Found]:
    passed: dict[str, Path] = {}
    for path, name in _strings(document, ("environment", "pass")):
        if isinstance(path[-1], str):
            yield Found(path, f"more than {_MOST_ENTRIES} entries", "name fewer variables")
        elif complaint := pass_complaint(name):
            yield Found(path, *complaint)
        elif (first := passed.setdefault(name, path)) is not path:
            yield Found(path, f"`{name}` stands in {shown(first)} too", "remove one of the two")
    values = at(document, ("environment", "set"))
    for name, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, str) and (complaint := set_complaint(name, value)):
            yield Found(("environment", "set", name), *complaint)
        elif name in passed:
            hint = "decide for one of the two"
            yield Found(("environment", "set", name), f"`{name}` stands in {shown(passed[name])} too", hint)


def _amounts(document: dict[str, Any]) -> Iterator[Found]:
    readers: dict[str, tuple[tuple[type, ...], Callable[[str, Any], object]]] = {
        "memory": ((int, str), limits.size),
        "processes": ((int,), limits.count),
        "open_files": ((int,), limits.count),
        "tmp": ((int, str), limits.size),
        "held": ((int, str), limits.size),
        "output": ((int, str), limits.size),
        "timeout": ((str,), limits.duration),
    }
    for key, (types, reader) in readers.items():
        value = at(document, ("limits", key))
        if isinstance(value, types) and not isinstance(value, bool):
            try:
                reader(key, value)
            except amounts.UnfitError as unfit:
                yield Found(("limits", key), unfit.message, unfit.hint)


_VOCABULARIES: Final = (
    ("toolchains", "use", TOOLCHAINS, "toolchain"),
    ("terminal", "allow", TERMINAL, "name"),
    ("hold", "deliver", DELIVERIES, "name"),
    ("accept", "losses", LOSSES, "loss"),
    ("without", "toolchains", TOOLCHAINS, "toolchain"),
    ("without", "terminal", TERMINAL, "name"),
    ("without", "deliver", DELIVERIES, "name"),
    ("without", "losses", LOSSES, "loss"),
)
"""Arrays that take names of one table: where they stand, the table, and what one of them is called."""


def _known_names(
    document: dict[str, Any], where: tuple[str, ...], known: Mapping[str, str], one: str
) -> Iterator[Found]:
    seen: set[str] = set()
    for path, name in _strings(document, where):
        if name in known and name not in seen:
            seen.add(name)
        elif name in seen:
            yield Found(path, f"`{name}` is there already", "remove one of the two")
        else:
            close = difflib.get_close_matches(name[:_LONGEST_NAME], known, n=1)
            guess = f"; did you mean `{close[0]}`?" if close else ""
            yield Found(path, f"unknown {one} `{name[:80]}`{guess}", f"known: {', '.join(known)}")


def _strings(document: dict[str, Any], where: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """The strings of an array with their paths; nothing where it has another shape, which shaped reports.

    Where there are too many, one pair with the path of the array itself.
    """
    values = at(document, where)
    if isinstance(values, list):
        if len(values) > _MOST_ENTRIES:
            yield where, ""
            return
        for place, text in enumerate(values):
            if isinstance(text, str):
                yield (*where, place), text


def _order(document: Mapping[str, Any]) -> Callable[[Found], tuple[int, ...]]:
    """The order of the file: what is missing first, then by table, key and position."""
    places: dict[Path, tuple[int, ...]] = {}

    def number(table: Mapping[str, Any], path: Path, place: tuple[int, ...]) -> None:
        for position, (key, value) in enumerate(table.items()):
            places[(*path, key)] = (*place, position)
            if isinstance(value, dict) and len(path) < 2:  # [environment.set] is the deepest table
                number(value, (*path, key), (*place, position))

    number(document, (), ())

    def order(found: Found) -> tuple[int, ...]:
        keys = tuple(step for step in found.path if isinstance(step, str))
        positions = tuple(step for step in found.path if isinstance(step, int))
        return places.get(keys, (-1,)) + positions

    return order
