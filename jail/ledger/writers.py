"""Which trees a session writes for real while it runs: `writes` in its folder.

Rule: what is applied lies for a moment in a folder of the tree that it goes to, and a command that writes
that tree as the same user could change it there after it was reviewed. So each session says what it writes
before its command exists, and who applies asks all that run. A session that runs and has not said so yet may
write anything. What a session holds it does not write, although it may write the tree around it.
"""

import os

from jail.errors import EXIT_USAGE, JailError
from jail.ledger import place
from jail.ledger.failure import failure
from jail.light import Final, Iterable, Mapping
from jail.policy.paths import beneath, deepest

NAME: Final = "writes"
MOST_BYTES: Final = 16 << 20
"""Bytes of the file: some thousand paths of PATH_MAX."""
_WRITES: Final = b"w"
_HOLDS: Final = b"h"


def note(session_folder: str, writes: Iterable[str], holds: Iterable[str]) -> None:
    """Say which canonical paths a session writes, and which in them it holds. Raises JailError."""
    path = f"{session_folder}/{NAME}"
    lines = [_WRITES + os.fsencode(each) for each in writes] + [_HOLDS + os.fsencode(each) for each in holds]
    left = memoryview(b"".join(line + b"\0" for line in lines))
    partial = f"{path}.new"
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            while left:
                left = left[os.write(fd, left) :]
        finally:
            os.close(fd)
        os.rename(partial, path)
    except OSError as error:
        raise failure("write down which trees this session writes", path, error) from error


def refuse(session_folder: str, trees: Iterable[str]) -> None:
    """Raise JailError where another session that runs writes one of these canonical folders."""
    state = os.path.dirname(os.path.dirname(session_folder))
    own = os.path.basename(session_folder)
    wanted = list(trees)
    for name in place.listing(state):
        folder = os.path.join(state, place.SESSIONS, name)
        if name == own or not place.running(folder):
            continue
        given = _read(folder)
        met = next((tree for tree in wanted if given is None or _writes(given, tree)), "")
        if met:
            raise JailError(
                f"session {name} runs and writes here, so its command could change what is applied",
                where=met,
                hint=f"wait for its end, or end it: jail stop {name}; nothing was applied",
                code=EXIT_USAGE,
            )


def _writes(given: Mapping[str, bool], tree: str) -> bool:
    """Whether a session that was given these writes in `tree`: as a part of it, or in a part of it."""
    return bool(given.get(deepest(tree, given))) or any(
        writes and beneath(path, tree) for path, writes in given.items()
    )


def _read(session_folder: str) -> Mapping[str, bool] | None:
    """Path → whether it is written and not held; None where the session has not said it, or is gone."""
    try:
        fd = os.open(f"{session_folder}/{NAME}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        lines = file.read(MOST_BYTES).split(b"\0")
    return {os.fsdecode(line[1:]): line[:1] == _WRITES for line in lines if line}
