"""How far a ledger went, said outside of it: the head file beside it and the index of all sessions.

Rule: both are written after the line that they name, so what they name must be in the ledger. A chain cannot
miss its own end: a file cut between two lines is a whole chain. The head file, put into place once with the
end entry, shows that in the session's folder. The index lies one folder higher and has a line for each
session's start and end; it shows it too when the head file is gone, and that a session was there when its
folder is gone. A third line says that `jail gc` took the folder away, so that nobody takes that for damage.
The review ledger has marks of its own, made anew each time that it is closed.

What the index cannot do: it is a file of the same user. A process of that user outside of a jail can rewrite
ledger, head and index together, and no reader can tell. Copies elsewhere can.
"""

import errno
import fcntl
import os
import time

from jail.kernel import writing
from jail.ledger import chain
from jail.ledger.failure import failure
from jail.light import Final

HEAD: Final = "head"
REVIEW_HEAD: Final = "review.head"
INDEX: Final = "heads.jsonl"
NEW_HEAD: Final = "head.new"
NEW_REVIEW_HEAD: Final = "review.head.new"
REVIEW: Final = "review"
"""What the review ledger is called in a mark (`of` of chain.head); the run's has no name there."""
INDEX_WAIT_S: Final = 5.0
"""How long an append to the index waits for its lock. A holder needs microseconds; a stopped one must not
stop every launch."""
_POLL_S: Final = 0.005
write_whole: Final = writing.write_all
"""The one way by which bytes come into a ledger, its head file and the index."""


def put_head(
    folder_fd: int, folder: str, session: str, seq: int, last: str, *, sync: bool = True, of: str = ""
) -> None:
    """Put the head file of the ledger `of` into place: written whole, synced if asked, then renamed.

    `folder` is only for the error. Raises JailError.
    """
    name, new = (REVIEW_HEAD, NEW_REVIEW_HEAD) if of == REVIEW else (HEAD, NEW_HEAD)
    try:
        fd = writing.create(new, folder=folder_fd)
        try:
            write_whole(fd, chain.head(session, seq, last, of))
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(new, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except OSError as error:
        raise failure("write the head file of the ledger", os.path.join(folder, name), error) from error


def add_to_index(folder_fd: int, folder: str, session: str, seq: int, last: str, of: str = "") -> None:
    """Append to the index in the folder above `folder` that line `seq` of `session` has the hash `last`.
    Raises JailError.
    """
    path = os.path.join(os.path.dirname(folder), INDEX)
    _append(folder_fd, f"../{INDEX}", path, chain.record(session, seq, last, round(time.time(), 6), of))


def add_removal(sessions_fd: int, session: str) -> None:
    """Append to the index, in the folder behind `sessions_fd`, that `jail gc` removed `session`. Raises
    JailError.
    """
    _append(sessions_fd, INDEX, INDEX, chain.removal(session, round(time.time(), 6)))


def _append(folder_fd: int, name: str, path: str, line: bytes) -> None:
    """Under flock(2), since a writer that was killed may have left half a line, which the next one closes."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(name, flags, 0o600, dir_fd=folder_fd)
        try:
            _lock(fd)
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            try:
                write_whole(fd, b"\n" * torn + line)
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
    except OSError as error:
        raise failure("write the index of sessions", path, error) from error


def _lock(fd: int) -> None:
    until = time.monotonic() + INDEX_WAIT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(errno.EAGAIN, "another process holds its lock") from None
            time.sleep(_POLL_S)
