"""Each thing that a launch does to build the walls fails once: nothing is executed, nothing is left, and the
person is told.

CASES.md J9, agent case 31; DESIGN.md, Fail closed. Three ways of failing: the kernel refuses a call (strace),
the kernel refuses a call to one of jail's processes alone (support/refusing.py), a step of the plan raises.
Each has the same harness without a fault as its positive control. Which calls there are is read from an
undisturbed run.
"""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from jail.launch import steps
from support import faults, refusing
from support.aftermath import Before, left_by, look
from support.faults import Call, Ended
from support.installed import Installed
from support.jails import Jail, git, make_jail
from support.refusing import Refusal

ANY: Final = ("",)


class Wall(NamedTuple):
    """A system call that builds or records a wall: the errno that it gets, and how else than by its name the
    message may say what failed: by the path or the step. Pipes between jail's processes need no name of
    their own: ANY.
    """

    error: str = "EPERM"
    said: tuple[str, ...] = ()


CALLS: Final[dict[str, Wall]] = {
    # namespaces, and who lives in them
    "unshare": Wall(),
    "clone": Wall("EAGAIN", ("fork",)),
    "setsid": Wall(),
    "sethostname": Wall(),
    "sendto": Wall("EPERM", ("netlink",)),
    "bind": Wall("EPERM", ("netlink",)),
    "recvfrom": Wall("EPERM", ("netlink",)),
    # mounts
    "open_tree": Wall(),
    "move_mount": Wall(),
    "mount_setattr": Wall(),
    "fsopen": Wall(),
    "fsconfig": Wall(),
    "fsmount": Wall(),
    "pivot_root": Wall(),
    "umount2": Wall(),
    "fchdir": Wall("EPERM", ("pivot",)),
    "chdir": Wall("EPERM", ("pivot", ": '/")),
    "openat2": Wall("EMFILE"),
    "mkdirat": Wall("EPERM", (": '", "folder")),
    "symlinkat": Wall("EPERM", ("link",)),
    "fchmod": Wall("EPERM", ("file", "folder")),
    "fstatfs": Wall(),
    # what the processes give up
    "prlimit64": Wall("EPERM", ("rlimit",)),
    "prctl": Wall(),
    "capset": Wall(),
    "keyctl": Wall(),
    "seccomp": Wall(),
    "landlock_add_rule": Wall(),
    "landlock_restrict_self": Wall(),
    "close_range": Wall("ENOMEM"),
    # how they speak to each other
    "pipe2": Wall("EMFILE", ANY),
    "socketpair": Wall("EMFILE", ANY),
    "socket": Wall("EMFILE", ANY),
    "sendmsg": Wall("ENOBUFS", ANY),
    "recvmsg": Wall("ENOMEM", ANY),
    "dup2": Wall("EMFILE", ANY),
    "fcntl": Wall("EMFILE", ANY),
    "poll": Wall("ENOMEM", ANY),
    # the record, and the watch over what may not appear
    "write": Wall("ENOSPC", ("file",)),
    "mkdir": Wall("ENOSPC", (": '", "folder")),
    "flock": Wall("ENOLCK", ("folder", "index")),
    "renameat": Wall("EIO", ("folder", "head")),
    "inotify_init1": Wall("EMFILE"),
    "inotify_add_watch": Wall("ENOSPC"),
}
NO_WALLS: Final = {
    "prctl(PR_CAPBSET_READ": "the import of _prctl asks which capabilities there are",
    "prlimit64(0, RLIMIT_STACK": "the C library asks for its stack",
    "socket(AF_UNIX, SOCK_STREAM": "the C library looks for a name service, which need not be there",
}

NO_MESSAGE, NO_STATUS = "no message of jail's", "no status file"
SILENCED: Final = {"write(2, ": NO_MESSAGE, "status.json": NO_STATUS}
"""Calls that say what failed: where they fail themselves, they cannot say it."""

