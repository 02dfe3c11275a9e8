"""The keeper: builds the walls, starts process 1 inside, and restores mounts that an action on the host
detached.

Rule: it lives in the jail's user and mount namespaces but in the host's pid namespace, so nothing inside can
see or signal it; it is the parent of process 1, which dies with it; it dies with the supervisor. After the
build it holds one capability, CAP_SYS_ADMIN in the jail's own user namespace, for restoring mounts, and reads
nothing that the command writes but the bytes it digests.
"""

import errno
import gc
import os
import select
import time

from jail.errors import EXIT_JAIL, bug
from jail.kernel import cgroups, files, libc, namespaces, privileges, pty
from jail.kernel.filters import Filters
from jail.launch import command, heldsteps, init, restore
from jail.launch.channel import Channel, tell_failure
from jail.launch.steps import Build
from jail.light import NamedTuple, NoReturn, signal
from jail.plan.steps import Plan


class BuiltFrom(NamedTuple):
    """What is compiled once and cached, and what the survey saw: netlink message, filters, inodes of the
    sources. `held`: the folder of the host that the session holds things in, "" for none.
    """

    loopback: bytes
    filters: Filters
    identities: dict[str, files.Identity]
    held: str = ""


class Launch(NamedTuple):
    """What the supervisor hands to the keeper at the fork; `door` leads into the control group, -1: none."""

    start: command.Start
    built_from: BuiltFrom
    orders: int
    launcher: int
    supervisor: int
    with_terminal: bool
    door: int


def run(launch: Launch) -> NoReturn:
    """Be the keeper, from the fork to the end of process 1."""
    control = launch.start.control
    at = "start"
    try:
        privileges.die_with_parent(launch.supervisor)
        libc.named("setsid", os.setsid)
        if launch.door >= 0:
            at = "the control group"
            cgroups.enter(launch.door)
            at = "start"
        _forget_handlers()
        files.close_all_but(_needed(launch))
        built_from = launch.built_from
        build = Build(launch.start.plan, built_from.identities, built_from.loopback, built_from.held)
        if launch.launcher == 0:
            at = "what root opens before it gives up its rights"
            donate(build)
            privileges.become(launch.start.plan.uid, launch.start.plan.gid)
            privileges.die_with_parent(launch.supervisor)
        link: Channel | None = None
        process_1 = watch = -1
        for step in launch.start.plan.steps:
            at = f"{step.verb} {step.target}".rstrip()
            if step.verb == "pivot":
                watch = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            build.run(step)
            if step.verb == "map":
                privileges.die_with_parent(launch.supervisor)
                link, process_1 = _start_init(launch, build)
        if link is None or watch < 0:
            raise bug("a plan without map or pivot")
        at = "the terminal"
        terminal = _open_terminal(control) if launch.with_terminal else ""
        at = "the files in memory"
        if launch.door < 0:
            _show_private(launch.start.plan, control)
        at = "what is watched"
        guard = restore.Guard(build, control)
        _keep_little()
        link.send("built", terminal)
        gc.enable()
        _watch(guard, watch, (link, control), process_1)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, nothing may run on
        tell_failure(control, at, problem)
    os._exit(EXIT_JAIL)


def _forget_handlers() -> None:
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGCHLD,
        signal.SIGTSTP,
    ):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)


def _needed(launch: Launch) -> set[int]:
    start = launch.start
    return {0, 1, 2, start.control.fileno(), start.go, launch.orders, *(fd for fd in start.stdio if fd >= 0)}


def donate(build: Build) -> None:
    """As root, open every source, since the uid of the jail may not reach all of them; ids are mapped where
    the plan says.
    """
    plan = build.plan
    idmap = namespaces.idmap_fd(plan.idmap_from, plan.uid, plan.gid) if plan.idmap_from >= 0 else -1
    writable = {step.target for step in plan.steps if step.verb in ("keep", *heldsteps.TREES)}
    for step in plan.steps:
        if step.verb in ("bind", "keep", "cache", "held-files", *heldsteps.TREES):
            mapped = idmap if step.target in writable or step.target == plan.workspace else -1
            build.donated[(step.source, step.options[0])] = build.open_source(step, mapped)
    if idmap >= 0:
        os.close(idmap)


def _start_init(launch: Launch, build: Build) -> tuple[Channel, int]:
    ours, theirs = Channel.pair()
    pid = libc.named("fork", os.fork)
    if pid == 0:
        ours.close()
        init.run(launch.start, launch.built_from.filters, theirs, launch.orders)
    theirs.close()
    # Only process 1 may hold the ends that tell it of the supervisor's death, and only the command its own
    # stdio.
    for fd in {launch.orders, launch.start.go, *launch.start.stdio}:
        if fd > 2:
            os.close(fd)
    launch.start.control.send("init", pid)
    build.proc_mount = lambda: _receive_proc(ours)
    return ours, pid


def _receive_proc(link: Channel) -> int:
    message = link.receive()
    if message is None or message[0] != "proc":
        raise OSError(errno.EIO, "process 1 could not make /proc and ended")
    return message[2][0]


def _open_terminal(control: Channel) -> str:
    """A pty of the jail's own devpts: its master goes to the supervisor, its slave's path to the command."""
    master, path = pty.open_pair()
    control.send("terminal", fds=(master,))
    os.close(master)
    return path


def _show_private(plan: Plan, control: Channel) -> None:
    """Hand out the file systems in memory, and the list of System V segments of this ipc namespace, which the
    supervisor watches where no control group counts them.
    """
    memory = ["/", *(step.target for step in plan.steps if step.verb == "tmpfs")]
    opened = [os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for folder in memory]
    try:
        opened.append(os.open("/proc/sysvipc/shm", os.O_RDONLY | os.O_CLOEXEC))
        files.require_procfs(opened[-1], "/proc/sysvipc/shm")
    except FileNotFoundError:
        pass  # a kernel without CONFIG_SYSVIPC has no segments
    for fd in opened:
        control.send("private", fds=(fd,))
        os.close(fd)


def _keep_little() -> None:
    privileges.set_dumpable(False)
    privileges.drop_bounding_set()
    privileges.keep_capabilities(privileges.CAP_SYS_ADMIN)
    privileges.no_new_privileges()
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _watch(guard: "restore.Guard", mountinfo: int, ends: tuple[Channel, Channel], process_1: int) -> NoReturn:
    """Until process 1 ends: look after the protected mounts.

    Whenever this namespace's mounts change (proc_pid_mountinfo(5)), and when the supervisor says that names
    moved: a mount goes along with a name that is renamed, and no event of mounts tells of it.
    """
    link, control = ends
    poller = select.poll()
    poller.register(mountinfo, select.POLLPRI)
    for end in ends:
        poller.register(end.fileno(), select.POLLIN)
    guard.check(time.monotonic())
    while True:
        for fd, mask in poller.poll(guard.retry_ms):
            if fd == link.fileno() and mask:
                # Process 1 closes its files before the kernel has killed the others; it is reaped after them
                # (pid_namespaces(7)).
                os.waitpid(process_1, 0)
                os._exit(0)
            if fd == control.fileno() and control.receive() is None:
                os._exit(EXIT_JAIL)
        guard.check(time.monotonic())
