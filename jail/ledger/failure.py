"""What the file system refused, as an error for a person.

Rule: the errno stays in the message, and each errno that a person can act on has its own sentence.
"""

import errno
import os

from jail.errors import JailError
from jail.light import Final

_FULL: Final = "free space on this file system, or set XDG_STATE_HOME to a folder on another one"
_TO_DO: Final[dict[int, str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "free space within your quota there, or set XDG_STATE_HOME to a folder elsewhere",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "set XDG_STATE_HOME to a folder that you may write",
    errno.EACCES: "give yourself the permission, or set XDG_STATE_HOME to a folder that you may write",
    errno.EPERM: "give yourself the permission, or set XDG_STATE_HOME to a folder that you may write",
    errno.EIO: "check the disk: the kernel's log says more",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ELOOP: "a symbolic link or a planted file lies there: look at it, and remove it",
    errno.ENOTDIR: "a file or a symbolic link lies where a folder should be: look at it, and remove it",
}


def failure(doing: str, path: str, error: OSError) -> JailError:
    """`error` met while `doing` something at `path`; the caller raises it from `error`."""
    number = error.errno or 0
    name = errno.errorcode.get(number, str(number))
    to_do = _TO_DO.get(number, "look at this path; jail needs to read and write there")
    return JailError(f"cannot {doing}: {os.strerror(number)}", where=f"{path} ({name})", hint=to_do)