PDEATHSIG, DUMPABLE, CAPBSET_DROP, NO_NEW_PRIVS, CAP_AMBIENT = 1, 4, 24, 38, 47
"""<linux/prctl.h>"""
RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_NOFILE, F_DUPFD_CLOEXEC, SIGPIPE = 4, 6, 7, 1030, 13

GIVEN_UP: Final[tuple[tuple[str, dict[int, int]], ...]] = (
    ("prctl", {0: PDEATHSIG}),
    ("prctl", {0: DUMPABLE}),
    ("prctl", {0: CAPBSET_DROP, 1: 0}),
    ("prctl", {0: CAPBSET_DROP, 1: 40}),
    ("prctl", {0: CAP_AMBIENT}),
    ("prctl", {0: NO_NEW_PRIVS}),
    ("capset", {}),
)
REFUSAL_SAID: Final = {"openat": (": '",), "rt_sigaction": ANY, "rt_sigprocmask": ANY}
REFUSALS: Final = (
    *(
        Refusal(process, call, errno.EPERM, where)
        for process in ("keeper", "init")
        for call, where in GIVEN_UP
    ),
    Refusal("keeper", "setsid", errno.EPERM),
    Refusal("keeper", "close_range", errno.ENOMEM),
    Refusal("keeper", "clone", errno.EAGAIN),
    Refusal("init", "keyctl", errno.EDQUOT),
    Refusal("init", "landlock_create_ruleset", errno.ENOMEM),
    Refusal("init", "landlock_add_rule", errno.EINVAL),
    Refusal("init", "landlock_restrict_self", errno.E2BIG),
    Refusal("init", "seccomp", errno.ENOMEM),
    Refusal("init", "pipe2", errno.EMFILE),
    Refusal("init", "clone", errno.EAGAIN),
    Refusal("init", "openat", errno.EMFILE),
    Refusal("command", "prctl", errno.EPERM, {0: DUMPABLE}),
    Refusal("command", "setsid", errno.EPERM),
    Refusal("command", "fcntl", errno.EMFILE, {1: F_DUPFD_CLOEXEC}),
    Refusal("command", "dup2", errno.EBUSY),
    Refusal("command", "chdir", errno.EACCES),
    Refusal("command", "rt_sigaction", errno.EINVAL, {0: SIGPIPE}),
    Refusal("command", "rt_sigprocmask", errno.EINVAL),
    Refusal("command", "prlimit64", errno.EPERM, {1: RLIMIT_NPROC}),
    Refusal("command", "prlimit64", errno.EPERM, {1: RLIMIT_NOFILE}),
    Refusal("command", "prlimit64", errno.EPERM, {1: RLIMIT_CORE}),
    Refusal("command", "write", errno.EACCES),  # oom_score_adj
    Refusal("command", "close_range", errno.ENOMEM),
    Refusal("command", "openat", errno.EMFILE),
    Refusal("command", "sendmsg", errno.ENOBUFS),
)


class Judged(NamedTuple):
    """A run with a fault: what happened, what is wrong with it, and what its message leaves unclear."""

    told: str
    wrong: list[str]
    unclear: list[str]


def unclear_in(ended: Ended, names: tuple[str, ...], error: str) -> list[str]:
    """What the message does not say of a fault: `error`, in a call that may be named as in `names`."""
    unclear = []
    if os.strerror(getattr(errno, error)) not in ended.errors and error not in ended.errors:
        unclear.append(f"the message does not say {error}")
    if not any(name in ended.errors for name in names):
        unclear.append(f"the message does not name the call ({names[0]})")
    return unclear


