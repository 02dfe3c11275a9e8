"""Tries of single calls and libraries: filters, Landlock, terminals, and what a later version of jail needs.

Rule: as doctor_tries.py, which runs them; each stands alone, so that one missing call is one row.
"""

import _socket
import ctypes
import errno
import fcntl
import importlib
import importlib.metadata
import os
import struct
from collections.abc import Callable
from typing import Final

from jail.kernel import (
    bpf,
    cgroups,
    files,
    filters_build,
    guard,
    inotify,
    landlock,
    libc,
    mounts,
    namespaces,
    pty,
    seccomp,
    syscalls,
)
from jail.kernel.syscalls import number
from jail.launch.doctor_facts import NO_ERRNO, Tried
from jail.launch.doctor_tries import As

_PR_SET_NO_NEW_PRIVS: Final = 38
_KEYCTL_JOIN_SESSION_KEYRING: Final = 1
_NEW_LISTENER: Final = 1 << 3
_WAIT_KILLABLE_RECV: Final = 1 << 5
"""SECCOMP_FILTER_FLAG_* of <linux/seccomp.h>"""
_PIDFD_GET_INFO: Final = 0xC040FF0B
_PIDFD_INFO_EXIT: Final = 1 << 3
_INFO_SIZE: Final = 64
_INFO_EXIT_CODE: Final = 60
"""<linux/pidfd.h>: _IOWR(0xFF, 11, struct pidfd_info), 64 bytes in its first form, the exit code last."""
_SAFE: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV
_UNKNOWN_CALL: Final = 4095

LIBRARIES: Final = {
    # distribution: (module, what jail needs it for, whether a run does)
    "python-prctl": ("_prctl", "privileges of processes", True),
    "pyseccomp": ("", "builds the system-call filter", True),
    "pyroute2": ("pyroute2.netlink.rtnl.ifinfmsg", "messages that set up the network", True),
    "pydantic": ("pydantic", "reads policies", True),
    "click": ("click", "the command line", True),
    "psutil": ("psutil", "figures of processes", False),
}


def _no_new_privileges() -> None:
    libc.syscall("prctl(PR_SET_NO_NEW_PRIVS)", number("prctl"), _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _openat2() -> str:
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    files.openat2(root, "../proc", os.O_PATH, files.RESOLVE_IN_ROOT | files.RESOLVE_NO_SYMLINKS)
    return "a path is opened that no link can lead elsewhere"


def _close_range() -> str:
    fd = fcntl.fcntl(0, fcntl.F_DUPFD, 100)
    files.close_on_exec_from(fd)
    if os.get_inheritable(fd):
        raise RuntimeError("close_range(CLOEXEC) left a file open at exec")
    return "no open file leaks into the command"


def _mount_setattr() -> str:
    """Without a mount to set it on: who has the call finds the fd bad, who lacks it says ENOSYS."""
    try:
        mounts.set_attributes(-1, 0, "no mount")
    except libc.KernelError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL, errno.EPERM):
            raise
    return "whole trees are made read-only at once"


def _filter() -> str:
    _no_new_privileges()
    seccomp.install(guard.program(syscalls.native()), "guard")
    try:
        libc.syscall("unknown", _UNKNOWN_CALL)
    except libc.KernelError as error:
        if error.errno == errno.ENOSYS and seccomp.status().mode == seccomp.MODE_FILTER:
            return "loaded, and it refuses"
    raise RuntimeError("a filter was loaded and does not refuse")


def _filter_build() -> str:
    program = filters_build.build(syscalls.native())
    _no_new_privileges()
    seccomp.install(program, "deny")
    try:
        namespaces.unshare(("user",))
    except libc.KernelError as error:
        if error.errno == errno.EPERM:
            return f"{len(program) // bpf.INSTRUCTION_SIZE} instructions, built, checked and loaded"
    raise RuntimeError("the built filter does not refuse a user namespace")


