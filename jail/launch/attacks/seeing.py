"""Attacks that read: the person's files under every name, jail's own, processes, devices, environment.

Rule: what no rule names does not exist inside, so what is met is that it is absent: "permission denied" would
mean that modes, not walls, hold it. A look that finds nothing raises AbsentError itself.
"""

import os
import stat
from collections.abc import Iterator
from functools import partial
from typing import Final

from .words import AbsentError, Truths, Try, UntriedError, absent_if, content

OWN_DEVICES: Final = frozenset(
    "null zero full random urandom tty fd stdin stdout stderr ptmx pts shm core".split()
)
"""What /dev of a jail may hold; `core` is a link that some systems have to /proc/kcore."""
HARDWARE: Final = (
    "mem kmem port kmsg kvm fuse vsock uinput userfaultfd loop-control net/tun mapper/control cuse".split()
)
UP: Final = 64
"""Levels of `..`: more than any path has."""


def secret_in_home(truths: Truths) -> Iterator[Try]:
    """The canary in the home folder, by path and by aliases."""
    yield from _aliases(truths, truths["secret_in_home"], "home")


def secret_beside(truths: Truths) -> Iterator[Try]:
    """The canary in the folder that the workspace lies in."""
    yield from _aliases(truths, truths["secret_beside"], "beside")


def _aliases(truths: Truths, path: str, link: str) -> Iterator[Try]:
    if not path:
        raise UntriedError("no folder could be made there")
    work = truths["workspace"]
    farm = f"{work}/farm"
    os.makedirs(farm, exist_ok=True)
    os.symlink(path, f"{farm}/{link}")
    os.symlink("/", f"{farm}/{link}-root")
    climbing = "../" * UP
    for label, name in (
        ("its path", path),
        ("`..` from the workspace", f"{work}/{os.path.relpath(path, work)}"),
        ("`..` above the root", f"/{climbing}{path[1:]}"),
        ("a link that was there", f"{work}/link-{link}"),
        ("a link made inside", f"{farm}/{link}"),
        ("a link to the root", f"{farm}/{link}-root{path}"),
        ("/proc/self/root", f"/proc/self/root{path}"),
        ("/proc/self/cwd", f"/proc/self/cwd/{os.path.relpath(path, work)}"),
        ("the runner's root", f"/proc/{os.getppid()}/root{path}"),
    ):
        yield label, partial(content, name)
    yield "the folder's names", partial(os.listdir, os.path.dirname(path))


def home_names(truths: Truths) -> Iterator[Try]:
    """Names of the real home folder."""

    def names() -> str:
        seen = sorted(set(os.listdir(truths["home"])) & set(truths["home_names"]))
        return absent_if(not seen, " ".join(seen[:5]))

    yield "names that are in the real one", names


def own_files(truths: Truths) -> Iterator[Try]:
    """Code of jail, configuration and cache: read, and made."""
    yield from _own(truths["own"])


def sessions(truths: Truths) -> Iterator[Try]:
    """Ledgers and sockets of this session and of others: read, and made."""
    yield from _own(truths["state"])


def _own(paths: list[str]) -> Iterator[Try]:
    for path in paths:
        yield f"list {path}", partial(os.listdir, path)
        yield f"plant in {path}", partial(_plant, path)


def _plant(folder: str) -> None:
    os.close(os.open(f"{folder}/planted", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def masks(truths: Truths) -> Iterator[Try]:
    """Files of /proc that tell of the host; an empty one is what is mounted over it."""

    def read(path: str) -> str:
        if stat.S_ISDIR(os.stat(path).st_mode):
            return absent_if(not os.listdir(path), f"{len(os.listdir(path))} names")
        found = content(path, 64)
        return absent_if(not found, repr(found))

    for name in truths["masked"]:
        yield f"read /proc/{name}", partial(read, f"/proc/{name}")


def processes(truths: Truths) -> Iterator[Try]:
    """Processes of the host in /proc."""

    def foreign() -> str:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            line = _command_line(name)
            if name != "1" and line and truths["mark"].encode() not in line:
                found.append(f"{name} {line[:40]!r}")
        return absent_if(not found, "; ".join(found[:3]))

    yield "list them", foreign
    yield "the canary process", partial(os.listdir, f"/proc/{_foreign(truths)}")


def _command_line(pid: str) -> bytes:
    try:
        return content(f"/proc/{pid}/cmdline")
    except OSError:
        return b""


def _foreign(truths: Truths) -> int:
    pid = int(truths["pid"])
    if truths["mark"].encode() in _command_line(str(pid)) or pid == 1:
        raise UntriedError(f"the canary's number, {pid}, is that of a process inside")
    return pid


def canary_pid(truths: Truths) -> int:
    """The host's process that must not be reached. Raises UntriedError when its number means another."""
    return _foreign(truths)


def process_1(truths: Truths) -> Iterator[Try]:
    """What jail's own process 1 holds."""
    del truths
    for name in ("environ", "maps", "mem"):
        yield f"read /proc/1/{name}", partial(content, f"/proc/1/{name}", 16)
    yield "list /proc/1/fd", partial(os.listdir, "/proc/1/fd")
    for name in ("root", "cwd", "exe", "ns/mnt"):
        yield f"follow /proc/1/{name}", partial(os.readlink, f"/proc/1/{name}")
    yield "enter /proc/1/root", partial(os.listdir, "/proc/1/root")


def devices(truths: Truths) -> Iterator[Try]:
    """Devices of the host."""
    for name in truths["devices"]:
        yield f"/dev/{name}", partial(_there, f"/dev/{name}")

    def terminals() -> str:
        seen = sorted(set(os.listdir("/dev/pts")) - {"ptmx"})
        return absent_if(not seen, f"/dev/pts has {' '.join(seen)}")

    yield "terminals of others", terminals


def _there(path: str) -> None:
    os.lstat(path)


def environment(truths: Truths) -> Iterator[Try]:
    """The canary variable's value, here and in every process that can be read."""
    value = truths["variable"].encode()

    def in_processes() -> str:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                held = content(f"/proc/{pid}/environ", 1 << 20)
            except OSError:
                continue
            found += [pid] * (value in held)
        return absent_if(not found, f"in process {' '.join(found)}")

    yield "its own environment", lambda: absent_if(value not in os.environb.values(), "it is there")
    yield "/proc/*/environ", in_processes


def descriptors(truths: Truths) -> Iterator[Try]:
    """Descriptors that were open outside when the run began."""
    seen: list[str] = truths["leaked"]
    yield "any above 2", lambda: absent_if(not seen, "; ".join(seen[:4]))


def standard_streams(truths: Truths) -> Iterator[Try]:
    """Standard input, output and error, which outside are files: opened anew to be written or read, and cut.

    What is met must be a pipe or /dev/null; a pipe that is opened anew is no way to the file.
    """
    del truths
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        yield f"{name} is a file", partial(_file, fd)
        yield f"cut {name}", partial(_cut, fd)


def _file(fd: int) -> str:
    kind = stat.S_IFMT(os.fstat(fd).st_mode)
    return absent_if(kind != stat.S_IFREG, os.readlink(f"/proc/self/fd/{fd}"))


def _cut(fd: int) -> None:
    if not stat.S_ISREG(os.stat(f"/proc/self/fd/{fd}").st_mode):
        raise AbsentError
    os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC))
