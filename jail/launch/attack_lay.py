"""The ground of `jail doctor --attack`: a throw-away workspace, canaries around it, listeners.

Rule: everything lies in folders made for it and is gone afterwards, also when the attack is interrupted;
nothing of the person's own is read but names. Each canary is tried from outside first (read, connected to,
alive), so that "not reached" inside is the wall's doing and not an accident.
"""

import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.kernel import libc, privileges
from jail.launch import doctor_tries, places, survey
from jail.launch.attacks import asking, words
from jail.policy.paths import beneath

CANARY: Final = "canary"
HOST_SOCKET: Final = "host.sock"
VARIABLE: Final = "JAIL_ATTACK_CANARY"
PROTECTED: Final = ("RESEARCH.md", "CLAUDE.md", ".envrc")
"""Protected names that are there from the start; others are made inside."""
GIT: Final = {
    "HEAD": "ref: refs/heads/main\n",
    "config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    "hooks/pre-commit": "#!/bin/sh\nexit 0\n",
    "objects/info/.keep": "",
    "refs/heads/.keep": "",
}
"""The least that git takes for a repository (gitrepository-layout(5))."""
PROJECT_POLICY: Final = ".jail.toml"
_IPC_CREATE: Final = 0o3000  # IPC_CREAT | IPC_EXCL of <linux/ipc.h>
_IPC_RMID: Final = 0


class Ground:
    """What was laid out. `truths` is what the program inside is told; `files` must not change."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.mark = f"jail-attack-{secrets.token_hex(8)}"
        self.token = secrets.token_hex(16)
        self.environ = dict(environ)
        self.home = survey.caller_from(environ, "/").home
        self.state = places.own(environ, self.home).state
        self.truths: dict[str, Any] = {"mark": self.mark, "variable": self.token, "home": self.home}
        self.files: dict[str, bytes] = {}
        self.folders: list[str] = []
        self.listeners: dict[str, socket.socket] = {}
        self.uid, self.gid = os.geteuid(), os.getegid()
        self.process = -1
        self.foreign_home = False
        self.workspace = self.session = self.streams = ""

    def keep(self, path: str, text: str, mode: int = 0o600) -> None:
        """Write a file of the command's uid, and remember it."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        self.files[path] = text.encode()

    def give(self, folder: str, uid: int, gid: int) -> None:
        """As root, make all of a folder somebody's; itself last, so that nobody changes it meanwhile."""
        if os.geteuid() == 0:
            for at, folders, names in os.walk(folder, topdown=False):
                for name in (*folders, *names):
                    os.chown(f"{at}/{name}", uid, gid, follow_symlinks=False)
            os.chown(folder, uid, gid)