def _libseccomp() -> str:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_version.restype = ctypes.POINTER(ctypes.c_uint * 3)
    return ".".join(map(str, library.seccomp_version().contents))


def _landlock() -> str:
    """The ABI, after a ruleset of it was seen to refuse."""
    call = "landlock_create_ruleset(version)"
    version = libc.syscall(call, number("landlock_create_ruleset"), None, 0, 1)
    used = landlock.known(version)
    if used is not None:
        _no_new_privileges()
        os.close(os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC))
        root = os.open("/", os.O_PATH | os.O_CLOEXEC)
        landlock.restrict(landlock.grants(root, ()), used)
        try:
            os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        except PermissionError:
            return str(version)
        raise RuntimeError("Landlock was asked to refuse a write and did not")
    return str(version)


def _keyring() -> str:
    try:
        libc.syscall("keyctl(join)", number("keyctl"), _KEYCTL_JOIN_SESSION_KEYRING, None)
    except libc.KernelError as error:
        if error.errno != errno.ENOSYS:
            raise
        return "this kernel keeps no keys"
    return "the caller's keys stay outside"


def _inotify() -> str:
    watch = inotify.Inotify()
    watch.add(os.open(".", os.O_PATH | os.O_CLOEXEC), inotify.IN_CREATE)
    return "folders can be watched"


def _terminal(who: As) -> str:
    namespaces.unshare(("user", "mount"))
    namespaces.map_ids(who.uid, who.gid)
    options = {"newinstance": None, "ptmxmode": "0666", "mode": "0620"}
    tree = mounts.new_filesystem("devpts", options, mounts.ATTR_NOSUID | mounts.ATTR_NOEXEC)
    master = os.open("ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=tree)
    slave = os.open(str(pty.slave_number(master)), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=tree)
    os.write(slave, b"x")
    if os.read(master, 1) != b"x":
        raise RuntimeError("what is written to a new terminal does not come out of it")
    return "a terminal that is not the caller's"


def _listener() -> str:
    _no_new_privileges()
    program = ctypes.create_string_buffer(bpf.instruction(bpf.RETURN, bpf.ALLOW))
    loaded = struct.pack("@HP", 1, ctypes.addressof(program))
    flags = _NEW_LISTENER | _WAIT_KILLABLE_RECV
    os.close(libc.syscall("seccomp(listener, WAIT_KILLABLE_RECV)", number("seccomp"), 1, flags, loaded))
    return "execs can be recorded as they happen"


def _exit_status() -> str:
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    fd = libc.syscall("pidfd_open", number("pidfd_open"), pid, 0)
    os.waitpid(pid, 0)
    asked = struct.pack("=Q", _PIDFD_INFO_EXIT).ljust(_INFO_SIZE, b"\0")
    try:
        told = fcntl.ioctl(fd, _PIDFD_GET_INFO, asked)
    except OSError as error:
        raise libc.KernelError(error.errno or 0, "ioctl(PIDFD_GET_INFO)") from error
    (status,) = struct.unpack_from("=i", told, _INFO_EXIT_CODE)
    if os.waitstatus_to_exitcode(status) != 7:
        raise RuntimeError("the kernel tells of a process, and not yet how it ended (Linux 6.15)")
    return "how a process ended is told by the kernel"


def _overlay(who: As) -> str:
    """On the state folder's own file system, where hold will keep what was written."""
    if not who.scratch:
        raise RuntimeError("there is no state folder to try it in")
    namespaces.unshare(("user", "mount"))
    namespaces.map_ids(who.uid, who.gid)
    mounts.make_all_private()
    for name in ("lower", "upper", "work"):
        os.mkdir(name)
    with open("lower/kept", "x", encoding="ascii"):
        pass
    os.setxattr("upper", "user.jail", b"")
    tree = mounts.overlay(*(os.open(name, os.O_PATH | os.O_DIRECTORY) for name in ("lower", "upper", "work")))
    os.chmod(
        "work/work", 0o700
    )  # overlayfs makes it with no rights at all, and then nobody can clear it away
    os.unlink("kept", dir_fd=tree)
    os.mkdir("made", dir_fd=tree)
    if os.listdir("lower") != ["kept"] or not os.path.isdir("upper/made"):
        raise RuntimeError("a write through an overlay did not stay in its upper layer")
    return "an overlay in the state folder holds what is written to a held tree"


def _attribute(kind: int, payload: bytes) -> bytes:
    """Struct nlattr, padded to four bytes (netlink(7))."""
    return (struct.pack("=HH", 4 + len(payload), kind) + payload).ljust((7 + len(payload)) & ~3, b"\0")


def _netfilter(kind: int, flags: int, sequence: int, family: int, resource: int, body: bytes = b"") -> bytes:
    """Struct nlmsghdr and struct nfgenmsg of <linux/netfilter/nfnetlink.h>."""
    return (
        struct.pack("=IHHIIBB", 20 + len(body), kind, flags, sequence, 0, family, 0)
        + struct.pack(">H", resource)
        + body
    )


def _nat_chain() -> bytes:
    """A batch that makes a table and in it a nat chain at the output hook (<linux/netfilter/nf_tables.h>)."""
    table, chain, ipv4, create = b"jail\0", b"out\0", 2, 0x405
    hook = _attribute(1, struct.pack(">I", 3)) + _attribute(2, struct.pack(">i", -100))
    rest = (
        _attribute(1, table) + _attribute(3, chain) + _attribute(4 | 0x8000, hook) + _attribute(7, b"nat\0")
    )
    return b"".join(
        [
            _netfilter(0x10, 1, 1, 0, 10),
            _netfilter(10 << 8, create, 2, ipv4, 0, _attribute(1, table)),
            _netfilter(10 << 8 | 3, create, 3, ipv4, 0, rest),
            _netfilter(0x11, 1, 4, 0, 10),
        ]
    )


def _nf_tables(who: As) -> str:
    namespaces.unshare(("user", "net"))
    namespaces.map_ids(who.uid, who.gid)
    channel = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, 12)
    channel.bind((0, 0))
    channel.send(_nat_chain())
    acknowledged = 0
    while acknowledged < 2:
        answer = channel.recv(8192)
        while answer:
            length, kind = struct.unpack_from("=IH", answer)
            (result,) = struct.unpack_from("=i", answer, 16) if kind == 2 else (0,)
            if result:
                raise libc.KernelError(-result, "netlink(nf_tables, nat chain)")
            acknowledged += kind == 2
            answer = answer[(length + 3) & ~3 :]
    return "connections can be led to jail's own listener"


