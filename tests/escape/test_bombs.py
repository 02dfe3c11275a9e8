"""H: the bombs. Memory, processes, files in memory, descriptors, output: each ends or is ended, is named at the
end, and meanwhile the host and the supervisor can be used.

Each bomb is bounded by a small policy, so that the machine of the tests is never in danger. As an unprivileged
user here; as root, and in a control group delegated for the test, where the tests run as root: on a host that
has no groups to delegate, test_delegated.py runs the latter. There each page and each fork takes a hundred
times as long, so the bombs are no larger than shows what they show. What is named is the same whether a
control group keeps the limit or jail itself does.
"""

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jail.kernel import cgroups
from jail.launch.relay import CHUNK
from support.answers import new_jail
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, Jail, make_jail
from support.running import Running, until

MEMORY, PROCESSES, OPEN_FILES, TMP, OUTPUT, HELD = 64, 32, 256, 4, 2, 4
POLICY = f"""
name = "bombs"
[files]
system = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"]
[limits]
memory = "{MEMORY} MiB"
processes = {PROCESSES}
open_files = {OPEN_FILES}
tmp = "{TMP} MiB"
output = "{OUTPUT} MiB"
held = "{HELD} MiB"
timeout = "5m"
[accept]
losses = ["limits-memory", "landlock", "landlock-rights"]
"""
USER = 65533
"""Who has no account here, as in scripts/test."""
SETTLED = (1.0, 5.0, 25.0)
"""Seconds after which a look has seen what stays as it is; with so small a limit they come often. Where the
machine is busy they come late, and the bomb is given longer.
"""


TERM = 128 + signal.SIGTERM


class Bomb(NamedTuple):
    """`program` prints `ready` first. `code` and `reason` as in the status file, of which `detail` holds a part;
    `entry`: which limit the ledger names, "" for none.
    """

    program: str
    code: int
    reason: str
    detail: str = ""
    entry: str = ""

    @property
    def ends(self) -> bool:
        """Without us."""
        return self.code != TERM


