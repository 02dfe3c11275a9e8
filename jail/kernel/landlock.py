"""Landlock: what may be done beneath which folder, kept by the kernel apart from mounts and modes.

Rule: the second wall says the same as the first, as far as it can. Outside the write paths nothing is written
even where a mount came out writable; nothing is mounted; signals, ptrace and abstract
sockets end at the jail. What it cannot say is "not here" inside a folder that it lets be written: protected
names in the workspace hang on mounts alone.

One table of ABI versions says which rights a kernel knows; everything else is derived. Rights that a kernel
lacks are reported by `lost`, never dropped in silence. Version 1 (Linux 5.13) denies every rename and link
between folders, which no build survives, so it counts as no Landlock at all: the loss is named `landlock`.
TCP (version 4) is not handled: egress is decided by the net namespace.

What must go on working, and why these rules let it: devices are written and controlled (ioctl) by rules on
the device files or on /dev; /proc is written beneath (oom_score_adj, comm, coredump_filter), where open(2)
with O_TRUNC needs TRUNCATE too; pipes, sockets and memfds have no path and are not concerned; gdb and strace
reach only what runs inside, which is what they start. Nothing may make a device node, anywhere.

Sources: landlock(7), Documentation/userspace-api/landlock.rst, <linux/landlock.h>, security/landlock/fs.c of
Linux 6.18.
"""

import errno
import os
import stat
import struct

from jail.kernel.libc import KernelError, syscall
from jail.kernel.syscalls import number
from jail.light import Final, NamedTuple, Sequence

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_CHAR: Final = 1 << 6
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
MAKE_SOCK: Final = 1 << 9
MAKE_FIFO: Final = 1 << 10
MAKE_BLOCK: Final = 1 << 11
MAKE_SYM: Final = 1 << 12
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15

SCOPE_ABSTRACT_SOCKET: Final = 1 << 0
SCOPE_SIGNAL: Final = 1 << 1


class Abi(NamedTuple):
    """One version: rights on files, scopes, the size of struct landlock_ruleset_attr, and its kernel."""

    version: int
    rights: int
    scopes: int
    attribute_size: int
    kernel: str
    adds: str


_FIRST: Final = (1 << 13) - 1
_SCOPES: Final = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL

ABIS: Final = (
    Abi(1, _FIRST, 0, 8, "5.13", "the thirteen first rights on files"),
    Abi(2, _FIRST | REFER, 0, 8, "5.19", "renames and links between folders"),
    Abi(3, _FIRST | REFER | TRUNCATE, 0, 8, "6.2", "truncation"),
    Abi(4, _FIRST | REFER | TRUNCATE, 0, 16, "6.7", "TCP ports, which jail does not use"),
    Abi(5, _FIRST | REFER | TRUNCATE | IOCTL_DEV, 0, 16, "6.10", "ioctl on devices"),
    Abi(
        6,
        _FIRST | REFER | TRUNCATE | IOCTL_DEV,
        _SCOPES,
        24,
        "6.12",
        "scopes of signals and abstract sockets",
    ),
    Abi(
        7,
        _FIRST | REFER | TRUNCATE | IOCTL_DEV,
        _SCOPES,
        24,
        "6.15",
        "control of audit messages, which jail leaves alone",
    ),
)
NEWEST: Final = ABIS[-1]
LOWEST: Final = 2
"""The lowest version that is worth having; see above."""

READ: Final = EXECUTE | READ_FILE | READ_DIR
WRITE: Final = NEWEST.rights & ~(MAKE_CHAR | MAKE_BLOCK)
DEVICE: Final = READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV
PROC: Final = READ | WRITE_FILE | TRUNCATE
_OF_A_FILE: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""ACCESS_FILE of security/landlock/fs.c: a rule on anything but a folder may carry these only, else EINVAL.
"""

_VERSION: Final = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH: Final = 1  # LANDLOCK_RULE_PATH_BENEATH


def abi() -> int:
    """The version of Landlock that this kernel gives, 0 where it is absent, off since boot or filtered.

    It may be newer than this table. Raises KernelError for anything but ENOSYS and EOPNOTSUPP.
    """
    try:
        return syscall(
            "landlock_create_ruleset(version)", number("landlock_create_ruleset"), None, 0, _VERSION
        )
    except KernelError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def known(version: int) -> Abi | None:
    """What jail uses of `version`: the newest entry of the table not above it, None where that is below
    LOWEST.
    """
    usable = [entry for entry in ABIS if LOWEST <= entry.version <= version]
    return usable[-1] if usable else None


def lost(version: int) -> list[str]:
    """What a kernel with `version` lacks of the newest one in the table, in words, for the plan and the
    doctor.
    """
    used = known(version)
    missing = [entry for entry in ABIS if used is None or used.version < entry.version]
    return [f"{entry.adds} (Linux {entry.kernel})" for entry in missing if _is_used(entry)]


def _is_used(entry: Abi) -> bool:
    """Whether jail makes anything of what this version added."""
    before = [older for older in ABIS if older.version < entry.version]
    return not before or (before[-1].rights, before[-1].scopes) != (entry.rights, entry.scopes)


class Grant(NamedTuple):
    """`rights` beneath what `fd` (O_PATH will do) stands for; `what` names it in errors."""

    fd: int
    rights: int
    what: str


def grants(
    root: int, write: Sequence[int], *, devices: Sequence[int] = (), proc: int = -1, read: Sequence[int] = ()
) -> list[Grant]:
    """The rules of a jail, as descriptors and rights.

    root: the jail's "/": read and execute beneath it. write: folders and files where everything may be done,
    device nodes excepted. devices: /dev, single device files, or the terminal, whose node may lie outside:
    read, write and ioctl. proc: the jail's /proc. read: further things outside "/", such as the executable
    that an inherited descriptor leads to.
    """
    return [
        Grant(root, READ, "the root"),
        *(Grant(fd, READ, "a read path") for fd in read),
        *(Grant(fd, WRITE, "a write path") for fd in write),
        *(Grant(fd, DEVICE, "a device") for fd in devices),
        *([Grant(proc, PROC, "/proc")] if proc >= 0 else []),
    ]


def restrict(given: Sequence[Grant], used: Abi) -> None:
    """Allow this thread, and all that it starts, what `given` says, and deny the rest of what `used` knows;
    for good.

    Descriptors open already keep what they can do. Needs no_new_privs and a single thread; the descriptors of
    `given` stay open. Raises KernelError: EPERM without no_new_privs, E2BIG above 16 rulesets, EBADFD for a
    descriptor without a path.
    """
    attribute = struct.pack("=QQQ", used.rights, 0, used.scopes)[: used.attribute_size]
    ruleset = syscall(
        "landlock_create_ruleset", number("landlock_create_ruleset"), attribute, len(attribute), 0
    )
    try:
        for grant in given:
            _add(ruleset, grant, used)
        syscall("landlock_restrict_self", number("landlock_restrict_self"), ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, grant: Grant, used: Abi) -> None:
    rights = grant.rights & used.rights
    if not stat.S_ISDIR(os.fstat(grant.fd).st_mode):
        rights &= _OF_A_FILE
    if not rights:
        return  # the kernel answers ENOMSG to an empty rule
    rule = struct.pack("=Qi", rights, grant.fd)
    call = f"landlock_add_rule({grant.what}, fd {grant.fd}, rights {rights:#x})"
    syscall(call, number("landlock_add_rule"), ruleset, _PATH_BENEATH, rule, 0)
