"""Why a wall could not be put up: one table of causes, tried from the top; the first that fits is told.

Rule: several mechanisms refuse the same call, some with the same errno; each row states what tells it apart.
Sources of the errnos: unshare(2), user_namespaces(7), namespaces(7), pivot_root(2), security/apparmor/lsm.c,
fs/namespace.c.
"""

import errno
from collections.abc import Callable
from typing import Final, NamedTuple

from jail.launch import doctor_remedies as remedies
from jail.launch.doctor_facts import MISSING, NO_ERRNO, OK, UNTRIED, Finding, Host, Tried
from jail.launch.doctor_tries import BECOME

REFUSED: Final = (errno.EPERM, errno.EACCES)
PLENTY: Final = "15000"
"""Namespaces for each user: the kernel's own default is of this size (half of threads-max)."""
_LIMITS: Final = {
    "user": "user.max_user_namespaces",
    "mount": "user.max_mnt_namespaces",
    "pivot": "user.max_mnt_namespaces",
    "terminal": "user.max_mnt_namespaces",
    "pid": "user.max_pid_namespaces",
    "net": "user.max_net_namespaces",
    "ipc": "user.max_ipc_namespaces",
    "uts": "user.max_uts_namespaces",
    "cgroup": "user.max_cgroup_namespaces",
}
"""The limit of the namespace that a try makes beside the user namespace (namespaces(7))."""
_CLONE: Final = "kernel.unprivileged_userns_clone"
_APPARMOR: Final = "kernel.apparmor_restrict_unprivileged_userns"
_TUNNELS: Final = "net.core.fb_tunnels_only_for_init_net"
_FILTERS_OF_A_JAIL: Final = 2
_NEVER_EPERM: Final = ("openat2", "close_range", "landlock_create_ruleset", "seccomp")
"""Calls of a try that only a filter refuses so."""
_SHOWN: Final = 4
"""How many paths a cause names."""


class Case(NamedTuple):
    """One try that failed: its name, how, and on which host."""

    name: str
    tried: Tried
    host: Host


class Cause(NamedTuple):
    """`fits` says whether the facts point here; `why` and `remedy` are told then."""

    fits: Callable[[Case], bool]
    why: Callable[[Case], str]
    remedy: Callable[[Case], tuple[str, ...]]


def finding(name: str, host: Host) -> Finding:
    """The try `name` judged: what was met, and where it failed why and what to do."""
    tried = host.tries.get(name)
    if tried is None:
        needs = "a uid to be" if name == "user" else "a user namespace"
        return Finding(UNTRIED, f"not tried: it needs {needs}")
    if tried.worked:
        return Finding(OK, tried.text)
    case = Case(name, tried, host)
    cause = next(each for each in CAUSES if each.fits(case))
    return Finding(MISSING, tried.words(), cause.why(case), cause.remedy(case))


def inside_a_jail(host: Host) -> bool:
    """The answers of jail's own filters: no namespace (EPERM), no openat2 and no new mount API (ENOSYS),
    though the kernel is no older than close_range.
    """
    if not (host.no_new_privs and host.seccomp and host.filters >= _FILTERS_OF_A_JAIL):
        return False
    given = {"user": errno.EPERM, "openat2": errno.ENOSYS, "mount_setattr": errno.ENOSYS, "close_range": 0}
    return all(name in host.tries and host.tries[name].number == number for name, number in given.items())


def _runs_in(kind: str) -> Callable[[Case], bool]:
    return lambda case: case.host.around[0] == kind


def _says(text: str) -> Callable[[Case], str]:
    return lambda _case: text


def _gives(*lines: str) -> Callable[[Case], tuple[str, ...]]:
    return lambda _case: lines


def _ends_with(number: int) -> Callable[[Case], bool]:
    return lambda case: case.tried.number == number


def _limit(case: Case) -> str:
    """The limit that is 0, "" when none is."""
    if case.tried.number != errno.ENOSPC:
        return ""
    candidates = ("user.max_user_namespaces", _LIMITS.get(case.name, ""))
    return next((each for each in candidates if case.host.sysctls.get(each) == "0"), "")


def _is_off_for_users(case: Case) -> bool:
    return case.tried.number == errno.EPERM and case.host.sysctls.get(_CLONE) == "0"


def _is_masked_proc(case: Case) -> bool:
    """Whether a fresh /proc was refused since the one that is there is not wholly visible."""
    return case.tried.number == errno.EPERM and "(proc" in case.tried.call and bool(case.host.over_proc)


def _covered(case: Case) -> str:
    more = " …" if len(case.host.over_proc) > _SHOWN else ""
    shown = " ".join(case.host.over_proc[:_SHOWN])
    return f"parts of /proc are covered, so that the kernel gives no fresh one: {shown}{more}"


