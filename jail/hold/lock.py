"""The lock of a session, taken by who reads or changes what it holds.

Rule: it is the lock that the supervisor of the run holds (jail.ledger.place), so that nothing is applied,
discarded or listed while the command still writes, nor by two at once, nor while `jail gc` removes it.
"""

import errno
import fcntl
import os

from jail.errors import EXIT_USAGE, JailError
from jail.kernel import files
from jail.ledger import place


class Lock:
    """The lock of the session in a folder, held from `with` to its end. Raises JailError where somebody else
    has it.
    """

    def __init__(self, session_folder: str) -> None:
        self._folder = session_folder
        self._fd = -1

    def __enter__(self) -> None:
        """Take it, at once or not at all."""
        path = f"{self._folder}/{place.LOCK}"
        try:
            self._fd = os.open(path, files.FILE)
        except FileNotFoundError:
            # Removed by hand; who runs there would hold it. The folder is as good for two of us.
            self._fd = os.open(self._folder, files.FOLDER)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.__exit__()
            if error.errno != errno.EWOULDBLOCK:
                raise
            raise JailError(
                "this session still runs, or another `jail` is at what it holds",
                where=path,
                hint="wait for its end, or end it: jail stop",
                code=EXIT_USAGE,
            ) from error

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
