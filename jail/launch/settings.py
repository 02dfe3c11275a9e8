"""A manager's own settings in the home folder: what of a file is understood, written anew.

Rule: no settings file goes in itself. A secret has no form by which it is known, and stands in comments, in
tables that a later version adds, in the address of a mirror; so what goes in is a copy of the entries whose
keys are known here and whose values are words, numbers or switches. What is left out is named, by key or
line.
"""

from jail.launch.tables import is_plain
from jail.light import Any, Callable, Final, Mapping, NamedTuple

LARGEST: Final = 65536
"""Bytes of a file of settings."""
MOST_DOTS: Final = 100
"""Dots in one line: tomllib's time grows with the square of those in one key."""
LONGEST: Final = 64
"""Characters of a word; `temurin-21.0.4+7.0.LTS` has 22."""


class Known(NamedTuple):
    """What is understood of a file, as text in its own form; and what is left out."""

    text: str
    left: tuple[str, ...]


def read(path: str, name: str) -> Known | None:
    """The settings in the file `path` whose name in the table of managers is `name`; None where it cannot be
    read or is not of its form.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if len(content) > LARGEST:
        return None
    return _FORMS[name.rpartition("/")[2]](text)


def _versions(text: str) -> Known:
    """A name and its versions in each line (asdf, .tool-versions)."""
    return _by_line(text, lambda line: " ".join(line.split()) if all(map(_is_word, line.split())) else "")


ASDF: Final = (
    *("legacy_version_file", "use_release_candidates", "always_keep_download", "concurrency"),
    *("plugin_repository_last_check_duration", "disable_plugin_short_name_repository"),
)
"""The settings of asdf; what else may stand in .asdfrc are commands, its hooks."""


def _choices(text: str) -> Known:
    """`key = value` in each line (asdf, .asdfrc)."""

    def understood(line: str) -> str:
        key, _, value = (part.strip() for part in line.partition("="))
        fits = value in ("yes", "no", "auto", "never") or (value.isdecimal() and len(value) < 7)
        return f"{key} = {value}" if key in ASDF and fits else ""

    return _by_line(text, understood)


def _by_line(text: str, understood: Callable[[str], str]) -> Known:
    kept, left = [], []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].strip()
        if not bare:
            continue
        found = understood(bare)
        if found:
            kept.append(f"{found}\n")
        else:
            left.append(f"line {number}")
    return Known("".join(kept), tuple(left))


def _mise(text: str) -> Known | None:
    """[tools], and of [settings] what is no text (mise, config.toml)."""
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        return None
    import tomllib

    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    kept, left = "", [key if _is_word(key) else "a table" for key in tables if key not in _MISE]
    for table, value_of in _MISE.items():
        found = tables.get(table, {})
        if not isinstance(found, dict):
            left.append(table)
            continue
        values = {key: value_of(key, value) for key, value in found.items()}
        lines = [f'"{key}" = {value}\n' for key, value in values.items() if value]
        kept += "".join([f"[{table}]\n", *lines]) if lines else ""
        left += [
            f"{table}.{key}" if _is_name(key) else f"an entry of {table}"
            for key, value in values.items()
            if not value
        ]
    return Known(kept, tuple(left))


def _tool(key: str, value: Any) -> str:
    """The version of a tool, "" where it is none; of a table the version alone."""
    if not _is_name(key):
        return ""
    if isinstance(value, dict):
        value = value.get("version")
    if isinstance(value, list):
        words = [_word(each) for each in value]
        return f"[{', '.join(words)}]" if words and all(words) else ""
    return _word(value)


LISTS: Final = ("idiomatic_version_file_enable_tools", "disable_tools", "enable_tools", "disable_backends")
"""Settings of mise that are lists of tools."""


def _setting(key: str, value: Any) -> str:
    if not _is_word(key):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if 0 <= value < 10**6 else ""
    return _tool(key, value) if key in LISTS else ""


_MISE: Final[Mapping[str, Callable[[str, Any], str]]] = {"tools": _tool, "settings": _setting}
"""Table → its values; mise's other tables are environments, commands and addresses."""


def _word(value: Any) -> str:
    """A version as TOML has a string, "" where it is none."""
    text = str(value) if type(value) in (str, int) else ""
    return f'"{text}"' if _is_word(text) else ""


def _is_word(text: str) -> bool:
    return is_plain(text) and len(text) <= LONGEST


def _is_name(text: str) -> bool:
    """A tool as mise names it, `npm:@scope/name` too; no address, which may hold a password."""
    return "://" not in text and _is_word("".join(char for char in text if char not in "@/"))


_FORMS: Final[Mapping[str, Callable[[str], Known | None]]] = {
    ".tool-versions": _versions,
    ".asdfrc": _choices,
    "config.toml": _mise,
    ".mise.toml": _mise,
}
"""Last name of a file in the table of managers → who understands it."""
