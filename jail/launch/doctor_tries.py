"""Tries: each wall put up for a moment in a child process that then ends, so that nothing of it stays.

Rule: what can be tried is tried, as the uid that the command would have, with the functions that a run uses;
a version number never stands for a try. A try changes nothing that outlives its process, and a child that
does not answer is killed. Every module is imported here, before any fork; not `jail.kernel.privileges`, as
python-prctl may be missing: the calls of prctl(2) that a try needs are here by number.
"""

import _socket
import errno
import json
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.kernel import files, libc, mounts, namespaces, netlink
from jail.kernel.syscalls import number
from jail.launch.doctor_facts import NO_ERRNO, Tried

SECONDS: Final = 10.0
"""Until a try is given up: each takes milliseconds; a kernel that loads a module for it takes a second."""
ANSWER_BYTES: Final = 1 << 16
"""Most of one child's answer; the probes of a whole run take some 2 KiB."""
_TEXT: Final = 2000
BECOME: Final = "setresuid("
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_DROP: Final = 24
"""<linux/prctl.h>"""
_SAFE: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV


class As(NamedTuple):
    """Who tries, and where: `uid` and `gid` are taken on when root asks; `scratch` is an empty folder that is
    theirs, "" for none; `folder` is the current one.
    """

    uid: int
    gid: int
    scratch: str
    folder: str


def apart(
    work: Callable[[], object], who: As | None = None, seconds: float = SECONDS
) -> tuple[Tried, object]:
    """Do `work` in a child that ends; how that went, and what it returned (what JSON can carry)."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        _answer(theirs, work, who)
    os.close(theirs)
    try:
        raw = _read(ours, time.monotonic() + seconds)
        if raw is None:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(ours)
        _, status = os.waitpid(pid, 0)
    if raw is None:
        return Tried(NO_ERRNO, "", f"no answer within {seconds:g} s"), None
    if os.WIFSIGNALED(status):
        return Tried(NO_ERRNO, "", f"killed by {signal.Signals(os.WTERMSIG(status)).name}"), None
    number, call, text, value = json.loads(raw)
    return Tried(number, call, text), value


def attempt(work: Callable[[], str], who: As | None = None) -> Tried:
    """As `apart`, for a try that returns what it met as text."""
    tried, value = apart(work, who)
    return tried._replace(text=str(value)) if tried.worked else tried


def _answer(fd: int, work: Callable[[], object], who: As | None) -> None:
    value: object = None
    try:
        _call("prctl(PR_SET_PDEATHSIG)", "prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if who is not None:
            _become(who)
        value = work()
        found = Tried(0)
    except OSError as error:
        call = getattr(error, "call", "") or str(error.filename or "")
        found = Tried(error.errno or NO_ERRNO, call, str(error)[:_TEXT])
    except JailError as error:
        found = Tried(NO_ERRNO, "", "; ".join(filter(None, (error.message, error.where)))[:_TEXT])
    except RuntimeError as error:  # a try's own word: the wall was put up and did not do what it is for
        found = Tried(NO_ERRNO, "", str(error)[:_TEXT])
    except BaseException as error:  # noqa: BLE001 - the child's one answer: whatever happened is told, and it ends
        found = Tried(NO_ERRNO, "", f"{type(error).__name__}: {error}"[:_TEXT])
    try:
        os.write(fd, json.dumps((*found, value)).encode())
    finally:
        os._exit(0)


def _become(who: As) -> None:
    os.chdir(who.scratch or "/")
    if os.geteuid() == 0:
        try:
            os.setgroups([])
            os.setresgid(who.gid, who.gid, who.gid)
            os.setresuid(who.uid, who.uid, who.uid)
        except OSError as error:
            raise libc.KernelError(error.errno or errno.EPERM, f"{BECOME}{who.uid})") from error
        _call("prctl(PR_SET_DUMPABLE)", "prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)


def _read(fd: int, deadline: float) -> bytes | None:
    """Everything that the child wrote, or None when it was still busy at `deadline` (monotonic seconds)."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    raw = b""
    while len(raw) < ANSWER_BYTES:
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        part = os.read(fd, ANSWER_BYTES)
        if not part:
            break
        raw += part
    return raw


def _call(text: str, name: str, *arguments: int) -> int:
    return libc.syscall(text, number(name), *arguments)


def _enter(who: As, *kinds: str) -> None:
    namespaces.unshare(("user", *kinds))
    namespaces.map_ids(who.uid, who.gid)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


def become(who: As) -> str:
    """What each try does first when root asks."""
    return f"uid {who.uid}, gid {who.gid}"


