"""Checks of paths, alone and against each other, for policy files and the command line; and how faults are
shown.

Rule: pure and light, as the launch path imports it. A check returns what is wrong and what to do; the caller
says where: a key of a file, or a flag. Checks are lexical: symbolic links are followed by who mounts, and a
path that passes here is looked at again there.
"""

import os

from jail.errors import EXIT_USAGE, JailError, printable
from jail.light import Final, Iterable, NamedTuple, Sequence
from jail.policy.paths import beneath

VERBS: Final = ("system", "write", "hold", "read", "hide")
"""The lists of paths, in the order in which they are compared."""
WORKSPACE: Final = "."
"""The whole workspace, as a path from `resolved`; `hold` alone may name it."""

_LONGEST_LINE: Final = 400
"""Characters of one line shown: a path of a thousand characters helps nobody."""
_MOST_SHOWN: Final = 50
"""Faults shown; whoever has more repairs these first. All are in `PolicyFaults.faults`."""
_LONGEST_PATH: Final = 4095
"""PATH_MAX of linux/limits.h without its NUL: no system call takes more."""
_LONGEST_NAME: Final = 255
"""NAME_MAX of linux/limits.h, in bytes."""

_ALL: Final = frozenset(VERBS)
_GIVEN: Final = frozenset(("system", "write", "hold", "read"))
RESERVED: Final = (
    # root, also what is below it, verbs refused, reason
    ("/proc", True, _ALL, "jail mounts its own /proc"),
    ("/dev", True, _ALL, "jail makes its own /dev, without the host's devices"),
    ("/sys", True, frozenset(("write", "hold")), "settings of the kernel are never writable"),
    ("/sys", False, _GIVEN, "it shows the whole host; name the folders in it that programs read"),
    ("/run", False, _GIVEN, "sockets of the host's services live there"),
    ("/var/run", False, _GIVEN, "sockets of the host's services live there"),
    ("/run/user", False, _GIVEN, "sockets of the person's session live there"),
    ("/tmp", False, _GIVEN, "it is private inside, and the host's holds every program's files"),  # noqa: S108 - refused
    ("/var/tmp", False, _GIVEN, "the host's holds every program's files"),  # noqa: S108 - refused
)
"""Paths that no policy may give, and why."""


class Fault(NamedTuple):
    """One thing wrong: in which file (or on "the command line"), at which key or flag, what, what to do."""

    file: str
    key: str
    message: str
    hint: str