@contextmanager
def laid(environ: Mapping[str, str], named: Callable[[str], Sequence[str]]) -> Iterator[Ground]:
    """Lay everything out, and take it away again; `named`: what the policy of a run in that workspace names
    there, by paths relative to it.

    Raises JailError where there is no place for it.
    """
    ground = Ground(environ)
    with ExitStack() as stack:
        try:
            base = _folders(ground, stack, named)
            _listeners(ground, stack)
            _hand_over(ground, base)
            _shared_memory(ground, stack)
            ground.truths["i386"] = (
                os.uname().machine == "x86_64" and doctor_tries.apart(asking.interrupt)[0].worked
            )
        except OSError as error:
            raise JailError(
                "the attacks need a place for their canaries",
                where=str(error),
                hint="make /tmp a folder that you can write, or set TMPDIR",
                code=EXIT_CANNOT_ISOLATE,
            ) from error
        ground.process = stack.enter_context(_target(ground.uid, ground.gid))
        ground.truths["pid"] = ground.process
        stack.callback(undisturbed)
        yield ground


ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def undisturbed() -> None:
    """From here on no signal interrupts what is taken away."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)


def _temporary(stack: ExitStack, parent: str, prefix: str) -> str:
    """A new folder; its removal is arranged before it is made, as a signal may come in between."""
    folder = f"{os.path.realpath(parent)}/{prefix}{secrets.token_hex(6)}"
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    os.mkdir(folder, 0o700)
    return folder


def _folders(ground: Ground, stack: ExitStack, named: Callable[[str], Sequence[str]]) -> str:
    parent = tempfile.gettempdir()
    if os.geteuid() == 0 and os.stat(parent).st_uid != 0:
        parent = "/tmp"  # noqa: S108 - whose owner is root: what root makes there nobody can exchange
    base = _temporary(stack, parent, "jail-attack-")
    kept = _temporary(stack, parent, "jail-attack-")
    ground.session, ground.streams = f"{kept}/state", f"{kept}/streams"
    ground.workspace, beside = f"{base}/workspace", f"{base}/beside"
    for folder in (ground.workspace, beside, ground.streams):
        os.mkdir(folder, 0o700)
    ground.keep(f"{beside}/{CANARY}", ground.token)
    ground.folders = [beside]
    at_home = _at_home(ground, stack)
    if at_home:
        ground.folders.append(at_home)
        ground.files[f"{at_home}/{CANARY}"] = ground.token.encode()
    _workspace(ground, {"beside": beside, "home": at_home})
    for name in named(ground.workspace):
        _stand_in(ground.workspace, name)
    ground.truths.update(
        workspace=ground.workspace,
        secret_beside=f"{beside}/{CANARY}",
        secret_in_home=f"{at_home}/{CANARY}" if at_home else "",
        protected=[f"{ground.workspace}/{name}" for name in PROTECTED],
    )
    ground.environ[VARIABLE] = ground.token
    ground.environ.setdefault("SSH_AUTH_SOCK", f"{at_home or beside}/{HOST_SOCKET}")
    return base


def _stand_in(workspace: str, name: str) -> None:
    """A folder for what a rule names and is not there: the workspace that it was written for has one."""
    path = f"{workspace}/{name}"
    if not os.path.lexists(path) and beneath(os.path.realpath(path), workspace):
        os.makedirs(path)


def _at_home(ground: Ground, stack: ExitStack) -> str:
    """The canary's folder in the home folder, made by its owner; "" where none can be made.

    Root must not write by a path that another user can change meanwhile.
    """
    folder = f"{ground.home}/.jail-attack-{secrets.token_hex(6)}"
    who = None
    with suppress(OSError):
        owner = os.stat(ground.home)
        if os.geteuid() == 0 and owner.st_uid != 0:
            who = doctor_tries.As(owner.st_uid, owner.st_gid, "", "/")
    stack.callback(doctor_tries.apart, partial(shutil.rmtree, folder, ignore_errors=True), who)
    made, _ = doctor_tries.apart(partial(_make_canary, folder, ground.token), who)
    ground.foreign_home = who is not None
    return folder if made.worked else ""


def _make_canary(folder: str, text: str) -> None:
    os.mkdir(folder, 0o700)
    fd = os.open(f"{folder}/{CANARY}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    os.write(fd, text.encode())
    os.close(fd)


def _hand_over(ground: Ground, base: str) -> None:
    """As root: whose workspace it is decides as whom the command runs, so it is as in the current folder."""
    owner = os.stat(".")
    ground.give(base, owner.st_uid, owner.st_gid)
    ground.uid, ground.gid, _ = survey.who(places.look(ground.workspace))
    if not ground.foreign_home:
        for at_home in ground.folders[1:]:
            ground.give(at_home, ground.uid, ground.gid)


def _workspace(ground: Ground, around: Mapping[str, str]) -> None:
    work = ground.workspace
    for name, text in GIT.items():
        ground.keep(f"{work}/.git/{name}", text, 0o755 if name.startswith("hooks/") else 0o644)
    for name in PROTECTED:
        ground.keep(f"{work}/{name}", "# as it was\n")
    ground.keep(f"{work}/control", "")
    for name, folder in around.items():
        if folder:
            os.symlink(f"{folder}/{CANARY}", f"{work}/link-{name}")
    with suppress(OSError):
        fd = os.open(PROJECT_POLICY, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, encoding="utf-8", errors="surrogateescape") as own:
            ground.keep(f"{work}/{PROJECT_POLICY}", own.read(1 << 20))


def _listeners(ground: Ground, stack: ExitStack) -> None:
    found: dict[str, tuple[int, object]] = {"abstract": (socket.AF_UNIX, f"\0{ground.mark}")}
    folders = ground.folders[:1] if ground.foreign_home else ground.folders
    found |= {f"{folder}/{HOST_SOCKET}": (socket.AF_UNIX, "") for folder in (*folders, ground.workspace)}
    found |= {"127.0.0.1": (socket.AF_INET, ("127.0.0.1", 0)), "::1": (socket.AF_INET6, ("::1", 0))}
    tcp = []
    for name, (family, address) in found.items():
        server = socket.socket(family)
        stack.callback(server.close)
        try:
            _bind(server, name, address)
            server.listen(8)
            with socket.socket(family) as client:
                client.settimeout(2)
                _bind(client, name, address or name, connect=server)
            server.settimeout(2)
            server.accept()[0].close()
        except OSError:
            if family != socket.AF_INET6:  # a host without IPv6 has nothing to reach there
                raise
            continue
        server.setblocking(False)  # noqa: FBT003 - as socket has it
        ground.listeners[name] = server
        if family in (socket.AF_INET, socket.AF_INET6):
            tcp.append([int(family), name, server.getsockname()[1]])
    ground.truths.update(
        abstract=ground.mark, tcp=tcp, sockets=[name for name in ground.listeners if name.startswith("/")]
    )


def _bind(end: socket.socket, name: str, address: object, connect: socket.socket | None = None) -> None:
    """Bind or connect; a path by its folder's descriptor, as it may be longer than an address."""
    folder = -1
    if name.startswith("/"):
        folder = os.open(os.path.dirname(name), os.O_PATH | os.O_CLOEXEC)
        address = f"/proc/self/fd/{folder}/{os.path.basename(name)}"
    elif connect is not None and end.family != socket.AF_UNIX:
        address = connect.getsockname()
    try:
        (end.bind if connect is None else end.connect)(address)  # type: ignore[arg-type]  # one of the families' forms
    finally:
        if folder >= 0:
            os.close(folder)


