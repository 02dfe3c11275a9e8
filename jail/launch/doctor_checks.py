"""How the facts are judged: one pure function for each kind of check; doctor.py has the table of them.

Rule: a state is said for a run of this version. What only a later one will use is information; what a run
does without by name of the policy is a loss; everything else that is not there refuses the run.
"""

import errno
from collections.abc import Callable
from typing import Final

from jail.kernel import landlock
from jail.launch import doctor_remedies as remedies
from jail.launch.doctor_calls import LIBRARIES
from jail.launch.doctor_causes import finding, inside_a_jail
from jail.launch.doctor_facts import INFO, LOST, MISSING, OK, UNTRIED, Finding, Host, version_of
from jail.plan.bounds import unbounded

Judge = Callable[[Host], Finding]
MACHINES: Final = ("x86_64", "aarch64")
OLDEST_PYTHON: Final = (3, 11)
BITS: Final = 64
FEW_WATCHES: Final = 8192
"""At or below this an editor and a build of the same user leave none for jail; once the default."""
PLENTY: Final = {"watches": "524288", "instances": "1024"}
NETWORKED: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse.sshfs", "ceph", "afs")
"""File systems that others change without this kernel's knowledge (inotify(7))."""


def linux(host: Host) -> Finding:
    """The kernel, and the architectures that the filters are written for."""
    found = f"{host.release} on {host.machine}"
    if host.platform != "linux" or host.around[0] == "WSL 1":
        return Finding(MISSING, found, "the walls are the Linux kernel's", remedies.WSL)
    if host.machine not in MACHINES:
        why = f"the system-call filter is written for {' and '.join(MACHINES)}"
        return Finding(MISSING, found, why, ("run jail on such a machine, with a 64-bit kernel",))
    return Finding(OK, found)


def python(host: Host) -> Finding:
    """The interpreter that runs jail."""
    found = f"{'.'.join(map(str, host.python))}, {host.bits}-bit, {host.executable}"
    if host.python[:2] >= OLDEST_PYTHON and host.bits == BITS:
        return Finding(OK, found)
    needed = f"a {BITS}-bit Python {'.'.join(map(str, OLDEST_PYTHON))} or later"
    return Finding(MISSING, found, f"jail needs {needed}", (f"install jail with {needed}",))


def around(host: Host) -> Finding:
    """What this system runs in: told, since most gaps come from there."""
    if inside_a_jail(host):
        why = "no process inside a jail may make a namespace, so none can be built in one"
        return Finding(MISSING, "inside a jail", why, remedies.OUTSIDE)
    kind, sign = host.around
    filtered = ", its system calls filtered" if host.seccomp else ""
    if kind:
        return Finding(INFO, f"{kind}, by {sign}{filtered}")
    return Finding(INFO if host.seccomp else OK, f"no container, no other sandbox{filtered}")


def library(name: str) -> Judge:
    """A distribution of jail's own environment."""

    def judge(host: Host) -> Finding:
        tried = host.tries[name]
        if tried.worked:
            return Finding(OK, tried.text)
        _, use, needed = LIBRARIES[name]
        state, why = (MISSING, f"it {use}") if needed else (INFO, "no run needs it yet")
        return Finding(state, tried.words(), why, remedies.reinstall(name))

    return judge


def libseccomp(host: Host) -> Finding:
    """The C library, of the system."""
    tried = host.tries["libseccomp"]
    if tried.worked:
        return Finding(OK, tried.text)
    return Finding(MISSING, tried.words(), "the C library that builds the filter", remedies.LIBSECCOMP)


def deny_rules(host: Host) -> Finding:
    """The filter as a run builds it."""
    tried = host.tries["filter build"]
    if not tried.worked and not all(host.tries[name].worked for name in ("libseccomp", "pyseccomp")):
        return Finding(UNTRIED, "not tried: it needs libseccomp and pyseccomp")
    return finding("filter build", host)


def wall(name: str) -> Judge:
    """What every run needs."""
    return lambda host: finding(name, host)


def call(name: str, since: str) -> Judge:
    """A call that every run needs, and that came with Linux `since`."""

    def judge(host: Host) -> Finding:
        tried = host.tries[name]
        old = version_of(host.release) < version_of(since) and tried.number in (errno.ENOSYS, errno.EINVAL)
        if tried.worked or not old:
            return finding(name, host)
        return Finding(MISSING, tried.words(), f"it came with Linux {since}", remedies.kernel(host))

    return judge


def later(name: str, use: str) -> Judge:
    """What only a later version of jail uses; `use` says for what, or what it does without."""

    def judge(host: Host) -> Finding:
        tried = host.tries.get(name)
        if tried is None or tried.worked:
            return finding(name, host)
        return Finding(INFO, tried.words(), use)

    return judge


def memory(host: Host) -> Finding:
    """Who bounds the memory of everything inside."""
    tried = host.tries["delegation"]
    if tried.worked:
        return Finding(OK, tried.text)
    loss = unbounded(tried.words())
    why = "jail watches memory itself, about once a second; the kernel does not bound it"
    return Finding(LOST, tried.words(), why, (loss.remedy,), loss.name)