class Launch:
    """One jail that is launched again and again, and the marks that its command would leave."""

    def __init__(self, jail: Jail, folder: Path) -> None:
        self.jail = jail
        self.log = folder / "strace.log"
        self.status = folder / "status.json"
        self.mark = f"jail-fault-{os.getpid()}-{folder.name}"
        self.marker = jail.workspace / "marker"
        self.arguments = [
            *("run", "--status-file", str(self.status), "--hide", "secret", "--hide", "secrets"),
            *("--", "touch", "marker", f"/tmp/{self.mark}"),
        ]
        self.trace: list[Call] = []
        self._judged: dict[str, list[Judged]] = {}

    def ready(self) -> Before:
        """Take away what the last run left, and look before the next one."""
        for path in (self.marker, self.status, self.log):
            path.unlink(missing_ok=True)
        return look(self.jail)

    def hold(self) -> list[str]:
        """The beginning of a command line that holds a tree by an overlay and one by a copy."""
        options = ["run"]
        for name in ("held", "copied"):
            (self.jail.workspace / name).mkdir(exist_ok=True)
            options += ["--hold-path", name]
        return options

    def read_status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.status.read_text())
        return found

    def refused_calls(self, name: str) -> list[Judged]:
        """One run for each point of call `name`, once for all tests that ask."""
        if name not in self._judged:
            wanted = {
                call
                for call in faults.of_the_launch(self.trace)
                if not call.text.startswith(tuple(NO_WALLS))
                and f" = -1 {CALLS[name].error} " not in call.text
            }
            points = faults.points(self.trace, name, wanted)
            runs = [self._refused_call(point) for point in points]
            # Where processes race, a run may end before it makes the last call of another one.
            self._judged[name] = [run for run in runs if run is not None]
        return self._judged[name]

    def _refused_call(self, point: Call) -> Judged | None:
        wall = CALLS[point.name]
        before = self.ready()
        options = faults.injection(point.name, point.number, f"error={wall.error}")
        ended = faults.traced(self.jail, self.mark, self.log, self.arguments, *options)
        fault = faults.injected(self.log)
        if not fault.calls:
            return None
        if ended.code == 0 and not (fault.before_exec or fault.of_the_supervisor):
            return Judged("the command had ended well when another process met the fault", [], [])
        wrong = list(self.complaints(before, ended, ran=not fault.before_exec))
        unclear = unclear_in(ended, (point.name, *wall.said), wall.error)
        for what, silenced in SILENCED.items():
            if any(what in call for call in fault.calls):
                wrong = [complaint for complaint in wrong if complaint != silenced]
                unclear = []
        told = f"{point.text[:90]} (number {point.number}): exit {ended.code}: {ended.errors.strip()!r}"
        return Judged(told, wrong, unclear)

    def complaints(self, before: Before, ended: Ended, *, ran: bool = False) -> Iterator[str]:
        """What is wrong with a run that had a fault; `ran`: the command may have run."""
        if ended.hung:
            yield "it hung"
            return
        if ended.code not in (78, 125):
            yield f"exit code {ended.code}"
        if self.marker.exists() and not ran:
            yield "the command was executed"
        if "Traceback" in ended.errors or not ended.errors.startswith("jail: "):
            yield NO_MESSAGE
        if not self.status.exists():
            # Where it is the status file itself that cannot be written, the message says so.
            if "the status file cannot be written" not in ended.errors:
                yield NO_STATUS
        elif self.read_status()["code"] != ended.code or self.read_status()["reason"] == "exited":
            yield f"the status file says {self.read_status()}"
        yield from left_by(self.jail, self.mark, before)


