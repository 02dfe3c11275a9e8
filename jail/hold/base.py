r"""What a held tree was when the run began: the base that every change is compared with.

Rule: it is taken from the host's side, while the command runs, by a process of ours; a name whose inode
changed since the run began is noted as unknown, never as what it is now, and what is unknown cannot be
applied over. It counts when it is whole: written beside its place, renamed when the last line is there. One
list per tree, read and written as a stream. Records end in NUL, the one byte that no name has:

    jail base 1                     first
    >DEPTH/NAME                     what follows lies in this folder: depth 0 is the tree itself
    FIELDS/NAME                     one entry of it; the tree itself comes first, with no name
    .ENTRIES                        last

Depth and name of a folder say the same as a path, at a price that does not grow with depth. What an applied
change made is added in a second file, whose lines win: LENGTH FIELDS/PATH, each behind a NUL, so that a line
that was cut short spoils no other.
"""

import os
import stat

from jail.kernel import files, walk, writing
from jail.kernel.digest import sha256_hex
from jail.light import Callable, Final, Iterator, Mapping, NamedTuple, suppress

SINCE: Final = ".since"
"""What is added to the name of a base for what was pinned since."""
_HEAD: Final = b"jail base 1"
_CHUNK: Final = 1 << 18
_LETTERS: Final = {
    "absent": b"a",
    "unknown": b"u",
    "file": b"f",
    "folder": b"d",
    "symlink": b"l",
    "socket": b"s",
    "special": b"p",
}
_KINDS: Final = {letter: kind for kind, letter in _LETTERS.items()}


class Entry(NamedTuple):
    """One name of the base. `kind` as jail.hold.change.State; `mode`: permission bits with setuid, setgid and
    sticky; `size` in bytes; times in nanoseconds since the epoch; `ino`: inode number on the host; `digest`:
    SHA-256 in hex of a symlink's target, else "". Of a copied tree also `own_ino` and `own_ctime_ns`, inode
    and change time of the copy as it was made, 0 where nothing was copied.
    """

    kind: str
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    ino: int = 0
    digest: str = ""
    own_ino: int = 0
    own_ctime_ns: int = 0


ABSENT: Final = Entry("absent")
UNKNOWN: Final = Entry("unknown")


class Entries(dict[str, Entry]):
    """Path → entry, of what was asked for. A path that is not there was absent when the list is `complete`
    and is unknown when it is not: `entries[path]` says so, and `get` does not.
    """

    complete = True

    def __missing__(self, path: str) -> Entry:
        return ABSENT if self.complete else UNKNOWN


def entry_of(found: os.stat_result, target: str = "", own: os.stat_result | None = None) -> Entry:
    """The entry of a name by its lstat, a symlink's target, and the lstat of its copy."""
    kind = files.kind(found.st_mode)
    return Entry(
        kind,
        stat.S_IMODE(found.st_mode),
        found.st_size if kind == "file" else 0,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
        sha256_hex(os.fsencode(target)) if kind == "symlink" else "",
        own.st_ino if own else 0,
        own.st_ctime_ns if own else 0,
    )


class Writer:
    """Writes one base, in the order of a walk: the tree itself, then each folder with its entries."""

    def __init__(self, file_path: str) -> None:
        self._path = file_path
        self._fd = writing.create(f"{file_path}.new", os.O_TRUNC)
        self._records = [_HEAD]
        self._entries = 0

    def entry(self, name: str, entry: Entry) -> None:
        """One entry of the folder that was named last."""
        self._records.append(_packed(entry) + b"/" + os.fsencode(name))
        self._entries += 1

    def folder(self, depth: int, name: str) -> None:
        """The entries that come now lie in this folder."""
        self._records.append(b">%d/%s" % (depth, os.fsencode(name)))
        if len(self._records) > _RECORDS:
            self._flush()

    def _flush(self) -> None:
        content = b"\0".join([*self._records, b""])
        self._records.clear()
        writing.write_all(self._fd, content)

    def finish(self) -> None:
        """The base is whole: give it its place."""
        self._records.append(b".%d" % self._entries)
        self._flush()
        os.fsync(self._fd)
        os.replace(f"{self._path}.new", self._path)

    def close(self) -> None:
        """Close the file; what was not finished does not count."""
        os.close(self._fd)


_RECORDS: Final = 2000
"""Records kept before they are written."""


def snapshot(tree_fd: int, file_path: str, started_ns: int) -> None:
    """Write the base of the tree behind `tree_fd` (O_PATH will do) to `file_path`; mounts in it are not
    entered, and folders that may not be read have no entries.

    `started_ns`: what changed at or after this time is unknown. Imports nothing, so that a forked child may
    call it. Raises OSError, and leaves no base then.
    """
    out = Writer(file_path)
    try:
        out.entry("", _known(entry_of(os.fstat(tree_fd)), started_ns))
        for folder in walk.folders(tree_fd):
            if not folder.whole:
                raise OSError(f"a folder whose names cannot all be listed: {folder.path}")
            out.folder(folder.depth, folder.name)
            for dirent in folder.entries:
                # What vanished meanwhile is not in the base; if it comes back, it was added since.
                with suppress(FileNotFoundError):
                    found = dirent.stat(follow_symlinks=False)
                    link = stat.S_ISLNK(found.st_mode)
                    target = os.readlink(dirent.name, dir_fd=folder.fd) if link else ""
                    out.entry(dirent.name, _known(entry_of(found, target), started_ns))
        out.finish()
    finally:
        out.close()


