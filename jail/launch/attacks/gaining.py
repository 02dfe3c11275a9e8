"""Attacks that gain: capabilities, other ids, setuid programs, higher limits, control groups.

Rule: a gain that is tried is of a kind that is given back at once or ends with the attack's own process.
"""

import os
import resource
import signal
import struct
from collections.abc import Iterator
from functools import partial

from .words import LIBC, AbsentError, Truths, Try, absent_if, content, number, opened, raw


def capabilities(truths: Truths) -> Iterator[Try]:
    """Each of the five sets, and using them."""
    del truths
    fields = _status()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        yield name, partial(_zero, fields.get(name, "there is no such field"))


def _status() -> dict[str, str]:
    text = content("/proc/self/status", 1 << 16).decode("ascii", "replace")
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


def _zero(value: str) -> str:
    return absent_if(not value.strip("0"), value)


def other_ids(truths: Truths) -> Iterator[Try]:
    """Becoming somebody else, or giving files away."""
    path = f"{truths['workspace']}/control"
    yield "setuid(0)", partial(os.setuid, 0)
    yield "setgid(0)", partial(os.setgid, 0)
    yield "setgroups", partial(os.setgroups, [0])
    yield "chown to root", partial(os.chown, path, 0, 0)
    yield (
        "capset",
        partial(
            raw,
            number(truths, "capset"),
            struct.pack("=Ii", 0x20080522, 0),
            struct.pack("=6I", *[0x200000] * 6),
        ),
    )


def setuid_programs(truths: Truths) -> Iterator[Try]:
    """Programs with the setuid bit: that exec heeds it, on any mount that can be written or holds one."""
    fields = _status()
    yield "no_new_privs", lambda: absent_if(fields.get("NoNewPrivs") == "1", "it is not set")
    for folder in (truths["workspace"], truths["home"], "/tmp", "/usr"):  # noqa: S108 - private inside
        yield f"nosuid on {folder}", partial(_nosuid, folder)
    for program in ("/usr/bin/sudo", "/usr/bin/su", "/usr/bin/pkexec", "/usr/bin/fusermount3"):
        if os.path.exists(program):
            yield f"run {program}", partial(_becomes_root, program)


def _nosuid(folder: str) -> str:
    return absent_if(bool(os.statvfs(folder).f_flag & os.ST_NOSUID), "setuid bits count there")


def _becomes_root(program: str) -> str:
    """Whether a child that executes it is another user: it is traced, and looked at as it starts."""
    pid = os.fork()
    if pid == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        try:
            LIBC.ptrace(0, 0, None, None)  # PTRACE_TRACEME: the exec stops before its first instruction
            os.execv(program, [program, "--version"])  # noqa: S606 - without a shell, as it should be
        finally:
            os._exit(127)
    os.waitpid(pid, 0)
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
        effective = content(f"/proc/{pid}/status", 1 << 14).partition(b"\nUid:\t")[2].split()[:4]
        return absent_if(set(effective) <= {str(os.getuid()).encode()}, f"uids {effective}, owner {owner}")
    except (FileNotFoundError, ProcessLookupError):
        raise AbsentError("it did not start") from None
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ChildProcessError, ProcessLookupError):
            pass


def limits(truths: Truths) -> Iterator[Try]:
    """Resource limits: that they stand, and raising them."""
    for name, (which, value) in truths["limits"].items():
        hard = resource.getrlimit(which)[1]
        yield f"{name} at most {value}", partial(_at_most, hard, value)
        if hard != resource.RLIM_INFINITY:
            yield f"raise {name}", partial(_raise, which, hard)
    yield "a better OOM score", partial(_write, "/proc/self/oom_score_adj", b"-500")
    yield "a better priority", partial(os.setpriority, os.PRIO_PROCESS, 0, -5)
    for name, value in truths["quotas"].items():
        yield f"{name} at most {value}", partial(_setting_at_most, f"/proc/sys/user/{name}", value)


def _at_most(found: int, value: int) -> str:
    return absent_if(found != resource.RLIM_INFINITY and found <= value, f"it is {found}")


def _setting_at_most(path: str, value: int) -> str:
    found = int(content(path))
    return absent_if(found <= value, f"it is {found}")


def _raise(which: int, hard: int) -> None:
    try:
        resource.setrlimit(which, (hard, hard + 1))
    except ValueError as error:  # what Python makes of EPERM here
        raise PermissionError(1, str(error)) from None


def _write(path: str, text: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def control_groups(truths: Truths) -> Iterator[Try]:
    """The host's control groups: their files, and their names."""
    del truths
    for name in ("cgroup.procs", "cgroup.subtree_control", "memory.max"):
        yield f"open {name}", partial(opened, f"/sys/fs/cgroup/{name}", os.O_WRONLY)

    def names() -> str:
        paths = {line.rpartition(b":")[2] for line in content("/proc/self/cgroup").splitlines()}
        return absent_if(paths <= {b"/"}, b" ".join(paths).decode("ascii", "replace"))

    yield "names", names
