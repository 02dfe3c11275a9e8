"""How grave a change is: whether it is applied like any other, with a warning, or only when it is named.

Rule: names are judged by the tables of the plan (jail.plan.autoexec, jail.plan.protected), contents only
where a table has said that they matter, and the gravest verdict wins. Nothing here reads (jail.hold.ground);
what a change means to git, jail.hold.gitparts says.
"""

import os.path
from functools import lru_cache
from typing import Final, NamedTuple

from jail.hold import environments, gitparts, packages, sources
from jail.hold.change import (
    DELETED,
    MODE,
    MODIFIED,
    NEVER,
    PLAIN,
    REFUSED,
    RENAMED,
    SETTINGS,
    TIERS,
    TIME,
    TYPE,
    WARNED,
    Change,
)
from jail.hold.ground import Ground, Verdict, kind_of
from jail.plan import autoexec, protected
from jail.plan.protected import canonical

_LEADS_GIT: Final = "as a file or link it sends git to another git dir"


def judged(change: Change, ground: Ground) -> Change:
    """`change` with its tier and the reason, where nothing graver was said of it before, and whether it waits
    for a person. Settings of git are judged by their keys (jail.hold.review), and a time alone is plain.
    """
    if change.tier == NEVER or change.what in (SETTINGS, TIME):
        return change
    found = _verdicts(change, change.path, ground)
    given = bool(ground.thing.deliver)  # else all of it waits
    waits = given and _waits(change, change.path, ground)
    if change.what == RENAMED:
        gone = change._replace(path=change.source, what=DELETED, new=change.old)
        found += _verdicts(gone, change.source, ground)
        waits = waits or (given and _waits(gone, change.source, ground))
    found = [verdict for verdict in found if verdict[0]]
    change = change._replace(waits=waits)
    if not found:
        return change
    tier, reason = min(found, key=lambda verdict: TIERS.index(verdict[0]))
    return change._replace(tier=tier, reason=reason)


def _verdicts(change: Change, path: str, ground: Ground) -> list[Verdict]:
    folder, _, name = path.rpartition("/")
    place = _place(ground.thing.path, ground.workspace, folder)
    folded = (*place.folded, canonical(name)) if path else ()
    parts = (*place.start, *folded)
    above = place.above if path else _within(parts[:-1])
    found = [
        _of_way(change, path, ground),
        _of_tables(change, above, parts, ground, path),
        gitparts.verdict(change, folder, folded, ground),
        _of_dot_git(change, parts),
        *_of_leads(change, path, ground),
    ]
    if change.what != DELETED:
        found += [_of_link(change, path, ground), _of_command(change, path, ground)]
    return found


def _of_leads(change: Change, path: str, ground: Ground) -> list[Verdict]:
    """What a change is by the names of the host's links that lead to it."""
    found = []
    top = f"{ground.thing.path.rstrip('/')}/"
    for way in ground.leads(f"{top}{path}".rstrip("/")):
        parts = _parts(way, ground.workspace)
        verdicts = [_of_tables(change, _within(parts[:-1]), parts, ground, path)]
        if way.startswith(top):
            below = way[len(top) :]
            folded = tuple(map(canonical, below.split("/")))
            verdicts.append(gitparts.verdict(change, below.rpartition("/")[0], folded, ground))
        shown = way.removeprefix(f"{ground.workspace.rstrip('/')}/")
        found += [(tier, f"{shown} leads there: {reason}") for tier, reason in verdicts if tier]
    return found


def _parts(path: str, workspace: str) -> tuple[str, ...]:
    named = path[len(workspace) :] if _lies_in(path, workspace) else os.path.basename(path)
    return protected.components(named)


def is_spoken_of(path: str, workspace: str) -> bool:
    """Whether a table speaks of an absolute path, were it a link: of it, or of what would lie in it."""
    *folders, name = _parts(path, workspace) or ("",)
    above = _within(tuple(folders))
    row = autoexec.row_of(above, name) or row_above(above, name)
    return row is not None or protected.row_of("workspace", (*folders, name)) is not None


