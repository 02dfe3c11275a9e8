"""What no program inside may ask of the kernel: the deny filter as data, one row a reason.

Rule: the default is allow, so every row says why it denies, and with which errno: ENOSYS where user space
falls back, EPERM where the caller should read "denied", the socket errnos where programs probe for them. No
row kills: an agent reads SIGSYS as a crash of its own program.

A condition looks at register values only, never at what they point to (another thread could change it after
the check). Hence clone3 and openat2, whose flags lie behind a pointer, do not exist inside.
"""

import errno
import stat

from jail.kernel.syscalls import Arch, numbered
from jail.light import Final, NamedTuple, Sequence

WORD: Final = 0xFFFFFFFFFFFFFFFF
INT: Final = 0xFFFFFFFF
"""The kernel reads these arguments as 32 bits; comparing 64 would let `TIOCSTI | 1 << 32` through."""

EQUAL: Final = "="
DIFFERS: Final = "!="
FROM: Final = ">="


class When(NamedTuple):
    """A condition on one argument: `(argument & mask) is value`. A mask other than WORD is for EQUAL only
    (libseccomp).
    """

    argument: int
    test: str
    value: int
    mask: int = WORD

    def holds(self, arguments: Sequence[int]) -> bool:
        """Whether it is true of these six unsigned 64-bit arguments."""
        given = arguments[self.argument] & self.mask
        if self.test == EQUAL:
            return given == self.value
        return given != self.value if self.test == DIFFERS else given >= self.value


class Denial(NamedTuple):
    """`calls` fail with `errno` where every condition of `when` holds (always, if there is none), because of
    `reason`.
    """

    calls: tuple[str, ...]
    errno: int
    reason: str
    when: tuple[When, ...] = ()


def bits(argument: int, value: int) -> When:
    """All bits of `value` are set in `argument`, whatever else is."""
    return When(argument, EQUAL, value, value)


def _always(calls: str, number: int, reason: str) -> Denial:
    return Denial(tuple(calls.split()), number, reason)


_DENIED: Final = (
    _always(
        "mount umount2 pivot_root chroot setns unshare",
        errno.EPERM,
        "changes what the jail is made of; a user namespace gives back capabilities, "
        "and with them the kernel's least tested code",
    ),
    _always("add_key request_key keyctl", errno.EPERM, "keyrings are not in any namespace"),
    _always(
        "bpf perf_event_open kexec_load kexec_file_load init_module finit_module delete_module",
        errno.EPERM,
        "code in the kernel, or a view of the whole host",
    ),
    _always(
        "swapon swapoff reboot acct quotactl quotactl_fd sethostname setdomainname",
        errno.EPERM,
        "administration of the host",
    ),
    _always("settimeofday clock_settime", errno.EPERM, "the host's clock; adjtimex stays for reading it"),
    _always("iopl ioperm modify_ldt", errno.EPERM, "ports and segments: kernel bugs for no program of today"),
    _always("vhangup syslog lookup_dcookie", errno.EPERM, "the host's terminals, log and profiler"),
    _always(
        "move_pages migrate_pages mbind get_mempolicy set_mempolicy set_mempolicy_home_node",
        errno.EPERM,
        "placement of memory across the host; numpy and OpenMP probe it and do without",
    ),
    _always("open_by_handle_at", errno.EPERM, "opens by inode, past every mount"),
    _always("fanotify_init fanotify_mark", errno.EPERM, "watches and answers for whole file systems"),
    _always(
        "kcmp pidfd_getfd process_vm_writev process_madvise",
        errno.EPERM,
        "reaches into another process; gdb uses ptrace",
    ),
    _always("lsm_set_self_attr", errno.EPERM, "changes the security label that holds this process"),
)

_ABSENT: Final = (
    _always("clone3", errno.ENOSYS, "namespace flags behind a pointer; libc falls back to clone"),
    _always(
        "openat2",
        errno.ENOSYS,
        "the mode of a new file behind a pointer (see _SETUID); its users fall back to openat",
    ),
    _always(
        "io_uring_setup io_uring_enter io_uring_register",
        errno.ENOSYS,
        "its operations never pass a filter",
    ),
    _always(
        "userfaultfd", errno.ENOSYS, "holds the kernel still in the middle of a copy: makes races certain"
    ),
    _always(
        "open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr",
        errno.ENOSYS,
        "mount in its new form; mount(8) falls back to the old one and is denied there",
    ),
    _always(
        "memfd_secret",
        errno.ENOSYS,
        "memory in no account: not in the host's shared memory, not in what its process has; off by default "
        "until Linux 6.5, so its users do without",
    ),
    _always("listns", errno.ENOSYS, "walks the host's namespaces; too new for any program to need it"),
    _always(
        "uselib ustat sysfs _sysctl nfsservctl create_module get_kernel_syms query_module",
        errno.ENOSYS,
        "obsolete; where it still exists it is old code that nobody calls",
    ),
)

