"""Protected paths of a workspace: what is there and gets a mount, what is absent and is watched.

Rule: names come from the one table of plan/protected.py and from the layout of the repository; a link, a
second name or a hook that leads elsewhere in the workspace is followed once, since what it leads to is run.
"""

import os

from jail.kernel import files
from jail.launch import endpoints, places, ways
from jail.light import TYPE_CHECKING, Iterable
from jail.plan import protected
from jail.plan.facts import Facts, Guarded, Place
from jail.plan.trees import refusal
from jail.policy.paths import beneath, between, deepest
from jail.policy.sources import shipped_folder
from jail.policy.value import Policy

if TYPE_CHECKING:
    from jail.launch.gitlayout import GitLayout


def layout_of(workspace: Place, home: str, hooks_path: str) -> "GitLayout | None":
    """The repository at the root of the workspace; without a `.git` or a HEAD there is none."""
    marks = (f"{workspace.real}/.git", f"{workspace.real}/HEAD")
    if workspace.real_kind != "folder" or not any(map(os.path.lexists, marks)):
        return None
    from jail.launch import gitlayout  # a plain folder needs none of it

    return gitlayout.read(workspace.real, home, hooks_path)


def protected_paths(workspace: str, layout: "GitLayout | None") -> tuple[list[Guarded], list[Guarded]]:
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
        place = places.look(f"{workspace}/{name}")
        present.append(Guarded(place.path, place.kind, row.reason))
        if place.kind == "symlink" and place.real_kind in ("file", "folder"):
            present.append(Guarded(place.real, place.real_kind, f"{name} leads there: {row.reason}"))
    absent = _behind_links(workspace, ways, split.absent) + [
        Guarded(f"{workspace}/{row.name}", "absent", row.reason)
        for row in split.absent
        if row.name != ".git" or layout is None or layout.kind == "bare"
    ]
    if layout is not None:
        for guards in (layout.protected, _hooks_elsewhere(workspace, layout.protected)):
            present += [guard._replace(git=True) for guard in guards]
        absent += layout.absent
    return present, absent


def _behind_links(workspace: str, ways: set[str], rows: tuple[protected.Protected, ...]) -> list[Guarded]:
    """Absent names beneath a link that stands at launch (`.github -> shared`): watched where it leads to."""
    found = []
    for row in rows:
        folder, _, name = row.name.rpartition("/")
        place = places.look(f"{workspace}/{folder}") if folder in ways else None
        if place is not None and place.kind == "symlink" and beneath(place.real or "/", workspace):
            found.append(Guarded(f"{place.real}/{name}", "absent", row.reason))
    return found


def _hooks_elsewhere(workspace: str, guarded: tuple[Guarded, ...]) -> list[Guarded]:
    """What links in hooks folders lead to within the workspace: git runs that."""
    found = []
    for folder in guarded:
        if folder.kind != "folder":
            continue
        for name in _names(folder.path):
            place = places.look(f"{folder.path}/{name}")
            if place.kind == "symlink" and place.real_kind == "file" and beneath(place.real, workspace):
                found.append(Guarded(place.real, "file", f"{folder.path}/{name} leads there"))
    return found


def second_names(present: list[Guarded], workspace: str) -> list[Guarded]:
    """Other names, in the workspace, of protected files: each of them is protected too."""
    linked: set[files.Identity] = set()
    for guarded in present:
        try:
            found = os.lstat(guarded.path)
        except OSError:
            continue
        if files.kind(found.st_mode) == "file" and found.st_nlink > 1:
            linked.add(files.Identity(found.st_dev, found.st_ino))
    if not linked:
        return []
    names = endpoints.names_of(linked, [workspace])
    known = {guarded.path for guarded in present}
    return [Guarded(name, "file", "a second name of a protected file") for name in names if name not in known]


def policy_files(trees: list[str], policy: Policy) -> list[Guarded]:
    """Policy files that lie in a written tree, or that a link leads to there: the command must not write the
    rules of the next run. The shipped ones are jail's own, which no tree may hold.
    """
    shipped = shipped_folder()
    own = (file for file, _ in policy.sources if not beneath(file, shipped))
    found = {os.path.realpath(file): None for file in own}
    inside = (places.look(file) for file in found if deepest(file, trees))
    return [Guarded(place.real, place.real_kind, "the policy of this run") for place in inside if place.real]


def refuse_ways(written: ways.Written, policy: Policy, own: Iterable[str]) -> None:
    """Raise JailError where a policy file, or one of jail's `own` folders, is reached through a link that a
    command may replace: the next run would read another file.
    """
    shipped = shipped_folder()
    files_read = [file for file, _ in policy.sources if not beneath(file, shipped)]
    for what, paths in (("the policy", files_read), ("jail's own folder", own)):
        for path in paths:
            for link in ways.links(path):
                if written.holds(link):
                    hint = f"let {path} lead to {os.path.realpath(path)} without that link"
                    raise refusal(
                        f"{what} is reached through a link that a command may replace: {link}", path, hint
                    )


def ways_of_rules(trees: list[str], rules: tuple[Place, ...]) -> list[Guarded]:
    """Links in written trees that lead to what is read-only or hidden: with another link in its place, the
    next run would guard something else.
    """
    found = [
        (link, place) for place in rules if place.given.startswith("/") for link in ways.links(place.given)
    ]
    return [
        Guarded(link, "symlink", f"the rule for {place.given} leads through it")
        for link, place in found
        if deepest(link, trees)
    ]


def absent_hidden(trees: list[str], hide: tuple[Place, ...]) -> list[Guarded]:
    """Hidden paths of written trees that are not there: what a command makes there would stay on the host."""
    gone = [place for place in hide if place.kind == "absent" and deepest(place.path, trees)]
    return [Guarded(place.path, "absent", f"hide = {place.given}") for place in gone]


def obeyed(facts: Facts) -> tuple[tuple[str, str], ...]:
    """(path, why) of the protected paths, there or absent, that no table names, so that a list of held
    changes knows them too: what the configuration, links and rules of this host lead to.
    """
    workspace = facts.workspace.real
    found = {
        each.path: each.reason
        for each in (*facts.guarded, *facts.absent)
        if not _has_row(each.path, workspace, facts.watch_folders)
    }
    return tuple(found.items())


def _has_row(path: str, workspace: str, roots: Iterable[str]) -> bool:
    if beneath(path, workspace) and protected.row_of("workspace", _below(path, workspace)) is not None:
        return True
    return any(
        protected.row_of(place, _below(path, root)) is not None
        for root in between(path, "/")
        if root in roots
        for place in ("commondir", "gitdir")
    )


def _below(path: str, folder: str) -> tuple[str, ...]:
    return protected.components(path[len(folder) :])


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