READY = "import os, sys, time\nMANY = 24  # times 8 MiB\nos.write(1, b'ready\\n')\n"
BOMBS = {
    "memory": Bomb(
        "kept = []\nwhile True: kept.append(bytes([1]) * (4 << 20))",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "memory of many": Bomb(
        """
for _ in range(20):
    if os.fork() == 0:
        kept = bytes([1]) * (20 << 20)
        time.sleep(60)
time.sleep(60)
""",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "memory in no process": Bomb(
        """
import ctypes
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: nobody of this uid may look into it
fd = os.memfd_create("hidden")
while True: os.write(fd, bytes(1 << 20))
""",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "memory in flight": Bomb(
        """
import socket
ends = []
for _ in range(MANY):
    ends.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    fd = os.memfd_create("sent")
    os.write(fd, bytes(8 << 20))
    socket.send_fds(ends[-1][0], [b"x"], [fd])
    os.close(fd)
time.sleep(60)
""",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "memory behind mappings": Bomb(
        """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for number in range(MANY):
    fd = os.memfd_create("mapped") if number % 2 else -1
    if fd >= 0: os.truncate(fd, 8 << 20)
    flags = mmap.MAP_SHARED | (0 if number % 2 else mmap.MAP_ANONYMOUS)
    place = libc.mmap(None, ctypes.c_size_t(8 << 20), 3, flags, fd, ctypes.c_long(0))
    if fd >= 0: os.close(fd)
    ctypes.memset(place, 1, 8 << 20)
    libc.madvise(ctypes.c_void_p(place), ctypes.c_size_t(8 << 20), mmap.MADV_DONTNEED)
time.sleep(60)
""",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "memory in segments": Bomb(
        """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(MANY):
    place = libc.shmat(libc.shmget(0, 8 << 20, 0o1600), None, 0)
    ctypes.memset(place, 1, 8 << 20)
    libc.shmdt(ctypes.c_void_p(place))
time.sleep(60)
""",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "memory of a process whose first thread has ended": Bomb(
        """
import ctypes, threading
def rest():
    kept = [bytes([1]) * (8 << 20) for _ in range(MANY)]
    time.sleep(60)
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
""",
        137,
        "memory limit",
        f"more than {MEMORY} MiB",
        "memory",
    ),
    "processes": Bomb(
        """
while True:
    try: os.fork()
    except OSError: time.sleep(1)
""",
        TERM,
        "killed by a signal",
        f"the limit of {PROCESSES} processes was reached",
        "processes",
    ),
    "files in memory": Bomb(
        """
import errno
for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", os.environ["HOME"]):
    try:
        with open(folder + "/bomb", "wb", buffering=0) as file:
            while True: file.write(bytes(1 << 20))
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
time.sleep(60)
""",
        TERM,
        "killed by a signal",
    ),
    "descriptors": Bomb(
        """
for _ in range(20):
    if os.fork() == 0: break
fds = []
while True:
    try: fds.append(os.open("/dev/null", os.O_RDONLY))
    except OSError: time.sleep(1)
""",
        TERM,
        "killed by a signal",
    ),
    "output": Bomb(
        "while True: os.write(1, b'y\\n' * 4096)",
        137,
        "output limit",
        f"more than {OUTPUT} MiB",
        "output",
    ),
    "what is moved away": Bomb(
        """
with open("CLAUDE.md", "wb", buffering=0) as file:
    for _ in range(64): file.write(os.urandom(1 << 18))
    time.sleep(60)
""",
        137,
        "kept-back limit",
        f"more than {HELD} MiB",
        "held",
    ),
}
FIVE = ("memory", "processes", "files in memory", "descriptors", "output")
STARTERS = ("a user", "root")
USABLE = """
import os, subprocess, sys, tempfile
for _ in range(5):
    subprocess.run(["true"], check=True)
fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(500)]
with tempfile.TemporaryFile(dir=sys.argv[1]) as file:
    file.write(bytes(4 << 20))
kept = bytes([1]) * (8 << 20)
"""


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return with_policy(new_jail(installed, tmp_path_factory.mktemp("bombs")))


def with_policy(jail: Jail) -> Jail:
    (jail.home.parent / "bombs.toml").write_text(POLICY)
    return jail


Prepare = Callable[[], object]


def start(jail: Jail, bomb: Bomb, prepare: Prepare | None = None) -> Running:
    policy = ["--policy", str(jail.home.parent / "bombs.toml")]
    return Running(jail, PYTHON, "-I", "-c", READY + bomb.program, options=policy, prepare=prepare)


def use_the_host(jail: Jail, prepare: Prepare | None = None) -> None:
    """As the same uid, outside: fork, open files, write to the disk, take memory."""
    command = [PYTHON, "-I", "-c", USABLE, str(jail.home)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=30, preexec_fn=prepare
    )
    assert done.returncode == 0, done.stderr


def explode(jail: Jail, name: str, prepare: Prepare | None = None) -> Running:
    """One bomb from its start to its end, with all that must hold of it."""
    bomb = BOMBS[name]
    for settled in SETTLED:
        run = until_its_end(jail, bomb, settled, prepare)
        status = run.status()
        if bomb.ends or bomb.detail in status["detail"]:
            break
    assert (status["code"], status["reason"]) == (bomb.code, bomb.reason)
    assert bomb.detail in status["detail"]
    assert bomb.detail in run.errors
    ledger = entries(jail, status["session"])
    assert [entry["which"] for entry in ledger if "which" in entry] == ([bomb.entry] if bomb.entry else [])
    return run


def until_its_end(jail: Jail, bomb: Bomb, settled: float, prepare: Prepare | None) -> Running:
    """One run, which is ended from outside after `settled` seconds where nothing else ends it."""
    with start(jail, bomb, prepare) as run:
        run.ready()
        family = run.family() if not bomb.ends else None
        use_the_host(jail, prepare)
        if not bomb.ends:
            time.sleep(settled)
            run.signal(signal.SIGTERM)
        assert run.wait() == bomb.code, run.errors
    assert family is None or family.left() == []
    return run


def entries(jail: Jail, session: str) -> list[dict[str, Any]]:
    folder = jail.home / ".local/state/jail/sessions" / session
    text = (folder / "ledger.jsonl").read_text(encoding="ascii")
    return [json.loads(line)["fields"] for line in text.splitlines()]


@pytest.mark.parametrize("name", BOMBS)
def test_h1_h2_h4_h5_a_bomb_is_ended_and_named_and_the_host_can_be_used(folder: Jail, name: str) -> None:
    run = explode(folder, name)
    if name == "files in memory":
        assert run.output.split() == ["ENOSPC"] * 5
    if name == "output":
        printed = len("ready\n" + run.output)
        # Where the machine is busy we read late, and a run that was told to end waits for seconds only.
        assert (OUTPUT << 20) - CHUNK <= printed <= (OUTPUT << 20) + 2 * CHUNK
        assert run.output.strip("y\n") == "", "what was read before is delivered whole"


def test_h2_pages_that_forked_processes_share_are_no_bomb(folder: Jail) -> None:
    """The sum of their resident pages is ten times the limit."""
    program = """
kept = bytes([1]) * (32 << 20)
for _ in range(20):
    if os.fork() == 0: time.sleep(0.7); os._exit(0)
time.sleep(0.7)
"""
    with start(folder, Bomb(program, 0, "exited")) as run:
        assert run.ready().wait() == 0, run.errors
    assert run.errors == ""


INNOCENT = """
import ctypes, mmap, socket
ends = socket.socketpair()
shared = mmap.mmap(-1, 1 << 20)
fd = os.memfd_create("small")
os.write(fd, bytes(24 << 20))
if os.fork() == 0:  # as gpg-agent does it
    os.close(fd)
    ctypes.CDLL(None).prctl(4, 0)
    time.sleep(60)
time.sleep(60)
"""


def test_h2_what_others_on_this_host_take_ends_no_run(folder: Jail) -> None:
    """Others are each other, too: three runs have more together than one may, and somebody outside has more."""
    innocent = Bomb(INNOCENT, TERM, "killed by a signal")
    with start(folder, innocent) as one, start(folder, innocent) as two, start(folder, innocent) as three:
        runs = (one, two, three)
        for run in runs:
            run.ready()
        taken = somebody_takes((MEMORY + 32) << 20)
        time.sleep(2 * SETTLED[0])
        assert [run.process.poll() for run in runs] == [None] * 3
        os.close(taken)
        for run in runs:
            run.signal(signal.SIGTERM)
            assert run.wait() == TERM, run.errors


def test_h2_what_others_give_back_hides_no_bomb(folder: Jail) -> None:
    taken = somebody_takes((MEMORY * 4) << 20)
    fill = """
time.sleep(0.5)
fds = [os.memfd_create("x") for _ in range(MANY)]
for fd in fds: os.write(fd, bytes(8 << 20))
time.sleep(60)
"""
    with start(folder, Bomb(fill, 137, "memory limit")) as run:
        run.ready()
        os.close(taken)
        assert run.wait() == 137, run.errors
    assert run.status()["reason"] == "memory limit"


def somebody_takes(size: int) -> int:
    fd = os.memfd_create("outside")
    for _ in range(size >> 20):
        os.write(fd, bytes(1 << 20))
    return fd


def test_h5_exactly_as_much_output_as_allowed_is_delivered(folder: Jail) -> None:
    size = (OUTPUT << 20) - len("ready\n")
    with start(folder, Bomb(f"os.write(1, b'z' * {size})", 0, "exited")) as run:
        assert run.ready().wait() == 0, run.errors
    assert run.output == "z" * size


def test_the_plan_says_who_keeps_memory_within_its_limit(folder: Jail) -> None:
    plan = folder.call("plan", "--policy", folder.home.parent / "bombs.toml", "--", "true").stdout
    by = "by a control group" if cgroups.delegation().folder else "watched by jail"
    assert f"{MEMORY} MiB of memory, {by}" in plan
    assert f"{OUTPUT} MiB printed" in plan


@pytest.mark.root
@pytest.mark.parametrize("name", FIVE)
def test_started_by_root_a_bomb_is_ended_and_named(jail: Jail, name: str) -> None:
    os.chmod(jail.home.parent, 0o755)
    explode(with_policy(jail), name)


# In a control group that was delegated.


class Delegated(NamedTuple):
    """A group that belongs to USER, and the one in it from which jail is started."""

    folder: Path
    shell: Path

    def as_user(self) -> None:
        self.as_root()
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)

    def as_root(self) -> None:
        (self.shell / "cgroup.procs").write_text("0")

    def groups(self) -> list[str]:
        return [path.name for path in self.folder.glob("jail-*")]


@pytest.fixture
def delegated(shared_folder: Path) -> Iterator[Delegated]:
    """Laid out as systemd lays out a user session; needs version 2 with the controllers, as root."""
    with open(shared_folder / "delegated.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of all processes of this suite: the group above is changed
        yield from _delegated()


def _delegated() -> Iterator[Delegated]:
    top = cgroups.delegation()
    assert top.folder, top.why
    folder = Path(top.folder) / f"tests-of-jail-{os.getpid()}"
    given = Delegated(folder, folder / "shell")
    control = Path(top.folder) / "cgroup.subtree_control"
    before = control.read_text().split()
    control.write_text("+memory +pids")
    try:
        given.shell.mkdir(parents=True)
        (folder / "cgroup.subtree_control").write_text("+memory +pids")
        for path in (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control", given.shell):
            os.chown(path, USER, USER)
        os.chown(given.shell / "cgroup.procs", USER, USER)
        yield given
    finally:
        for path in (*folder.glob("jail-*"), given.shell, folder):
            assert cgroups.remove(str(path))
        for name in {"memory", "pids"} - set(before):
            control.write_text(f"-{name}")


@pytest.fixture
def open_jail(installed: Installed, open_folder: Path, request: pytest.FixtureRequest) -> Jail:
    """A workspace of USER, and a home of who starts jail."""
    place = open_folder / f"bombs-{request.node.name.encode().hex()[-40:]}"
    place.mkdir()
    jail = with_policy(make_jail(installed, place))
    starter = 0 if "root" in request.node.name.partition("[")[2] else USER
    cache = open_folder / f"cache-{starter}"  # one start compiles for all
    cache.mkdir(mode=0o700, exist_ok=True)
    for path, owner in ((place, starter), (jail.home, starter), (cache, starter), (jail.workspace, USER)):
        os.chown(path, owner, owner)
    return jail._replace(environment={**jail.environment, "XDG_CACHE_HOME": str(cache)})


@pytest.mark.root
@pytest.mark.groups
@pytest.mark.parametrize(("name", "who"), [*product(FIVE, STARTERS), ("memory in no process", "a user")])
def test_h1_h2_in_a_delegated_group_a_bomb_is_ended_and_named_by_the_kernel(
    open_jail: Jail, delegated: Delegated, who: str, name: str
) -> None:
    prepare = delegated.as_user if who == "a user" else delegated.as_root
    run = explode(open_jail, name, prepare)
    fields = entries(open_jail, run.status()["session"])
    assert f"{MEMORY} MiB of memory, by a control group" in fields[0]["plan"]
    assert "limits-memory" not in fields[0]["losses"]
    (told,) = [entry["detail"] for entry in fields if "which" in entry] or [""]
    assert {"memory": "ended by the kernel", "processes": "times"}.get(name, "") in told
    assert delegated.groups() == [], "the group is gone"


@pytest.mark.root
@pytest.mark.groups
def test_all_that_runs_inside_is_in_the_group_and_the_supervisor_is_not(
    open_jail: Jail, delegated: Delegated
) -> None:
    with start(open_jail, Bomb("time.sleep(60)", TERM, ""), delegated.as_user) as run:
        family = run.ready().family()
        (group,) = delegated.groups()
        inside = {int(line) for line in (delegated.folder / group / "cgroup.procs").read_text().split()}
        assert inside == {family.keeper.pid, family.process_1.pid, *(each.pid for each in family.inside)}
        assert str(family.supervisor.pid) in (delegated.shell / "cgroup.procs").read_text().split()
        values = {name: (delegated.folder / group / name).read_text().strip() for name in LIMITS}
        assert values == LIMITS
        run.signal(signal.SIGTERM)
        run.wait()
    assert delegated.groups() == []


LIMITS = {"memory.max": str(MEMORY << 20), "memory.oom.group": "1", "pids.max": str(PROCESSES - 1)}


@pytest.mark.root
@pytest.mark.groups
def test_after_sigkill_of_the_supervisor_an_empty_group_is_left_and_found(
    open_jail: Jail, delegated: Delegated
) -> None:
    with start(open_jail, Bomb("time.sleep(60)", TERM, ""), delegated.as_user) as run:
        family = run.ready().family()
        (group,) = delegated.groups()
        run.signal(signal.SIGKILL)
        run.wait()
        assert until(lambda: not family.left(), PATIENCE)
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from jail.kernel import cgroups; print([cgroups.remove(path) for path in cgroups.leftovers()])"
    )
    command = [str(open_jail.installed.python), "-I", "-c", program, str(open_jail.installed.packages)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=delegated.as_user)
    assert found.stdout.strip() == "[True]", group
    assert delegated.groups() == []
