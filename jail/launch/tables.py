"""Reading launch/managers.py against the file system: roots, patterns, shapes, links.

Rule: an environment variable names a manager's folder only where that belongs to the person or to root, is
neither the home folder nor anything that holds it, and is no place of the system or the workspace; else the
usual folder counts.
"""

import os

from jail.launch.managers import MANAGERS, PLUGINS, SHAPES, Manager, Shape
from jail.launch.ways import Written
from jail.light import Final, Mapping
from jail.plan.workspace import is_reserved
from jail.policy.paths import beneath, between, overlaps

MOST_ENTRIES: Final = 256
"""Names that one `*` may stand for: versions of one language, tools of one manager. What has more is not
given where a secret may lie behind each.
"""
MOST_LINKS: Final = 40
"""Symbolic links on one way, as the kernel counts them (path_resolution(7))."""
COMMANDS: Final = {name: manager for manager in MANAGERS for name in manager.commands.split()}


def shared(home: str) -> frozenset[str]:
    """Folders that hold many things of the person or the system, and are no toolchain's prefix."""
    names = (
        "",
        "/.local",
        "/.local/share",
        "/.local/lib",
        "/.local/opt",
        "/.config",
        "/.cache",
        "/opt",
        "/src",
    )
    return frozenset([*(home + name for name in names), "", "/", "/usr", "/usr/local", "/opt", "/home"])


def roots(environ: Mapping[str, str], home: str, written: Written) -> list[tuple[Manager, str]]:
    """Each manager that is there, with its canonical root."""
    owners = {0, os.geteuid(), _owner(home)}
    data = environ.get("XDG_DATA_HOME", "")
    unfit = shared(home)
    found = []
    for manager in MANAGERS:
        named = [environ.get(variable, "").partition(":")[0] for variable in manager.variables.split()]
        usual = [f"{home}/{folder}" for folder in manager.folders.split()]
        if data.startswith("/"):
            usual = [
                f"{data}/{folder.removeprefix('.local/share/')}"
                for folder in manager.folders.split()
                if folder.startswith(".local/share/")
            ] + usual
        for path in (*named, *usual):
            if not path.startswith("/") or written.strays(path):
                continue
            real = os.path.realpath(path)
            if not os.path.isdir(real) or real in unfit or is_reserved(real) or beneath(home, real):
                continue
            if _owner(real) in owners and not overlaps(real, written.workspace):
                found.append((manager, real))
                break
    return found


def _owner(path: str) -> int:
    try:
        return os.stat(path).st_uid
    except OSError:
        return -1


def is_no_project(folder: str, home: str) -> bool:
    """Whether a PATH folder is neither of a virtual environment nor in a repository: who works there, as
    commands do, fills those. What is root's no command has filled.
    """
    if _owner(folder) == 0:
        return True
    above = [*between(folder, "/"), folder]
    repositories = (f"{each}/.git" for each in above if not beneath(home, each))
    return not any(map(os.path.lexists, (f"{os.path.dirname(folder)}/pyvenv.cfg", *repositories)))


def expand(root: str, pattern: str, unseen: set[str] | None = None) -> list[str]:
    """The paths beneath `root` that are there; `.` is the root itself, `*` in a name stands for anything.

    Folders that were not seen whole are added to `unseen`.
    """
    if pattern == ".":
        return [root]
    found = [root]
    for name in pattern.split("/"):
        if "*" not in name:
            found = [f"{folder}/{name}" for folder in found]
            continue
        before, _, after = name.partition("*")
        found = [
            f"{folder}/{entry}"
            for folder in found
            for entry in listing(folder, unseen=unseen)
            if entry.startswith(before) and entry.endswith(after)
        ]
    return [path for path in found if os.path.lexists(path)]


def canonical(path: str) -> str:
    """`path` with every link before its last name resolved."""
    folder, _, name = path.rpartition("/")
    return f"{os.path.realpath(folder)}/{name}"


def listing(folder: str, most: int = 0, unseen: set[str] | None = None) -> list[str]:
    """At most `most` names in a folder (MOST_ENTRIES for 0), in order; none where it cannot be listed.

    A folder with more, or one that is there and cannot be listed, is added to `unseen`.
    """
    most = most or MOST_ENTRIES
    names = list[str]()
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(most + 1), entries, strict=False)]
        whole = len(names) <= most
    except (FileNotFoundError, NotADirectoryError):
        whole = True
    except OSError:
        whole = False
    if unseen is not None and not whole:
        unseen.add(folder)
    return sorted(names[:most])


def of_parts(manager: Manager, root: str, parts: tuple[str, ...]) -> str:
    """What is given of a manager; of one that serves several parts, the `installs` of those in use."""
    if "installs/*" not in manager.given.split():
        return manager.given
    unused = {name for part, names in PLUGINS.items() if part not in parts for name in names.split()}
    installs = [
        f"installs/{name}" for name in listing(f"{root}/installs") if name not in unused and " " not in name
    ]
    return " ".join([*(word for word in manager.given.split() if word != "installs/*"), *installs])


def shape_of(folder: str) -> Shape | None:
    """What a folder is, from what lies in it."""
    for shape in SHAPES:
        if all(os.path.lexists(f"{folder}/{mark}") for mark in shape.marks.split()):
            return shape
    return None


def resolved(path: str) -> tuple[str, list[tuple[str, str]]]:
    """Where an absolute path leads, and each symbolic link on the way with its text."""
    pending = path.split("/")
    here, links = "", list[tuple[str, str]]()
    while pending:
        name = pending.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            here = here.rpartition("/")[0]
            continue
        there = f"{here}/{name}"
        try:
            text = os.readlink(there)
        except OSError:
            here = there
            continue
        links.append((there, text))
        if len(links) > MOST_LINKS:
            return path, []
        pending = text.split("/") + pending
        here = "" if text.startswith("/") else here
    return here or "/", links


def is_plain(value: str) -> bool:
    """Whether a value is the name of a version and nothing else."""
    return bool(value) and value.isascii() and all(char.isalnum() or char in "-_.+:" for char in value)