def _is_filtered(case: Case) -> bool:
    killed = case.tried.number == NO_ERRNO and case.tried.text == "killed by SIGSYS"
    refused = case.tried.number in (errno.EPERM, errno.ENOSYS)
    call = case.tried.call.partition("(")[0]
    named = call in remedies.CALLS_FOR_A_PROFILE or call in _NEVER_EPERM
    return case.host.seccomp != 0 and (killed or (refused and named))


def _filter(case: Case) -> str:
    kind, sign = case.host.around
    return "a system-call filter from outside refuses it" + (f" ({kind}, by {sign})" if kind else "")


def _is_in_a_chroot(case: Case) -> bool:
    return case.tried.number == errno.EPERM and case.host.chrooted


def _is_restricted_by_apparmor(case: Case) -> bool:
    """On Ubuntu from 23.10 on: the namespace is made, and no capability in it works; without the profile
    unprivileged_userns it is not even made. Who has a label of its own is not concerned.
    """
    label = case.host.apparmor.partition(" ")[0]
    restricts = case.host.sysctls.get(_APPARMOR, "0") != "0"
    return case.tried.number in REFUSED and restricts and label in ("", "unconfined", "unprivileged_userns")


def _is_confined(case: Case) -> bool:
    label = case.host.apparmor.partition(" ")[0]
    selinux = case.tried.number == errno.EACCES and "selinux" in case.host.lsm
    return case.tried.number in REFUSED and (label not in ("", "unconfined") or selinux)


def _is_the_first_root(case: Case) -> bool:
    return case.name == "pivot" and case.tried.number == errno.EINVAL


def _is_absent(case: Case) -> bool:
    return case.tried.number in (errno.EINVAL, errno.ENOSYS, errno.ENODEV)


CAUSES: Final = (
    Cause(_runs_in("WSL 1"), _says("WSL 1 has no Linux kernel, and no namespaces"), _gives(*remedies.WSL)),
    Cause(
        _runs_in("gVisor"),
        _says("this system runs on gVisor, a kernel of its own with fewer walls"),
        _gives("start jail on a host, or in a container with Linux's own kernel (runtime runc or crun)"),
    ),
    Cause(
        lambda case: inside_a_jail(case.host),
        _says("this process is itself inside a jail"),
        _gives(*remedies.OUTSIDE),
    ),
    Cause(_runs_in("Flatpak"), _says("this process runs inside Flatpak"), _gives(*remedies.OUTSIDE)),
    Cause(
        lambda case: case.tried.call.startswith(BECOME),
        lambda case: f"root of this user namespace cannot become uid {case.host.uid}, and no command is root",
        _gives(
            "start jail as the user that this root really is: outside of unshare -r, or as a user in here"
        ),
    ),
    Cause(
        lambda case: bool(_limit(case)),
        lambda case: f"{_limit(case)} is 0: this host makes no such namespace for users",
        lambda case: remedies.sysctl(_limit(case), PLENTY),
    ),
    Cause(
        _ends_with(errno.ENOSPC),
        _says("a limit on namespaces is reached, here or in the system that this one runs in, or 32 levels"),
        _gives("see the limits, there too:", *remedies.typed("sysctl -a --pattern '^user.max'")),
    ),
    Cause(
        _is_off_for_users,
        _says(f"{_CLONE} is 0: only root makes user namespaces here"),
        _gives(*remedies.sysctl(_CLONE, "1")),
    ),
    Cause(_is_masked_proc, _covered, lambda case: remedies.proc(case.host)),
    Cause(_is_filtered, _filter, lambda case: remedies.seccomp(case.host)),
    Cause(
        _is_in_a_chroot,
        _says("this process is in a chroot, where no user namespace can be made (user_namespaces(7))"),
        _gives("start jail outside of the chroot, or enter that folder by systemd-nspawn or bwrap"),
    ),
    Cause(
        _is_restricted_by_apparmor,
        _says(f"{_APPARMOR} is 1: only programs with a profile get user namespaces that work"),
        lambda case: remedies.apparmor(case.host),
    ),
    Cause(
        _is_confined,
        lambda case: f"a security module refuses it ({case.host.apparmor or case.host.lsm})",
        lambda case: remedies.confined(case.host),
    ),
    Cause(
        _is_the_first_root,
        lambda case: (
            f"the root folder ({case.host.root_type or 'rootfs'}) is the kernel's first, and cannot be left"
        ),
        _gives("boot from a file system of its own instead of an initramfs (switch_root)"),
    ),
    Cause(
        lambda case: "is born with" in case.tried.text,
        _says("the kernel puts tunnel devices into each new network namespace; jail allows loopback alone"),
        _gives(*remedies.sysctl(_TUNNELS, "1")),
    ),
    Cause(
        _is_absent,
        _says("this kernel was built without it, or is too old for it"),
        lambda case: remedies.kernel(case.host),
    ),
    Cause(lambda _case: True, _says("none of the causes that jail knows"), _gives(*remedies.REPORT)),
)
