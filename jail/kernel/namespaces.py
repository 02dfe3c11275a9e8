"""Namespaces: unshare(2), user-namespace maps, names for errors and plans (namespaces(7))."""

import errno
import os

from jail.kernel import files, libc
from jail.kernel.syscalls import number
from jail.light import Final

FLAGS: Final = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}
"""CLONE_NEW* of <linux/sched.h>, by the name that plans print."""


def unshare(names: tuple[str, ...]) -> None:
    """Leave the named namespaces for new ones; `pid` takes effect for children only (unshare(2))."""
    flags = 0
    for name in names:
        flags |= FLAGS[name]
    libc.syscall(f"unshare({' '.join(names)})", number("unshare"), flags)


def map_ids(uid: int, gid: int) -> None:
    """Map exactly one uid and one gid of the calling process's new user namespace, each to itself
    (user_namespaces(7)).

    setgroups is denied first, which the kernel asks for, and which keeps a group that only denies from being
    dropped.
    """
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        _write_own(name, text)


def _write_own(name: str, text: str) -> None:
    fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        files.require_procfs(fd, name)
        os.write(fd, text.encode())
    except libc.KernelError:
        raise
    except OSError as error:
        raise libc.KernelError(error.errno or 0, f"write(/proc/self/{name}, {text!r})") from error
    finally:
        os.close(fd)


def idmap_fd(owner: int, uid: int, gid: int) -> int:
    """An fd of a user namespace for an idmapped mount, in which files of `owner` (uid and gid) appear as
    `uid` and `gid`.

    Only root can make such a mount (mount_setattr(2), MOUNT_ATTR_IDMAP). The namespace lives on in the fd
    alone.
    """
    ready_read, ready_write = os.pipe2(os.O_CLOEXEC)
    end_read, end_write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.close(end_write)
            unshare(("user",))
            os.write(ready_write, b"r")
            os.read(end_read, 1)
        finally:
            os._exit(0)
    os.close(ready_write)
    try:
        if os.read(ready_read, 1) != b"r":
            raise libc.KernelError(errno.EPERM, "unshare(user) for an idmapped mount")
        for name, inside in (("uid_map", uid), ("gid_map", gid)):
            fd = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
            files.require_procfs(fd, name)
            os.write(fd, f"{owner} {inside} 1".encode())
            os.close(fd)
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (ready_read, end_read, end_write):
            os.close(fd)
        os.waitpid(pid, 0)
