"""Attacks on the kernel's own interface: system calls by number, in every form that this machine has.

Rule: the filter answers before the kernel reads an argument, so each call is made with arguments that could
do no harm if it were let through (a bad pointer, a descriptor that is not open, a process of our own), and
only the filter's own errno counts.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import socket
import struct
import termios
from collections.abc import Iterator
from functools import partial
from typing import Final

from .words import AT_FDCWD, LIBC, Truths, Try, UntriedError, calls, number, raw

NOTHING: Final = -1
"""A descriptor that is not open; as a pointer, an address that is nobody's."""
BIND: Final = 0x1000
REMOUNT: Final = 0x20
NEW: Final = {
    # CLONE_NEW* of <linux/sched.h>
    "mount": 0x20000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
NEW_TIME: Final = 0x80
"""Taken by unshare and clone3 alone."""
X32: Final = 0x40000000


def mounting(truths: Truths) -> Iterator[Try]:
    """The mount calls of old."""
    here = truths["workspace"].encode()
    yield from calls(
        truths,
        ("mount: memory", b"none", here, b"tmpfs", 0, None),
        ("mount: the parent, bound", os.path.dirname(here), here, None, BIND, None),
        ("mount: the root, writable", None, b"/", None, REMOUNT | BIND, None),
        ("mount: a fresh /proc", b"proc", here, b"proc", 0, None),
        ("umount2: /proc", b"/proc", 2),
        ("umount2: the workspace", here, 2),
        ("pivot_root", here, here),
        ("chroot", here),
    )


def mounting_anew(truths: Truths) -> Iterator[Try]:
    """The mount calls of today."""
    yield from calls(
        truths,
        ("open_tree", AT_FDCWD, b"/", 1),
        ("open_tree_attr", AT_FDCWD, b"/", 1, None, 0),
        ("move_mount", NOTHING, b"", AT_FDCWD, b"/", 4),
        ("fsopen", b"tmpfs", 0),
        ("fsconfig", NOTHING, 6, None, None, 0),
        ("fsmount", NOTHING, 0, 0),
        ("fspick", AT_FDCWD, b"/", 0),
        ("mount_setattr", AT_FDCWD, b"/", 0, None, 0),
    )


def namespaces(truths: Truths) -> Iterator[Try]:
    """Each kind of namespace, by each call."""
    for kind, bit in {**NEW, "time": NEW_TIME}.items():
        yield from calls(truths, (f"unshare: {kind}", bit))
    if os.uname().machine == "x86_64":  # elsewhere the arguments stand in another order (clone(2))
        for kind, bit in NEW.items():
            yield f"clone: {kind}", partial(_clone, bit)
    for kind in ("user", "mnt", "pid", "net"):
        yield f"setns: {kind}", partial(_enter, truths, f"/proc/self/ns/{kind}")


def _clone(bit: int) -> None:
    pid = raw(56, bit | 17, 0, 0, 0, 0)  # SIGCHLD
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _enter(truths: Truths, path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        raw(number(truths, "setns"), fd, 0)
    finally:
        os.close(fd)


def clone3(truths: Truths) -> Iterator[Try]:
    """Flags behind a pointer, which no filter can read."""
    yield from calls(truths, ("clone3", None, 0), ("openat2", AT_FDCWD, b"/", None, 0))


def keyrings(truths: Truths) -> Iterator[Try]:
    """Keys of the user, which no namespace separates."""
    yield from calls(
        truths,
        ("keyctl: the user's ring", 0, -4, 0),
        ("keyctl: read", 11, -4, None, 0),
        ("add_key", b"user", b"jail-attack", b"x", 1, -3),
        ("request_key", b"user", b"jail-attack", None, 0),
    )


def into_the_kernel(truths: Truths) -> Iterator[Try]:
    """Code in the kernel, or a view of the whole host."""
    yield from calls(
        truths,
        ("bpf", 0, None, 0),
        ("perf_event_open", None, 0, -1, -1, 0),
        ("init_module", None, 0, None),
        ("finit_module", NOTHING, None, 0),
        ("delete_module", None, 0),
        ("kexec_load", 0, 0, None, 0xFFFFFFFF),
        ("kexec_file_load", NOTHING, NOTHING, 0, None, 0xFFFFFFFF),
        ("syslog", 10, None, 0),
        ("fanotify_init", 0xFFFFFFFF, 0),
        ("iopl", 99),
        ("ioperm", 1 << 30, 1, 1),
        ("modify_ldt", 99, None, 0),
    )


def administration(truths: Truths) -> Iterator[Try]:
    """What would change the host as a whole: each with arguments that the kernel itself refuses."""
    yield from calls(
        truths,
        ("reboot", 0, 0, 0, None),
        ("swapon", None, 0),
        ("swapoff", None),
        ("acct", NOTHING),
        ("quotactl", 0xFFFFFFFF, None, 0, None),
        ("settimeofday", NOTHING, NOTHING),
        ("clock_settime", 99, None),
        ("sethostname", NOTHING, 1 << 20),
        ("setdomainname", NOTHING, 1 << 20),
        ("lsm_set_self_attr", 0, None, 0, 0),
        ("mbind", 0, 0, 99, None, 0, 0),
        ("move_pages", 0, 0, None, None, None, 0),
    )


def past_the_filter(truths: Truths) -> Iterator[Try]:
    """Work that the kernel does without asking a filter, and the means to win races against it."""
    yield from calls(
        truths,
        ("io_uring_setup", 1, None),
        ("io_uring_enter", NOTHING, 0, 0, 0, None, 0),
        ("io_uring_register", NOTHING, 0, None, 0),
        ("userfaultfd", 0xFFFFFFFF),
    )


def handles(truths: Truths) -> Iterator[Try]:
    """Files by their inode, past every mount (the door of "shocker")."""
    handle = struct.pack("=IiQ", 8, 1, 2)  # the root inode of ext4, as FILEID_INO32_GEN
    for path in ("/", "/usr", truths["workspace"]):
        yield f"open_by_handle_at: {path}", partial(_by_handle, truths, path, handle)


def _by_handle(truths: Truths, path: str, handle: bytes) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        raw(number(truths, "open_by_handle_at"), fd, ctypes.create_string_buffer(handle, 64), os.O_RDONLY)
    finally:
        os.close(fd)


def other_processes(truths: Truths) -> Iterator[Try]:
    """Descriptors and memory of another process, here the attack's own parent."""
    parent = os.getppid()
    yield from calls(
        truths,
        ("kcmp", parent, parent, 0, 0, 0),
        ("process_vm_writev", parent, None, 0, None, 0, 0),
        ("process_madvise", NOTHING, None, 0, 0, 0),
        ("pidfd_getfd", NOTHING, 0, 0),
    )


def personalities(truths: Truths) -> Iterator[Try]:
    """Execution modes that weaken the kernel's defences."""
    for label, value in (("READ_IMPLIES_EXEC", 0x400000), ("MMAP_PAGE_ZERO", 0x100000), ("IRIX", 0x0009)):
        yield from calls(truths, (f"personality: {label}", value))


def terminal(truths: Truths) -> Iterator[Try]:
    """Keys typed into a terminal, on one of the attack's own."""
    del truths
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    slave = os.openpty()[1]  # both ends stay open: closing the other one would hang up
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for label, request in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C), ("TIOCSETD", 0x5423)):
        for what, word in ((label, request), (f"{label}, high bits", 1 << 32 | request)):
            yield what, partial(_ioctl, slave, word)