def _waits(change: Change, path: str, ground: Ground) -> bool:
    """Whether nobody would have to call what comes with a change: it runs with each start, by the table; or
    it leads out of the thing, and who wrote there may have put such a file there, or may later; or a name of
    PATH means another command without it.
    """
    if change.what == DELETED:
        whole = f"{ground.thing.path}/{path}"
        return os.path.dirname(whole) in ground.thing.commands and bool(ground.shadowed(whole))
    folder, _, name = path.rpartition("/")
    above = _place(ground.thing.path, ground.workspace, folder).above
    row = _row(change, above, canonical(name)) if path else None
    return (row is not None and row.uncalled) or bool(_of_link(change, path, ground)[0])


class _Place(NamedTuple):
    """A folder: `start`: canonical components of its thing in the workspace, of one that lies elsewhere its
    name alone; `folded`: of the folder in the thing; `above`: what the table says in the folder.
    """

    start: tuple[str, ...]
    folded: tuple[str, ...]
    above: autoexec.Within


@lru_cache(maxsize=256)
def _place(thing: str, workspace: str, folder: str) -> _Place:
    """Asked again and again for the folder that a sorted list is in."""
    start = protected.components(thing[len(workspace) :])
    if not _lies_in(thing, workspace):
        start = (canonical(os.path.basename(thing)),)
    folded = tuple(map(canonical, folder.split("/"))) if folder else ()
    return _Place(start, folded, _within((*start, *folded)))


def _within(parts: tuple[str, ...]) -> autoexec.Within:
    above = autoexec.TOP
    for part in parts:
        above = autoexec.enter(above, part)
    return above


def _lies_in(thing: str, workspace: str) -> bool:
    return f"{thing}/".startswith(f"{workspace.rstrip('/')}/")


def _of_tables(
    change: Change, above: autoexec.Within, parts: tuple[str, ...], ground: Ground, path: str
) -> Verdict:
    if not parts:
        return PLAIN, ""
    row = _row(change, above, parts[-1])
    tier, reason = (row.tier, row.reason) if row is not None else (PLAIN, "")
    if tier != REFUSED and _lies_in(ground.thing.path, ground.workspace):
        root = _of_root(change, parts)
        tier, reason = root if root is not None and (root[0] == REFUSED or not tier) else (tier, reason)
    if tier == REFUSED:
        return tier, reason
    if change.what in (DELETED, MODE):  # what is gone runs no more; both are shown apart, to the last one
        return PLAIN, ""
    return _by_content(change, path, parts[-1], (tier, reason), ground)


def _row(change: Change, above: autoexec.Within, name: str) -> autoexec.AutoExec | None:
    kind = kind_of(change)
    if kind == "folder":
        row = above.row
    elif kind == "symlink":
        row = autoexec.row_of(above, name) or row_above(above, name)
    else:
        row = autoexec.row_of(above, name)
    # Whether a folder is git's is asked of its names, below: `.git` is one name of many.
    return None if row is not None and row.pattern.startswith(".git/") else row


def row_above(above: autoexec.Within, name: str) -> autoexec.AutoExec | None:
    """The row that speaks of what would lie beneath `name`, a canonical name in the folder `above`, if that
    were a folder: a symlink of that name puts it into place, `.github` as well as `.github/workflows`.
    """
    return autoexec.enter(above, name).row or _rows_above().get(name)


@lru_cache(maxsize=1)
def _rows_above() -> dict[str, autoexec.AutoExec]:
    return {
        canonical(part): row
        for row in sorted(autoexec.AUTO_EXEC, key=lambda row: row.tier == REFUSED)
        for part in row.pattern.removesuffix("/*").split("/")[:-1]
        if part.startswith(".")
    }


