"""The one writer of a run's ledger: from its start entry to its end entry, then never again.

Rule: as `appending` has it. An entry that cannot be written is taken back, so that an `end` entry can still
follow.

Syncing. Against the death of any process the page cache is enough. Only the end of a session of more than
SYNC_AFTER seconds waits for the disk, so that its record survives a power failure; a shorter one costs as
little to repeat as the wait, and a sync for each entry would make the session as slow as the disk, at a rate
that the program inside chooses.
"""

import os
import time

from jail.errors import bug
from jail.ledger import chain, heads
from jail.ledger.appending import LEDGER_LIMIT, RESERVE, Chained, Tail, open_folder
from jail.ledger.entries import END, START
from jail.ledger.failure import failure
from jail.light import Final

LEDGER: Final = "ledger.jsonl"
SYNC_AFTER: Final = 1.0
_LAST_WORDS: Final = frozenset(("limit", "note", END))


class Ledger(Chained):
    """An open ledger; made by `create`, ended by `append("end", …)` and `close`. One that is closed without
    an `end` entry reads as a crashed session.
    """

    def __init__(self, fd: int, folder_fd: int, folder: str, session: str) -> None:
        super().__init__(fd, folder_fd, folder, session, LEDGER, Tail(0, 0, chain.first(session)))
        self._started = time.monotonic()

    @classmethod
    def create(cls, folder: str, session: str) -> "Ledger":
        """A new ledger in the session's `folder`, which exists. Raises JailError, too when there is one
        already.
        """
        path = os.path.join(folder, LEDGER)
        folder_fd = -1
        try:
            folder_fd = open_folder(folder)
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
        if not self._over and (kind == START) != (self._seq == 0):
            raise bug(f"entry {self._seq} of a ledger is {kind!r}; {START!r} comes first, and once")
        if kind == START:
            fields["session"] = self.session
        sync = kind == END and time.monotonic() - self._started > SYNC_AFTER
        limit = LEDGER_LIMIT - (0 if kind in _LAST_WORDS else RESERVE)
        self._put(kind, fields, limit, sync=sync)
        seq, last = self._seq - 1, self._prev
        if kind == END:
            self._over = "it has its end entry"
            heads.put_head(self._folder_fd, self._folder, self.session, seq, last, sync=sync)
        if kind in (START, END):
            heads.add_to_index(self._folder_fd, self._folder, self.session, seq, last)