def _shared_memory(ground: Ground, stack: ExitStack) -> None:
    """A segment, a queue and a file in memory, as far as this host has them; each is opened once."""
    key = int(secrets.token_hex(3), 16) + 1
    number_of = partial(words.number, {"calls": {}})
    ground.truths.update(shm=0, mq="", shm_file="")
    with suppress(libc.KernelError):
        segment = libc.syscall("shmget", number_of("shmget"), key, 4096, _IPC_CREATE | 0o666)
        stack.callback(libc.syscall, "shmctl", number_of("shmctl"), segment, _IPC_RMID, None)
        ground.truths["shm"] = key
    with suppress(libc.KernelError):
        name = ground.mark.encode()
        before = os.umask(0)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            queue = libc.syscall("mq_open", number_of("mq_open"), name, flags, 0o666, None)
        finally:
            os.umask(before)
        os.close(queue)
        stack.callback(libc.syscall, "mq_unlink", number_of("mq_unlink"), name)
        ground.truths["mq"] = ground.mark
    with suppress(OSError):
        path = f"/dev/shm/{ground.mark}"  # noqa: S108 - a random name of ours
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        stack.callback(os.unlink, path)
        ground.truths["shm_file"] = path


@contextmanager
def _target(uid: int, gid: int) -> Iterator[int]:
    """A process of the command's uid that does nothing, in a session of its own: no signal may reach it."""
    ready, done = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _be_target(uid, gid, parent)
            os.write(done, b"r")
            while True:
                signal.pause()
        finally:
            os._exit(1)
    os.close(done)
    try:
        if os.read(ready, 1) != b"r":
            raise JailError(
                f"no process can be started as uid {uid}", hint="run `jail doctor`", code=EXIT_CANNOT_ISOLATE
            )
        yield pid
    finally:
        os.close(ready)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _be_target(uid: int, gid: int, parent: int) -> None:
    for each in ENDING:
        signal.signal(each, signal.SIG_DFL)
    os.setsid()
    if os.geteuid() == 0:
        privileges.become(uid, gid)
    privileges.die_with_parent(parent)