@pytest.fixture(scope="module")
def launch(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """A launch whose plan has every verb, traced once without a fault: the positive control of all that
    follows.
    """
    folder = tmp_path_factory.mktemp("faults")
    jail = make_jail(installed, folder)
    (jail.workspace / "RESEARCH.md").write_text("a finding\n")
    (jail.workspace / "secret").write_text("hidden\n")
    (jail.workspace / "secrets").mkdir()
    git(jail.workspace, "init", "-q")
    found = Launch(jail, folder)
    assert (
        faults.run(jail, found.mark, [str(jail.installed.command), *found.arguments]).code == 0
    )  # warms caches
    before = found.ready()
    ended = faults.traced(jail, found.mark, found.log, found.arguments)
    assert (ended.code, ended.errors, found.marker.exists()) == (0, "", True)
    assert found.read_status()["reason"] == "exited"
    assert left_by(jail, found.mark, before) == []
    found.trace = faults.calls(found.log)
    yield found
    faults.kill_marked(found.mark)


def test_every_call_of_the_table_is_made_by_a_launch(launch: Launch) -> None:
    made = {call.name for call in faults.of_the_launch(launch.trace)}
    assert sorted(set(CALLS) - made) == []


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_ends_the_launch(launch: Launch, name: str) -> None:
    judged = launch.refused_calls(name)
    assert judged, f"no call of {name} can be singled out"
    wrong = [f"{run.told}: {complaint}" for run in judged for complaint in run.wrong]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("name", CALLS)
def test_the_message_names_the_refused_call(launch: Launch, name: str) -> None:
    unclear = [f"{run.told}: {complaint}" for run in launch.refused_calls(name) for complaint in run.unclear]
    assert unclear == [], "\n".join(unclear)


def test_a_kernel_that_does_not_tell_of_landlock_has_none_and_the_loss_is_said(launch: Launch) -> None:
    launch.ready()
    options = faults.injection("landlock_create_ruleset", 1, "error=EOPNOTSUPP")
    ended = faults.traced(launch.jail, launch.mark, launch.log, launch.arguments, *options)
    assert faults.injected(launch.log).calls
    assert "landlock" in ended.errors
    assert ended.code == 78 or launch.marker.exists()


def test_without_a_fault_the_driver_runs_the_command(launch: Launch) -> None:
    before = launch.ready()
    ended = refusing.refused(launch.jail, launch.mark, None, launch.arguments)
    assert (ended.code, ended.errors, launch.marker.exists()) == (0, "", True)
    assert left_by(launch.jail, launch.mark, before) == []


def _name(refusal: Refusal) -> str:
    return f"{refusal.process}-{refusal.call}-{'-'.join(map(str, refusal.arguments.values()))}".rstrip("-")


@pytest.mark.parametrize("refusal", REFUSALS, ids=_name)
def test_a_call_refused_to_one_process_ends_the_launch(launch: Launch, refusal: Refusal) -> None:
    before = launch.ready()
    ended = refusing.refused(launch.jail, launch.mark, refusal, launch.arguments)
    assert list(launch.complaints(before, ended)) == [], ended.errors
    if refusal.call == "sendmsg":
        return  # the fault itself cannot be told: what is told is that the process ended
    said = CALLS[refusal.call].said if refusal.call in CALLS else REFUSAL_SAID.get(refusal.call, ())
    assert unclear_in(ended, (refusal.call, *said), errno.errorcode[refusal.errno]) == [], ended.errors


@pytest.mark.parametrize("index", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("verb", steps.TABLE)
def test_a_step_that_fails_ends_the_launch(launch: Launch, verb: str, index: int) -> None:
    held = launch.hold()
    before = launch.ready()
    ended = refusing.step_failed(launch.jail, launch.mark, verb, index, [*held, *launch.arguments[1:]])
    assert list(launch.complaints(before, ended)) == [], ended.errors
    assert unclear_in(ended, (f"the walls could not be built: {verb}",), "EIO") == [], ended.errors


def test_a_disk_that_cannot_keep_the_end_of_the_record_is_told(launch: Launch) -> None:
    before = launch.ready()
    ended = refusing.failed_sync(launch.jail, launch.mark, launch.arguments)
    assert list(launch.complaints(before, ended, ran=True)) == [], ended.errors
    assert unclear_in(ended, ("ledger",), "EIO") == [], ended.errors
    assert launch.marker.exists()