class PolicyFaults(JailError):  # noqa: N818 - many faults, one error
    """Everything that is wrong with a policy, at once; `faults` has all of it in the order of the file."""

    def __init__(self, what: str, faults: Sequence[Fault]) -> None:
        number = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"{what} has {number}; nothing was run", where=faults[0].file, code=EXIT_USAGE)
        self.faults = tuple(faults)

    def lines(self) -> list[str]:
        """The faults as lines: key and what, then what to do; each safe to print on a terminal."""
        shown = [self.message]
        for fault in self.faults[:_MOST_SHOWN]:
            shown += [f"  {fault.key}: {fault.message}", f"    to do: {fault.hint}"]
        if len(self.faults) > _MOST_SHOWN:
            shown.append(f"  … and {len(self.faults) - _MOST_SHOWN} more")
        return [
            printable(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…") for line in shown
        ]


class Entry(NamedTuple):
    """One path of a policy, for comparing: its verb, where it was said, and its path as from `resolved`."""

    verb: str
    label: str
    path: str


class Complaint(NamedTuple):
    """What is wrong with an entry, and what to do."""

    entry: Entry
    message: str
    hint: str


def clean_home(home: str) -> str:
    """The home folder without doubled or closing slashes; JailError where it is no absolute path."""
    if not home.startswith("/") or "\0" in home:
        raise JailError(
            f"the home folder `{home}` is not an absolute path",
            where="HOME",
            hint="set HOME to your home folder",
            code=EXIT_USAGE,
        )
    return clean(home)


def clean(text: str) -> str:
    """`text` without doubled slashes, `.` components and a closing slash; `./~x` stays: it is not home."""
    shown = os.path.normpath(text)
    if shown.startswith("//"):
        shown = shown[1:]
    if shown.startswith("~") and not text.startswith("~"):
        return f"./{shown}"
    return shown


def resolved(path: str, home: str) -> str:
    """The clean absolute path of a policy's `path`; one in the workspace becomes `./…`, itself WORKSPACE."""
    if path == "~" or path.startswith("~/"):
        return clean(home + path[1:])
    found = clean(path)
    if path.startswith("/") or found == WORKSPACE:
        return found
    return "./" + found.removeprefix("./")


def path_complaint(text: str, verb: str, home: str) -> tuple[str, str] | None:
    """Why `text` cannot stand under `verb`, and what to do; None where it can. `home` is clean."""
    return _form_complaint(text) or _place_complaint(text, verb) or _reach_complaint(text, verb, home)


def _form_complaint(text: str) -> tuple[str, str] | None:
    """Faults of the text alone."""
    if not text:
        return "an empty path", "name a file or folder, or remove the entry"
    if any(not char.isprintable() and not _is_raw_byte(char) for char in text):
        return f"`{text}` holds a character that cannot be seen", "remove it: it is a mistake or an attack"
    if text != text.strip():
        return f"`{text}` begins or ends with a space", "remove the space"
    if text.startswith("$"):
        return (
            f"`{text}`: variables are not expanded",
            "write `~/…` for the home folder, else the path itself",
        )
    if "*" in text or "?" in text:
        return (
            f"`{text}`: wildcards are not expanded, so it would name nothing",
            "name the folder, or each file",
        )
    if ".." in text.split("/"):
        return (
            f"`{text}` climbs with `..`, and where that leads changes with symbolic links",
            "write the path that you mean",
        )
    if len(_bytes(text)) > _LONGEST_PATH or any(
        len(_bytes(part)) > _LONGEST_NAME for part in text.split("/")
    ):
        return "longer than any path can be (4095 bytes, 255 for each name)", "shorten it"
    if text.startswith("~") and text != "~" and not text.startswith("~/"):
        return (
            f"`{text}`: only `~` and `~/…` are known, the home folder of who starts jail",
            "write the absolute path",
        )
    return None


def _place_complaint(text: str, verb: str) -> tuple[str, str] | None:
    """Faults of where a path that is not absolute would lead."""
    if verb == "system" and not text.startswith("/"):
        return (
            f"`{text}` is not absolute",
            "write the host's absolute path; folders of one person belong under `read`",
        )
    if clean(text) == WORKSPACE and verb != "hold":
        return (
            f"`{text}` is the whole workspace",
            "leave it out: the workspace is given for writing, and only `hold` may name all of it",
        )
    return None


def _reach_complaint(text: str, verb: str, home: str) -> tuple[str, str] | None:
    """Faults of paths that reach too far."""
    path = resolved(text, home)
    if path == "/":
        return f"`{text}` is the whole host", "name the files or folders that are meant"
    holds_home = beneath(home, path)
    if holds_home and (verb in ("write", "hold", "read") or (verb == "system" and path == home)):
        what = "is the home folder" if path == home else f"holds the home folder {home}"
        return f"`{text}` {what}, with its keys and tokens", "name the folders in it that the command needs"
    if holds_home and verb == "hide":
        return f"`{text}` covers the home folder, which is private already", "name what is to be hidden in it"
    for root, below, verbs, reason in RESERVED:
        if verb in verbs and (beneath(path, root) if below else path == root):
            return f"`{text}` cannot be under `{verb}`: {reason}", "remove the entry"
    return None


def contradictions(entries: Iterable[Entry]) -> list[Complaint]:
    """Entries that cannot both be meant, each pair reported once, at the later of the two.

    Refused: one path twice, and what is given inside a hidden path, as one of the two would silently have no
    effect. Else the most specific path wins: `hide` inside whatever is given; `read`, `hold` and `write`
    inside each other.
    """
    seen: dict[str, tuple[int, Entry]] = {}
    found: list[tuple[int, Complaint]] = []
    for position, entry in enumerate(entries):
        earlier, first = seen.setdefault(entry.path, (position, entry))
        if earlier != position:
            found.append((position, _same(first, entry)))
    for position, inner in seen.values():
        for place, outer in filter(None, map(seen.get, _above(inner.path))):
            if outer.verb == "hide" and inner.verb != "hide":
                found.append((max(place, position), _nested(outer, inner, inner_later=position > place)))
    return [complaint for _, complaint in sorted(found, key=lambda pair: pair[0])]


def _above(path: str) -> Iterable[str]:
    """The folders above a clean path, nearest first, without `/`."""
    while (cut := path.rfind("/")) > 0:
        path = path[:cut]
        yield path


def _same(first: Entry, later: Entry) -> Complaint:
    if first.verb == later.verb:
        return Complaint(later, f"`{later.path}` stands in {first.label} too", "remove one of the two")
    if {first.verb, later.verb} == {"system", "read"}:
        return Complaint(
            later, f"`{later.path}` is read-only already, by {first.label}", "remove one of the two"
        )
    hint = f"decide for {first.verb} or {later.verb} and remove the other"
    return Complaint(later, f"`{later.path}` stands in {first.label} too, which contradicts it", hint)


def _nested(outer: Entry, inner: Entry, *, inner_later: bool) -> Complaint:
    hint = "what is hidden is hidden whole: hide what is beside it, or do not give it"
    if inner_later:
        return Complaint(inner, f"`{inner.path}` lies in `{outer.path}`, which stands in {outer.label}", hint)
    return Complaint(outer, f"`{outer.path}` holds `{inner.path}`, which stands in {inner.label}", hint)


def _is_raw_byte(char: str) -> bool:
    """Whether `char` stands for a byte that is not UTF-8 (PEP 383); only the command line can hold one."""
    return "\udc80" <= char <= "\udcff"


def _bytes(text: str) -> bytes:
    """`text` as the kernel gets it; not os.fsencode, which fails where the locale is no UTF-8."""
    return text.encode("utf-8", "surrogateescape")
