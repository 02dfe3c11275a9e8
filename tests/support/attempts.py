r"""Attempts made inside a jail: the words that every probe program shares, and a jail whose caches are warm.

Rule: one start of jail tries many things. A program says `attempt(name, call)` or `found[name] = value` and `say()` at its end; the
tests are rows that look at one name each. A call that worked is "done", else it is the name of its errno, so that a row can tell "refused"
from "was never there". Every attempt has a control of the same call where it must work.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from support.installed import Installed
from support.jails import Jail, make_jail

DONE = "done"
REFUSED = frozenset(("EROFS", "EBUSY", "EXDEV", "EACCES", "EPERM"))
"""What a wall answers for a thing that is there: ENOENT, EINVAL and the like would mean that the probe missed it."""
GONE = frozenset(("ENOENT", "ENOTDIR"))
"""What is said of a thing that does not exist inside."""

PRELUDE = r'''
import ctypes, errno, json, os, socket, stat, struct, sys
found = {}
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
X86 = os.uname().machine == "x86_64"
NUMBERS = {  # <asm/unistd_64.h>, <asm-generic/unistd.h>
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "renameat2": (316, 276), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "keyctl": (250, 219), "ptrace": (101, 117), "process_vm_readv": (310, 270), "kcmp": (312, 272), "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "shmget": (29, 194), "shmat": (30, 196), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "openat2": (437, 437),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "mount_setattr": (442, 442),
    "fchmodat2": (452, 452), "openat": (257, 56), "linkat": (265, 37),
}
def call(name, *arguments):
    """A raw system call; OSError when it fails."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = libc.syscall(NUMBERS[name][0 if X86 else 1], *words)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
def outcome(deed):
    try:
        deed()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "done"
def attempt(name, deed):
    found[name] = outcome(deed)
def keep(path, text, flags=os.O_WRONLY | os.O_CREAT):
    fd = os.open(path, flags, 0o644)
    os.write(fd, text.encode())
    os.close(fd)
def content(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b"")).decode("utf-8", "replace")
    finally:
        os.close(fd)
def reach(path, kind=socket.SOCK_STREAM):
    """Connect to a pathname socket of any length; what it says, if anything."""
    folder = os.open(os.path.dirname(path), os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX, kind) as client:
            client.settimeout(1)
            client.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
            try:
                return client.recv(4096).decode()
            except TimeoutError:
                return ""
    finally:
        os.close(folder)
def link_fd(fd, name):
    """Give what is open a name: os.link does not follow /proc/self/fd (linkat(2), AT_SYMLINK_FOLLOW)."""
    call("linkat", AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, os.fsencode(name), 0x400)
def say():
    print(json.dumps(found))
'''
"""What each program begins with; it needs /usr/bin/python3 alone."""


class Row(NamedTuple):
    """One case: its id in CASES.md, a sentence that says what holds, and the name under which the probe's finding is kept."""

    case: str
    sentence: str
    probe: str

    def __str__(self) -> str:
        return f"{self.case}: {self.sentence}"


def warm_jail(installed: Installed, folder: Path, **environment: str) -> Jail:
    """A jail with a home and a workspace of its own beneath `folder`, and the compiled artefacts of earlier ones.

    A first launch in an empty cache takes seconds; the cache is a folder of jail's own in each of these jails all the same.
    """
    fresh = make_jail(installed, folder)
    cache = installed.root.parent / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    return fresh._replace(environment={**fresh.environment, "XDG_CACHE_HOME": str(cache), **environment})


def lay(folder: Path, files: dict[str, str]) -> None:
    """Write files, path → text, with the folders above them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def state_of(*paths: Path) -> dict[str, tuple[object, ...]]:
    """What must not change: of each thing at and beneath `paths` its kind and mode, inode, owner, times, names, attributes, content."""
    return {str(path): _state(path) for top in paths for path in _beneath(top)}


def _beneath(top: Path) -> Iterable[Path]:
    yield top
    if top.is_dir() and not top.is_symlink():
        for folder, folders, files in os.walk(top):
            yield from (Path(folder) / name for name in sorted((*folders, *files)))


def _state(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    attributes = {
        name: os.getxattr(path, name, follow_symlinks=False)
        for name in os.listxattr(path, follow_symlinks=False)
    }
    if stat.S_ISREG(found.st_mode):
        what = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        what = os.readlink(path) if path.is_symlink() else ""
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (
        oct(found.st_mode),
        found.st_ino,
        found.st_uid,
        found.st_nlink,
        times,
        sorted(attributes.items()),
        what,
    )


def offences(found: dict[str, str], wanted: frozenset[str]) -> dict[str, str]:
    """The findings that are none of `wanted`."""
    return {name: met for name, met in found.items() if met not in wanted}
