"""Which shared memory some processes hold, object by object: memfds, shared mappings, System V segments.

Rule: an object counts with what it takes, once, by its inode, however little of it is mapped: pages stay in
it after munmap(2) and MADV_DONTNEED, so what a mapping has of them says nothing. Only what cannot be asked is
guessed at, and such a guess is never more than the growth of the host's shared memory (watch.py).

    open           in any table of descriptors (a thread may have its own, clone(2)): its blocks (stat(2))
    executed       /proc/PID/exe: likewise
    segments       /proc/sysvipc/shm of the jail's own ipc namespace
    only mapped    for root its blocks, too (/proc/PID/map_files); else as far as mappings reach into it
    out of sight   sent and not yet received (SCM_RIGHTS, unix(7)), or open where we may not look (a program
                   that may not be read, or that closed itself to us by PR_SET_DUMPABLE)
"""

import os

from jail.kernel import files, libc
from jail.kernel.syscalls import number
from jail.light import Final, Iterator, NamedTuple, Sequence, suppress

DESCRIPTORS: Final = 20_000
"""Descriptors of all processes together that one look goes through; past it more may be out of sight."""
KCMP_VM: Final = 1
KCMP_FILES: Final = 2
"""<linux/kcmp.h>"""
_MEMFD: Final = "/memfd:"
"""How the kernel names what memfd_create(2) made, and only that (mm/memfd.c)."""


class Held(NamedTuple):
    """Bytes of objects whose size is `known`; how far into others their mappings reach, `reach`; whether
    something may be `hidden`.
    """

    known: int
    reach: int
    hidden: bool


class _Kind(NamedTuple):
    """The file system that all such objects lie in, one for the whole kernel (shm_mnt, mm/shmem.c): how
    stat(2), maps and fdinfo name it.
    """

    device: int
    in_maps: str
    mount: str


def held(pids: Sequence[int]) -> Held:
    """What these processes hold. Raises nothing: one that has just ended holds nothing."""
    search = _Search(_kind())
    for pid in pids:
        search.opened(f"/proc/{pid}/exe")
        for table in _tables(pid):
            search.open_in(table)
    reaches: dict[int, int] = {}
    for pid in pids:
        search.mapped(pid, reaches)
    return search.found(reaches)


def same(what: int, one: int, other: int) -> bool:
    """Whether two tasks share their KCMP_VM or KCMP_FILES (kcmp(2)); False, too, where nobody can tell."""
    try:
        return libc.syscall("kcmp", number("kcmp"), one, other, what, 0, 0) == 0
    except OSError:
        return False


def segments(fd: int) -> int:
    """Bytes that System V segments take, attached or not, swapped out or not, by the open /proc/sysvipc/shm
    of their namespace (proc_sysvipc(5)).
    """
    text = b""
    while piece := os.pread(fd, 1 << 16, len(text)):  # a page at a time (seq_file)
        text += piece
    return sum(sum(map(int, line.split()[-2:])) for line in text.splitlines()[1:])


def _kind() -> _Kind:
    fd = os.memfd_create("jail-looks", os.MFD_CLOEXEC)
    try:
        device = os.fstat(fd).st_dev
        mount = _field(files.content(f"/proc/self/fdinfo/{fd}"), "mnt_id:")
    finally:
        os.close(fd)
    return _Kind(device, f"{os.major(device):02x}:{os.minor(device):02x}", mount)


def _tables(pid: int) -> Iterator[str]:
    """A folder of /proc for each table of descriptors of this process."""
    yield f"/proc/{pid}"
    for thread in _threads(pid)[1:]:
        if not same(KCMP_FILES, pid, thread):
            yield f"/proc/{pid}/task/{thread}"


class _Search:
    """`sizes` of objects by inode, and the tables of descriptors that may not be followed."""

    def __init__(self, kind: _Kind) -> None:
        self._kind = kind
        self._sizes: dict[int, int] = {}
        self._left = DESCRIPTORS
        self._closed: list[str] = []
        self._in_flight = False

    def opened(self, path: str) -> None:
        """Count what this link leads to, if it is of our kind."""
        with suppress(OSError):
            # Not before its name is known: a file of a server that does not answer would hold us.
            if os.readlink(path).startswith(_MEMFD):
                self._count(os.stat(path))

    def _count(self, found: os.stat_result) -> None:
        if found.st_dev == self._kind.device:
            self._sizes[found.st_ino] = found.st_blocks * 512

    def open_in(self, table: str) -> None:
        """Count what is open in one table."""
        names = _names(f"{table}/fd")
        if names is None:
            self._closed.append(table)
            return
        for name in self._within(names):
            try:
                target = os.readlink(f"{table}/fd/{name}")
            except OSError:
                continue
            if target.startswith(_MEMFD):
                self.opened(f"{table}/fd/{name}")
            elif target.startswith("socket:"):
                told = files.content(f"{table}/fdinfo/{name}")
                self._in_flight = self._in_flight or _in_flight(told)

    def _within(self, names: list[str]) -> list[str]:
        allowed = names[: max(0, self._left)]
        self._left -= len(names)
        return allowed

    def mapped(self, pid: int, reaches: dict[int, int]) -> None:
        """Objects by the mappings of one process (proc_pid_maps(5)); segments have a list of their own."""
        text = ""
        for thread in _threads(pid):  # the first may have ended before others
            text = text or files.content(f"/proc/{pid}/task/{thread}/maps")
        for line in text.split("\n"):  # names are what programs chose, only a newline is escaped
            addresses, _, offset, device, inode, name, *_ = (*line.split(maxsplit=5), *[""] * 6)
            if device != self._kind.in_maps or int(inode) in self._sizes or name.startswith("/SYSV"):
                continue
            first, last = (int(each, 16) for each in addresses.split("-"))
            try:
                self._count(os.stat(f"/proc/{pid}/map_files/{first:x}-{last:x}"))
            except OSError:  # the capability that it takes is root's (proc_pid_map_files(5))
                reach = int(offset, 16) + last - first
                reaches[int(inode)] = max(reaches.get(int(inode), 0), reach)

    def found(self, reaches: dict[int, int]) -> Held:
        """All that was found."""
        reach = sum(most for inode, most in reaches.items() if inode not in self._sizes)
        hidden = self._in_flight or any(map(self._hides, self._closed)) or self._left < 0
        return Held(sum(self._sizes.values()), reach, hidden)

    def _hides(self, table: str) -> bool:
        """Whether descriptors that we may not follow are of objects that nobody else has open."""
        names = _names(f"{table}/fdinfo")
        if names is None:
            return files.content(f"{table}/statm").split(" ")[0] not in ("", "0")  # else it has ended
        for name in self._within(names):
            text = files.content(f"{table}/fdinfo/{name}")
            if _in_flight(text):
                return True
            inode = _field(text, "ino:")
            if _field(text, "mnt_id:") == self._kind.mount and int(inode or 0) not in self._sizes:
                return True
        return False


def _in_flight(fdinfo: str) -> bool:
    """Whether descriptors wait in this socket (unix_show_fdinfo, net/unix/af_unix.c)."""
    return _field(fdinfo, "scm_fds:") not in ("", "0")


def _threads(pid: int) -> list[int]:
    return [pid, *(int(name) for name in _names(f"/proc/{pid}/task") or () if int(name) != pid)]


def _names(folder: str) -> list[str] | None:
    """None: we may not look."""
    try:
        return os.listdir(folder)
    except PermissionError:
        return None
    except OSError:
        return []


def _field(text: str, name: str) -> str:
    for line in text.split("\n"):
        if line.startswith(name):
            return line[len(name) :].strip()
    return ""