def _ioctl(fd: int, request: int) -> None:
    buffer = ctypes.create_string_buffer(b"\xff\xff\xff\x7f", 8)
    ctypes.set_errno(0)
    if LIBC.ioctl(fd, ctypes.c_ulong(request), buffer) == -1:
        found = ctypes.get_errno()
        raise OSError(found, os.strerror(found))


def families(truths: Truths) -> Iterator[Try]:
    """Every address family that is not one of unix, inet, inet6 and netlink; and those with high bits set."""
    for family in range(3, 64):
        if family not in (socket.AF_INET6, socket.AF_NETLINK):
            yield from calls(truths, (f"socket: family {family}", family, 3, 0))
    for name, family, kind in (("ALG", 38, 5), ("VSOCK", 40, 1), ("PACKET", 17, 3)):
        yield from calls(truths, (f"socket: {name}", family, kind, 0))
        yield from calls(truths, (f"socket: {name}, high bits", 1 << 32 | family, kind, 0))
        yield from calls(truths, (f"socketpair: {name}", family, kind, 0, None))


def protocols(truths: Truths) -> Iterator[Try]:
    """Netlink other than routing; transports that load a module."""
    for name, protocol in (("audit", 9), ("xfrm", 6), ("netfilter", 12), ("connector", 11), ("uevent", 15)):
        yield from calls(truths, (f"socket: netlink {name}", socket.AF_NETLINK, 3, protocol))
    for name, kind, protocol in (("SCTP", 1, 132), ("DCCP", 6, 33), ("UDPLITE", 2, 136), ("SMC", 1, 256)):
        yield from calls(truths, (f"socket: {name}", socket.AF_INET, kind, protocol))


def own_listener(truths: Truths) -> Iterator[Try]:
    """A filter of one's own that allows everything, with a listener: the answer must still be the jail's."""
    program = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
    loaded = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 1, ctypes.addressof(program)))

    def install_and_try() -> None:
        try:
            raw(number(truths, "seccomp"), 1, 8, loaded)  # SECCOMP_FILTER_FLAG_NEW_LISTENER
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EBUSY, errno.EPERM, errno.EINVAL):
                raise
        raw(number(truths, "unshare"), NEW["user"])

    yield "unshare after it", install_and_try


def unknown_calls(truths: Truths) -> Iterator[Try]:
    """Numbers that nobody has reviewed: above the last known one, and in holes of the table."""
    last = int(truths["max_known"])
    for call in (last + 1, last + 2, last + 9, 1023, 4095, *truths["holes"]):
        yield f"call {call}", partial(raw, call, 0, 0, 0, 0, 0, 0)


def x32(truths: Truths) -> Iterator[Try]:
    """The same calls under their x32 numbers."""
    if os.uname().machine != "x86_64":
        raise UntriedError("only x86-64 has such numbers")
    for name in ("getpid", "unshare", "mount", "ptrace", "bpf"):
        words = (0, 0, 0, 0, 0) if name != "bpf" else (0, None, 0)
        yield f"{name} | 1 << 30", partial(raw, number(truths, name) | X32, *words)


def i386(truths: Truths) -> Iterator[Try]:
    """A call by `int 0x80`, with the numbers of i386; the whole process must be killed."""
    if not truths["i386"]:
        raise UntriedError("this machine, or its kernel, takes no i386 calls")
    yield "getpid by int 0x80", interrupt


def interrupt() -> str:
    """Ask for the process id as an i386 program does; where the kernel takes no such call it kills."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return f"getpid is {ctypes.CFUNCTYPE(ctypes.c_int)(address)()}"
