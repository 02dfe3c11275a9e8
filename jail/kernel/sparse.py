"""Files with holes: where the data lie, so that a hole of terabytes costs nothing (lseek(2), SEEK_DATA)."""

import errno
import os

from jail.light import Final, Iterator

PIECE: Final = 1 << 20
"""Bytes handled at once: few system calls, little memory."""


def pieces(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Offset and length of the data in the first `size` bytes of a regular file, in order, in pieces of at
    most PIECE bytes.

    On a file system that knows no holes all is data. Of a file that is being cut short the rest is missing.
    """
    at = 0
    while True:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
            end = os.lseek(fd, at, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        if at >= size:
            return
        end = min(end, size)
        while at < end:
            yield at, min(PIECE, end - at)
            at += min(PIECE, end - at)


def has_holes(fd: int, size: int) -> bool:
    """Whether a regular file of `size` bytes has a hole before its end."""
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE) < size
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False


def copy(fd: int, out: int, size: int) -> None:
    """Give the empty file `out` the data of `fd` and `size` bytes; holes stay holes."""
    for at, length in pieces(fd, size):
        write(out, os.pread(fd, length, at), at)
    os.ftruncate(out, size)


def write(out: int, piece: bytes, at: int) -> None:
    """Write all of `piece` at the offset `at`."""
    while piece:
        written = os.pwrite(out, piece, at)
        at, piece = at + written, piece[written:]
