"""What the kernel writes into the upper layer of an overlay instead of a deletion, and how it is told there.

Rule: a whiteout is a character device 0:0, an opaque folder has `user.overlay.opaque` "y" (the kernel's
Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories", with the mount option userxattr),
and both only in an upper layer: elsewhere they can be made by anybody and mean nothing. That a mark cannot be
read is an error and never "no mark": then the host would show where the command had removed it.
"""

import errno
import os
import stat

from jail.light import Final

OPAQUE: Final = "user.overlay.opaque"
_YES: Final = b"y"
_NONE: Final = (errno.ENODATA, errno.EOPNOTSUPP)
"""What getxattr(2) says where there is no such attribute, or where the file system has none at all."""
_WHITEOUT: Final = 0
"""st_rdev of a whiteout: WHITEOUT_DEV of <linux/fs.h>."""


def is_whiteout(found: os.stat_result) -> bool:
    """Whether it stands for something that was deleted."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == _WHITEOUT


def make_whiteout(folder: int, name: str) -> None:
    """Let a name of the tree beneath be deleted. Raises OSError; FileExistsError where the layer has it."""
    os.mknod(name, stat.S_IFCHR, _WHITEOUT, dir_fd=folder)


def is_opaque(folder: int) -> bool:
    """Whether nothing of the folder beneath shows through; `folder` may be an O_PATH fd. Raises OSError."""
    try:
        return os.getxattr(_path(folder), OPAQUE) == _YES
    except OSError as error:
        if error.errno not in _NONE:
            raise
        return False


def hide(folder: int) -> None:
    """Let nothing of the folder beneath show through. Raises OSError."""
    os.setxattr(_path(folder), OPAQUE, _YES)


def show(folder: int) -> None:
    """Let the folder beneath show through again. Raises OSError."""
    os.removexattr(_path(folder), OPAQUE)


def _path(folder: int) -> str:
    # fgetxattr(2) takes no O_PATH fd.
    return f"/proc/self/fd/{folder}"
