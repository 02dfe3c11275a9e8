r"""The journal of one apply: what was meant to happen, so that any later call can finish it or take it back.

Rule: it lies in the session, where nothing inside reaches, and is the only thing that is believed of an apply
that was interrupted; a staging folder that it does not name is nobody's. The first line is the state, in a
field of fixed width: going on is one pwrite(2) in place, which needs no room on a full disk. Then one JSON
array a line:

    ["called", ID]                      the apply, as the review ledger calls it
    ["staging", TREE, NAME, INODE]      the folder of this apply in the root of TREE
    ["change", …]                       a change, as jail.hold.change.Change
    ["intent", …]                       one swap, as Intent
    ["meant", CHANGES, INTENTS]         how many of these there are
    ["conflict", CHANGE, REASON]        one that was not done

    staging → committed → applied → (no journal)       back: what was done is being taken back
       ↓          └→ back ↘
    (no journal)       (no journal)

All of it is on the disk (fsync) before `committed`, and `committed` before the first rename.
"""

import json
import os

from jail.errors import JailError
from jail.hold import store
from jail.hold.change import Change, State
from jail.hold.seen import Seen
from jail.kernel import files, sparse
from jail.light import Final, Iterable, Iterator, NamedTuple, suppress

NAME: Final = "journal"
STAGING: Final = "staging"
COMMITTED: Final = "committed"
BACK: Final = "back"
APPLIED: Final = "applied"
_STATES: Final = (STAGING, COMMITTED, BACK, APPLIED)
_WIDTH: Final = 16
PUT: Final = "put"
TAKE: Final = "take"
MODE: Final = "mode"
_WRITE: Final = 1 << 20
"""Bytes of lines gathered for one write."""


class Intent(NamedTuple):
    """One swap: `change` is the number of the change that wants it.

    `put`: what is staged in `slot` goes to `path`, in exchange for `out`, or where nothing is (None); `take`:
    `out` goes from `path` to `slot`; `mode`: the folder at `path`, now `out`, gets the mode of `made`. `made`
    is what is staged, with the mode and time that it ends with; `digest` of its content or target.
    """

    change: int
    tree: str
    path: str
    verb: str
    slot: str
    made: Seen | None
    out: Seen | None
    digest: str = ""


class Written(NamedTuple):
    """A journal as it was read. `staging`: tree → name and inode of the folder there, inode 0 where it may
    not have been made.
    """

    state: str
    staging: dict[str, tuple[str, int]]
    changes: list[Change]
    intents: list[Intent]
    conflicts: dict[int, str]
    id: str = ""


class Journal:
    """The journal of an apply that is being done; new, or one that was left behind."""

    def __init__(self, session_folder: str, *, new: bool) -> None:
        self._held = store.folder_of(session_folder)
        self._path = f"{self._held}/{NAME}"
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags | os.O_CREAT | os.O_EXCL if new else flags, 0o600)
        if new:
            sparse.write(self._fd, _state(STAGING), 0)
        self._end = os.fstat(self._fd).st_size

    def say(self, state: str) -> None:
        """Go on to a state, and wait until that is on the disk."""
        os.fsync(self._fd)
        sparse.write(self._fd, _state(state), 0)
        os.fsync(self._fd)

    def add(self, lines: Iterable[object]) -> None:
        """Append lines; `say` waits for them."""
        gathered = bytearray(b"\n")  # ends a line that was left half written
        for line in lines:
            gathered += json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
            if len(gathered) >= _WRITE:
                self._append(gathered)
        self._append(gathered)

    def _append(self, gathered: bytearray) -> None:
        sparse.write(self._fd, bytes(gathered), self._end)
        self._end += len(gathered)
        gathered.clear()

    def reserve(self) -> None:
        """See that the journal itself outlives the machine: its name, and what it says so far."""
        os.fsync(self._fd)
        folder = os.open(self._held, files.FOLDER)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Leave it to a later call."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def remove(self) -> None:
        """There is nothing left to do."""
        os.unlink(self._path)
        self.close()


def called(apply: str) -> object:
    """The line of the id."""
    return ("called", apply)


def staging(tree: str, name: str, inode: int) -> object:
    """The line of a staging folder."""
    return ("staging", tree, name, inode)


def meant(changes: list[Change], intents: list[Intent]) -> Iterator[object]:
    """The lines of what is to be done."""
    yield from (("change", *change) for change in changes)
    yield from (("intent", *intent) for intent in intents)
    yield "meant", len(changes), len(intents)


def refused(conflicts: dict[int, str]) -> Iterator[object]:
    """The lines of what was not done."""
    yield from (("conflict", number, reason) for number, reason in conflicts.items())


def state(session_folder: str) -> str:
    """Which state an apply was left in; "" where none was. Raises JailError."""
    fd, path = _open(session_folder)
    if fd < 0:
        return ""
    try:
        with os.fdopen(fd, "rb") as file:
            return _state_in(file.read(_WIDTH))
    except OSError as error:
        raise _unreadable(path, error) from error


def read(session_folder: str) -> Written | None:
    """What an apply left behind; None where none did. A journal that never got further than `staging` may end
    anywhere. Raises JailError for one that cannot be read.
    """
    fd, path = _open(session_folder)
    if fd < 0:
        return None
    found = Written("", {}, [], [], {})
    counted: object = None
    names: list[str] = []
    try:
        with os.fdopen(fd, "rb") as file:
            found = found._replace(state=_state_in(file.read(_WIDTH)))
            for line in file:
                # Half a line, whose writer died, says nothing; what must be there is counted.
                with suppress(ValueError, TypeError, IndexError):
                    counted = _take_in(found, line, names) or counted
    except OSError as error:
        raise _unreadable(path, error) from error
    if found.state != STAGING and counted != [len(found.changes), len(found.intents)]:
        raise JailError(
            "the journal of an apply that was interrupted is damaged",
            where=path,
            hint="a folder .jail-apply-… in the workspace has what was replaced; look at both, remove both",
        )
    return found._replace(id=names[0] if names else "")


def _open(session_folder: str) -> tuple[int, str]:
    """An fd of the journal and its path; -1 where there is none."""
    path = f"{store.folder_of(session_folder)}/{NAME}"
    try:
        return os.open(path, files.FILE), path
    except (FileNotFoundError, NotADirectoryError):
        return -1, path
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> JailError:
    return JailError(
        f"the journal of an apply cannot be read: {error.strerror}",
        where=path,
        hint="look at this file system, then try again; what is held is still there",
    )


def _state(word: str) -> bytes:
    return f"{word:<{_WIDTH - 1}}\n".encode("ascii")


def _state_in(first: bytes) -> str:
    word = first.decode("ascii", "replace").strip()
    # Shorter than its field: killed while it was made, before anything was staged.
    return word if word in _STATES else STAGING


def _take_in(found: Written, line: bytes, names: list[str]) -> object:
    kind, *values = json.loads(line)
    if kind == "called":
        names.append(str(values[0]))
    elif kind == "staging":
        tree, name, inode = values
        found.staging[tree] = (str(name), int(inode))
    elif kind == "change":
        *start, old, new, now = values[:6]
        states = State(*old), State(*new), State(*now)
        found.changes.append(Change._make([*start, *states, *values[6:]]))
    elif kind == "intent":
        *start, made, out, digest = values
        seen = made and Seen(*made), out and Seen(*out)
        found.intents.append(Intent._make([*start, *seen, digest]))
    elif kind == "conflict":
        found.conflicts[int(values[0])] = str(values[1])
    return values if kind == "meant" else None
