"""Pseudo-terminals by the fd of their master: ioctl_tty(2), pts(4).

Rule: a slave is named by its number alone; whose /dev/pts it lies in is the caller's affair.
"""

import fcntl
import os
import struct

from jail.light import Final

_TIOCSPTLCK: Final = 0x40045431
_TIOCGPTN: Final = 0x80045430
"""<asm-generic/ioctls.h>; termios has them from Python 3.13 on."""


def slave_number(master: int) -> int:
    """Unlock the slave of `master`, and tell its name in /dev/pts. Raises OSError."""
    fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
    return int(struct.unpack("i", fcntl.ioctl(master, _TIOCGPTN, bytes(4)))[0])


def open_pair(folder: str = "/dev/pts") -> tuple[int, str]:
    """A new terminal of the devpts at `folder`: its master, and its slave's path. Raises OSError."""
    master = os.open(f"{folder}/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return master, f"{folder}/{slave_number(master)}"
    except BaseException:
        os.close(master)
        raise