def _user(who: As) -> str:
    _enter(who)
    # Where AppArmor restricts user namespaces they can be made, and no capability in them works.
    _call("prctl(PR_CAPBSET_DROP)", "prctl", _PR_CAPBSET_DROP, 0, 0, 0, 0)
    _expect(os.getresuid() == (who.uid,) * 3, f"the uids inside are {os.getresuid()}")
    return f"uid {who.uid} maps itself, and may drop capabilities"


def _tree(who: As) -> int:
    """An fd of an empty folder in memory on top of the root, in an own mount namespace."""
    _enter(who, "mount")
    mounts.make_all_private()
    root = mounts.new_filesystem("tmpfs", {"size": "1048576", "mode": "0755"}, _SAFE)
    place = os.open("/", os.O_PATH | os.O_CLOEXEC)
    mounts.attach(root, place, "/")
    os.close(place)
    return root


def _mount(who: As) -> str:
    root = _tree(who)
    os.mkdir("given", dir_fd=root)
    source = os.open("given", os.O_PATH | os.O_CLOEXEC, dir_fd=root)
    tree = mounts.clone(source, "a folder")
    mounts.set_attributes(tree, _SAFE | mounts.ATTR_RDONLY, "a folder, read-only")
    os.mkdir("given/written", dir_fd=root)
    try:
        os.mkdir("refused", dir_fd=tree)
    except OSError as error:
        _expect(error.errno == errno.EROFS, f"a read-only mount answers {error.strerror}")
        return "a folder in memory, and a read-only view of another"
    raise RuntimeError("a mount that was made read-only was written to")


def _pivot(who: As) -> str:
    mounts.pivot_into(_tree(who))
    _expect(os.listdir("/") == [], "the old root can still be seen")
    return "the host's files are gone from view"


def _pid(who: As) -> str:
    _enter(who, "mount", "pid")
    tried, _ = apart(_first_process)
    if not tried.worked:
        raise libc.KernelError(tried.number, tried.call) if tried.number > 0 else RuntimeError(tried.text)
    return "process 1 of its own, and a /proc that shows no other"


def _first_process() -> None:
    _expect(os.getpid() == 1, f"the first process is {os.getpid()}")
    tree = mounts.new_filesystem("proc", {}, _SAFE | mounts.ATTR_NOEXEC)
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=tree)
    seen = [name for name in os.listdir(readable) if name.isdigit()]
    _expect(seen == ["1"], f"/proc shows processes {' '.join(seen)}")


_LOOPBACK_UP: Final = struct.pack("=IHHII" + "BxHiII", 32, 16, 5, 1, 0, 0, 0, 1, 1, 1)
"""RTM_NEWLINK, request and acknowledge, of interface 1: flags and change are IFF_UP (rtnetlink(7)). Tried
without pyroute2, which has its own check.
"""


def _net(who: As) -> str:
    _enter(who, "net")
    found = netlink.interfaces()
    _expect(found == ["lo"], f"a new network namespace is born with {', '.join(found)}")
    netlink.send(_LOOPBACK_UP, "loopback up")
    server = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0)
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0)
    client.connect(server.getsockname())
    return "loopback only, and it is up"


def _uts(who: As) -> str:
    _enter(who, "uts")
    netlink.set_hostname("jail")
    return "a host name of its own"


def _ipc(who: As) -> str:
    _enter(who, "ipc")
    return "shared memory and queues of its own"


def _cgroup(who: As) -> str:
    _enter(who, "cgroup")
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as own:
        paths = {line.rstrip("\n").split(":", 2)[2] for line in own}
    _expect(paths <= {"/"}, f"the host's groups show: {' '.join(sorted(paths))}")
    return "the host's group names do not show"


def _idmap(who: As) -> str:
    """As root: the current folder with root's files as another uid's."""
    namespaces.unshare(("mount",))
    mounts.make_all_private()
    idmap = namespaces.idmap_fd(0, who.uid, who.gid)
    tree = mounts.clone(files.open_path(os.path.realpath(who.folder)), who.folder)
    mounts.set_attributes(tree, _SAFE, f"{who.folder}, idmapped", idmap=idmap)
    owner, shown = os.stat(who.folder).st_uid, os.fstat(tree).st_uid
    _expect(owner != 0 or shown == who.uid, f"root's folder shows as uid {shown} instead of {who.uid}")
    return f"root's files show as uid {who.uid}'s"


WALLS: Final[dict[str, Callable[[As], str]]] = {
    "user": _user,
    "mount": _mount,
    "pivot": _pivot,
    "pid": _pid,
    "net": _net,
    "ipc": _ipc,
    "uts": _uts,
    "cgroup": _cgroup,
}
"""Namespaces and mounts, in the order of the work; all but the first need the first."""
AS_ROOT: Final[dict[str, Callable[[As], str]]] = {"idmap": _idmap}
"""What only root can do, and needs only when root asks."""
