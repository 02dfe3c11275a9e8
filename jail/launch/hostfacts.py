"""What the kernel and the host have, whoever started jail and wherever.

Rule: asked once for each run, by the survey.
"""

import os
import resource

from jail.kernel import cgroups, files, landlock, libc
from jail.light import Any, Final, Iterator, suppress
from jail.plan.build import FROZEN, MASKED

SHELLS: Final = ("/bin/bash", "/bin/sh")
QUOTAS: Final = ("max_inotify_instances", "max_inotify_watches")
"""Kernel resources that all processes of a uid share (namespaces(7), /proc/sys/user)."""


def look() -> dict[str, Any]:
    """The fields of Facts that say what the kernel and the host have."""
    version = landlock.abi()
    group = cgroups.delegation()
    return {
        "shell": next((shell for shell in SHELLS if os.path.exists(shell)), "/bin/sh"),
        "devices": tuple(os.listdir("/dev")),
        # Asked one by one: a listing of /proc is as long as the host has processes.
        "proc": tuple(name for name in (*MASKED, *FROZEN) if os.path.lexists(f"/proc/{name}")),
        "landlock": version,
        "landlock_lacks": tuple(landlock.lost(version)),
        "namespaces": tuple(os.listdir("/proc/self/ns")),
        "quotas": tuple(_quotas()),
        "open_files_hard": libc.named("getrlimit(RLIMIT_NOFILE)", resource.getrlimit, resource.RLIMIT_NOFILE)[
            1
        ],
        "processes_hard": libc.named("getrlimit(RLIMIT_NPROC)", resource.getrlimit, resource.RLIMIT_NPROC)[1],
        "cgroup": group.folder,
        "no_cgroup": group.why,
        "memory_most": _memory_most(group.memory_most),
    }


def _quotas() -> Iterator[tuple[str, int]]:
    """Half of what the caller has, so that nothing inside takes all of it from the caller's programs."""
    for name in QUOTAS:
        with suppress(ValueError):
            yield name, max(1, int(files.content(f"/proc/sys/user/{name}")) // 2)


def _memory_most(left: int) -> int:
    """Bytes that this host has (proc_meminfo(5)), or that the control groups above leave to us, if less."""
    total = 0
    with suppress(ValueError, IndexError):
        total = int(files.content("/proc/meminfo").split()[1]) << 10
    return min(filter(None, (total, left)), default=0)
