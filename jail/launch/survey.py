"""The survey: what is true of this host and of this caller, gathered once for each run.

Rule: everything that a plan depends on is looked at here and nowhere later, in the host's view, before any
fork; what is opened later must still be the inode that was seen here (`identities`). Nothing in the workspace
is run or trusted.
"""

import os
import pwd

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.kernel import files
from jail.launch import caches, endpoints, gitidentity, guarded, hostfacts, hostpath, places, searchpath, ways
from jail.light import TYPE_CHECKING, Final, Mapping, NamedTuple
from jail.plan import held, inside
from jail.plan.facts import Facts, Gpu, Guarded, Place, Repository, Searched, Tools
from jail.plan.workspace import is_reserved, refuse_workspace
from jail.policy.paths import beneath, between
from jail.policy.value import Policy

if TYPE_CHECKING:
    from jail.launch.gitlayout import GitLayout

STRANGER: Final = 60600
"""The uid and gid that stand in for root on a root-owned workspace: in the range that no distribution gives
out (60578-61183, systemd's UIDS-GIDS), so that no other process of the host has it.
"""


class Caller(NamedTuple):
    """Who started jail, and where: `home` is canonical, `folder` current, `workspace` as given."""

    environ: Mapping[str, str]
    home: str
    folder: str
    workspace: str


class _Given(NamedTuple):
    """The fields of Facts that say what may be given, and what must not."""

    system: tuple[Place, ...]
    write: tuple[Place, ...]
    hold: tuple[Place, ...]
    read: tuple[Place, ...]
    hide: tuple[Place, ...]
    path: tuple[Place, ...]
    tools: Tools
    sockets: tuple[str, ...]
    hardlinked: tuple[str, ...]
    unseen: tuple[str, ...]
    git_dirs: tuple[tuple[str, files.Identity], ...]
    cut: tuple[str, ...]
    own: tuple[str, ...]
    credentials: tuple[str, ...]
    allowed: tuple[tuple[str, Place], ...]


def survey(
    policy: Policy, caller: Caller, own: places.Own, command: str
) -> tuple[Facts, dict[str, files.Identity]]:
    """The facts of this run, and the inode of each place that may be given."""
    workspace = places.look(caller.workspace)
    uid, gid, idmap_from = who(workspace)
    user = _user_name(uid)
    given = _given(policy, caller, own, workspace, command)
    person = gitidentity.personal(caller.home, caller.environ, own.cache)
    layout = guarded.layout_of(workspace, caller.home, person.hooks_path)
    folder = _folder(caller.folder, workspace.real)
    searched = hostpath.searched(caller.environ.get("PATH", ""), workspace.real, folder, caller.home)
    present, absent = _protected(policy, workspace.real, layout, given, searched)
    if layout is not None and not layout.untrusted:
        trees = [place.real for place in (workspace, *given.write)]
        beyond = endpoints.git_dirs_beyond((layout.commondir, layout.gitdir), trees)
        given = given._replace(git_dirs=(*given.git_dirs, *beyond))
    enclosing = enclosing_repository(workspace.real)
    # The workspace's own has its layout.
    dirs = [path for path, _ in given.git_dirs if path != f"{workspace.real}/.git"]
    if enclosing or dirs:
        from jail.launch import worktrees  # most workspaces are one repository, or none

        more = tuple(worktrees.guards(workspace.real, caller.home, person.hooks_path, dirs, enclosing))
        known = {guard.path for guard in (*present, *absent)}
        present += tuple(each for each in more if each.kind != "absent" and each.path not in known)
        absent += tuple(each for each in more if each.kind == "absent" and each.path not in known)
    facts = Facts(
        uid=uid,
        gid=gid,
        user=user,
        launcher=os.geteuid(),
        idmap_from=idmap_from,
        home=caller.home,
        workspace=workspace,
        folder=folder,
        cache=caches.place(own.cache, workspace.real, uid) if policy.toolchains else "",
        gpu=_gpu(policy),
        repository=_repository(workspace.real, layout),
        guarded=present,
        absent=absent,
        watch_folders=(
            *(place.real for place in (workspace, *given.write) if place.real_kind == "folder"),
            *(layout.roots if layout is not None else ()),
        ),
        environment=tuple(sorted(caller.environ.items())),
        branch=person.branch,
        identity=(person.name or user, person.email or f"{user}@{inside.HOSTNAME}"),
        enclosing=enclosing,
        searched=searched,
        **given._asdict(),
        **hostfacts.look(),
    )
    return _with_held(facts, own.state)


def _with_held(facts: Facts, state: str) -> tuple[Facts, dict[str, files.Identity]]:
    """With how each tree can be held that is to be held."""
    identities = _identities(facts)
    facts = facts._replace(command_trees=hostpath.trees_of(facts.searched, held.given(facts)))
    facts = facts._replace(wanted=held.wanted(facts))
    if facts.wanted:
        from jail.launch import overlays  # most runs hold nothing

        facts = overlays.look(facts, identities, state)
    return facts, identities


def _given(policy: Policy, caller: Caller, own: places.Own, workspace: Place, command: str) -> _Given:
    """What the policy and PATH name, as it is on this host."""
    system = _system(policy.system)
    owned, credentials = places.own_paths(own), places.credentials(caller.home)
    refuse_workspace(workspace, caller.home, owned, credentials, system)  # before any walk

    written = _written(policy, caller, own, workspace)

    def places_of(verb: str, paths: tuple[str, ...]) -> tuple[Place, ...]:
        return tuple(_named(verb, text, policy, caller, written) for text in paths)

    write, hold, read, hide = (
        places_of("write", policy.write),
        places_of("hold", policy.hold),
        places_of("read", policy.read),
        places_of("hide", policy.hide),
    )
    allowed = tuple((verb, _named(verb, text, policy, caller, written)) for verb, text in policy.allowed)
    path = searchpath.entries(caller.environ, written)
    trees = tuple(place.real for place in system if place.real_kind == "folder")
    ask = searchpath.Ask(path, caller.environ, caller.home, written, trees, policy.toolchains)
    tools = searchpath.tools(ask, command)
    writable = (workspace, *write)
    found = _endpoints(caller.home, writable, (*hold, *read, *path), system, tools)
    hide += _hidden_names(hide, [place.real for place in (*writable, *hold) if place.real_kind == "folder"])
    return _Given(system, write, hold, read, hide, path, tools, *found, owned, credentials, allowed)


