"""Looking at this host for the doctor: files of /proc and /sys, signs of containers, tries, a whole run.

Rule: nothing is run that is not jail's own, and nothing is left: what had to be made to try it is removed.
What is not there is a value too.
"""

import contextlib
import os
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.launch import doctor_calls, doctor_tries, places, survey
from jail.launch.doctor_facts import Host, Tried, Whole
from jail.launch.doctor_tries import As, apart, attempt
from jail.policy.load import load
from jail.policy.paths import beneath
from jail.policy.sources import DEFAULT

WHOLE_SECONDS: Final = 90.0
"""Until a whole run is given up: above the supervisor's own limits for building and for delivery."""
SYSCTLS: Final = (
    *(f"user.max_{kind}_namespaces" for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")),
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
    "net.core.fb_tunnels_only_for_init_net",
    "fs.inotify.max_user_watches",
    "fs.inotify.max_user_instances",
)
SIGNS: Final = (
    # kind, file that says so, what must stand in it
    ("Flatpak", "/.flatpak-info", ""),
    ("Podman", "/run/.containerenv", ""),
    ("Docker", "/.dockerenv", ""),
    ("Podman", "/run/systemd/container", "podman"),
    ("Docker", "/run/systemd/container", "docker"),
    ("LXC", "/run/systemd/container", "lxc"),
    ("a container", "/run/systemd/container", ""),
    ("Kubernetes", "/proc/self/cgroup", "kubepods"),
    ("Podman", "/proc/self/cgroup", "libpod"),
    ("Docker", "/proc/self/cgroup", "docker"),
    ("LXC", "/proc/self/cgroup", "/lxc"),
    ("a container", "/proc/self/cgroup", "containerd"),
    ("Kubernetes", "/var/run/secrets/kubernetes.io/serviceaccount/namespace", ""),
)
GVISOR_VERSION: Final = "#1 SMP Sun Jan 10 15:06:54 PST 2016"
"""What runsc answers to uname(2), whatever runs beneath it (gvisor.dev, pkg/sentry/syscalls/linux)."""
_LONGEST: Final = 1 << 20


class Mount(NamedTuple):
    """One row of mountinfo: where, and the file system's type."""

    point: str
    kind: str


def host(environ: Mapping[str, str], policy: str | None) -> Host:
    """Everything of Host, tried and read now. Raises JailError for a policy with faults."""
    folder = _current_folder()
    with contextlib.ExitStack() as stack:
        state, problem = _state(environ)
        who = _who(folder)
        session = ""
        if state:
            try:
                session = stack.enter_context(_temporary(state, None, ".doctor-"))
                scratch = stack.enter_context(_temporary(state, _owner(who), ".doctor-"))
                who = who._replace(scratch=scratch)
            except OSError as error:
                problem = f"{error.filename or state}: {error.strerror}"
        tries = _tries(who)
        whole = None
        if session:
            try:
                workspace = stack.enter_context(_temporary("", _owner(who), "jail-doctor-"))
                whole = _whole(environ, policy, workspace, session)
            except OSError as error:
                hint = "make /tmp a folder that you can write, or set TMPDIR"
                whole = Whole(problem=("there is no place for a temporary folder", str(error), hint))
    return _look(environ, folder, who, (state, problem), tries)._replace(whole=whole)


def accepted(environ: Mapping[str, str], policy: str | None) -> tuple[str, tuple[str, ...]]:
    """Name of the policy, and the losses that it accepts; none where jail is too broken to read one.

    Raises JailError for a policy with faults.
    """
    try:
        home = survey.caller_from(environ, "/").home
        own = places.own(environ, home)
        found = load(policy, own.cache, home, user=own.user_policy)
    except ImportError:
        return policy or DEFAULT, ()
    return found.name, found.accept


def _look(
    environ: Mapping[str, str], folder: str, who: As, state: tuple[str, str], tries: dict[str, Tried]
) -> Host:
    kernel = os.uname()
    mounts = parse_mounts(_text("/proc/self/mountinfo"))
    status = dict(line.split(":\t", 1) for line in _text("/proc/self/status").splitlines() if ":\t" in line)
    return Host(
        platform=sys.platform,
        machine=kernel.machine,
        bits=struct.calcsize("P") * 8,
        python=sys.version_info[:3],
        executable=_link("/proc/self/exe") or sys.executable,
        release=kernel.release,
        uid=who.uid,
        launcher=os.geteuid(),
        tries=tries,
        sysctls={
            name: value for name in SYSCTLS if (value := _text(f"/proc/sys/{name.replace('.', '/')}").strip())
        },
        seccomp=_number(status.get("Seccomp", "")),
        filters=_number(status.get("Seccomp_filters", "")),
        no_new_privs=status.get("NoNewPrivs", "").strip() == "1",
        apparmor=_apparmor(),
        lsm=_text("/sys/kernel/security/lsm").strip(),
        around=_around(environ, kernel.release, kernel.version),
        over_proc=tuple(sorted({each.point for each in mounts if _covers_proc(each.point)})),
        chrooted=bool(mounts) and all(each.point != "/" for each in mounts),
        root_type=_type_of("/", mounts),
        folder=folder,
        folder_of_root=os.stat(folder).st_uid == 0,
        folder_type=_type_of(os.path.realpath(folder), mounts),
        state=state[0],
        state_type=_type_of(os.path.realpath(state[0]), mounts) if state[0] else "",
        one_file_system=_same_device(folder, state[0]),
        state_problem=state[1],
    )


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _state(environ: Mapping[str, str]) -> tuple[str, str]:
    """The state folder of jail, made when it is absent, and what is wrong with it."""
    try:
        found = places.own(environ, survey.caller_from(environ, "/").home).state
        os.makedirs(found, 0o700, exist_ok=True)
    except JailError as error:
        return "", f"{error.message}: {error.where}"
    except OSError as error:
        return "", f"{error.filename}: {error.strerror}"
    return found, ""


def _who(folder: str) -> As:
    """The ids that a command would have here."""
    uid, gid, _ = survey.who(places.look(os.path.realpath(folder)))
    return As(uid, gid, "", folder)


def _owner(who: As) -> As | None:
    """Whom a temporary folder is given to: nobody where root is root of a namespace without that uid."""
    return who if attempt(partial(doctor_tries.become, who), who).worked else None


@contextlib.contextmanager
def _temporary(parent: str, who: As | None, prefix: str) -> Iterator[str]:
    """A folder, of the command's uid where `who` is given, that is gone afterwards."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=parent or None))
    try:
        if who is not None and os.geteuid() == 0:
            os.chown(folder, who.uid, who.gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tries(who: As) -> dict[str, Tried]:
    """Every try that can be made here, by name; as the uid of the command where there is one."""
    found = {"become": attempt(partial(doctor_tries.become, who), who)}
    able = found["become"].worked
    found |= {name: attempt(work, who if able else None) for name, work in doctor_calls.CALLS.items()}
    found["delegation"] = doctor_calls.delegated()
    if able:
        found["user"] = attempt(partial(doctor_tries.WALLS["user"], who), who)
    if able and found["user"].worked:
        for name, work in {**doctor_tries.WALLS, **doctor_calls.IN_NAMESPACES}.items():
            found[name] = attempt(partial(work, who), who)
    if able and os.geteuid() == 0:
        for name, work in doctor_tries.AS_ROOT.items():
            found[name] = attempt(partial(work, who))
    for name in doctor_calls.LIBRARIES:
        found[name] = attempt(partial(doctor_calls.library, name))
    return found


def _whole(environ: Mapping[str, str], policy: str | None, workspace: str, session: str) -> Whole:
    """Run `true` behind all walls, in a folder of its own and with a session that is thrown away."""
    started = time.monotonic()
    try:
        from jail.launch import doctor_run
    except ImportError as error:
        return Whole(problem=("jail cannot be loaded whole", str(error), "mend the libraries first"))
    given = {**environ, "XDG_STATE_HOME": session}
    tried, value = apart(partial(doctor_run.run, given, policy, workspace), None, WHOLE_SECONDS)
    seconds = time.monotonic() - started
    if isinstance(value, list):
        probes, losses, problem = value
        return Whole(
            tuple((name, held, met) for name, held, met in probes),
            tuple((name, what, remedy) for name, what, remedy in losses),
            tuple(problem) if problem else None,
            seconds,
        )
    return Whole(problem=("the run of `true` failed", tried.words(), ""), seconds=seconds)


def _around(environ: Mapping[str, str], release: str, version: str) -> tuple[str, str]:
    """What this system runs in, and the sign that says so; signs can outlive what made them."""
    if "microsoft" in release.lower():
        return ("WSL 2" if "WSL2" in release else "WSL 1"), f"kernel {release}"
    if "gvisor" in release.lower() or version == GVISOR_VERSION:
        return "gVisor", f"kernel {release} {version}"
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes", "KUBERNETES_SERVICE_HOST"
    for kind, path, part in SIGNS:
        if os.path.exists(path) and (not part or part in _text(path)):
            return kind, path
    return ("a container", f"container={environ['container']}") if environ.get("container") else ("", "")


def parse_mounts(text: str) -> list[Mount]:
    """The rows of a mountinfo (proc_pid_mountinfo(5)), in its order."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        if after:
            found.append(Mount(_unescaped(before.split(" ")[4]), after.split(" ")[0]))
    return found


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _covers_proc(point: str) -> bool:
    # binfmt_misc lies on a folder that is made to be mounted on, and hides nothing (mount_too_revealing in
    # fs/namespace.c).
    return point.startswith("/proc/") and point != "/proc/sys/fs/binfmt_misc"


def _type_of(path: str, mounts: list[Mount]) -> str:
    """The type of the file system that `path` lies on."""
    holding = [each for each in mounts if beneath(path, each.point)]
    return max(reversed(holding), key=lambda each: len(each.point)).kind if holding else ""


def _same_device(one: str, other: str) -> bool:
    try:
        return os.stat(one).st_dev == os.stat(other).st_dev
    except OSError:
        return False


def _text(path: str) -> str:
    """The file's text, "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_LONGEST)
    except OSError:
        return ""


def _apparmor() -> str:
    """The label of this process; the older of the two files may be another module's (proc_pid_attr(5))."""
    label = (_text("/proc/self/attr/apparmor/current") or _text("/proc/self/attr/current")).strip("\0\n ")
    return label if label == "unconfined" or label.endswith(")") else ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0
