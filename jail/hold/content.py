"""The content of one file copied, digested while it is copied.

Rule: what was digested is what was written, in one reading: who changes the source meanwhile changes both. A
file whose digest is of the other form (jail.hold.digests) is digested where it was copied to. Holes stay
holes.
"""

import os

from jail.hold import digests
from jail.kernel import sparse
from jail.kernel.digest import sha256
from jail.light import Any, Final

_ZEROS: Final = bytes(1 << 16)


def copy(source: int, target: int, like: str) -> str:
    """Copy a regular file that is open for reading into an empty one that is open for both; its digest in
    the form of `like`. Raises OSError.
    """
    size = os.fstat(source).st_size
    if like.startswith(digests.CELLS):
        sparse.copy(source, target, size)
        return digests.of_file(target, size, like)
    whole: Any = sha256()
    done = 0
    for at, length in sparse.pieces(source, size):
        _zeros(whole, at - done)
        piece = os.pread(source, length, at)
        whole.update(piece)
        sparse.write(target, piece, at)
        done = at + len(piece)
    _zeros(whole, size - done)
    os.ftruncate(target, size)
    return str(whole.hexdigest())


def _zeros(whole: Any, size: int) -> None:
    while size > 0:
        whole.update(_ZEROS[:size])
        size -= len(_ZEROS)
