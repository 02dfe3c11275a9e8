"""Digests of contents by which changes are told apart, whatever size a file claims to have.

Rule: a file has the digest that sha256sum(1) prints, unless it is long and has holes, or is longer than
DIGEST_BYTES; then only what is not zero is digested, with where it stands ("cells:" and 64 digits), so that a
sparse file of terabytes costs what is in it. Equal contents have equal digests of one form, wherever their
holes are: to compare, ask for the other's form. A file with more data than DATA_BYTES has no digest, and what
has no digest is equal to nothing.
"""

import hashlib
import os

from jail.kernel import sparse
from jail.light import Final

DIGEST_BYTES: Final = 1 << 30
"""A file past this size gets the second form: a second's work for what may be all zeros."""
DATA_BYTES: Final = 64 << 30
"""Data read of one file; a minute or two."""
CELLS: Final = "cells:"
"""How a digest of the second form begins."""
_CELL: Final = 1 << 16
"""One piece of the second form: read whole where any of it is data, so little more is read than there is."""
_ZEROS: Final = bytes(_CELL)


def of_file(fd: int, size: int, like: str = "") -> str:
    """The digest of the first `size` bytes of a regular file, in the form that `like` has; "" for one with
    more than DATA_BYTES. Raises OSError.
    """
    if like:
        cells = like.startswith(CELLS)
    else:
        cells = size > DIGEST_BYTES or (size > sparse.PIECE and sparse.has_holes(fd, size))
    return _of_cells(fd, size) if cells else _of_all(fd, size)


def of_target(target: str) -> str:
    """The digest of a symlink's target."""
    return hashlib.sha256(os.fsencode(target)).hexdigest()


def _of_all(fd: int, size: int) -> str:
    whole = hashlib.sha256()
    at = 0
    while at < size and (piece := os.pread(fd, min(sparse.PIECE, size - at), at)):
        whole.update(piece)
        at += len(piece)
    return whole.hexdigest()


def _of_cells(fd: int, size: int) -> str:
    whole = hashlib.sha256()
    after = read = 0
    for start, length in sparse.pieces(fd, size):
        for cell in range(max(start // _CELL, after), (start + length - 1) // _CELL + 1):
            at = cell * _CELL
            content = os.pread(fd, min(_CELL, size - at), at)
            read += len(content)
            if read > DATA_BYTES:
                return ""
            if content != _ZEROS[: len(content)]:
                whole.update(at.to_bytes(8, "big"))
                whole.update(content)
            after = cell + 1
    whole.update(size.to_bytes(8, "big"))
    return CELLS + whole.hexdigest()
