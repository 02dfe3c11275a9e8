"""The one writer of a ledger.

Rule: one entry, one write(2), at the end of a file that nobody else writes. Before each append the file must
be as long as this writer left it and still have its name; else somebody touched it, and the session must not
go on as if it were recorded. What cannot be written whole is taken back, so that the chain on disk stays
whole and an `end` entry can still follow.

Syncing. Against the death of any process the page cache is enough. Only the end of a session of more than
SYNC_AFTER seconds waits for the disk, so that its record survives a power failure; a shorter one costs as
little to repeat as the wait, and a sync for each entry would make the session as slow as the disk, at a rate
that the program inside chooses.

A process that forks may hand the ledger to its child, but only one of the two may go on to append.
"""

import os
import time

from jail.errors import JailError, bug
from jail.kernel.digest import sha256_hex as digest
from jail.ledger import chain, heads
from jail.ledger.entries import END, ENTRY_LIMIT, START
from jail.ledger.failure import failure
from jail.light import Final

LEDGER: Final = "ledger.jsonl"
LEDGER_LIMIT: Final = 1 << 30
"""Bytes of one ledger. What runs inside decides how often paths are swept or mounts lost; without a limit it
could fill the disk. A day of real work stays below a hundredth of this."""
SYNC_AFTER: Final = 1.0
RESERVE: Final = 4 * ENTRY_LIMIT
"""Kept free below LEDGER_LIMIT for the entries that say how the session ended."""
_LAST_WORDS: Final = frozenset(("limit", "note", END))


class Ledger:
    """An open ledger; made by `create`, ended by `append("end", …)` and `close`."""

    def __init__(self, fd: int, folder_fd: int, folder: str, session: str) -> None:
        self.path: Final = os.path.join(folder, LEDGER)
        self.session: Final = session
        self._folder: Final = folder
        self._fd = fd
        self._folder_fd = folder_fd
        self._seq = 0
        self._size = 0
        self._prev = chain.first(session)
        self._over = ""
        self._started = time.monotonic()

    @classmethod
    def create(cls, folder: str, session: str) -> "Ledger":
        """A new ledger in the session's `folder`, which exists. Raises JailError, too when there is one
        already.
        """
        path = os.path.join(folder, LEDGER)
        folder_fd = -1
        try:
            folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(LEDGER, flags, 0o600, dir_fd=folder_fd)
        except OSError as error:
            if folder_fd >= 0:
                os.close(folder_fd)
            raise failure("create the ledger", path, error) from error
        return cls(fd, folder_fd, folder, session)

    def append(self, kind: str, /, **fields: object) -> None:
        """Write one entry; its fields are those of entries.KINDS (`session` of the start entry is put in
        here).

        The first entry is `start`, the last `end`. Raises JailError: with the errno and what to do when the
        file system refuses, when LEDGER_LIMIT is reached or when somebody else wrote to the file; after all
        three `end` may still be tried.
        """
        self._check_order(kind)
        if kind == START:
            fields["session"] = self.session
        raw = chain.line(self._seq, round(time.time(), 6), kind, fields, self._prev)
        if self._size + len(raw) + 1 > LEDGER_LIMIT - (0 if kind in _LAST_WORDS else RESERVE):
            raise JailError(
                f"the ledger of this session is full ({LEDGER_LIMIT >> 20} MiB)",
                where=self.path,
                hint="end this session: what it does can no longer be recorded",
            )
        sync = kind == END and time.monotonic() - self._started > SYNC_AFTER
        self._write(raw + b"\n", sync=sync)
        last, seq = digest(raw), self._seq
        self._prev, self._seq = last, seq + 1
        if kind == END:
            self._over = "it has its end entry"
            heads.put_head(self._folder_fd, self._folder, self.session, seq, last, sync=sync)
        if kind in (START, END):
            heads.add_to_index(self._folder_fd, self._folder, self.session, seq, last)

    def close(self) -> None:
        """Close the file; a second call does nothing. A ledger closed without an `end` entry reads as a
        crashed session.
        """
        for fd in (self._fd, self._folder_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._folder_fd = -1
        self._over = self._over or "it is closed"

    def _check_order(self, kind: str) -> None:
        if self._over:
            raise bug(f"an entry {kind!r} for a ledger that takes no more: {self._over}")
        if (kind == START) != (self._seq == 0):
            raise bug(f"entry {self._seq} of a ledger is {kind!r}; {START!r} comes first, and once")

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
