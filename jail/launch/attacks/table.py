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
HELD: Final = "held copy"
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
_COPIED: Final = _met(f"{WORKED} EROFS")
"""Read-only where a policy says so."""

ATTACKS: Final = (
    Attack(
        CONTROLS,
        "own files",
        "write in the workspace and in private folders",
        writing.neighbours,
        _WORKS,
    ),
    Attack(
        CONTROLS,
        "own things",
        "programs, signals, sockets, shared memory",
        reaching.own_things,
        _WORKS,
    ),
    Attack(
        VIEW,
        "secret at home",
        "read a file of the home folder by nine names, list the folder",
        seeing.secret_in_home,
        _GONE,
    ),
    Attack(
        VIEW,
        "secret beside",
        "read a file beside the workspace by nine names, list the folder",
        seeing.secret_beside,
        _GONE,
    ),
    Attack(VIEW, "home folder", "list what is in the real one", seeing.home_names, _GONE),
    Attack(
        VIEW,
        "jail's own files",
        "read and plant in code, configuration, cache",
        seeing.own_files,
        _GONE,
    ),
    Attack(VIEW, "ledger and sessions", "read and forge them, reach their sockets", seeing.sessions, _GONE),
    Attack(VIEW, "unix sockets", "reach servers of the person by path", reaching.pathname_sockets, _GONE),
    Attack(VIEW, "services", "docker, D-Bus, ssh-agent, gpg-agent, tmux, X11", reaching.services, _GONE),
    Attack(READ_ONLY, "system folders", "change what is given read-only", writing.system, _met("EROFS")),
    Attack(READ_ONLY, "root folder", "add to it, change what jail made in it", writing.root, _met("EROFS")),
    Attack(READ_ONLY, "kernel settings", "own /proc/sys and its like", writing.settings, _met("EROFS")),
    Attack(PROTECTED, "git hooks", "make, change, move them", writing.git_hooks, _FIXED, "git"),
    Attack(PROTECTED, "git config", "replace it, move .git away", writing.git_config, _FIXED, "git"),
    Attack(HELD, "git settings", "write into git config", writing.git_settings, _COPIED, "git"),
    Attack(
        PROTECTED,
        "memory and settings",
        "change RESEARCH.md and its like",
        writing.memory_files,
        _FIXED,
        "git",
    ),
    Attack(
        SWEPT,
        "absent names",
        "make protected names that are not there",
        writing.absent_names,
        _WORKS,
        "swept",
    ),
    Attack(
        PROC,
        "commands to the kernel",
        "sysrq-trigger, core_pattern, kcore, uevent_helper",
        writing.commands_to_the_kernel,
        _met("EROFS ENOENT EACCES"),
    ),
    Attack(PROC, "masked files", "read kcore, keys, kallsyms, timer_list", seeing.masks, _GONE),
    Attack(
        CLOSED,
        "/proc/1",
        "its memory, environment, descriptors, root",
        seeing.process_1,
        _met("EACCES"),
        known="CVE-2019-5736",
    ),
    Attack(
        CLOSED,
        "into process 1",
        "trace, read, limit, end it",
        reaching.into_process_1,
        _met(f"EPERM EACCES {ABSENT}"),
    ),
    Attack(DEVICES, "devices", "mem, kmsg, kvm, fuse, disks, terminals of others", seeing.devices, _GONE),
    Attack(ENVIRONMENT, "canary variable", "find it here or in any process", seeing.environment, _GONE),
    Attack(
        STREAMS, "descriptors", "use what was open outside", seeing.descriptors, _GONE, known="CVE-2024-21626"
    ),
    Attack(
        STREAMS,
        "files as streams",
        "reopen, cut the files of jail's streams",
        seeing.standard_streams,
        _GONE,
        "streams",
    ),
    Attack(
        STREAMS,
        "caller's terminal",
        "open it",
        reaching.caller_terminal,
        _met(f"ENXIO ENOENT {ABSENT}"),
    ),
    Attack(FILTER, "mounts", "mount, remount, umount, pivot_root, chroot", asking.mounting, _DENIED),
    Attack(
        FILTER,
        "new mount calls",
        "open_tree, move_mount, fsopen, …",
        asking.mounting_anew,
        _NO_SUCH_CALL,
        known="CVE-2021-41133",
    ),
    Attack(
        FILTER,
        "namespaces",
        "unshare, clone and setns, kind by kind",
        asking.namespaces,
        _DENIED,
        known="CVE-2022-0185",
    ),
    Attack(FILTER, "clone3, openat2", "flags behind a pointer", asking.clone3, _NO_SUCH_CALL),
    Attack(FILTER, "keyrings", "keys of the user's session", asking.keyrings, _DENIED, known="CVE-2016-0728"),
    Attack(
        FILTER,
        "into the kernel",
        "bpf, perf, modules, kexec, ports",
        asking.into_the_kernel,
        _DENIED,
        known="CVE-2017-16995",
    ),
    Attack(
        FILTER,
        "administration",
        "reboot, swap, clock, host name, quota",
        asking.administration,
        _DENIED,
    ),
    Attack(
        FILTER,
        "io_uring, userfaultfd",
        "work past the filter",
        asking.past_the_filter,
        _NO_SUCH_CALL,
        known="CVE-2021-41073",
    ),
    Attack(
        FILTER, "file handles", "open by inode, past every mount", asking.handles, _DENIED, known="shocker"
    ),
    Attack(
        FILTER,
        "other processes",
        "kcmp, pidfd_getfd, process_vm_writev",
        asking.other_processes,
        _DENIED,
    ),
    Attack(FILTER, "personality", "READ_IMPLIES_EXEC and other modes", asking.personalities, _DENIED),
    Attack(
        FILTER,
        "terminal",
        "TIOCSTI, TIOCLINUX, TIOCSETD",
        asking.terminal,
        _DENIED,
        known="CVE-2017-5226, CVE-2023-28100",
    ),
    Attack(
        FILTER,
        "address families",
        "AF_ALG, AF_VSOCK, AF_PACKET, all others",
        asking.families,
        _met("EAFNOSUPPORT"),
        known="CVE-2017-7308",
    ),
    Attack(
        FILTER,
        "socket protocols",
        "netlink other than routes, SCTP, DCCP",
        asking.protocols,
        _met("EPROTONOSUPPORT"),
    ),
    Attack(FILTER, "own filter", "a filter of its own that allows all", asking.own_listener, _DENIED),
    Attack(
        FILTER,
        "lasting bits",
        "setuid and setgid on files of the host",
        writing.lasting_bits,
        _DENIED,
        "bits",
    ),
    Attack(
        GUARD,
        "unknown calls",
        "numbers above the last reviewed one",
        asking.unknown_calls,
        _NO_SUCH_CALL,
    ),
    Attack(GUARD, "x32 calls", "the x32 numbers of the same calls", asking.x32, _NO_SUCH_CALL),
    Attack(GUARD, "i386 calls", "int 0x80", asking.i386, _met("SIGSYS")),
    Attack(LANDLOCK, "device nodes", "mknod, a whiteout too", writing.device_nodes, _met("EACCES")),
    Attack(PRIVILEGES, "capabilities", "find one in any of the five sets", gaining.capabilities, _GONE),
    Attack(
        PRIVILEGES,
        "other ids",
        "become root, give files away",
        gaining.other_ids,
        _met("EPERM EINVAL"),
    ),
    Attack(
        PRIVILEGES,
        "setuid programs",
        "gain by sudo, su, a copy of one",
        gaining.setuid_programs,
        _GONE,
        known="CVE-2021-4034",
    ),
    Attack(LIMITS, "limits", "exceed and raise them", gaining.limits, _met(f"EPERM EACCES {ABSENT}")),
    Attack(
        NETWORK,
        "host's loopback",
        "reach a server on 127.0.0.1 and ::1",
        reaching.host_tcp,
        _met("ECONNREFUSED EADDRNOTAVAIL"),
    ),
    Attack(
        NETWORK,
        "abstract sockets",
        "reach one of the host",
        reaching.abstract_sockets,
        _met("ECONNREFUSED"),
        known="CVE-2020-15257",
    ),
    Attack(
        NETWORK,
        "the world",
        "TCP, UDP, DNS, ICMP, both families",
        reaching.outwards,
        _met("ENETUNREACH EACCES EPERM EADDRNOTAVAIL EAFNOSUPPORT"),
    ),
    Attack(NETWORK, "interfaces", "find one beside loopback", reaching.interfaces, _GONE),
    Attack(
        IPC,
        "shared memory",
        "SysV, message queues, /dev/shm of the host",
        reaching.shared_memory,
        _GONE,
    ),
    Attack(
        CGROUPS,
        "control groups",
        "write them, read the host's names",
        gaining.control_groups,
        _met(f"EROFS ENOENT {ABSENT}"),
        known="CVE-2022-0492",
    ),
    Attack(PIDS, "processes", "see those of the host", seeing.processes, _GONE),
    Attack(PIDS, "signals", "signal one of the host", reaching.signals, _met("ESRCH"), "process"),
    Attack(PIDS, "survivor", "outlive the run", reaching.survivor, _WORKS, "survivors"),
    Attack(PIDS, "signal to all", "kill(-1)", reaching.signal_to_all, _met(f"{WORKED} ESRCH"), "process"),
)