_CLONE_NEW: Final = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET of <linux/sched.h>.

CLONE_NEWTIME (0x80) lies in the exit signal's byte here and is taken by unshare and clone3 only.
"""

_CLONE: Final = tuple(
    Denial(("clone",), errno.EPERM, "a new namespace, as unshare", (bits(0, flag),)) for flag in _CLONE_NEW
)

_IOCTLS: Final = tuple(
    Denial(("ioctl",), errno.EPERM, reason, (When(1, EQUAL, request, INT),))
    for request, reason in (
        (0x5412, "TIOCSTI types into a terminal (CVE-2017-5226)"),
        (0x541C, "TIOCLINUX pastes on a virtual console (CVE-2023-28100)"),
        (0x5423, "TIOCSETD loads line disciplines"),
    )
)

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_FAMILIES: Final = (0, _AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
_FAMILY_END: Final = 46  # AF_MAX of <linux/socket.h>; from here on no family exists

_SOCKETS: Final = (
    *(
        Denial(
            ("socket",),
            errno.EAFNOSUPPORT,
            f"address family {family}: kernel surface",
            (When(0, EQUAL, family),),
        )
        for family in range(_FAMILY_END)
        if family not in _FAMILIES
    ),
    Denial(
        ("socket",),
        errno.EAFNOSUPPORT,
        "families that do not exist, and every high bit",
        (When(0, FROM, _FAMILY_END),),
    ),
    Denial(
        ("socket",),
        errno.EPROTONOSUPPORT,
        "netlink other than NETLINK_ROUTE: nf_tables, xfrm, audit",
        (When(0, EQUAL, _AF_NETLINK), When(2, DIFFERS, 0)),
    ),
    *(
        Denial(
            ("socket",),
            errno.EPROTONOSUPPORT,
            f"{what}: loads a transport that no wall of ours reads",
            (When(0, EQUAL, family), condition),
        )
        for family in (_AF_INET, _AF_INET6)
        for what, condition in (
            ("SOCK_SEQPACKET (SCTP)", When(1, EQUAL, 5, 0xF)),
            ("SOCK_DCCP", When(1, EQUAL, 6, 0xF)),
            ("SOCK_PACKET (AF_PACKET under another name)", When(1, EQUAL, 10, 0xF)),
            ("IPPROTO_DCCP", When(2, EQUAL, 33)),
            ("IPPROTO_L2TP", When(2, EQUAL, 115)),
            ("IPPROTO_SCTP", When(2, EQUAL, 132)),
            ("IPPROTO_UDPLITE", When(2, EQUAL, 136)),
            ("IPPROTO_SMC, IPPROTO_MPTCP, and every high bit", When(2, FROM, 256)),
        )
    ),
    Denial(
        ("socketpair",), errno.EAFNOSUPPORT, "only unix sockets come in pairs", (When(0, DIFFERS, _AF_UNIX),)
    ),
    Denial(
        ("setsockopt",),
        errno.ENOPROTOOPT,
        "TCP_ULP puts kernel TLS and its bugs under a socket",
        (When(1, EQUAL, 6, INT), When(2, EQUAL, 31, INT)),
    ),
)

_O_CREAT: Final = 0o100
_O_TMPFILE: Final = 0o20000000  # __O_TMPFILE of <asm-generic/fcntl.h>; the same bit on both architectures
_LASTING: Final = (stat.S_ISUID, stat.S_ISGID)
_WHY_LASTING: Final = "the bit would stay on the host's file, for every user of the host"

_SETUID: Final = (
    *(
        Denial(calls, errno.EPERM, _WHY_LASTING, (bits(argument, bit),))
        for bit in _LASTING
        for calls, argument in (
            (("chmod", "fchmod", "creat", "mknod"), 1),  # mkdir(2) drops these bits itself
            (("fchmodat", "fchmodat2", "mknodat"), 2),
        )
    ),
    *(
        # without one of these flags the kernel does not read the mode, and callers leave anything there
        Denial((call,), errno.EPERM, _WHY_LASTING, (bits(argument, flag), bits(argument + 1, bit)))
        for bit in _LASTING
        for flag in (_O_CREAT, _O_TMPFILE)
        for call, argument in (("open", 1), ("openat", 2))
    ),
)

_PROCESS_1: Final = When(0, EQUAL, 1, INT)
_SCHEDULING: Final = ("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity")
_PRIO_PROCESS, _PRIO_USER = 0, 2
_IOPRIO_WHO_PROCESS, _IOPRIO_WHO_USER = 1, 3
"""<linux/resource.h>, <linux/ioprio.h>. Of a user's processes, process 1 is one; its group has no number
inside, where its leader is not.
"""

_ODD: Final = (
    Denial(
        ("prlimit64",),
        errno.EPERM,
        "process 1 has the command's uid: its limits could be set, and its report must not depend on it",
        (_PROCESS_1,),
    ),
    *(
        Denial(
            calls,
            errno.EPERM,
            "process 1 has the command's uid, and what joins is forked by it: it must run as it was started",
            when,
        )
        for calls, when in (
            (_SCHEDULING, (_PROCESS_1,)),
            (("setpriority",), (When(0, EQUAL, _PRIO_PROCESS, INT), When(1, EQUAL, 1, INT))),
            (("setpriority",), (When(0, EQUAL, _PRIO_USER, INT),)),
            (("ioprio_set",), (When(0, EQUAL, _IOPRIO_WHO_PROCESS, INT), When(1, EQUAL, 1, INT))),
            (("ioprio_set",), (When(0, EQUAL, _IOPRIO_WHO_USER, INT),)),
        )
    ),
    Denial(
        ("renameat2",),
        errno.EINVAL,
        "RENAME_WHITEOUT leaves a character device 0:0 on the host, which an overlay takes for a deletion",
        (bits(4, 1 << 2),),
    ),
)

_PERSONALITIES: Final = (0x8, 0x20000, 0x40000)
"""PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE (gdb), alone or together; all ones only asks for the current value.
"""


def _odd_personalities() -> tuple[Denial, ...]:
    """Every value but sums of _PERSONALITIES and 0xffffffff, as rules of one masked comparison each.

    libseccomp takes one comparison an argument, so "any other bit, but not all ones" is said as a ring: if
    some other bit is set and some other bit is clear, then somewhere a set one is followed by a clear one; if
    all others are set, then one of the known ones is clear.
    """
    others = [1 << shift for shift in range(32) if 1 << shift not in _PERSONALITIES]
    pairs = [
        *zip(others, [*others[1:], others[0]], strict=True),
        *((others[0], known) for known in _PERSONALITIES),
    ]
    return tuple(
        Denial(
            ("personality",),
            errno.EPERM,
            "execution modes that weaken the kernel's defences",
            (When(0, EQUAL, on, on | off),),
        )
        for on, off in pairs
    )


DENIALS: Final[tuple[Denial, ...]] = (
    *_DENIED,
    *_ABSENT,
    *_CLONE,
    *_IOCTLS,
    *_SOCKETS,
    *_SETUID,
    *_ODD,
    *_odd_personalities(),
)


class Rule(NamedTuple):
    """One denial of one call on one architecture: what the compiler is fed and what the check asks about."""

    call: str
    number: int
    errno: int
    when: tuple[When, ...]


def rules(arch: Arch) -> list[Rule]:
    """DENIALS call by call for `arch`. A call that `arch` never had gives no rule; an unknown name is a
    defect (bug).
    """
    found = []
    for row in DENIALS:
        for call in row.calls:
            number = numbered(call, arch)
            if number is not None:
                found.append(Rule(call, number, row.errno, row.when))
    return found


def expected(asked: Sequence[Rule], number: int, arguments: Sequence[int]) -> int:
    """The errno that `asked` give for this call, 0 for "allowed"; the meaning of the rules, against which
    filters are checked.
    """
    for rule in asked:
        if rule.number == number and all(condition.holds(arguments) for condition in rule.when):
            return rule.errno
    return 0
