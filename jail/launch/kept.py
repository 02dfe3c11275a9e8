"""The end of what the command printed, kept in its session: a convenience, for `jail logs --output`.

Rule: it must cost the relay nothing and can fail without harm. What goes to the caller is put aside by
reference, and written at most once in FLUSH_EVERY seconds; where more comes in that time than waits in
WINDOW, the oldest is dropped and so is what was written before, since what is kept is always one piece, up to
the last byte. The first error (a full disk) ends the keeping, with a note in the ledger, and nothing else.

Two files take turns: `output` grows to HALF bytes, becomes `output.old`, and a new one is begun; so the last
4 to 8 MiB are there, or, of a flood above 4 MiB a second, the last one or two. Their bytes are the command's
own, as hostile as it likes.
"""

import os
import time

from jail.light import Callable, Final, suppress

NAME: Final = "output"
OLD: Final = "output.old"
HALF: Final = 4 << 20
"""Bytes of one file: some fifty thousand lines, more than a person reads."""
WINDOW: Final = 1 << 20
"""Bytes that wait in memory while more comes than is written; more of them would not stay in a cache of the
processor, and that is what a relay would notice."""
SMALL: Final = 4096
CHUNK: Final = 65536
"""Pieces below SMALL are put together up to CHUNK: a command that prints byte by byte makes few of them."""
_VECTORS: Final = 512
"""Pieces for one writev(2); IOV_MAX is 1024 (limits.h)."""
FLUSH_EVERY: Final = 0.25
"""Seconds between two writes: a crash loses so much, and a flood costs the disk 4 MiB a second."""


class Kept:
    """Takes pieces of output; a part of the poll loop (relay.Part) for the sake of its time."""

    def __init__(self, folder: str, note: Callable[[str], None]) -> None:
        self.closed = False
        self.error: OSError | None = None
        self._note = note
        self._waiting: list[bytes | bytearray | memoryview] = []
        self._bytes = 0
        self._due = 0.0
        self._gap = False
        self._file = -1
        self._size = 0
        self._broken = False
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def take(self, piece: memoryview) -> None:
        """Keep `piece`: a small one is copied, as is one whose memory may be written again."""
        if self._broken or not piece:
            return
        if len(piece) >= SMALL:
            self._waiting.append(piece if piece.readonly else bytes(piece))
        else:
            last = self._waiting[-1] if self._waiting else b""
            if isinstance(last, bytearray) and len(last) < CHUNK:
                last += piece
            else:
                self._waiting.append(bytearray(piece))
        self._bytes += len(piece)
        if not self._due:
            self._due = time.monotonic() + FLUSH_EVERY
        if self._bytes > 2 * WINDOW:
            self._shorten()

    def _shorten(self) -> None:
        """Drop the oldest, down to WINDOW; seldom, so that it costs nothing for each piece."""
        place = 0
        while self._bytes - len(self._waiting[place]) >= WINDOW:
            self._bytes -= len(self._waiting[place])
            place += 1
        del self._waiting[:place]
        self._gap = self._gap or place > 0

    @property
    def timeout(self) -> float | None:
        """Seconds until something is to be written."""
        return max(0.0, self._due - time.monotonic()) if self._due else None

    def interests(self) -> list[tuple[int, int]]:
        """Nothing is waited for but time; writes what is due."""
        if self._due and time.monotonic() >= self._due:
            self.flush()
        return []

    def ready(self, fd: int, mask: int) -> None:
        """No event is for us."""

    def finish(self) -> None:
        """Who delivers the last output does not wait for us; `close` comes after that."""
        self.closed = True

    def close(self) -> None:
        """Write what waits, and close."""
        self.closed = True
        self.flush()
        for fd in (self._file, self._folder):
            if fd >= 0:
                os.close(fd)
        self._file = self._folder = -1
        self._broken = True

    def flush(self) -> None:
        """Write what waits; the first failure ends the keeping."""
        self._due = 0.0
        if self._broken or not self._waiting:
            return
        waiting, size = self._waiting, self._bytes
        self._waiting, self._bytes = [], 0
        try:
            if self._gap:
                self._begin(keep_old=False)
            elif self._file < 0 or self._size + size > HALF:
                self._begin(keep_old=True)
            for at in range(0, len(waiting), _VECTORS):
                self._write(waiting[at : at + _VECTORS])
        except OSError as error:
            self._broken = True
            self._note(f"what the command prints is no longer kept: {error.strerror}")
        self._gap = False

    def _write(self, pieces: "list[bytes | bytearray | memoryview]") -> None:
        written = os.writev(self._file, pieces)
        size = sum(map(len, pieces))
        while written < size:  # the file system took only a part; the next call says why
            written += os.write(self._file, b"".join(pieces)[written:])
        self._size += size

    def _begin(self, *, keep_old: bool) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with suppress(FileNotFoundError):
            if keep_old:
                os.rename(NAME, OLD, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                os.unlink(NAME, dir_fd=self._folder)
        if not keep_old:
            with suppress(FileNotFoundError):
                os.unlink(OLD, dir_fd=self._folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(NAME, flags, 0o600, dir_fd=self._folder)
        self._size = 0
