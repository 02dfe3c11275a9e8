"""The survey: what is true of this host and of this caller, gathered once for each run.

Rule: everything that a plan depends on is looked at here and nowhere later, in the host's view, before any
fork; what is opened later must still be the inode that was seen here (`identities`). Nothing in the workspace
is run or trusted.
"""

import os
import pwd
import resource

from jail.errors import JailError
from jail.kernel import files, landlock, libc
from jail.launch import endpoints, gitidentity, places, program
from jail.light import TYPE_CHECKING, Final, Mapping, NamedTuple
from jail.plan import inside, protected
from jail.plan.facts import Facts, Guarded, Place, Repository
from jail.plan.workspace import is_reserved, refuse_workspace
from jail.policy.paths import beneath, between
from jail.policy.value import Policy

if TYPE_CHECKING:
    from jail.launch.gitlayout import GitLayout

STRANGER: Final = 60600
"""The uid and gid that stand in for root on a root-owned workspace: in the range that no distribution gives
out (60578-61183, systemd's UIDS-GIDS), so that no other process of the host has it.
"""
SHELLS: Final = ("/bin/bash", "/bin/sh")


class Caller(NamedTuple):
    """Who started jail, and where: `home` is canonical, `folder` current, `workspace` as given."""

    environ: Mapping[str, str]
    home: str
    folder: str
    workspace: str


def survey(
    policy: Policy, caller: Caller, own: places.Own, command: str
) -> tuple[Facts, dict[str, files.Identity]]:
    """The facts of this run, and the inode of each place that may be given."""
    workspace = look(caller.workspace)
    uid, gid, idmap_from = who(workspace)
    write = tuple(look(_rule(path, caller, workspace.real)) for path in policy.write)
    path = tuple(_path_entry(entry) for entry in caller.environ.get("PATH", "").split(":"))
    person = gitidentity.personal(caller.home, caller.environ, own.cache)
    layout = _layout(workspace, caller.home, person.hooks_path)
    present, absent = _protected(workspace.real, layout)
    read = tuple(look(_rule(path, caller, workspace.real)) for path in policy.read)
    hide = tuple(look(_rule(path, caller, workspace.real)) for path in policy.hide)
    system = _system(policy.system)
    owned, credentials = places.own_paths(own), places.credentials(caller.home)
    refuse_workspace(workspace, caller.home, owned, credentials, system)
    toolchains = (*_siblings(path, caller.home), *program.needed(command, path, look))
    # What the plan will not give is not walked either: PATH may name the root folder, or home.
    given = [
        place
        for place in (*read, *path, *toolchains)
        if not is_reserved(place.real) and not beneath(caller.home, place.real)
    ]
    found = endpoints.look((workspace, *write), given, system)
    hide += _hidden_names(hide, [place.real for place in (workspace, *write) if place.real_kind == "folder"])
    present += _sources_in(workspace.real, policy)
    absent += _absent_commands(workspace.real, path)
    version = landlock.abi()
    facts = Facts(
        uid=uid,
        gid=gid,
        user=_user_name(uid),
        launcher=os.geteuid(),
        idmap_from=idmap_from,
        home=caller.home,
        shell=next((shell for shell in SHELLS if os.path.exists(shell)), "/bin/sh"),
        workspace=workspace,
        folder=_folder(caller.folder, workspace.real),
        system=system,
        write=write,
        read=read,
        hide=hide,
        path=path,
        toolchains=toolchains,
        repository=_repository(layout),
        guarded=tuple(present),
        absent=tuple(absent),
        watch_folders=(workspace.real, *(layout.roots if layout is not None else ())),
        sockets=found.sockets,
        hardlinked=found.hardlinked,
        unseen=found.unseen,
        own=owned,
        credentials=credentials,
        devices=tuple(os.listdir("/dev")),
        proc=tuple(name for name in os.listdir("/proc") if not name.isdigit()),
        environment=tuple(sorted(caller.environ.items())),
        branch=person.branch,
        identity=(person.name or _user_name(uid), person.email or f"{_user_name(uid)}@{inside.HOSTNAME}"),
        landlock=version,
        landlock_lacks=tuple(landlock.lost(version)),
        namespaces=tuple(os.listdir("/proc/self/ns")),
        enclosing=enclosing_repository(workspace.real),
        open_files_hard=libc.named("getrlimit(RLIMIT_NOFILE)", resource.getrlimit, resource.RLIMIT_NOFILE)[1],
        processes_hard=libc.named("getrlimit(RLIMIT_NPROC)", resource.getrlimit, resource.RLIMIT_NPROC)[1],
    )
    return facts, _identities(facts)


