"""The writer of a session's review ledger: what became of the changes that it held.

Rule: as `appending` has it, for a file that is opened again at each review, long after the run. On open the
tail is judged: its last line must be whole and its own, and all that its marks name (heads.py) must be there;
else nothing goes on as if it were a record. Half a line is what a writer left that was killed: it is taken
away, and a note says so. There is no end entry; `close` puts the marks anew. Who opens it holds the lock of
the session; a lock of its own shows whoever does not.
"""

import errno
import fcntl
import os
import stat

from jail.errors import JailError, bug
from jail.kernel.digest import sha256_hex as digest
from jail.ledger import beside, chain, heads
from jail.ledger.appending import LEDGER_LIMIT, RESERVE, Chained, Tail, open_folder
from jail.ledger.entries import ENTRY_LIMIT, REVIEW_KINDS
from jail.ledger.failure import failure
from jail.ledger.lines import parse
from jail.light import Final, suppress

REVIEW: Final = "review.jsonl"
NOTE: Final = "note"
_TAIL_BYTES: Final = 2 * ENTRY_LIMIT + 2
"""A whole last line, and the longest half that a killed writer can leave after it."""


class ReviewLedger(Chained):
    """An open review ledger; made by `open`."""

    _opened_at = 0

    @classmethod
    def open(cls, folder: str, session: str) -> "ReviewLedger":
        """The review ledger in the session's `folder`, made where there is none. Raises JailError, too when
        another process writes it or when it is not as jail left it.
        """
        path = os.path.join(folder, REVIEW)
        folder_fd = fd = -1
        try:
            folder_fd = open_folder(folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(REVIEW, flags, 0o600, dir_fd=folder_fd)
            _check_ours(fd, path)
            half, tail = _tail(fd, session, path)
            _check_marks(tail, beside.read(folder, heads.REVIEW), path)
            if half:
                os.ftruncate(fd, tail.size)
            with suppress(FileNotFoundError):
                os.unlink(heads.NEW_REVIEW_HEAD, dir_fd=folder_fd)
        except (OSError, JailError) as error:
            for opened in (fd, folder_fd):
                if opened >= 0:
                    os.close(opened)
            if isinstance(error, JailError):
                raise
            raise failure("open the review ledger", path, error) from error
        opened_ledger = cls(fd, folder_fd, folder, session, REVIEW, tail)
        opened_ledger._opened_at = tail.seq
        if half:
            text = f"half a line ({half} bytes) at the end, left by a writer that was killed, was taken away"
            opened_ledger.append(NOTE, text=text)
        return opened_ledger

    def append(self, kind: str, /, **fields: object) -> None:
        """Write one entry of a kind in entries.REVIEW_KINDS, or a note. Raises JailError as Ledger.append
        does.
        """
        if kind != NOTE and kind not in REVIEW_KINDS:
            raise bug(f"an entry {kind!r} for a review ledger")
        self._put(kind, fields, LEDGER_LIMIT - (0 if kind == NOTE else RESERVE))

    def sync(self) -> None:
        """Wait until all of it is on the disk. Raises JailError."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise failure("write to the ledger", self.path, error) from error

    def close(self) -> None:
        """Wait for the disk, put the marks, and close; a second call does nothing. Raises JailError where the
        marks cannot be put: what was written stays.
        """
        try:
            if self._fd >= 0 and self._seq > self._opened_at:
                self._put_marks()
        finally:
            super().close()

    def _put_marks(self) -> None:
        where = self._folder_fd, self._folder, self.session, self._seq - 1, self._prev
        self.sync()
        heads.put_head(*where, of=heads.REVIEW)
        heads.add_to_index(*where, of=heads.REVIEW)


def _check_ours(fd: int, path: str) -> None:
    found = os.fstat(fd)
    ours = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
    if not ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        hint = "look at who put it there; without it, jail cannot record what becomes of the changes"
        raise JailError("the review ledger is not a file of yours alone", where=path, hint=hint)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            raise
        hint = "wait until it is done"
        raise JailError("another process is at the changes of this session", where=path, hint=hint) from error


def _tail(fd: int, session: str, path: str) -> tuple[int, Tail]:
    """Bytes of the half line at the end, and where the chain goes on before it."""
    size = os.fstat(fd).st_size
    raw = os.pread(fd, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    whole, newline, half = raw.rpartition(b"\n")
    if not newline and size > ENTRY_LIMIT:
        raise _damaged(path, "its end is no line of a ledger")
    if not newline:
        return len(half), Tail(0, 0, chain.first(session, heads.REVIEW))
    last = whole.rpartition(b"\n")[2]
    entry, fault = parse(last)
    if entry is None or not chain.sealed(last):
        raise _damaged(path, f"its last line is no entry: {fault or 'edited'}")
    return len(half), Tail(entry.seq + 1, size - len(half), digest(last))


def _check_marks(tail: Tail, said: beside.Beside, path: str) -> None:
    marks = [*said.records, *([said.head] if said.head else [])]
    known = max((mark.seq for mark in marks), default=-1)
    if said.head_fault:
        raise _damaged(path, f"its head file: {said.head_fault}")
    if known >= tail.seq:
        raise _damaged(path, f"it had an entry {known} once, and ends with entry {tail.seq - 1}")
    if any(mark.seq == tail.seq - 1 and mark.last != tail.prev for mark in marks):
        raise _damaged(path, "its last line is not the one that was written")


def _damaged(path: str, what: str) -> JailError:
    return JailError(
        "the review ledger is not as jail left it",
        where=f"{path}: {what}",
        hint="`jail verify` says where; to go on without it, move it and review.head away",
    )