def _written(policy: Policy, caller: Caller, own: places.Own, workspace: Place) -> ways.Written:
    """The trees that are or were given for writing, once it is sure that no command can lay a way that jail
    itself goes.
    """
    given = {text for verb, text in policy.allowed if verb in ("write", "hold")}
    named = given | {*policy.write, *policy.hold}
    reals = [os.path.realpath(_rule(text, caller, workspace.real)) for text in named]
    written = ways.known(own.state, workspace.real).also(reals)
    if link := written.strays(caller.workspace):
        what = f"the link {link}, which a command may have laid, leads to the workspace"
        hint = f"look at that link; where this is meant, name {workspace.real} itself"
        raise JailError(what, where=f"--workspace {caller.workspace}", hint=hint, code=EXIT_CANNOT_ISOLATE)
    guarded.refuse_ways(written, policy, (*own, caller.environ.get("HOME", "")))
    return written


def _named(verb: str, text: str, policy: Policy, caller: Caller, written: ways.Written) -> Place:
    """What a path of the policy is on this host, and who named it."""
    named = _rule(text, caller, written.workspace)
    project = bool(policy.allowed) and (verb, text) not in policy.allowed
    return places.look(named)._replace(strays=written.strays(named), project=project)


def _protected(
    policy: Policy,
    workspace: str,
    layout: "GitLayout | None",
    given: _Given,
    searched: tuple[Searched, ...],
) -> tuple[tuple[Guarded, ...], tuple[Guarded, ...]]:
    """The protected paths that are there, and the absent ones."""
    trees = [workspace, *(place.real for place in (*given.write, *given.hold) if place.real)]
    present, absent = guarded.protected_paths(workspace, layout)
    present += guarded.policy_files(trees, policy)
    present += guarded.second_names(present, workspace)
    present += guarded.ways_of_rules(trees, (*given.hold, *given.read, *given.hide))
    absent += guarded.absent_hidden(trees, given.hide)
    of_path = hostpath.guards(searched, (*trees, *(layout.roots if layout is not None else ())))
    return (*present, *of_path[0]), (*absent, *of_path[1])


def _endpoints(
    home: str,
    writable: tuple[Place, ...],
    readable: tuple[Place, ...],
    system: tuple[Place, ...],
    tools: Tools,
) -> endpoints.Found:
    """Sockets and second names in what is given. Toolchains of a known layout are judged as the system's."""
    known = [place for tool in tools.found if tool.known for place in tool.given]
    unknown = [place for tool in tools.found if not tool.known for place in tool.given]
    # What the plan will not give is not walked either: PATH may name the root folder, or home.
    given = [
        place
        for place in (*readable, *unknown)
        if not (place.strays or is_reserved(place.real) or beneath(home, place.real))
    ]
    return endpoints.look(writable, given, (*system, *known))


def _gpu(policy: Policy) -> Gpu:
    if not policy.gpu:
        return Gpu()
    from jail.launch import gpu

    return gpu.look()


def _system(paths: tuple[str, ...]) -> tuple[Place, ...]:
    known: dict[str, str] = {}
    found = (places.look(path, known) for path in paths)
    return tuple(place for place in found if place.kind != "absent")


def caller_from(environ: Mapping[str, str], workspace: str) -> Caller:
    """The caller as the process finds it; a home that is no folder of its own counts as none."""
    try:
        folder = os.getcwd()
    except OSError as error:
        raise JailError(
            "the current folder is gone", where=f"getcwd: {error.strerror}", hint="cd to a folder that exists"
        ) from error
    home = places.home(environ)
    return Caller(environ, home, os.path.realpath(folder), os.path.abspath(workspace or folder))


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


def _repository(workspace: str, layout: "GitLayout | None") -> Repository | None:
    if layout is None:
        return None
    marker = f"{workspace}/.git"
    folder = os.path.isdir(marker) and not os.path.islink(marker)
    here = folder or os.path.lexists(f"{workspace}/HEAD")
    objects = f"{layout.commondir}/objects"
    there = bool(layout.commondir) and os.path.isdir(objects) and not os.path.islink(objects)
    return Repository(layout.gitdir, layout.commondir, layout.untrusted, here, objects if there else "")


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
    return tuple(
        places.look(path)._replace(given=f"{path}, a second name") for path in found if path not in known
    )


def _identities(facts: Facts) -> dict[str, files.Identity]:
    tools = [place for tool in facts.tools.found for place in tool.given]
    gpu = (*facts.gpu.devices, *facts.gpu.read)
    places_seen = (facts.workspace, *facts.system, *facts.write, *facts.hold, *facts.read)
    places_seen += (*facts.path, *tools, *gpu)
    return {place.real: files.Identity(place.device, place.inode) for place in places_seen if place.real}


def enclosing_repository(workspace: str) -> str:
    """A repository above the workspace, whose git folder is therefore not given; "" when there is none."""
    if os.path.lexists(f"{workspace}/.git"):
        return ""
    above = [*between(workspace, "/")]
    return next((folder for folder in reversed(above) if os.path.lexists(f"{folder}/.git")), "")
