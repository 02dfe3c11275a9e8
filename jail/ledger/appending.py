"""A chained file that its one writer appends to: what a run's ledger and the review ledger have in common.

Rule: one entry, one write(2), at the end of a file that nobody else writes. Before each append the file must
be as long as this writer left it and still have its name; else somebody touched it, and nothing must go on as
if it were recorded. What cannot be written whole is taken back, so that the chain on disk stays whole.

A process that forks may hand the file to its child, but only one of the two may go on to append.
"""

import os
import time

from jail.errors import JailError, bug
from jail.kernel.digest import sha256_hex as digest
from jail.ledger import chain, heads
from jail.ledger.entries import ENTRY_LIMIT
from jail.ledger.failure import failure
from jail.light import Final, Mapping, NamedTuple

LEDGER_LIMIT: Final = 1 << 30
"""Bytes of one ledger. What runs inside decides how often paths are swept or mounts lost, and how many
changes there are to review; without a limit it could fill the disk. A day of real work stays below a
hundredth of this."""
RESERVE: Final = 4 * ENTRY_LIMIT
"""Kept free below LEDGER_LIMIT for the entries that say how it ended."""


class Tail(NamedTuple):
    """Where a chain goes on: the number of its next entry, its bytes so far, and the hash of its last line
    (chain.first where there is none).
    """

    seq: int
    size: int
    prev: str


class Chained:
    """An open chained file; `name` in the session's folder, which `folder_fd` is. Both fds become its own."""

    def __init__(self, fd: int, folder_fd: int, folder: str, session: str, name: str, tail: Tail) -> None:
        self.path: Final = os.path.join(folder, name)
        self.session: Final = session
        self._folder: Final = folder
        self._fd = fd
        self._folder_fd = folder_fd
        self._seq, self._size, self._prev = tail
        self._over = ""

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        for fd in (self._fd, self._folder_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._folder_fd = -1
        self._over = self._over or "it is closed"

    def _put(self, kind: str, fields: Mapping[str, object], limit: int, *, sync: bool = False) -> None:
        """Write one entry, as the last so far. Raises JailError as `append` of the subclasses says."""
        if self._over:
            raise bug(f"an entry {kind!r} for a ledger that takes no more: {self._over}")
        raw = chain.line(self._seq, round(time.time(), 6), kind, fields, self._prev)
        if self._size + len(raw) + 1 > limit:
            raise JailError(
                f"this ledger of the session is full ({limit >> 20} MiB)",
                where=self.path,
                hint="end this session: what it does can no longer be recorded",
            )
        self._write(raw + b"\n", sync=sync)
        self._prev, self._seq = digest(raw), self._seq + 1

    def _write(self, line: bytes, *, sync: bool) -> None:
        self._check_alone()
        try:
            heads.write_whole(self._fd, line)
            if sync:
                os.fsync(self._fd)
        except OSError as error:
            self._take_back()
            raise failure("write to the ledger", self.path, error) from error
        self._size += len(line)

    def _check_alone(self) -> None:
        facts = os.fstat(self._fd)
        if facts.st_size != self._size or facts.st_nlink != 1:
            raise JailError(
                "the ledger was changed by somebody else while the session ran",
                where=f"{self.path} ({facts.st_size} bytes, jail wrote {self._size}; {facts.st_nlink} names)",
                hint="nothing inside can reach this file: find which process outside of the jail did it",
            )

    def _take_back(self) -> None:
        """Cut the file to its last whole entry; where even that fails, nothing may follow the half line."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._over = "its last line is half written and could not be taken back"


def open_folder(folder: str) -> int:
    """The session's folder, followed through no link of its last name. Raises OSError."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