def _system(paths: tuple[str, ...]) -> tuple[Place, ...]:
    known: dict[str, str] = {}
    found = (look(path, known) for path in paths)
    return tuple(place for place in found if place.kind != "absent")


def caller_from(environ: Mapping[str, str], workspace: str) -> Caller:
    """The caller as the process finds it; a home that is no folder of its own counts as none."""
    try:
        folder = os.getcwd()
    except OSError as error:
        raise JailError(
            "the current folder is gone", where=f"getcwd: {error.strerror}", hint="cd to a folder that exists"
        ) from error
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        home = _passwd_home()
    return Caller(
        environ, os.path.realpath(home), os.path.realpath(folder), os.path.abspath(workspace or folder)
    )


def _passwd_home() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        raise JailError(
            "there is no home folder", where="HOME", hint="set HOME to your home folder"
        ) from None


def look(given: str, known: dict[str, str] | None = None) -> Place:
    """What is at an absolute path, each symlink resolved. `known`: folders resolved before; added to."""
    head, _, name = given.rpartition("/")
    known = {} if known is None else known
    folder = known.get(head) or known.setdefault(head, os.path.realpath(head or "/"))
    path = f"{folder.rstrip('/')}/{name}" if name else "/"
    try:
        found = os.lstat(path)
    except OSError:
        return Place(given, path, "absent", "")
    kind = files.kind(found.st_mode)
    real = path
    if kind == "symlink":
        real = os.path.realpath(path)
        try:
            found = os.lstat(real)
        except OSError:
            return Place(given, path, kind, "")
    return Place(given, path, kind, real, files.kind(found.st_mode), found.st_dev, found.st_ino, found.st_uid)


def _rule(path: str, caller: Caller, workspace: str) -> str:
    """A path of the policy made absolute: `~` is the home folder, a relative one lies in the workspace."""
    if path == "~" or path.startswith("~/"):
        return caller.home + path[1:]
    return os.path.normpath(os.path.join(workspace, path))


def who(workspace: Place) -> tuple[int, int, int]:
    """The uid and gid of the command, and whose files are mapped to it (-1: nobody's)."""
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        return uid, gid, -1
    if workspace.owner > 0:
        found = os.stat(workspace.real)
        if found.st_gid == 0:
            return found.st_uid, _group_of(found.st_uid), -1
        return found.st_uid, found.st_gid, -1
    return STRANGER, STRANGER, 0


