"""Probes: the walls as the command's process meets them, one call each, just before exec.

Rule: a wall is believed when a probe met it. Each probe tries what must not work and names the errno that
must come back; the few that must work are there so that a probe that cannot fail is noticed. Sources of the
numbers: <linux/socket.h>, <linux/seccomp.h>; the errnos are those of `jail.kernel.denials`.
"""

import _socket
import errno
import os

from jail.kernel import libc, mounts, namespaces, netlink
from jail.kernel.syscalls import number
from jail.light import Callable, Final, Iterator
from jail.plan.held import COPY, OVERLAY, Held
from jail.plan.steps import Plan

TUNNELS: Final = frozenset("tunl0 gre0 gretap0 erspan0 ip_vti0 ip6_vti0 sit0 ip6tnl0 ip6gre0".split())
"""Devices that some modules put into each new namespace (net.core.fb_tunnels_only_for_init_net): down, with
no address; nobody inside may bring one up, and the probe `route out` would meet one that was not."""
Result = tuple[str, bool, str]
"""Name of the probe, whether the wall held, and what was met."""

_SEND_NOWHERE: Final = ("192.0.2.1", 9)
"""TEST-NET-1 (RFC 5737): no address of anybody."""
_AF_VSOCK: Final = 40
_AF_ALG: Final = 38
_UNKNOWN_CALL: Final = 4095
"""Far above every system call there is."""


def run(plan: Plan, parent: int) -> Iterator[Result]:
    """All probes of this plan, one after another; nothing is changed by them. `parent`: process 1, or its
    child (leader.py).
    """
    yield _status("no capabilities", ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0, 16)
    yield _status("no new privileges", ("NoNewPrivs",), 1, 10)
    yield _status("system-call filter", ("Seccomp",), 2, 10)
    for name, expected, attempt in _refusals(plan):
        yield _refused(name, expected, attempt)
    yield _equal("one interface", sorted(set(netlink.interfaces()) - TUNNELS), ["lo"])
    yield _equal("own process namespace", os.getppid(), parent)
    yield _equal("own ids", (os.getresuid(), os.getresgid()), ((plan.uid,) * 3, (plan.gid,) * 3))
    yield _equal("workspace is there", [plan.workspace], [plan.workspace] * os.path.isdir(plan.workspace))
    for thing in plan.held:
        if thing.kind in (OVERLAY, COPY):
            yield _held(thing)


def _refusals(plan: Plan) -> Iterator[tuple[str, int, Callable[[], object]]]:
    yield "new user namespace", errno.EPERM, lambda: namespaces.unshare(("user",))
    yield "new mount namespace", errno.EPERM, lambda: namespaces.unshare(("mount",))
    yield "umount", errno.EPERM, lambda: libc.syscall("umount2", number("umount2"), b"/", 0)
    yield "new mount API", errno.ENOSYS, lambda: libc.syscall("open_tree", number("open_tree"), -100, b"/", 1)
    yield "io_uring", errno.ENOSYS, lambda: libc.syscall("io_uring_setup", number("io_uring_setup"), 1, None)
    yield "unknown system call", errno.ENOSYS, lambda: libc.syscall("unknown", _UNKNOWN_CALL)
    yield "vsock", errno.EAFNOSUPPORT, lambda: _socket.socket(_AF_VSOCK, 1, 0)
    yield "kernel crypto socket", errno.EAFNOSUPPORT, lambda: _socket.socket(_AF_ALG, 5, 0)
    yield "key rings", errno.EPERM, lambda: libc.syscall("keyctl", number("keyctl"), 0, -3, 0)
    yield "route out", errno.ENETUNREACH, _connect_out
    yield "root folder is read-only", errno.EROFS, lambda: os.mkdir("/jail-probe")
    yield "kernel settings", errno.EROFS, lambda: os.chmod("/proc/sys/kernel/hostname", 0o600)
    yield "process 1 is closed", errno.EACCES, lambda: os.listdir("/proc/1/fd")
    protected = next((each for each in plan.steps if each.verb == "protect" and each.source), None)
    if protected is not None:
        target = protected.target
        yield f"read-only: {target}", errno.EROFS, lambda: os.utime(target, follow_symlinks=False)


def _connect_out() -> None:
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC, 0)
    try:
        probe.connect(_SEND_NOWHERE)
    finally:
        probe.close()


def _held(thing: Held) -> Result:
    """Whether what is written to a held tree goes to the mount that the session has for it."""
    fd = os.open(thing.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        mounted = mounts.is_mount_root(fd, thing.path)
        held = mounted and (thing.kind == COPY or mounts.is_overlay(fd, thing.path))
    finally:
        os.close(fd)
    return f"held: {thing.path}", held, thing.kind if held else "the host's own"


def _refused(name: str, expected: int, attempt: Callable[[], object]) -> Result:
    try:
        attempt()
    except OSError as error:
        met = errno.errorcode.get(error.errno or 0, str(error.errno))
        return name, error.errno == expected, met
    held = False
    return name, held, "it worked"


def _equal(name: str, found: object, expected: object) -> Result:
    return name, found == expected, str(found)


def _status(name: str, keys: tuple[str, ...], expected: int, base: int) -> Result:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    values = [fields.get(key, "absent").strip() for key in keys]
    held = all(value != "absent" and int(value, base) == expected for value in values)
    return name, held, " ".join(values)
