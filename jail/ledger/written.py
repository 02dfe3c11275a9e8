"""Every tree that a run was ever given for writing: `written` in the state folder, one path a line.

Rule: a command may have laid a symbolic link in such a tree, and it lies there for longer than the session is
kept, so this outlives `jail gc`. Nothing is forgotten: where the trees become too many, those of one folder
are folded into it, and then no link anywhere in that folder is believed. A file that cannot be read refuses
the run, as nobody could tell which links are the person's.
"""

import fcntl
import os
import stat

from jail.errors import JailError
from jail.kernel import writing
from jail.ledger.failure import failure
from jail.light import Final, Iterable, NamedTuple

NAME: Final = "written"
MOST: Final = 512
"""Trees that are kept apart: more than anybody has projects, and read at each launch in a tenth of a
millisecond.
"""
MOST_BYTES: Final = 4 << 20
"""Bytes of the file: MOST paths of PATH_MAX, escaped."""


class Trees(NamedTuple):
    """Canonical paths: `apart` are the trees themselves, `folded` folders that hold many of them."""

    apart: frozenset[str] = frozenset()
    folded: frozenset[str] = frozenset()

    @property
    def lines(self) -> frozenset[str]:
        """The trees as lines of the file: what is folded ends with a slash."""
        return self.apart | {f"{path.rstrip('/')}/" for path in self.folded}


def read(state: str) -> Trees:
    """What is remembered under the state folder; nothing where nothing ever ran. Raises JailError."""
    path = f"{state}/{NAME}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return Trees()
    except OSError as error:
        raise failure("read which trees earlier runs wrote", path, error) from error
    try:
        found = os.fstat(fd)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_size > MOST_BYTES:
            hint = "look at who wrote it; without it, jail does not know which links earlier commands laid"
            raise JailError("what earlier runs wrote is not told by a file of yours", where=path, hint=hint)
        raw = b""
        while part := os.read(fd, 1 << 20):
            raw += part
    except OSError as error:
        raise failure("read which trees earlier runs wrote", path, error) from error
    finally:
        os.close(fd)
    lines = [_plain(line) for line in raw.decode("utf-8", "surrogateescape").split("\n") if line]
    return of_lines(lines)


def of_lines(lines: Iterable[str]) -> Trees:
    """The trees that lines of the file stand for, unescaped."""
    folded = frozenset(line.rstrip("/") or "/" for line in lines if line.endswith("/"))
    return Trees(frozenset(line for line in lines if not line.endswith("/")), folded)


def remember(state: str, trees: Iterable[str]) -> None:
    """Add canonical paths; the state folder is there. On return the disk has them. Raises JailError."""
    before = read(state)
    if all(_is_known(path, before) for path in trees):
        return
    path = f"{state}/{NAME}"
    try:
        folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # two sessions that start at once add to the same file
            before = read(state)
            new = [path for path in trees if not _is_known(path, before)]
            _replace(folder, fold(before.lines | set(new)))
        finally:
            os.close(folder)
    except OSError as error:
        raise failure("remember which trees this run writes", path, error) from error


def fold(lines: Iterable[str], most: int = MOST) -> list[str]:
    """At most `most` lines, sorted: the folder that holds the most of them stands for all beneath it."""
    left = set(lines)
    while len(left) > most:
        held: dict[str, int] = {}
        for line in left:
            folder = line.rstrip("/").rpartition("/")[0] + "/"
            held[folder] = held.get(folder, 0) + 1
        fullest = max(sorted(held), key=lambda folder: (held[folder], len(folder)))
        left = {line for line in left if not line.startswith(fullest)} | {fullest}
    return sorted(left)


def _is_known(path: str, trees: Trees) -> bool:
    return path in trees.apart or any(path.startswith(f"{folder.rstrip('/')}/") for folder in trees.folded)


def _replace(folder: int, lines: list[str]) -> None:
    text = "".join(f"{_escaped(line)}\n" for line in lines).encode("utf-8", "surrogateescape")
    partial = f"{NAME}.new"
    fd = writing.create(partial, os.O_TRUNC, folder=folder)
    try:
        writing.write_all(fd, text)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(partial, NAME, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace("\n", "\\n")


def _plain(line: str) -> str:
    return "\\".join(part.replace("\\n", "\n") for part in line.split("\\\\"))