def _of_root(change: Change, parts: tuple[str, ...]) -> Verdict | None:
    """The protected names in the root of a workspace, but for its git dir."""
    row = protected.row_of("workspace", parts)
    if row is None or row.name == ".git" or (kind_of(change) == "folder" and row.name == "/".join(parts)):
        return None
    return _TIER_OF_ROOT[row.name], row.reason


def _tier_of_root(row: protected.Protected) -> str:
    """What runs in the day's work (editor tasks, `.envrc`) has the tier of the other table."""
    *folders, name = protected.components(row.name)
    above = _within(tuple(folders))
    found = autoexec.row_of(above, name) or autoexec.enter(above, name).row
    return REFUSED if found is None else found.tier


_TIER_OF_ROOT: Final = {
    row.name: _tier_of_root(row) for row in protected.PROTECTED if row.place == "workspace"
}


def _by_content(change: Change, path: str, name: str, verdict: Verdict, ground: Ground) -> Verdict:
    """A list of packages is as grave as what changed in it."""
    package = name == "package.json"
    if change.new.kind != "file" or not (package or sources.is_lock(name)):
        return verdict
    contents = ground.contents
    was = change.source or path
    old = contents.old(was) if change.old.kind in ("file", "unknown") else None
    new = contents.new(path)
    if package:
        told = packages.package_changes(old, new)
        return (WARNED, f"{verdict[1]}: {told}") if told else (PLAIN, "")
    told = sources.new_sources(name, old, new)
    return (WARNED, told) if told else verdict


def _of_dot_git(change: Change, parts: tuple[str, ...]) -> Verdict:
    leads = parts[-1:] == (".git",) and kind_of(change) not in ("folder", "absent")
    return (REFUSED, _LEADS_GIT) if leads else (PLAIN, "")


def _of_link(change: Change, path: str, ground: Ground) -> Verdict:
    if change.new.kind != "symlink":
        return PLAIN, ""
    tree = ground.thing.path
    target = ground.contents.target(path)
    whole = os.path.normpath(os.path.join(os.path.dirname(f"{tree}/{path}"), target))
    if target and (whole == tree or whole.startswith(f"{tree.rstrip('/')}/")):
        return PLAIN, ""
    return WARNED, f"a link that leads out, to {target}" if target else "a link that cannot be read"


def _of_way(change: Change, path: str, ground: Ground) -> Verdict:
    """What a PATH folder is reached by: only a folder may come in the place of nothing or of a folder."""
    whole = f"{ground.thing.path}/{path}".rstrip("/")
    if not any(f"{folder}/".startswith(f"{whole}/") for folder in ground.thing.commands):
        return PLAIN, ""
    led = change.old.kind not in ("folder", "absent", "unknown")
    leads = change.what != DELETED and change.new.kind != "folder"
    return (REFUSED, "a folder of PATH lies there") if led or leads else (PLAIN, "")


def _of_command(change: Change, path: str, ground: Ground) -> Verdict:
    whole = f"{ground.thing.path}/{path}".rstrip("/")
    if change.new.kind == "folder":
        return PLAIN, ""
    other = ground.shadowed(whole)
    if os.path.dirname(whole) not in ground.thing.commands:
        waiting = other and environments.is_of_commands(os.path.dirname(whole), ground)
        if not waiting or environments.is_the_program(change, path, ground):
            return PLAIN, ""
        return REFUSED, f"shadows {other} once its folder is in PATH"
    if other:
        return REFUSED, f"shadows {other}"
    if change.what == TYPE or (change.what == MODIFIED and _runs(change)):
        return REFUSED, "a command that you have already, changed"
    return (WARNED, "lies in a folder of PATH") if change.what == MODIFIED else (PLAIN, "")


def _runs(change: Change) -> bool:
    sides = (change.old, change.new)
    return any(side.kind == "symlink" or side.mode & 0o111 for side in sides)
