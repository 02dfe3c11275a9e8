"""How much memory everything inside takes together, where no control group counts it.

Rule: the cheap look comes first, and only it comes often. It adds up what must not be missed, twice or more
where need be; only when that is past the limit does a close look decide, since what ends a night's work must
be true: pages that forked processes share count once, a mapped file of the host not at all, and what others
on this host take never. From the host's view, so that nothing inside can change an answer: descendants of
process 1 are complete, as orphans become its own children (pid_namespaces(7)).

    cheap     private pages of each process (statm), and all that the host has of shared memory, which files
              in memory (statvfs) are part of, and has swapped out
    close     proportional private pages and swap (smaps_rollup), files in memory, and shared memory by its
              objects (sharedmemory.py), or by mapped pages where those are more. Where something may be
              hidden from that, what the host's shared memory has grown by since the start counts as taken
              inside; said twice in a row, as descriptors that are just being sent, or a process that is just
              being started, hide only for a moment

Not seen: the kernel's own memory (pipes, sockets, inodes); of an object that is mapped only, and whose
descriptor is closed, pages past its mappings (by root they are); hidden pages that were swapped out, or as
many as others gave back since the start. For these, there is the look at what the host has left.
"""

import os
import stat

from jail.kernel import files
from jail.launch import sharedmemory
from jail.light import Final, Mapping, NamedTuple, Sequence, suppress
from jail.policy.amounts import size_text

FLOOR: Final = (16, 1 << 30)
"""The host has run out of memory at less than this part of it, or this many bytes, if that is less."""
LOOKED_AT: Final = 8192
"""Threads whose children are asked for in one look, some 0.1 s; what is past it is not counted."""
LARGE: Final = 64
"""Processes with such a part of what is allowed are asked whether they are one address space (vfork(2))."""
NEARLY: Final = 64
"""The last part of so many of the processes allowed: who is there is refused more, or will be at once."""
THREADS: Final = 64
"""Of a process whose first thread has ended, so many others are asked for what they have in common."""
PAGE: Final = os.sysconf("SC_PAGESIZE")


class Look(NamedTuple):
    """`over`: more memory than allowed; `room`: bytes until then at least; `crowded`: as many processes as
    allowed; `said`: what was found, for the record.
    """

    over: bool
    room: int
    crowded: bool
    said: str


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


class Watch:
    """Looks at the descendants of `process_1`; `private` are fds of the file systems in memory and of the
    jail's /proc/sysvipc/shm, `before` is /proc/meminfo as it was when the command started.
    """

    def __init__(
        self, process_1: int, private: Sequence[int], limits: Mapping[str, int], before: str
    ) -> None:
        self._process_1 = process_1
        self._folders = [fd for fd in private if stat.S_ISDIR(os.fstat(fd).st_mode)]
        self._segments = [fd for fd in private if fd not in self._folders]
        self._limits = limits
        self._before = Host.read(before)
        self._suspected = False

    def look(self) -> Look:
        """Look once."""
        pids, tasks = family(self._process_1)
        most = self._limits["memory_bytes"]
        ours = sum(map(_in_memory, self._folders)) + sum(map(sharedmemory.segments, self._segments))
        host = Host.read(files.content("/proc/meminfo"))
        used = sum(map(_private_pages, pids)) + max(ours, host.shared) + host.swapped
        processes = self._limits["processes"]
        # Process 1 is among them, the keeper is not.
        crowded = tasks + 1 >= processes - processes // NEARLY
        suspected, self._suspected = self._suspected, False
        if used > most:
            used = self._close_look(pids, ours, host, suspected)
        # What no look can attribute (buffers of sockets and pipes) has the host short of memory in the end;
        # the kernel would then begin with what is inside, too.
        short = host.available < host.floor and self._before.available - host.available > most // 2
        said = f"{size_text(used >> 20 << 20)} in {len(pids)} processes"
        if short:
            said += "; the host is short of memory"
        return Look(used > most or short, max(0, most - used), crowded, said)

    def _close_look(self, pids: Sequence[int], ours: int, host: Host, suspected: bool) -> int:
        """Bytes in use; no more than allowed while they may be more, which was not suspected before."""
        most, inside = self._limits["memory_bytes"], pids[1:]
        private, mapped = _closely(inside, most // LARGE)
        # The pages of process 1 are its own; it holds no objects, and shows us neither.
        private += sum(map(_private_pages, pids[:1]))
        if (all_shared := max(ours, host.shared) + host.swapped) <= most - private:
            return private + all_shared
        held = sharedmemory.held(inside)
        growth, objects = host.shared - self._before.shared, ours + held.known
        used = private + max(objects, mapped)
        guess = max(used, private + (growth if held.hidden else min(objects + held.reach, growth)))
        self._suspected = used <= most < guess
        return guess if suspected or not self._suspected else most


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
    words = _of_a_thread(pid, "statm", "0 ").split()
    return max(0, int(words[1]) - int(words[2])) * PAGE if len(words) > 2 else 0


def _of_a_thread(pid: int, name: str, ended: str) -> str:
    """A file of a process; of another thread where the first has ended (pthread_exit(3)), as it has no memory
    then: where the text is "", or begins with `ended`.
    """
    text = files.content(f"/proc/{pid}/{name}")
    if text and not text.startswith(ended):
        return text
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task")[:THREADS]:
            found = files.content(f"/proc/{pid}/task/{thread}/{name}")
            if found and not found.startswith(ended):
                return found
    return text


def _closely(pids: Sequence[int], large: int) -> tuple[int, int]:
    """Their proportional private pages and swap, and shared pages that they have mapped; of processes with at
    least `large` bytes, those of one address space once.
    """
    private, shared, alike = 0, 0, list[int]()
    for pid in pids:
        text = _of_a_thread(pid, "smaps_rollup", "\0")
        fields = _fields(text, ("Rss", "Pss_Anon", "SwapPss", "Pss_Shmem"))
        # It may not be looked into: pages that it shares with its parent count twice.
        own = fields["Pss_Anon"] + fields["SwapPss"] if fields["Rss"] else _private_pages(pid)
        if own + fields["Pss_Shmem"] >= large and len(alike) <= LARGE:
            if any(sharedmemory.same(sharedmemory.KCMP_VM, pid, other) for other in alike):
                continue
            alike.append(pid)
        private, shared = private + own, shared + fields["Pss_Shmem"]
    return private, shared


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
