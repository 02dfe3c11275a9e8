"""Attacks that gain: capabilities, other ids, setuid programs, higher limits, control groups.

Rule: a gain that is tried is of a kind that is given back at once or ends with the attack's own process.
"""

import os
import resource
import struct
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from .words import AbsentError, Truths, Try, absent_if, content, number, opened, raw


def capabilities(truths: Truths) -> Iterator[Try]:
    """Each of the five sets, and using them."""
    del truths
    fields = _status()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        yield name, partial(_zero, fields.get(name, "there is no such field"))


STARTED: Final = 1.0
"""Seconds that a program may take to its first word."""


def _status(pid: int | str = "self") -> dict[str, str]:
    text = content(f"/proc/{pid}/status", 1 << 16).decode("ascii", "replace")
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
    """Whether a child that executes it is another user.

    It is asked for its version and held in the middle of its answer by a pipe that is full; a tracer would
    itself keep the bit from counting (execve(2)).
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    _fill(writer)
    os.set_blocking(writer, True)
    pid = os.fork()
    if pid == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for fd, source in ((0, null), (1, writer), (2, writer)):
            os.dup2(source, fd)
        os.close(reader)
        try:
            os.execv(program, [program, "--version"])  # noqa: S606 - without a shell, as it should be
        finally:
            os._exit(127)
    os.close(writer)
    try:
        found = _ids(pid, os.path.basename(program)[:15])
    finally:
        os.close(reader)  # SIGPIPE ends it, whoever it has become
        os.waitpid(pid, 0)
    return absent_if(set(found) <= {str(os.getuid())}, f"its uids are {' '.join(found)}")


def _fill(pipe: int) -> None:
    try:
        while True:
            os.write(pipe, bytes(4096))
    except BlockingIOError:
        return


def _ids(pid: int, name: str) -> list[str]:
    """The four uids of a program once it has started and waits; none when it ended before."""
    end = time.monotonic() + STARTED
    while time.monotonic() < end:
        fields = _status(pid)
        if fields.get("Name") == name and fields.get("State", "")[:1] in ("S", "D"):
            return fields["Uid"].split()
        if fields.get("State", "Z")[:1] in ("Z", "X"):
            break
        time.sleep(0.001)
    raise AbsentError("it did not start")


def limits(truths: Truths) -> Iterator[Try]:
    """Resource limits: that they stand, and raising them."""
    for name, (which, value) in truths["limits"].items():
        hard = resource.getrlimit(which)[1]
        yield f"{name} at most {value}", partial(_at_most, hard, value)
        if hard != resource.RLIM_INFINITY:
            yield f"raise {name}", partial(_raise, which, hard)
    yield "a better OOM score", partial(_write, "/proc/self/oom_score_adj", b"-500")
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
