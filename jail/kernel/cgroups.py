"""Control groups, version 2: a group for everything inside, where this host lets us make one.

Rule: one function for each verb, on plain files; nothing here decides what is done when one cannot be had.
Rules of the kernel that show (Documentation/admin-guide/cgroup-v2.rst): a controller works in a group when
the group above lists it in `cgroup.subtree_control`; a group that does so holds no processes itself, the real
root excepted; who moves a process must be able to write `cgroup.procs` of the target and of the nearest group
above both. So the group is made in the nearest group above us that fulfils all that, beside the one we are
in: of a systemd user session that is `app.slice`, which belongs to the user. Where there is none and we are
the only process of a delegated group (a unit with Delegate=yes, process 1 of a container), we step aside
meanwhile, into a group of our own beneath it. The supervisor is never in the group, and survives when the
kernel ends what is in it.
"""

import errno
import os
import time

from jail.kernel import files, libc
from jail.light import Final, NamedTuple, suppress

NEEDED: Final = ("memory", "pids")
PREFIX: Final = "jail-"
"""How the names of our groups begin; the rest is the session's id."""
ASIDE: Final = "supervisor-"
"""Else this and a pid: a group of `_step_aside`."""
REMOVAL_TRIES: Final = 100
REMOVAL_PAUSE: Final = 0.01
"""A group is removed when the last process has left it, some moments after its parent has seen its end."""


class Delegation(NamedTuple):
    """Where a group can be made: `folder` on the host, or "" and `why` there is none. `memory_most`: bytes
    that the groups above this process leave to it, 0 where none of them says.
    """

    folder: str
    why: str
    memory_most: int = 0


def delegation(proc: str = "/proc/self") -> Delegation:
    """The nearest group above this process in which another can be made with NEEDED; changes nothing."""
    place = _own(proc)
    if isinstance(place, str):
        return Delegation("", place)
    folders = _upwards(*place)
    bounds = [bound for folder in folders if (bound := _number(f"{folder}/memory.max")) > 0]
    most = min(bounds, default=0)
    reasons = []
    for folder in folders:
        problem = _unfit(folder)
        if not problem:
            return Delegation(folder, "", most)
        reasons.append(problem)
    if reasons[0] == IN_USE and _alone(folders[0]):
        return Delegation(folders[0], "", most)
    # That it is not ours is true of every group above a process; what else is amiss says more.
    telling = [reason for reason in reasons if reason != NOT_OURS]
    return Delegation("", telling[0] if telling else NOT_OURS, most)


NOT_OURS: Final = "no control group above this process is delegated to this user"
NOT_THERE: Final = "control groups v2 have no memory and pids controllers here"
IN_USE: Final = "the delegated control group holds processes itself"


def create(parent: str, name: str, memory: int, processes: int) -> str:
    """Make the group `name` in `parent`, which is a `delegation`, with its bounds; returns its folder.

    `memory`: bytes, none of them in swap; the kernel ends all processes in it together when they need more.
    `processes`: with threads. Raises KernelError, and nothing is left then.
    """
    folder = f"{parent}/{name}"
    try:
        if _alone(parent):
            _step_aside(parent)
        lacking = [f"+{one}" for one in NEEDED if one not in _words(f"{parent}/cgroup.subtree_control")]
        if lacking:
            _write(f"{parent}/cgroup.subtree_control", " ".join(lacking))
        libc.named(f"mkdir({folder})", os.mkdir, folder, 0o755)
    except BaseException:
        _step_back(parent)
        raise
    try:
        _write(f"{folder}/memory.max", str(memory))
        _write(f"{folder}/memory.oom.group", "1")
        _write(f"{folder}/pids.max", str(processes))
        if os.path.exists(f"{folder}/memory.swap.max"):  # absent where swap is not accounted
            _write(f"{folder}/memory.swap.max", "0")
        if not 0 < _number(f"{folder}/memory.max") <= memory:
            raise libc.KernelError(errno.EINVAL, f"memory.max of {folder} did not take {memory}")
    except BaseException:
        give_back(folder)
        raise
    return folder


def give_back(folder: str) -> bool:
    """Remove the group of `create`, and stand where we stood before it; whether the group is gone."""
    gone = remove(folder)
    _step_back(folder.rpartition("/")[0])
    return gone


def _alone(folder: str) -> bool:
    """Whether this process is the only one in a group other than the real root, which has no cgroup.type."""
    inside = _words(f"{folder}/cgroup.procs")
    return os.path.exists(f"{folder}/cgroup.type") and inside == [str(os.getpid())]


def _aside(parent: str) -> str:
    return f"{parent}/{PREFIX}{ASIDE}{os.getpid()}"


def _step_aside(parent: str) -> None:
    folder = _aside(parent)
    libc.named(f"mkdir({folder})", os.mkdir, folder, 0o755)
    _write(f"{folder}/cgroup.procs", "0")


def _step_back(parent: str) -> None:
    """As far as it goes: whoever delegated the group takes it away with all that is in it."""
    folder = _aside(parent)
    if not os.path.exists(folder):
        return
    with suppress(OSError):
        lent = [f"-{one}" for one in NEEDED if one in _words(f"{parent}/cgroup.subtree_control")]
        if lent:
            _write(f"{parent}/cgroup.subtree_control", " ".join(lent))
        _write(f"{parent}/cgroup.procs", "0")
    with suppress(OSError):
        os.rmdir(folder)


