"""Mounts by file descriptor: open_tree(2), move_mount(2), fsopen(2), mount_setattr(2), pivot_root(2).

Rule: a mount is made detached, gets all its attributes while nobody can reach it, and only then becomes
visible; sources and targets are fds, so that no symlink and no rename can lead it elsewhere. Numbers are
those of <linux/mount.h>.
"""

import ctypes
import os

from jail.kernel import libc
from jail.kernel.syscalls import number
from jail.light import Final

ATTR_RDONLY: Final = 0x01
ATTR_NOSUID: Final = 0x02
ATTR_NODEV: Final = 0x04
ATTR_NOEXEC: Final = 0x08
ATTR_IDMAP: Final = 0x100000

_OPEN_TREE_CLONE: Final = 1
_OPEN_TREE_CLOEXEC: Final = os.O_CLOEXEC
_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_MOVE_FROM_AND_TO_FDS: Final = 0x04 | 0x40
_FSCONFIG_SET_FLAG: Final = 0
_FSCONFIG_SET_STRING: Final = 1
_FSCONFIG_CMD_CREATE: Final = 6
_FSOPEN_CLOEXEC: Final = 1
_FSMOUNT_CLOEXEC: Final = 1
_MNT_DETACH: Final = 2
_MS_PRIVATE: Final = 1 << 18


class _MountAttr(ctypes.Structure):
    """struct mount_attr of <linux/mount.h>."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def clone(fd: int, what: str, *, recursive: bool = True) -> int:
    """A detached copy of the tree at the O_PATH `fd`, with its submounts unless told otherwise
    (open_tree(2)).
    """
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    return libc.syscall(f"open_tree({what})", number("open_tree"), fd, b"", flags)


def set_attributes(tree: int, attributes: int, what: str, *, recursive: bool = True, idmap: int = -1) -> None:
    """Set ATTR_* bits on a tree and all its submounts at once, and take it out of every peer group
    (mount_setattr(2)).

    `idmap`: fd of a user namespace whose map the mount gets; the call fails as a whole when a submount cannot
    have it.
    """
    attr = _MountAttr(attributes, 0, _MS_PRIVATE, 0)
    if idmap >= 0:
        attr.attr_set |= ATTR_IDMAP
        attr.userns_fd = idmap
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    libc.syscall(
        f"mount_setattr({what})", number("mount_setattr"), tree, b"", flags, attr, ctypes.sizeof(attr)
    )


def make_all_private() -> None:
    """No mount event crosses between this namespace and its parent, in either direction
    (mount_namespaces(7)).
    """
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        set_attributes(root, 0, "/, private")
    finally:
        os.close(root)


def new_filesystem(kind: str, options: dict[str, str | None], attributes: int) -> int:
    """A detached mount of a new `kind` (tmpfs, proc, devpts) with options; a value of None is a flag
    (fsopen(2), fsmount(2)).
    """
    context = libc.syscall(f"fsopen({kind})", number("fsopen"), kind, _FSOPEN_CLOEXEC)
    try:
        for key, value in options.items():
            if value is None:
                libc.syscall(
                    f"fsconfig({kind}, {key})", number("fsconfig"), context, _FSCONFIG_SET_FLAG, key, None, 0
                )
            else:
                call = f"fsconfig({kind}, {key}={value})"
                libc.syscall(call, number("fsconfig"), context, _FSCONFIG_SET_STRING, key, value, 0)
        create = f"fsconfig({kind}, create)"
        try:
            libc.syscall(create, number("fsconfig"), context, _FSCONFIG_CMD_CREATE, None, None, 0)
        except libc.KernelError as error:
            raise libc.KernelError(error.errno or 0, f"{create}{_said(context)}") from error
        return libc.syscall(f"fsmount({kind})", number("fsmount"), context, _FSMOUNT_CLOEXEC, attributes)
    finally:
        os.close(context)


_OVERLAY: Final[dict[str, str | None]] = {
    "userxattr": None,
    "redirect_dir": "nofollow",
    "metacopy": "off",
    "index": "off",
    "xino": "off",
}
"""What an overlay notes lies in user.overlay.* attributes, which nobody inside can set; it follows no note to
another place, and none that says that content lies elsewhere (Documentation/filesystems/overlayfs.rst).
"""


def _said(context: int) -> str:
    """What the kernel says of a mount that it refused (fsopen(2): messages are read from the context)."""
    try:
        return f" ({os.fsdecode(os.read(context, _MESSAGE)).strip()})"
    except OSError:
        return ""


_MESSAGE: Final = 1024


def overlay(lower: int, upper: int, work: int) -> int:
    """A detached overlay of the folder `upper` over the folder `lower`; all O_PATH fds of mounts in the
    calling process's mount namespace. What is in it is never a device, and gives nobody rights.

    Named by /proc/self/fd, so that no path is walked and mountinfo tells none. EINVAL where `lower` has
    mounts in it that this namespace may not uncover (mount_namespaces(7)), or `upper`'s file system cannot
    be one.
    """
    layers = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    named: dict[str, str | None] = {key: f"/proc/self/fd/{fd}" for key, fd in layers.items()}
    return new_filesystem("overlay", {**_OVERLAY, **named}, ATTR_NOSUID | ATTR_NODEV)


def detach(fd: int, what: str) -> None:
    """Take away the mount whose root the fd is; open files in it stay (umount2(2), MNT_DETACH)."""
    libc.syscall(f"umount2({what})", number("umount2"), f"/proc/self/fd/{fd}", _MNT_DETACH)


def attach(tree: int, target: int, what: str) -> None:
    """Mount the detached `tree` on the O_PATH fd `target` (move_mount(2))."""
    libc.syscall(f"move_mount({what})", number("move_mount"), tree, b"", target, b"", _MOVE_FROM_AND_TO_FDS)


def pivot_into(root: int) -> None:
    """Make the mounted tree at fd `root` the root folder, and drop the old root with all beneath it
    (pivot_root(2)).

    The `pivot_root(".", ".")` form stacks the old root on the new one, from where it is detached; afterwards
    nothing of it can be named.
    """
    os.fchdir(root)
    libc.syscall("pivot_root(., .)", number("pivot_root"), b".", b".")
    libc.syscall("umount2(old root)", number("umount2"), b".", _MNT_DETACH)
    os.chdir("/")


OVERLAYFS_SUPER_MAGIC: Final = 0x794C7630
"""<linux/magic.h>"""


def is_overlay(fd: int, what: str) -> bool:
    """Whether the fd lies in an overlay (fstatfs(2))."""
    buffer = ctypes.create_string_buffer(256)
    libc.syscall(f"fstatfs({what})", number("fstatfs"), fd, buffer)
    return int.from_bytes(buffer.raw[:8], "little") == OVERLAYFS_SUPER_MAGIC


_STATX_ATTR_MOUNT_ROOT: Final = 0x2000
_STATX_ATTRIBUTES: Final = slice(8, 16)
_STATX_SIZE: Final = 256
_AT_SYMLINK_NOFOLLOW: Final = 0x100


def is_mount_root(fd: int, what: str) -> bool:
    """Whether the O_PATH `fd` is where a mount begins (statx(2), STATX_ATTR_MOUNT_ROOT)."""
    buffer = ctypes.create_string_buffer(_STATX_SIZE)
    flags = _AT_EMPTY_PATH | _AT_SYMLINK_NOFOLLOW
    libc.syscall(f"statx({what})", number("statx"), fd, b"", flags, 0, buffer)
    return bool(int.from_bytes(buffer.raw[_STATX_ATTRIBUTES], "little") & _STATX_ATTR_MOUNT_ROOT)
