"""How much memory everything inside takes together, where no control group counts it.

Rule: the cheap look comes first, and only it comes often. It adds up what must not be missed, twice where
need be; only when that is past the limit does a close look decide, since what ends a night's work must be
true: pages that forked processes share count once, and a mapped file of the host not at all. From the host's
view, so that nothing inside can change an answer: descendants of process 1 are complete, as orphans become
its own children (pid_namespaces(7)).

    cheap     private pages of each process (statm), files in memory (statvfs), and by how much the host's
              shared memory and swap have grown since the start, whoever took it
    close     proportional private pages and swap (smaps_rollup), memfds by their descriptors; of shared
              memory no more than the host has more than at the start

Not seen: System V segments that nobody has attached, and the kernel's own memory (pipes, sockets, inodes). A
program can close itself to us (PR_SET_DUMPABLE); then all growth of the host's shared memory counts as its
own. Process 1, which is jail's, is always closed.
"""

import os

from jail.kernel import files
from jail.light import Final, Iterator, Mapping, NamedTuple, Sequence, suppress
from jail.policy.amounts import size_text

FLOOR: Final = (16, 1 << 30)
"""The host has run out of memory at less than this part of it, or this many bytes, if that is less."""
LOOKED_AT: Final = 8192
"""Threads whose children are asked for in one look, some 0.1 s; what is past it is not counted."""
FDS_LOOKED_AT: Final = 20_000
"""Descriptors of all processes together that one close look goes through."""
NEARLY: Final = 64
"""The last part of so many of the processes allowed: who is there is refused more, or will be at once."""
PAGE: Final = os.sysconf("SC_PAGESIZE")


class Look(NamedTuple):
    """`over`: more memory than allowed; `room`: bytes until then at least; `crowded`: as many processes as
    allowed; `said`: what was found, for the record.
    """

    over: bool
    room: int
    crowded: bool
    said: str


class Process(NamedTuple):
    """Bytes of one process: `anonymous` and `shared` memory, and whether it is `hidden` from a close look."""

    anonymous: int
    shared: int
    hidden: bool


class Host(NamedTuple):
    """Bytes of the host's memory (proc_meminfo(5)): `shared` is every file in memory and shared mapping."""

    available: int
    floor: int
    shared: int
    swapped: int

    @classmethod
    def read(cls, meminfo: str) -> "Host":
        """From the text of /proc/meminfo."""
        found = _fields(meminfo, ("MemTotal", "MemAvailable", "Shmem", "SwapTotal", "SwapFree"))
        floor = min(found["MemTotal"] // FLOOR[0], FLOOR[1])
        return cls(found["MemAvailable"], floor, found["Shmem"], found["SwapTotal"] - found["SwapFree"])

    def since(self, before: "Host") -> tuple[int, int]:
        """By how much more is shared and swapped than before."""
        return max(0, self.shared - before.shared), max(0, self.swapped - before.swapped)


class Watch:
    """Looks at the descendants of `process_1`; `private` are fds of the file systems in memory, `before` is
    /proc/meminfo as it was when the command started.
    """

    def __init__(
        self, process_1: int, private: Sequence[int], limits: Mapping[str, int], before: str
    ) -> None:
        self._process_1 = process_1
        self._private = private
        self._limits = limits
        self._before = Host.read(before)

    def look(self) -> Look:
        """Look once."""
        pids, tasks = family(self._process_1)
        most = self._limits["memory_bytes"]
        ours = sum(map(_in_memory, self._private))
        host = Host.read(files.content("/proc/meminfo"))
        shared, swapped = host.since(self._before)
        used = sum(map(_private_pages, pids)) + max(ours, shared) + swapped
        processes = self._limits["processes"]
        # Process 1 is among them, the keeper is not.
        crowded = tasks + 1 >= processes - processes // NEARLY
        if used > most:
            used = self._close_look(pids, ours, shared)
        # What no look can attribute (buffers of sockets and pipes) has the host short of memory in the end;
        # the kernel would then begin with what is inside, too.
        short = host.available < host.floor and self._before.available - host.available > most // 2
        said = f"{size_text(used >> 20 << 20)} in {len(pids)} processes"
        if short:
            said += "; the host is short of memory"
        return Look(used > most or short, max(0, most - used), crowded, said)

    def _close_look(self, pids: Sequence[int], ours: int, growth: int) -> int:
        found = [_closely(pid) for pid in pids]
        anonymous = sum(each.anonymous for each in found)
        # Process 1 is closed to us as to all inside, and jail's own: it shares nothing.
        if any(each.hidden for pid, each in zip(pids, found, strict=True) if pid != self._process_1):
            return anonymous + max(ours, growth)
        shared = ours + _memfds(pids) + sum(each.shared for each in found)
        return anonymous + max(ours, min(shared, growth))


def family(pid: int) -> tuple[list[int], int]:
    """`pid` and its descendants, and how many threads they have together."""
    pids, waiting, tasks = list[int](), [pid], 0
    while waiting:
        one = waiting.pop()
        try:
            threads = os.listdir(f"/proc/{one}/task")
        except OSError:
            continue
        pids.append(one)
        for thread in threads[: max(0, LOOKED_AT - tasks)]:
            waiting += map(int, files.content(f"/proc/{one}/task/{thread}/children").split())
        tasks += len(threads)
    if len(pids) == 1 and not os.path.exists(f"/proc/{pid}/task/{pid}/children"):
        return _family_without_children_files(pid)
    return pids, tasks


def _family_without_children_files(pid: int) -> tuple[list[int], int]:
    """The same on a kernel without CONFIG_PROC_CHILDREN: psutil goes through every process of the host."""
    import psutil

    pids, tasks = list[int](), 0
    with suppress(psutil.Error):
        top = psutil.Process(pid)
        for process in (top, *top.children(recursive=True)):
            with suppress(psutil.Error):
                tasks += process.num_threads()
                pids.append(process.pid)
    return pids, tasks


def _private_pages(pid: int) -> int:
    """Resident pages that are neither of a file nor shared, in bytes (proc_pid_statm(5))."""
    words = files.content(f"/proc/{pid}/statm").split()
    return max(0, int(words[1]) - int(words[2])) * PAGE if len(words) > 2 else 0


def _closely(pid: int) -> Process:
    found = _fields(files.content(f"/proc/{pid}/smaps_rollup"), ("Rss", "Pss_Anon", "Pss_Shmem", "SwapPss"))
    if not found["Rss"]:
        pages = _private_pages(pid)  # a process that has just ended has none
        return Process(pages, 0, hidden=pages > 0)
    return Process(found["Pss_Anon"] + found["SwapPss"], found["Pss_Shmem"], hidden=False)


def _memfds(pids: Sequence[int]) -> int:
    """Bytes of all memfds that somebody has open (memfd_create(2)), each once."""
    found: dict[tuple[int, int], int] = {}
    for path in _descriptors(pids):
        with suppress(OSError):
            if os.readlink(path).startswith("/memfd:"):
                seen = os.stat(path)
                found[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
    return sum(found.values())


def _descriptors(pids: Sequence[int]) -> Iterator[str]:
    left = FDS_LOOKED_AT
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                yield entry.path
                left -= 1
                if left <= 0:
                    return


def _in_memory(fd: int) -> int:
    """Bytes that the files of a tmpfs take (statvfs(3))."""
    found = os.fstatvfs(fd)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _fields(text: str, names: Sequence[str]) -> dict[str, int]:
    """Figures in kB of lines `Name: 12 kB`, in bytes; 0 for what is not there."""
    found = dict.fromkeys(names, 0)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in found:
            found[name] = int(value.split()[0]) << 10
    return found
