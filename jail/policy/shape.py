"""The shape of a policy file: its tables, their keys, and what each takes.

Rule: imported by parse and the schema alone, as pydantic is slow to import. The models are the one list of
keys; the words for people stand beside them in SHAPES, so that no message depends on pydantic's wording.
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
    hold: list[str] = []
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


class _Hold(_Table):
    deliver: list[str] = []


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


class _Without(_Table):
    system: list[str] = []
    write: list[str] = []
    hold: list[str] = []
    read: list[str] = []
    hide: list[str] = []
    toolchains: list[str] = []
    environment: list[str] = []
    terminal: list[str] = []
    deliver: list[str] = []
    losses: list[str] = []


class File(_Table):
    """A policy file of any kind; what is absent gives nothing, or the strict limit.

    Which of the keys each kind of file takes is parse's to judge.
    """

    name: str = ""
    description: str = ""
    base: str = ""
    parts: list[str] = []
    files: _Files = _Files()
    toolchains: _Toolchains = _Toolchains()
    environment: _Environment = _Environment()
    terminal: _Terminal = _Terminal()
    hold: _Hold = _Hold()
    limits: _Limits = _Limits()
    accept: _Accept = _Accept()
    without: _Without = _Without()


class Shape(NamedTuple):
    """What a key takes, in words; an example; and what it is for, in a sentence."""

    takes: str
    example: str
    about: str


_TEXTS: Final = "an array of strings"
_BYTES: Final = "a string or a number of bytes"

SHAPES: Final[dict[Path, Shape]] = {
    ("name",): Shape("a string", 'name = "mine"', "The policy's name; a policy of its own needs one."),
    ("description",): Shape("a string", 'description = "For work that nobody watches."', "What it is for."),
    ("base",): Shape("a string", 'base = "supervised"', "The shipped level that this file starts from."),
    ("parts",): Shape(_TEXTS, 'parts = ["system"]', "Shipped parts whose lists and values are taken first."),
    ("files",): Shape("a table", "[files]", "What of the host exists inside, beside the workspace."),
    ("files", "system"): Shape(
        _TEXTS, 'system = ["/usr"]', "The host's own folders, read-only where the host has them."
    ),
    ("files", "write"): Shape(_TEXTS, 'write = ["~/out"]', "Written for real, beside the workspace."),
    ("files", "hold"): Shape(
        _TEXTS, 'hold = ["."]', "Written inside, kept for review; `.` is the whole workspace."
    ),
    ("files", "read"): Shape(_TEXTS, 'read = ["~/data"]', "Read-only, in the workspace too."),
    ("files", "hide"): Shape(_TEXTS, 'hide = [".env"]', "Absent, also where a wider entry would show it."),
    ("toolchains",): Shape("a table", "[toolchains]", "Programs of the person's own home folder."),
    ("toolchains", "use"): Shape(
        _TEXTS, 'use = ["python"]', "Whose folders are found from PATH and given read-only."
    ),
    ("toolchains", "gpu"): Shape("true or false", "gpu = false", "Whether the GPU's devices are given."),
    ("environment",): Shape("a table", "[environment]", "The environment inside, an allow-list."),
    ("environment", "pass"): Shape(
        _TEXTS, 'pass = ["TERM"]', "Names handed on from the caller; `LC_*` is all that begin so."
    ),
    ("environment", "set"): Shape("a table", "[environment.set]", "Names and the values that they get."),
    ("terminal",): Shape("a table", "[terminal]", "What may be done to the person's terminal from inside."),
    ("terminal", "allow"): Shape(_TEXTS, 'allow = ["title"]', "Escape sequences that are let through."),
    ("hold",): Shape("a table", "[hold]", "What becomes of that which is held."),
    ("hold", "deliver"): Shape(
        _TEXTS, 'deliver = ["commands"]', "What of it is delivered at the end without a person's word."
    ),
    ("limits",): Shape("a table", "[limits]", "The most that a run may use."),
    ("limits", "memory"): Shape(_BYTES, 'memory = "8 GiB"', "Of everything inside together."),
    ("limits", "processes"): Shape("a whole number", "processes = 4096", "Processes and threads at once."),
    ("limits", "open_files"): Shape("a whole number", "open_files = 65536", "Open files of one process."),
    ("limits", "tmp"): Shape(_BYTES, 'tmp = "2 GiB"', "Of each private folder in memory."),
    ("limits", "held"): Shape(_BYTES, 'held = "2 GiB"', "Of the host's disk, for what is kept back."),
    ("limits", "output"): Shape(_BYTES, 'output = "1 GiB"', "What the command may print."),
    ("limits", "timeout"): Shape("a string", 'timeout = "12h"', 'When the run is ended; "0" is no limit.'),
    ("accept",): Shape("a table", "[accept]", "Walls that a run may go without."),
    ("accept", "losses"): Shape(_TEXTS, 'losses = ["limits-memory"]', "Losses that do not refuse the run."),
    ("without",): Shape("a table", "[without]", "What is taken away from what comes before this file."),
    ("without", "system"): Shape(_TEXTS, 'system = ["/opt"]', "Entries of files.system taken away."),
    ("without", "write"): Shape(_TEXTS, 'write = ["~/out"]', "Entries of files.write taken away."),
    ("without", "hold"): Shape(_TEXTS, 'hold = ["~/lib"]', "Entries of files.hold taken away."),
    ("without", "read"): Shape(_TEXTS, 'read = ["~/data"]', "Entries of files.read taken away."),
    ("without", "hide"): Shape(_TEXTS, 'hide = [".env"]', "Entries of files.hide taken away."),
    ("without", "toolchains"): Shape(_TEXTS, 'toolchains = ["java"]', "Names not in toolchains.use."),
    ("without", "environment"): Shape(_TEXTS, 'environment = ["CI"]', "Names neither passed nor set."),
    ("without", "terminal"): Shape(_TEXTS, 'terminal = ["title"]', "Names not in terminal.allow."),
    ("without", "deliver"): Shape(_TEXTS, 'deliver = ["commands"]', "Names not in hold.deliver."),
    ("without", "losses"): Shape(_TEXTS, 'losses = ["landlock"]', "Losses that refuse the run again."),
}
"""Every key of a policy file."""

_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a string"),
    (list, "an array"),
    (dict, "a table"),
)
"""Values of tomllib in words; what is left is a date or a time. bool stands first: it is a kind of int."""


def shaped(document: dict[str, Any]) -> list[Found]:
    """What is wrong with the shape of a file."""
    try:
        File.model_validate(document)
    except ValidationError as error:
        # A number-or-string key fails once for each of the two, at the same path.
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        found = [_misshapen(document, fault["type"], fault["loc"]) for fault in faults]
        return list({one.path: one for one in found}.values())
    return []


def _misshapen(document: dict[str, Any], kind: str, path: Path) -> Found:
    if kind == "extra_forbidden":
        return _unknown(path)
    if path[:1] == ("limits",):
        path = path[:2]  # pydantic names the member of a union after it
    # What is not in the table is an entry of an array or of [environment.set].
    expected, example, _ = SHAPES.get(path, ("a string", "it in quotes", ""))
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