def door(folder: str) -> int:
    """An fd through which `enter` moves a process into the group, whoever it has become by then."""
    path = f"{folder}/cgroup.procs"
    return libc.named(f"open({path})", os.open, path, os.O_WRONLY | os.O_CLOEXEC)


def enter(fd: int) -> None:
    """Move this process into the group behind `door`; what it forks from now on is born there."""
    libc.named("write(cgroup.procs)", os.write, fd, b"0")


class Counts(NamedTuple):
    """What the kernel counted: ends for want of memory, forks refused, the highest use in bytes."""

    oom_kills: int
    forks_refused: int
    peak: int


def counts(folder: str) -> Counts:
    """What happened in the group so far; zeros for what this kernel does not tell (memory.peak: 5.19)."""
    memory = _events(f"{folder}/memory.events")
    kills = max(memory.get("oom_kill", 0), memory.get("oom_group_kill", 0))
    refused = _events(f"{folder}/pids.events").get("max", 0)
    return Counts(kills, refused, max(0, _number(f"{folder}/memory.peak")))


def kill(folder: str) -> None:
    """End every process in the group (cgroup.kill, 5.14); nothing where there is no such file."""
    with suppress(OSError):
        _write(f"{folder}/cgroup.kill", "1")


def remove(folder: str) -> bool:
    """Remove the group, whose processes have ended or are ending; whether it is gone now."""
    for attempt in range(REMOVAL_TRIES):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY or attempt == REMOVAL_TRIES - 1:
                return False
            if attempt == 0:
                kill(folder)
            time.sleep(REMOVAL_PAUSE)
        else:
            return True
    return False


def leftovers(proc: str = "/proc/self") -> list[str]:
    """Groups of ours without a process in them, beside and above this process: a supervisor was killed before
    it could remove them. One that was made a moment ago for a run that starts now is among them.
    """
    place = _own(proc)
    if isinstance(place, str):
        return []
    found = []
    for folder in _upwards(*place):
        with suppress(OSError):
            for name in os.listdir(folder):
                group = f"{folder}/{name}"
                if name.startswith(PREFIX) and _events(f"{group}/cgroup.events").get("populated") == 0:
                    found.append(group)
    return found


def _own(proc: str) -> tuple[str, str] | str:
    """The folder of the group that a process is in and the one where the mount begins, or why not."""
    mounted = _mounted(f"{proc}/mountinfo")
    if mounted is None:
        return "control groups v2 are not mounted"
    root, point = mounted
    path = ""
    for line in files.content(f"{proc}/cgroup").splitlines():
        if line.startswith("0::"):
            path = line[3:]
    # `/..`: the group lies outside of our cgroup namespace (cgroup_namespaces(7)).
    inside = root in ("/", path) or path.startswith(f"{root}/")
    if not path.startswith("/") or path.startswith("/..") or not inside:
        return "the control group of this process lies outside of what is mounted"
    return (point + path.removeprefix("" if root == "/" else root)).rstrip("/"), point


def _mounted(mountinfo: str) -> tuple[str, str] | None:
    """(group at the root of the mount, folder) of cgroup2; of several the one that shows most."""
    found = []
    for line in files.content(mountinfo).splitlines():
        fields, _, source = line.partition(" - ")
        if source.startswith("cgroup2 "):
            words = fields.split(" ")
            found.append((words[3], words[4]))
    return min(found, key=lambda pair: len(pair[0]), default=None)


def _upwards(folder: str, top: str) -> list[str]:
    found = [folder]
    while found[-1] != top and len(found[-1]) > len(top):
        found.append(found[-1].rpartition("/")[0])
    return found


def _unfit(folder: str) -> str:
    """Why no group with NEEDED can be made in `folder`; "" when one can."""
    if not (os.access(folder, os.W_OK | os.X_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)):
        return NOT_OURS
    if not set(NEEDED) <= set(_words(f"{folder}/cgroup.controllers")):
        return NOT_THERE
    if set(NEEDED) <= set(_words(f"{folder}/cgroup.subtree_control")):
        return ""
    # The real root, which alone has no cgroup.type, may have both.
    occupied = os.path.exists(f"{folder}/cgroup.type") and files.content(f"{folder}/cgroup.procs").strip()
    if not os.access(f"{folder}/cgroup.subtree_control", os.W_OK):
        return NOT_OURS
    return IN_USE if occupied else ""


def _events(path: str) -> dict[str, int]:
    pairs = (line.split() for line in files.content(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _words(path: str) -> list[str]:
    return files.content(path).split()


def _number(path: str) -> int:
    """The number in a file; -1 where there is none: no such file, or `max`."""
    text = files.content(path).strip()
    return int(text) if text.isdigit() else -1


def _write(path: str, text: str) -> None:
    fd = libc.named(f"open({path})", os.open, path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        libc.named(f"write({path}, {text})", os.write, fd, text.encode("ascii"))
    finally:
        os.close(fd)
