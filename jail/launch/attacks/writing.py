"""Attacks that write: system folders, the root, kernel settings, git's files, protected names, lasting bits.

Rule: each try would leave at most an empty file or folder of an unusual name, were it to work; what is
written to a protected file is looked at from outside afterwards.
"""

import os
import stat
from collections.abc import Iterator
from functools import partial
from typing import Final

from .words import AT_FDCWD, Truths, Try, calls, content, opened

PLANTED: Final = ".jail-attack"


def system(truths: Truths) -> Iterator[Try]:
    """What is given read-only."""
    for path in truths["read_only"]:
        if os.path.isdir(path):
            yield f"mkdir in {path}", partial(os.mkdir, f"{path}/{PLANTED}")
        yield f"chmod {path}", partial(os.chmod, path, 0o755)
        yield f"touch {path}", partial(os.utime, path)


def root(truths: Truths) -> Iterator[Try]:
    """The root folder, and what jail made in it."""
    del truths
    for folder in ("", "/etc", "/run/jail", "/dev"):
        yield f"mkdir in {folder or '/'}", partial(os.mkdir, f"{folder}/{PLANTED}")
    yield "write a link in /", partial(os.symlink, "/tmp", f"/{PLANTED}-link")  # noqa: S108 - a name inside
    for path in ("/etc/passwd", "/etc/resolv.conf", "/run/jail/README"):
        yield f"chmod {path}", partial(os.chmod, path, 0o666)


def settings(truths: Truths) -> Iterator[Try]:
    """Kernel settings: owned and opened, never written."""
    for name in truths["settings"]:
        yield f"chmod {name}", partial(os.chmod, name, 0o666)


def commands_to_the_kernel(truths: Truths) -> Iterator[Try]:
    """Files whose writing makes the kernel act: opened for writing, never written."""
    del truths
    for path in (
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/kcore",
        "/proc/kmsg",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/release_agent",
    ):
        yield f"open {path}", partial(opened, path, os.O_WRONLY)


def git_hooks(truths: Truths) -> Iterator[Try]:
    """Programs that git outside would run."""
    hooks = f"{truths['workspace']}/.git/hooks"
    yield "make a hook", partial(opened, f"{hooks}/post-checkout", os.O_WRONLY | os.O_CREAT, 0o755)
    yield "change a hook", partial(_append, f"{hooks}/pre-commit")
    yield "make a hook executable", partial(os.chmod, f"{hooks}/pre-commit", 0o755)
    yield "remove a hook", partial(os.unlink, f"{hooks}/pre-commit")
    yield "move hooks away", partial(os.rename, hooks, f"{hooks}.old")


def git_config(truths: Truths) -> Iterator[Try]:
    """The file of settings that make git outside run programs, in place; and the folder that it lies in."""
    git = f"{truths['workspace']}/.git"
    spare = f"{truths['workspace']}/spare"
    opened(spare, os.O_WRONLY | os.O_CREAT)
    yield "rename over it", partial(os.rename, spare, f"{git}/config")
    yield "remove it", partial(os.unlink, f"{git}/config")
    yield "link it elsewhere", partial(os.link, f"{git}/config", f"{spare}-link")
    yield "move .git away", partial(os.rename, git, f"{git}.old")
    exchange = ("renameat2: exchange .git", AT_FDCWD, git.encode(), AT_FDCWD, spare.encode(), 2)
    yield from calls(truths, exchange)


def git_settings(truths: Truths) -> Iterator[Try]:
    """The same file, written through: that goes to a copy, and from outside it must be as it was."""
    config = f"{truths['workspace']}/.git/config"
    yield "append to it", partial(_append, config)
    yield "change its mode", partial(os.chmod, config, 0o666)
    yield "cut it", partial(os.truncate, config, 0)


def memory_files(truths: Truths) -> Iterator[Try]:
    """What later sessions and agents read as facts."""
    for path in truths["protected"]:
        yield f"append to {os.path.basename(path)}", partial(_append, path)
        yield f"remove {os.path.basename(path)}", partial(os.unlink, path)
        yield f"move {os.path.basename(path)} away", partial(os.rename, path, f"{path}.old")


def absent_names(truths: Truths) -> Iterator[Try]:
    """Protected names that are not there yet: made, as they may be; from outside they must be gone."""
    for path in truths["absent"]:
        yield f"make {os.path.basename(path)}", partial(_make, path)


def _make(path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write("planted\n")


def _append(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(fd, b"# planted\n")
    finally:
        os.close(fd)


def lasting_bits(truths: Truths) -> Iterator[Try]:
    """The setuid and setgid bits, which would last on the host."""
    path = f"{truths['workspace']}/bits"
    opened(path, os.O_WRONLY | os.O_CREAT)
    for label, bit in (("setuid", stat.S_ISUID), ("setgid", stat.S_ISGID)):
        mode = bit | 0o755
        yield f"chmod, {label}", partial(os.chmod, path, mode)
        yield f"create, {label}", partial(opened, f"{path}-{label}", os.O_WRONLY | os.O_CREAT, mode)
        yield f"mkfifo, {label}", partial(os.mknod, f"{path}-{label}-pipe", stat.S_IFIFO | mode)
        yield from calls(truths, (f"fchmodat2: {label}", AT_FDCWD, path.encode(), mode, 0))


def device_nodes(truths: Truths) -> Iterator[Try]:
    """Device nodes; the pair 0:0 needs no capability, and an overlay takes it for a deletion."""
    for label, kind, device in (
        ("whiteout 0:0", stat.S_IFCHR, os.makedev(0, 0)),
        ("null 1:3", stat.S_IFCHR, os.makedev(1, 3)),
        ("mem 1:1", stat.S_IFCHR, os.makedev(1, 1)),
        ("disk 8:0", stat.S_IFBLK, os.makedev(8, 0)),
    ):
        yield label, partial(os.mknod, f"{truths['workspace']}/{label.split()[0]}-node", kind | 0o600, device)


def neighbours(truths: Truths) -> Iterator[Try]:
    """What must work: the workspace and the private folders are written, a system file is read."""
    for folder in (truths["workspace"], truths["home"], "/tmp", "/dev/shm"):  # noqa: S108 - private inside
        yield f"write in {folder}", partial(_round, f"{folder}/.jail-attack-control")
    yield "read a system file", partial(content, "/etc/passwd")
    yield "chmod, no lasting bit", partial(os.chmod, f"{truths['workspace']}/control", 0o755)


def _round(path: str) -> None:
    _make(path)
    os.truncate(path, 0)
    os.rename(path, f"{path}.moved")
    os.link(f"{path}.moved", path)
    os.unlink(path)
    os.unlink(f"{path}.moved")
