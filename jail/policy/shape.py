"""The shape of a policy file: its tables, their keys, and what each takes.

Rule: imported by parse alone, as pydantic is slow to import. The models are the one list of keys; the words
for people stand beside them in SHAPES, so that no message depends on pydantic's wording.
"""

import difflib
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jail.policy import limits

_BARE_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
"""Characters of a TOML key that needs no quotes (TOML 1.0.0, Keys)."""
_LONGEST_GUESS: Final = 64
"""Characters of a wrong key that are compared with the known ones; the comparison is quadratic."""
Path = tuple[str | int, ...]
"""Where in the file: names of tables and keys, positions in arrays."""


class Found(NamedTuple):
    """One thing wrong in the file: where, what, and what to do."""

    path: Path
    message: str
    hint: str


class _Table(BaseModel):
    """A TOML table that takes its own keys and no others, without converting any value."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class _Files(_Table):
    system: list[str] = []
    write: list[str] = []
    read: list[str] = []
    hide: list[str] = []


class _Toolchains(_Table):
    use: list[str] = []
    gpu: bool = False


class _Environment(_Table):
    pass_names: list[str] = Field(default=[], alias="pass")
    set_values: dict[str, str] = Field(default={}, alias="set")


class _Terminal(_Table):
    allow: list[str] = []


class _Limits(_Table):
    memory: int | str = int(limits.BOUNDS["memory"].absent)
    processes: int = int(limits.BOUNDS["processes"].absent)
    open_files: int = int(limits.BOUNDS["open_files"].absent)
    tmp: int | str = int(limits.BOUNDS["tmp"].absent)
    held: int | str = int(limits.BOUNDS["held"].absent)
    output: int | str = int(limits.BOUNDS["output"].absent)
    timeout: str = f"{limits.BOUNDS['timeout'].absent:.0f}s"


class _Accept(_Table):
    losses: list[str] = []


class File(_Table):
    """A whole policy file; what is absent gives nothing, or the strict limit."""

    name: str
    description: str = ""
    files: _Files = _Files()
    toolchains: _Toolchains = _Toolchains()
    environment: _Environment = _Environment()
    terminal: _Terminal = _Terminal()
    limits: _Limits = _Limits()
    accept: _Accept = _Accept()


SHAPES: Final[dict[Path, tuple[str, str]]] = {
    ("name",): ("a string", 'name = "overnight"'),
    ("description",): ("a string", 'description = "For work that nobody watches."'),
    ("files",): ("a table", "[files]"),
    ("files", "system"): ("an array of strings", 'system = ["/usr"]'),
    ("files", "write"): ("an array of strings", 'write = ["~/out"]'),
    ("files", "read"): ("an array of strings", 'read = ["~/.rustup"]'),
    ("files", "hide"): ("an array of strings", 'hide = [".env"]'),
    ("toolchains",): ("a table", "[toolchains]"),
    ("toolchains", "use"): ("an array of strings", 'use = ["python"]'),
    ("toolchains", "gpu"): ("true or false", "gpu = false"),
    ("environment",): ("a table", "[environment]"),
    ("environment", "pass"): ("an array of strings", 'pass = ["TERM"]'),
    ("environment", "set"): ("a table", "[environment.set]"),
    ("terminal",): ("a table", "[terminal]"),
    ("terminal", "allow"): ("an array of strings", 'allow = ["title"]'),
    ("limits",): ("a table", "[limits]"),
    ("limits", "memory"): ("a string or a number of bytes", 'memory = "8 GiB"'),
    ("limits", "processes"): ("a whole number", "processes = 4096"),
    ("limits", "open_files"): ("a whole number", "open_files = 65536"),
    ("limits", "tmp"): ("a string or a number of bytes", 'tmp = "2 GiB"'),
    ("limits", "held"): ("a string or a number of bytes", 'held = "2 GiB"'),
    ("limits", "output"): ("a string or a number of bytes", 'output = "1 GiB"'),
    ("limits", "timeout"): ("a string", 'timeout = "12h"'),
    ("accept",): ("a table", "[accept]"),
    ("accept", "losses"): ("an array of strings", 'losses = ["limits-memory"]'),
}
"""Every key of a policy: what it takes, in words, and an example."""

_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a string"),
    (list, "an array"),
    (dict, "a table"),
)
"""Values of tomllib in words; what is left is a date or a time. bool stands first: it is a kind of int."""


def shaped(document: dict[str, Any]) -> tuple[File | None, list[Found]]:
    """The file as typed tables, or what is wrong with its shape."""
    try:
        return File.model_validate(document), []
    except ValidationError as error:
        # A number-or-string key fails once for each of the two, at the same path.
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        found = [_misshapen(document, fault["type"], fault["loc"]) for fault in faults]
        return None, list({one.path: one for one in found}.values())


def _misshapen(document: dict[str, Any], kind: str, path: Path) -> Found:
    if kind == "missing":
        return Found(path, "missing", f"write {SHAPES[path][1]}")
    if kind == "extra_forbidden":
        return _unknown(path)
    if path[:1] == ("limits",):
        path = path[:2]  # pydantic names the member of a union after it
    # What is not in the table is an entry of an array or of [environment.set].
    expected, example = SHAPES.get(path, ("a string", "it in quotes"))
    return Found(path, f"{_kind(at(document, path))}, but it takes {expected}", f"write {example}")


def _unknown(path: Path) -> Found:
    """An unknown key, with the known one that is most like it, here or in another table."""
    key = str(path[-1])
    here = [str(known[-1]) for known in SHAPES if known[:-1] == path[:-1]]
    if close := difflib.get_close_matches(key[:_LONGEST_GUESS].lower(), here, n=1):
        return Found(
            path,
            f"unknown key `{key}`; did you mean `{close[0]}`?",
            f"rename it to `{close[0]}`, or remove it",
        )
    for known in SHAPES:
        if known[-1] == key:
            home = f"[{shown(known[:-1])}]" if known[:-1] else "the top of the file, before any table"
            return Found(path, f"unknown key `{key}` here; it belongs to {home}", f"move it to {home}")
    return Found(path, f"unknown key `{key}`", f"remove it; known here: {', '.join(here)}")


def at(document: Any, path: Path) -> Any:
    """What stands at `path`, else None, which TOML has no way to write."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int):
            document = document[step]
        else:
            return None
    return document


def _kind(value: object) -> str:
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "a date or time")


def shown(path: Path) -> str:
    """`files.write[2]`; keys that need quotes in TOML have them here."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            bare = step and set(step) <= _BARE_LETTERS
            text += ("." if text else "") + (step if bare else f'"{step}"')
    return text
