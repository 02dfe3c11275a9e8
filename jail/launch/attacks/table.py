"""The one table of the attacks: what each tries, which wall must answer, and with what.

Rule: `held` is what the wall of that row answers, so that a refusal by another wall is not taken for it.
Order matters twice: rows of one wall stand together, and what signals everybody or leaves a process behind
comes last.
"""

from typing import Final

from . import asking, gaining, reaching, seeing, writing
from .words import ABSENT, WORKED, Attack

CONTROLS: Final = "controls: what must work"
"""Were one of these refused, the refusals of the attacks would prove nothing."""
VIEW: Final = "root folder: only what is named exists"
READ_ONLY: Final = "read-only mounts"
PROTECTED: Final = "protected names in the workspace"
SWEPT: Final = "sweep"
PROC: Final = "private /proc"
CLOSED: Final = "closed process 1"
DEVICES: Final = "private /dev"
ENVIRONMENT: Final = "environment's allow-list"
STREAMS: Final = "relayed streams, closed descriptors"
FILTER: Final = "system-call filter"
GUARD: Final = "guard before the filter"
LANDLOCK: Final = "Landlock"
PRIVILEGES: Final = "no capabilities, no new privileges"
LIMITS: Final = "limits"
NETWORK: Final = "network namespace"
IPC: Final = "ipc namespace"
PIDS: Final = "process namespace"
CGROUPS: Final = "cgroup namespace"


def _met(names: str) -> frozenset[str]:
    return frozenset(names.split())


_GONE: Final = _met(f"ENOENT ENOTDIR {ABSENT}")
_DENIED: Final = _met("EPERM")
_NO_SUCH_CALL: Final = _met("ENOSYS")
_FIXED: Final = _met("EROFS EBUSY EXDEV")
_WORKS: Final = _met(WORKED)

