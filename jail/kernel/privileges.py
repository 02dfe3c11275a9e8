"""What a process may do, and its end: prctl(2), capset(2), capabilities(7), rlimits.

`_prctl` is the C half of python-prctl; the Python half imports more than the launch path may.
"""

import ctypes
import errno
import os
import resource

import _prctl

from jail.kernel import files, libc
from jail.kernel.syscalls import number
from jail.light import Final

CAP_SYS_ADMIN: Final = 21
_CAPABILITY_VERSION_3: Final = 0x20080522
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_KEYCTL_JOIN_SESSION_KEYRING: Final = 1
"""<linux/capability.h>, <linux/prctl.h>, <linux/keyctl.h>"""

LIMITS: Final = {
    "processes": resource.RLIMIT_NPROC,
    "open_files": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
}
"""Limits of a plan that setrlimit(2) keeps; the rest are mount options or files in /proc."""


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = tuple(
        (f"{name}{half}", ctypes.c_uint32)
        for half in "01"
        for name in ("effective", "permitted", "inheritable")
    )


def no_new_privileges() -> None:
    """No exec can gain a privilege from here on: not by setuid bits, not by file capabilities
    (PR_SET_NO_NEW_PRIVS).
    """
    libc.named("prctl(PR_SET_NO_NEW_PRIVS)", _prctl.prctl, _prctl.PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_set() -> None:
    """Take every capability that this kernel knows out of the bounding and ambient sets."""
    for capability in range(_last_capability() + 1):
        libc.named(f"prctl(PR_CAPBSET_DROP, {capability})", _prctl.prctl, _prctl.PR_CAPBSET_DROP, capability)
    libc.syscall(
        "prctl(PR_CAP_AMBIENT_CLEAR_ALL)",
        number("prctl"),
        _PR_CAP_AMBIENT,
        _PR_CAP_AMBIENT_CLEAR_ALL,
        0,
        0,
        0,
    )


def _last_capability() -> int:
    fd = os.open("/proc/sys/kernel/cap_last_cap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        files.require_procfs(fd, "/proc/sys/kernel/cap_last_cap")
        return int(os.read(fd, 16))
    finally:
        os.close(fd)


def keep_capabilities(*kept: int) -> None:
    """Set the effective and permitted sets to exactly `kept`, the inheritable set to nothing (capset(2))."""
    masks = [0, 0]
    for capability in kept:
        masks[capability // 32] |= 1 << capability % 32
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    data = _CapData(masks[0], masks[0], 0, masks[1], masks[1], 0)
    libc.syscall("capset", number("capset"), header, data)


def set_dumpable(dumpable: bool) -> None:
    """Whether a process of the same uid may look into this one: /proc/PID/{mem,fd,root,environ}, ptrace
    (PR_SET_DUMPABLE).
    """
    libc.named("prctl(PR_SET_DUMPABLE)", _prctl.prctl, _prctl.PR_SET_DUMPABLE, int(dumpable))


def die_with_parent(parent: int) -> None:
    """SIGKILL when the parent's thread that forked us ends; refused when that parent is gone already
    (PR_SET_PDEATHSIG).

    `parent` is its pid as getppid(2) shows it here: 0 where it lives in an outer pid namespace. The kernel
    clears the setting when credentials change (prctl(2)): call it after the last such change.
    """
    libc.named("prctl(PR_SET_PDEATHSIG)", _prctl.prctl, _prctl.PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(EXIT_ORPHAN)


EXIT_ORPHAN: Final = 125


def take_name(name: str) -> None:
    """What ps(1) shows of this process: not how, and from where on the host, it was started.

    The bytes of argv are the process's own memory; where they lie is in fields 48 and 49 of /proc/self/stat
    (proc_pid_stat(5)).
    """
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    shown = name.encode()[: max(0, end - start - 1)]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, shown, len(shown))
    _prctl.prctl(_prctl.PR_SET_NAME, name)


def forget_keys() -> None:
    """A new, empty session keyring instead of the caller's (keyctl(2)); a kernel without keys needs none."""
    try:
        libc.syscall("keyctl(join)", number("keyctl"), _KEYCTL_JOIN_SESSION_KEYRING, None)
    except libc.KernelError as error:
        if error.errno != errno.ENOSYS:  # else CONFIG_KEYS is off
            raise


def limit(name: str, value: int) -> None:
    """Set soft and hard value of one of LIMITS (setrlimit(2))."""
    try:
        resource.setrlimit(LIMITS[name], (value, value))
    except (OSError, ValueError) as error:
        raise libc.KernelError(
            getattr(error, "errno", None) or errno.EPERM, f"setrlimit({name}, {value})"
        ) from error


def prefer_as_oom_victim(score: int) -> None:
    """Raise the own score, so that the kernel ends this process first when memory runs out
    (proc_pid_oom_score_adj(5)).
    """
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    try:
        files.require_procfs(fd, "/proc/self/oom_score_adj")
        libc.named("write(/proc/self/oom_score_adj)", os.write, fd, str(score).encode())
    finally:
        os.close(fd)


class OomScore:
    """The own score as a file that stays open: once the process is closed to all (set_dumpable), it could not
    be opened again (proc(5)).
    """

    def __init__(self) -> None:
        self._fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        files.require_procfs(self._fd, "/proc/self/oom_score_adj")
        self._before = os.pread(self._fd, 32, 0).strip()

    def set(self, score: int) -> None:
        """Have this score; a child that is forked meanwhile keeps it."""
        libc.named("write(/proc/self/oom_score_adj)", os.pwrite, self._fd, str(score).encode(), 0)

    def put_back(self) -> None:
        """Have the first score again, which the kernel allows as it is not below the lowest so far."""
        libc.named("write(/proc/self/oom_score_adj)", os.pwrite, self._fd, self._before, 0)


def become(uid: int, gid: int) -> None:
    """Give up root for good: no supplementary groups, all three gids and uids (setresuid(2)); verified."""
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise libc.KernelError(error.errno or errno.EPERM, f"setresuid({uid}), setresgid({gid})") from error
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid):
        raise libc.KernelError(errno.EPERM, f"setresuid({uid})")
    # The change of uid made /proc/self belong to root; the maps of our own user namespace are written there
    # (proc(5)).
    set_dumpable(True)