def _known(entry: Entry, started_ns: int) -> Entry:
    return entry if entry.ctime_ns < started_ns else UNKNOWN


def _packed(entry: Entry) -> bytes:
    fields = (entry.mode, entry.size, entry.mtime_ns, entry.ctime_ns, entry.ino)
    own = (entry.own_ino, entry.own_ctime_ns)
    return b"%s %d %d %d %d %d %s %d %d" % (
        _LETTERS[entry.kind],
        *fields,
        entry.digest.encode() or b"-",
        *own,
    )


def _unpacked(fields: bytes) -> Entry:
    letter, mode, size, mtime, ctime, ino, digest, own_ino, own_ctime = fields.split(b" ")
    return Entry(
        _KINDS[letter],
        int(mode),
        int(size),
        int(mtime),
        int(ctime),
        int(ino),
        "" if digest == b"-" else digest.decode("ascii"),
        int(own_ino),
        int(own_ctime),
    )


def file_of(held_folder: str, name: str) -> str:
    """The file that the base of the held thing `name` is in, in the `held` folder of a session."""
    return f"{held_folder}/base/{name}"


def written_ns(held_folder: str, name: str) -> int:
    """When a base was finished, nanoseconds since the epoch; 0 where it never was."""
    try:
        return os.stat(file_of(held_folder, name), follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return 0


def read(held_folder: str, name: str, wanted: Callable[[str], bool]) -> Entries:
    """The entries of a base whose paths are `wanted`; "" is the tree itself. A folder is asked for before
    what lies in it.

    A base that is absent or not whole gives none, and they are not `complete`. Raises OSError only for the
    files of the session itself.
    """
    path = file_of(held_folder, name)
    found = Entries()
    try:
        found.complete = _filled(found, path, wanted)
    except (ValueError, KeyError):
        found.complete = False
    if not found.complete:
        found.clear()
    pinned = dict(_pinned(path + SINCE))
    # By name: a folder before what lies in it.
    for each in sorted(pinned):
        if wanted(each):
            found[each] = pinned[each]
    return found


def _filled(found: Entries, path: str, wanted: Callable[[str], bool]) -> bool:
    """Fill `found` from a base; whether it has its last record."""
    records = _records(path)
    if next(records, b"") != _HEAD:
        return False
    # Of each open folder how long its path is: cut and lengthened, a path costs no more than its letters.
    lengths: list[int] = []
    prefix, met = "", 0
    for record in records:
        fields, slash, raw = record.partition(b"/")
        if fields.startswith(b">"):
            del lengths[int(fields[1:]) :]
            prefix = prefix[: lengths[-1]] + os.fsdecode(raw) + "/" if lengths else ""
            lengths.append(len(prefix))
        elif slash:
            met += 1
            below = prefix + os.fsdecode(raw)
            if wanted(below):
                found[below] = _unpacked(fields)
        else:
            return fields == b".%d" % met
    return False


def symlinks(held_folder: str, name: str) -> Iterator[str]:
    """The paths of the symlinks in a base, of one that is not whole those that it has."""
    lengths: list[int] = []
    prefix = ""
    with suppress(ValueError, IndexError):
        for record in _records(file_of(held_folder, name)):
            if record.startswith(b">"):
                fields, _, raw = record.partition(b"/")
                del lengths[int(fields[1:]) :]
                prefix = prefix[: lengths[-1]] + os.fsdecode(raw) + "/" if lengths else ""
                lengths.append(len(prefix))
            elif record.startswith(_LETTERS["symlink"] + b" "):
                yield prefix + os.fsdecode(record.partition(b"/")[2])


def _records(path: str) -> Iterator[bytes]:
    """The records of a file, as far as they are whole; none where there is no file."""
    try:
        fd = os.open(path, files.FILE)
    except FileNotFoundError:
        return
    try:
        rest = b""
        while chunk := os.read(fd, _CHUNK):
            *whole, rest = (rest + chunk).split(b"\0")
            yield from whole
    finally:
        os.close(fd)


def pin(held_folder: str, name: str, entries: Mapping[str, Entry]) -> None:
    """Say for some paths of a base what they are from now on; on the disk when it returns. Raises OSError."""
    content = b"".join(
        b"\0%d %s/%s\0" % (len(raw), _packed(entry), raw)
        for raw, entry in ((os.fsencode(path), entry) for path, entry in entries.items())
    )
    fd = writing.create(file_of(held_folder, name) + SINCE, os.O_APPEND)
    try:
        writing.write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def _pinned(path: str) -> Iterator[tuple[str, Entry]]:
    for record in _records(path):
        fields, _, raw = record.partition(b"/")
        length, _, rest = fields.partition(b" ")
        with suppress(ValueError, KeyError):
            if int(length) == len(raw):
                yield os.fsdecode(raw), _unpacked(rest)