def delegated() -> Tried:
    """A control group (version 2) for each run, beside or above the one that this process is in.

    Changes nothing and asks in this process: what another, of another uid, may do says nothing of a run.
    """
    try:
        found = cgroups.delegation()
    except OSError as error:
        return Tried(error.errno or NO_ERRNO, str(error.filename or ""))
    if not found.folder:
        return Tried(NO_ERRNO, "", found.why)
    return Tried(0, "", "a control group bounds it as a whole")


def library(distribution: str) -> str:
    """Import it, and tell its version."""
    module = LIBRARIES[distribution][0]
    if module:
        importlib.import_module(module)
    return importlib.metadata.version(distribution)


CALLS: Final[dict[str, Callable[[], str]]] = {
    "openat2": _openat2,
    "close_range": _close_range,
    "mount_setattr": _mount_setattr,
    "filter": _filter,
    "filter build": _filter_build,
    "libseccomp": _libseccomp,
    "landlock": _landlock,
    "keyring": _keyring,
    "inotify": _inotify,
    "listener": _listener,
    "exit status": _exit_status,
}
"""What needs no namespace."""
IN_NAMESPACES: Final[dict[str, Callable[[As], str]]] = {
    "terminal": _terminal,
    "overlay": _overlay,
    "nf_tables": _nf_tables,
}
