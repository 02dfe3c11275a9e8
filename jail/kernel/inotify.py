"""The binding to inotify(7): folders are watched by inode, through an fd, so that no rename can point a watch
elsewhere.

Rule: it declares and parses, it does not decide. When the kernel's queue ran over, events are missing; that
is an event of its own (`overflow`), and whoever reads must then look at everything again.
"""

import ctypes
import errno
import os
import struct

from jail.kernel.libc import KernelError
from jail.light import Final, NamedTuple

IN_MODIFY: Final = 0x00000002
IN_ATTRIB: Final = 0x00000004
IN_CLOSE_WRITE: Final = 0x00000008
IN_MOVED_FROM: Final = 0x00000040
IN_MOVED_TO: Final = 0x00000080
IN_CREATE: Final = 0x00000100
IN_Q_OVERFLOW: Final = 0x00004000
IN_IGNORED: Final = 0x00008000
IN_MASK_ADD: Final = 0x20000000
IN_ONLYDIR: Final = 0x01000000
"""<linux/inotify.h>"""

READ_BYTES: Final = 1 << 16
"""One read: some 2,000 events of short names; an event with the longest name takes 272."""

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_HEADER: Final = struct.Struct("iIII")
"""struct inotify_event without its name: wd, mask, cookie, len."""


class Event(NamedTuple):
    """One event: `watch` as `Inotify.add` gave it; `name` of the entry, "" for the folder itself."""

    watch: int
    mask: int
    name: str

    @property
    def overflow(self) -> bool:
        """Events were lost: look at everything again."""
        return bool(self.mask & IN_Q_OVERFLOW)


def parse(raw: bytes) -> list[Event]:
    """The events of one read(2) of an inotify fd; ValueError for what the kernel does not give."""
    events: list[Event] = []
    at = 0
    while at < len(raw):
        if len(raw) - at < _HEADER.size:
            raise ValueError("half an inotify event")
        watch, mask, _, length = _HEADER.unpack_from(raw, at)
        at += _HEADER.size
        if len(raw) - at < length:
            raise ValueError("an inotify event without its whole name")
        events.append(Event(watch, mask, os.fsdecode(raw[at : at + length].rstrip(b"\0"))))
        at += length
    return events


class Inotify:
    """One inotify instance: non-blocking, close-on-exec. Raises KernelError: EMFILE past
    fs.inotify.max_user_instances.
    """

    def __init__(self) -> None:
        self._fd = _checked(_LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")

    def fileno(self) -> int:
        """For poll(2): readable when there are events."""
        return self._fd

    def add(self, folder: int, mask: int) -> int:
        """Watch the folder behind an fd (O_PATH will do); again for one that is watched already sets a new
        mask.

        Returns the watch descriptor, the same for the same inode. Raises KernelError: ENOSPC past
        fs.inotify.max_user_watches.
        """
        path = f"/proc/self/fd/{folder}".encode()
        return _checked(
            _LIBC.inotify_add_watch(self._fd, path, ctypes.c_uint32(mask | IN_ONLYDIR)),
            f"inotify_add_watch(fd {folder})",
        )

    def remove(self, watch: int) -> None:
        """End a watch; one that the kernel ended already (the folder is gone) is no error."""
        if _LIBC.inotify_rm_watch(self._fd, ctypes.c_int(watch)) == -1 and ctypes.get_errno() != errno.EINVAL:
            raise KernelError(ctypes.get_errno(), f"inotify_rm_watch({watch})")

    def read(self) -> list[Event]:
        """The events waiting now, at most READ_BYTES of them; [] when there are none."""
        try:
            return parse(os.read(self._fd, READ_BYTES))
        except BlockingIOError:
            return []

    def close(self) -> None:
        """End all watches."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _checked(result: int, call: str) -> int:
    if result == -1:
        raise KernelError(ctypes.get_errno(), call)
    return result