ATTACKS: Final = (
    Attack(
        CONTROLS,
        "own files",
        "write in the workspace and in private folders",
        "J13",
        writing.neighbours,
        _WORKS,
    ),
    Attack(
        CONTROLS,
        "own things",
        "programs, signals, sockets, shared memory",
        "J13",
        reaching.own_things,
        _WORKS,
    ),
    Attack(
        VIEW,
        "secret at home",
        "read a file of the home folder by nine names",
        "A19",
        seeing.secret_in_home,
        _GONE,
    ),
    Attack(
        VIEW,
        "secret beside",
        "read a file beside the workspace by nine names",
        "A19",
        seeing.secret_beside,
        _GONE,
    ),
    Attack(VIEW, "home folder", "list what is in the real one", "A19", seeing.home_names, _GONE),
    Attack(
        VIEW,
        "jail's own files",
        "read and plant in code, configuration, cache",
        "A31",
        seeing.own_files,
        _GONE,
    ),
    Attack(
        VIEW, "ledger and sessions", "read and forge them, reach their sockets", "J1", seeing.sessions, _GONE
    ),
    Attack(
        VIEW, "unix sockets", "reach servers of the person by path", "F14", reaching.pathname_sockets, _GONE
    ),
    Attack(
        VIEW, "services", "docker, D-Bus, ssh-agent, gpg-agent, tmux, X11", "F1-F8", reaching.services, _GONE
    ),
    Attack(
        READ_ONLY, "system folders", "change what is given read-only", "A1", writing.system, _met("EROFS")
    ),
    Attack(
        READ_ONLY, "root folder", "add to it, change what jail made in it", "A28", writing.root, _met("EROFS")
    ),
    Attack(
        READ_ONLY, "kernel settings", "own /proc/sys and its like", "A25", writing.settings, _met("EROFS")
    ),
    Attack(PROTECTED, "git hooks", "make, change, move them", "I2", writing.git_hooks, _FIXED, "git"),
    Attack(
        PROTECTED, "git config", "change it, move .git away", "A15, I1", writing.git_config, _FIXED, "git"
    ),
    Attack(
        PROTECTED,
        "memory and settings",
        "change RESEARCH.md and its like",
        "I5",
        writing.memory_files,
        _FIXED,
        "git",
    ),
    Attack(
        SWEPT,
        "absent names",
        "make protected names that are not there",
        "A17",
        writing.absent_names,
        _WORKS,
        "swept",
    ),
    Attack(
        PROC,
        "commands to the kernel",
        "sysrq-trigger, core_pattern, kcore, uevent_helper",
        "A24, A25",
        writing.commands_to_the_kernel,
        _met("EROFS ENOENT EACCES"),
    ),
    Attack(PROC, "masked files", "read kcore, keys, kallsyms, timer_list", "A25, F15", seeing.masks, _GONE),
    Attack(
        CLOSED,
        "/proc/1",
        "its memory, environment, descriptors, root",
        "B5, B10",
        seeing.process_1,
        _met("EACCES"),
    ),
    Attack(
        CLOSED,
        "into process 1",
        "trace, read, limit, end it",
        "B5, E7",
        reaching.into_process_1,
        _met(f"EPERM EACCES {ABSENT}"),
    ),
    Attack(
        DEVICES, "devices", "mem, kmsg, kvm, fuse, disks, terminals of others", "A23", seeing.devices, _GONE
    ),
    Attack(ENVIRONMENT, "canary variable", "find it here or in any process", "J7", seeing.environment, _GONE),
    Attack(STREAMS, "descriptors", "use what was open outside", "B1", seeing.descriptors, _GONE),
    Attack(
        STREAMS,
        "files as streams",
        "reopen, cut the files of jail's streams",
        "B2",
        seeing.standard_streams,
        _GONE,
        "streams",
    ),
    Attack(
        STREAMS,
        "caller's terminal",
        "open it",
        "C5",
        reaching.caller_terminal,
        _met(f"ENXIO ENOENT {ABSENT}"),
    ),
    Attack(
        FILTER, "mounts", "mount, remount, umount, pivot_root, chroot", "A4, A26", asking.mounting, _DENIED
    ),
    Attack(
        FILTER,
        "new mount calls",
        "open_tree, move_mount, fsopen, …",
        "D9",
        asking.mounting_anew,
        _NO_SUCH_CALL,
    ),
    Attack(FILTER, "namespaces", "unshare, clone and setns, kind by kind", "D7", asking.namespaces, _DENIED),
    Attack(FILTER, "clone3, openat2", "flags behind a pointer", "D6, D11", asking.clone3, _NO_SUCH_CALL),
    Attack(FILTER, "keyrings", "keys of the user's session", "D19", asking.keyrings, _DENIED),
    Attack(
        FILTER, "into the kernel", "bpf, perf, modules, kexec, ports", "D20", asking.into_the_kernel, _DENIED
    ),
    Attack(
        FILTER,
        "administration",
        "reboot, swap, clock, host name, quota",
        "D33",
        asking.administration,
        _DENIED,
    ),
    Attack(
        FILTER,
        "io_uring, userfaultfd",
        "work past the filter",
        "D5, D21",
        asking.past_the_filter,
        _NO_SUCH_CALL,
    ),
    Attack(FILTER, "file handles", "open by inode, past every mount", "D11", asking.handles, _DENIED),
    Attack(
        FILTER,
        "other processes",
        "kcmp, pidfd_getfd, process_vm_writev",
        "D15",
        asking.other_processes,
        _DENIED,
    ),
    Attack(FILTER, "personality", "READ_IMPLIES_EXEC and other modes", "D32", asking.personalities, _DENIED),
    Attack(FILTER, "terminal", "TIOCSTI, TIOCLINUX, TIOCSETD", "CVE-2017-5226", asking.terminal, _DENIED),
    Attack(
        FILTER,
        "address families",
        "AF_ALG, AF_VSOCK, AF_PACKET, all others",
        "D23-D26",
        asking.families,
        _met("EAFNOSUPPORT"),
    ),
    Attack(
        FILTER,
        "socket protocols",
        "netlink other than routes, SCTP, DCCP",
        "D27",
        asking.protocols,
        _met("EPROTONOSUPPORT"),
    ),
    Attack(FILTER, "own filter", "a filter of its own that allows all", "D15", asking.own_listener, _DENIED),
    Attack(
        FILTER,
        "lasting bits",
        "setuid and setgid on files of the host",
        "A22",
        writing.lasting_bits,
        _DENIED,
        "bits",
    ),
    Attack(
        GUARD,
        "unknown calls",
        "numbers above the last reviewed one",
        "D12",
        asking.unknown_calls,
        _NO_SUCH_CALL,
    ),
    Attack(GUARD, "x32 calls", "the x32 numbers of the same calls", "D2", asking.x32, _NO_SUCH_CALL),
    Attack(GUARD, "i386 calls", "int 0x80", "D1", asking.i386, _met("SIGSYS")),
    Attack(
        LANDLOCK, "device nodes", "mknod, a whiteout too", "A21, A23", writing.device_nodes, _met("EACCES")
    ),
    Attack(
        PRIVILEGES, "capabilities", "find one in any of the five sets", "D30", gaining.capabilities, _GONE
    ),
    Attack(
        PRIVILEGES,
        "other ids",
        "become root, give files away",
        "D29",
        gaining.other_ids,
        _met("EPERM EINVAL"),
    ),
    Attack(
        PRIVILEGES,
        "setuid programs",
        "gain by sudo, su, a copy of one",
        "D29",
        gaining.setuid_programs,
        _GONE,
    ),
    Attack(
        LIMITS, "limits", "exceed and raise them", "H1-H4", gaining.limits, _met(f"EPERM EACCES {ABSENT}")
    ),
    Attack(
        NETWORK,
        "host's loopback",
        "reach a server on 127.0.0.1 and ::1",
        "F13",
        reaching.host_tcp,
        _met("ECONNREFUSED EADDRNOTAVAIL"),
    ),
    Attack(
        NETWORK,
        "abstract sockets",
        "reach one of the host",
        "F3",
        reaching.abstract_sockets,
        _met("ECONNREFUSED"),
    ),
    Attack(
        NETWORK,
        "the world",
        "TCP, UDP, DNS, ICMP, both families",
        "G1-G5",
        reaching.outwards,
        _met("ENETUNREACH EACCES EPERM EADDRNOTAVAIL EAFNOSUPPORT"),
    ),
    Attack(NETWORK, "interfaces", "find one beside loopback", "G1", reaching.interfaces, _GONE),
    Attack(
        IPC,
        "shared memory",
        "SysV, message queues, /dev/shm of the host",
        "F11",
        reaching.shared_memory,
        _GONE,
    ),
    Attack(
        CGROUPS,
        "control groups",
        "write them, read the host's names",
        "A24",
        gaining.control_groups,
        _met(f"EROFS ENOENT {ABSENT}"),
    ),
    Attack(PIDS, "processes", "see those of the host", "E7", seeing.processes, _GONE),
    Attack(PIDS, "signals", "signal one of the host", "E7", reaching.signals, _met("ESRCH"), "process"),
    Attack(PIDS, "survivor", "outlive the run", "35, E1", reaching.survivor, _WORKS, "survivors"),
    Attack(
        PIDS, "signal to all", "kill(-1)", "E7", reaching.signal_to_all, _met(f"{WORKED} ESRCH"), "process"
    ),
)