def landlock_(host: Host) -> Finding:
    """The second wall for files: its version, and the rights that an older one lacks (landlock.lost)."""
    tried = host.tries["landlock"]
    version = int(tried.text) if tried.worked and tried.text.isdigit() else 0
    if version >= landlock.LOWEST:
        gone = "; ".join(landlock.lost(version))
        if not gone:
            return Finding(OK, f"ABI {version}, every right that jail uses")
        why = f"the second wall for files does not judge: {gone}"
        whole = next(abi.kernel for abi in landlock.ABIS if not landlock.lost(abi.version))
        return Finding(LOST, f"ABI {version}", why, remedies.newer_landlock(host, whole), "landlock-rights")
    why = "the second wall for files is missing"
    if version:
        why = f"{why}: this one refuses each rename between folders, which no build survives, and is not used"
    if tried.number == errno.EOPNOTSUPP:
        why = f"{why}: the kernel has Landlock and does not start it"
        return Finding(LOST, tried.words(), why, remedies.landlock_off(host), "landlock")
    if not version and (tried.number != errno.ENOSYS or host.seccomp):
        met = finding("landlock", host)
        return met._replace(state=LOST, why=f"{met.why}; {why}", loss="landlock")
    needed = next(abi.kernel for abi in landlock.ABIS if abi.version == landlock.LOWEST)
    new = version_of(host.release) >= version_of(needed)
    remedy = remedies.LANDLOCK_BUILT if new else remedies.kernel(host)
    return Finding(LOST, f"ABI {version}" if version else tried.words(), why, remedy, "landlock")


def state_folder(host: Host) -> Finding:
    """Where sessions are kept."""
    if not host.state_problem:
        return Finding(OK, f"{host.state} ({host.state_type or 'unknown file system'})")
    remedy = ("make it a folder of yours that nobody else can write, or set XDG_STATE_HOME",)
    return Finding(MISSING, host.state_problem, "sessions and their ledgers are kept there", remedy)


def held_trees(host: Host) -> Finding:
    """What is written to a held tree goes to an overlay's upper layer in the state folder."""
    tried = host.tries.get("overlay")
    if tried is None or tried.worked:
        return finding("overlay", host)
    why = (
        "what is to be held is copied before each run; a tree too large for that is refused (the loss `hold`)"
    )
    found = f"{tried.words()}; the state folder is on {host.state_type or 'an unknown file system'}"
    return Finding(INFO, found, why, remedies.STATE_FOR_OVERLAYS)


def current_folder(host: Host) -> Finding:
    """The workspace that a run here would have."""
    found = f"{host.folder} ({host.folder_type or 'unknown file system'})"
    if host.folder_type in NETWORKED:
        return Finding(INFO, found, "what another machine changes here is not seen by jail's watches")
    if not host.one_file_system:
        why = "what is swept is copied there, not moved, which takes longer and a moment more"
        return Finding(INFO, f"{found}, not on the state folder's", why)
    return Finding(OK, f"{found}, on one file system with the state folder")


def watches(host: Host) -> Finding:
    """What absent protected paths are watched with (inotify(7))."""
    counts = {name: host.sysctls.get(f"fs.inotify.max_user_{name}", "?") for name in PLENTY}
    found = f"{counts['watches']} watches, {counts['instances']} instances for each user"
    tried = host.tries["inotify"]
    short = {errno.EMFILE: "instances", errno.ENOSPC: "watches"}.get(tried.number, "")
    if short:
        why = "absent protected paths of a workspace are watched, and this user's programs hold all there are"
        remedy = remedies.sysctl(f"fs.inotify.max_user_{short}", PLENTY[short])
        return Finding(MISSING, f"{tried.words()}; {found}", why, remedy)
    if not tried.worked:
        return finding("inotify", host)
    if counts["watches"].isdigit() and int(counts["watches"]) <= FEW_WATCHES:
        remedy = remedies.sysctl("fs.inotify.max_user_watches", PLENTY["watches"])
        return Finding(INFO, f"{found}: few", "editors and builds use them up", remedy)
    return Finding(OK, found)


def roots_files(host: Host) -> Finding:
    """Asked when root starts jail: its files must show as the uid's that the command has."""
    tried = host.tries.get("idmap")
    if tried is None:
        return Finding(UNTRIED, "not tried: it needs a uid to be")
    if tried.worked:
        return Finding(OK, tried.text)
    why = (
        f"root's files on {host.folder_type} cannot be shown as another uid's, and no command is root inside"
    )
    remedy = (
        "start jail as another user, and give that user the folder:",
        *remedies.typed(f"sudo chown -R USER {host.folder}"),
    )
    return Finding(MISSING if host.folder_of_root else INFO, tried.words(), why, remedy)


def real_run(host: Host) -> Finding:
    """`true` behind all walls, with the probes of every run."""
    whole = host.whole
    if whole is None:
        return Finding(UNTRIED, "not tried: it needs a state folder")
    open_walls = [f"{name} ({met})" for name, held, met in whole.probes if not held]
    if whole.problem is None:
        held = f"{len(whole.probes) - len(open_walls)} of {len(whole.probes)} walls held when probed"
        return Finding(OK, f"`true` ran in {whole.seconds:.2f} s; {held}")
    message, where, hint = whole.problem
    if not hint or "doctor" in hint:
        hint = (
            "mend what is said above; if nothing is, please report this with the output of jail doctor --json"
        )
    why = f"not held: {', '.join(open_walls)}" if open_walls else ""
    return Finding(MISSING, "; ".join(filter(None, (message, where))), why, (hint,))