def _group_of(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid or uid
    except KeyError:
        return uid


def _user_name(uid: int) -> str:
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return "agent"
    plain = name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return name if plain and name not in ("root", "nobody") else "agent"


def _folder(current: str, workspace: str) -> str:
    return current if beneath(current, workspace) else workspace


def _path_entry(entry: str) -> Place:
    return look(os.path.normpath(entry)) if entry.startswith("/") else Place(entry, "", "absent", "")


_PREFIX_PARTS: Final = ("lib", "lib64", "libexec", "share", "include", "pyvenv.cfg")
"""What programs of `PREFIX/bin` need beside it, by the Filesystem Hierarchy Standard (4.11)."""


def _siblings(path: tuple[Place, ...], home: str) -> list[Place]:
    """The rest of each PATH folder's prefix that is one toolchain's; ~/.local, shared by all, is none."""
    found: list[Place] = []
    for place in path:
        prefix, _, name = place.real.rpartition("/")
        if (
            name not in ("bin", "sbin", "shims")
            or prefix in ("", home, f"{home}/.local")
            or prefix.startswith("/usr")
        ):
            continue
        if name == "shims":
            found.append(look(prefix)._replace(given="what the PATH folder's shims start"))
            continue
        for part in _PREFIX_PARTS:
            beside = look(f"{prefix}/{part}")
            if beside.real_kind in ("file", "folder"):
                found.append(beside._replace(given=f"belongs to the PATH folder {place.given}"))
    return found


def _layout(workspace: Place, home: str, hooks_path: str) -> "GitLayout | None":
    """The repository at the root of the workspace; without a `.git` or a HEAD there is none."""
    marks = (f"{workspace.real}/.git", f"{workspace.real}/HEAD")
    if workspace.real_kind != "folder" or not any(map(os.path.lexists, marks)):
        return None
    from jail.launch import gitlayout  # a plain folder needs none of it

    return gitlayout.read(workspace.real, home, hooks_path)


def _repository(layout: "GitLayout | None") -> Repository | None:
    if layout is None:
        return None
    return Repository(layout.gitdir, layout.commondir, layout.untrusted)


def _protected(workspace: str, layout: "GitLayout | None") -> tuple[list[Guarded], list[Guarded]]:
    """Protected paths of the workspace and its git dirs: those that are there, with what their symlinks lead
    to, and the absent.
    """
    ways = {protected.canonical(folder) for folder in protected.folders("workspace") if folder}
    listings = {
        folder: _names(f"{workspace}/{folder}".rstrip("/")) for folder in protected.folders("workspace")
    }
    split = protected.split("workspace", listings)
    present = [
        Guarded(f"{workspace}/{name}", "symlink", "protected names lie where it leads")
        for name in listings[""]
        if protected.canonical(name) in ways and os.path.islink(f"{workspace}/{name}")
    ]
    for name, row in split.present:
        if row.name == ".git":
            continue
        place = look(f"{workspace}/{name}")
        present.append(Guarded(place.path, place.kind, row.reason))
        if place.kind == "symlink" and place.real_kind in ("file", "folder"):
            present.append(Guarded(place.real, place.real_kind, f"{name} leads there: {row.reason}"))
    absent = _behind_links(workspace, ways, split.absent) + [
        Guarded(f"{workspace}/{row.name}", "absent", row.reason)
        for row in split.absent
        if row.name != ".git" or layout is None or layout.kind == "bare"
    ]
    if layout is not None:
        present += layout.protected
        absent += layout.absent
    return present, absent


def _behind_links(workspace: str, ways: set[str], rows: tuple[protected.Protected, ...]) -> list[Guarded]:
    """Absent names beneath a link that stands at launch (`.github -> shared`): watched where it leads to."""
    found = []
    for row in rows:
        folder, _, name = row.name.rpartition("/")
        place = look(f"{workspace}/{folder}") if folder in ways else None
        if place is not None and place.kind == "symlink" and beneath(place.real or "/", workspace):
            found.append(Guarded(f"{place.real}/{name}", "absent", row.reason))
    return found


def _sources_in(workspace: str, policy: Policy) -> list[Guarded]:
    """Policy files that lie in the workspace: the command must not write the rules of the next run."""
    found = (look(file) for file, _ in policy.sources if beneath(file, workspace))
    return [Guarded(place.real, place.real_kind, "the policy of this run") for place in found if place.real]


def _absent_commands(workspace: str, path: tuple[Place, ...]) -> list[Guarded]:
    """PATH folders in the workspace that are not there: what is put there would run on the host."""
    gone = [place for place in path if place.kind == "absent" and place.path]
    reason = "a PATH folder of the host: what is put here would run there as a command"
    return [Guarded(place.path, "absent", reason) for place in gone if beneath(place.path, workspace)]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _hidden_names(hide: tuple[Place, ...], trees: list[str]) -> tuple[Place, ...]:
    """The other names of hidden files, in the trees that are given."""
    linked = {
        files.Identity(place.device, place.inode)
        for place in hide
        if place.real_kind == "file" and os.lstat(place.real).st_nlink > 1
    }
    if not linked:
        return ()
    found = endpoints.names_of(linked, trees)
    known = {place.real for place in hide}
    return tuple(look(path)._replace(given=f"{path}, a second name") for path in found if path not in known)


def _identities(facts: Facts) -> dict[str, files.Identity]:
    places_seen = (facts.workspace, *facts.system, *facts.write, *facts.read, *facts.path, *facts.toolchains)
    return {place.real: files.Identity(place.device, place.inode) for place in places_seen if place.real}


def enclosing_repository(workspace: str) -> str:
    """A repository above the workspace, whose git folder is therefore not given; "" when there is none."""
    if os.path.lexists(f"{workspace}/.git"):
        return ""
    above = [*between(workspace, "/")]
    return next((folder for folder in reversed(above) if os.path.lexists(f"{folder}/.git")), "")
