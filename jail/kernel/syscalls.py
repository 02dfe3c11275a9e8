"""The numbers of system calls, and how far this release knows them: one table, from which all else is
derived.

Rule: a call is named by its number from here, never by what an installed library happens to know. libseccomp
2.5.4 knows nothing newer than Linux 5.17 or so; a name that it lacks would be a rule that silently is not
there.

MAX_KNOWN is a statement of review, not of existence: every number up to it was read and either denied in
`jail.kernel.denials` or found harmless. It moves only in a commit that says what the new calls do. Above it
the guard answers ENOSYS, and so it does for the holes in the table, which a later kernel may fill.

Sources: arch/x86/entry/syscalls/syscall_64.tbl, scripts/syscall.tbl and include/uapi/asm-generic/unistd.h of
Linux 7.0.
"""

import os
import struct

from jail.errors import EXIT_CANNOT_ISOLATE, JailError, bug
from jail.light import Final, NamedTuple


class Arch(NamedTuple):
    """An architecture that the filters are written for.

    `audit` is AUDIT_ARCH_* of <linux/audit.h>, as seccomp_data.arch carries it; `holes` are ranges of
    numbers, first and last, that no kernel up to REVIEWED uses.
    """

    name: str
    audit: int
    max_known: int
    holes: tuple[tuple[int, int], ...]


REVIEWED: Final = "7.0"
"""The kernel whose tables were reviewed.

What came after Linux 6.1, the reviewed decision in brackets: cachestat 451, fchmodat2 452 (denied by mode),
map_shadow_stack 453, futex_wake/wait/requeue 454-456, statmount 457, listmount 458, lsm_get_self_attr 459,
lsm_set_self_attr 460 (denied), lsm_list_modules 461, mseal 462, {set,get,list,remove}xattrat 463-466,
open_tree_attr 467 (denied), file_getattr 468, file_setattr 469, listns 470 (denied), rseq_slice_yield 471;
x86-64 alone: uretprobe 335, uprobe 336 (refusing these two kills processes that the host traces). """

ARCHES: Final = {
    "x86_64": Arch("x86_64", 0xC000003E, 471, ((337, 423),)),
    "aarch64": Arch("aarch64", 0xC00000B7, 471, ((244, 259), (295, 423))),
}

X32_BIT: Final = 0x40000000
"""__X32_SYSCALL_BIT of <asm/unistd.h>: the x32 ABI has the audit number of x86-64 and other call numbers."""

_COLUMNS: Final = ("x86_64", "aarch64")

NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {
    # name: (x86-64, aarch64); None: the architecture has no such call
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "capget": (125, 90),
    "capset": (126, 91),
    "chmod": (90, None),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close_range": (436, 436),
    "creat": (85, None),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "fstatfs": (138, 44),
    "get_kernel_syms": (177, None),
    "get_mempolicy": (239, 236),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "listmount": (458, 458),
    "listns": (470, 470),
    "lookup_dcookie": (212, 18),
    "lsm_set_self_attr": (460, 460),
    "mbind": (237, 235),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_writev": (311, 271),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "renameat2": (316, 276),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "setsockopt": (54, 208),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "statmount": (457, 457),
    "statx": (332, 291),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syncfs": (306, 267),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}


def native() -> Arch:
    """The architecture that this interpreter's own system calls have.

    Raises JailError (78) where the filters were never written for it: a filter for other numbers would be no
    wall at all. A 32-bit interpreter on a 64-bit kernel is such a case too.
    """
    machine = os.uname().machine
    arch = ARCHES.get(machine)
    if arch is None or struct.calcsize("P") != 8:
        raise JailError(
            f"the system-call filter is written for 64-bit {' and '.join(ARCHES)}; "
            f"this is a {struct.calcsize('P') * 8}-bit Python on {machine}",
            where="uname(2)",
            hint="run jail with a 64-bit Python on one of these machines",
            code=EXIT_CANNOT_ISOLATE,
        )
    return arch


def number(name: str, arch: Arch | None = None) -> int:
    """The number of system call `name` on `arch` (native if None).

    A name that is not in the table, or that `arch` does not have, is a defect of ours: `numbered` tells
    beforehand.
    """
    if arch is None and name in _NATIVE:
        return _NATIVE[name]
    found = numbered(name, arch or native())
    if found is None:
        raise bug(f"system call {name} does not exist on {(arch or native()).name}")
    if arch is None:
        _NATIVE[name] = found
    return found


_NATIVE: Final[dict[str, int]] = {}
"""What `number` has found before: a launch makes six hundred calls of twenty names."""


def numbered(name: str, arch: Arch) -> int | None:
    """The number of `name` on `arch`, or None where that architecture never had the call; an unknown name is
    a defect.
    """
    if name not in NUMBERS:
        raise bug(f"system call {name} is not in the table of numbers")
    return NUMBERS[name][_COLUMNS.index(arch.name)]
