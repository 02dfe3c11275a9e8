"""A regular file made and written (open(2), write(2)): what each of our own files begins with.

Apart from `files`, whose ctypes the ledger does without.
"""

import os


def create(path: str, how: int = os.O_EXCL, mode: int = 0o600, *, folder: int | None = None) -> int:
    """An fd for writing of a regular file that is made where there is none; no symlink is followed.

    `how`: O_EXCL, there must be none; O_TRUNC, what is in it goes; O_APPEND, that stays. `folder`: an fd that
    `path` is beneath. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | how
    return os.open(path, flags, mode, dir_fd=folder)


def write_all(fd: int, content: bytes) -> None:
    """write(2) until all of it is out: one call, unless the file system took only a part; then the next one
    says why. Raises OSError.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
