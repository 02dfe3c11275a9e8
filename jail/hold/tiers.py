"""How grave a change is: whether it is applied like any other, with a warning, or only when it is named.

Rule: names are judged by the tables of the plan (jail.plan.autoexec, jail.plan.protected), and by what the
launch found that the host obeys, at the place where they lie on the host; contents only where a table has
said that they matter; and the gravest verdict wins. Nothing here reads: what is needed of the two sides is
asked of jail.hold.ground.Contents.
"""

import os.path
from functools import lru_cache
from typing import Final, NamedTuple

from jail.hold import environments, gitparts, links, packages, sources
from jail.hold.change import (
    DELETED,
    MODE,
    MODIFIED,
    NEVER,
    REFUSED,
    RENAMED,
    SETTINGS,
    TIERS,
    TIME,
    TYPE,
    WARNED,
    Change,
)
from jail.hold.ground import NOTHING, Ground, Verdict, components, kind_of
from jail.plan import autoexec, protected
from jail.plan.held import Held
from jail.plan.protected import canonical
from jail.policy.paths import beneath


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
    whole = whole_path(ground.thing, path)
    folder, _, name = whole.rpartition("/")
    place = _place(folder or "/", ground.workspace)
    own = canonical(name)
    every = (*place.every, own)
    found = [
        _of_way(change, whole, ground),
        _of_guarded(change, every, ground),
        gitparts.of_git(change, whole, every, ground),
        gitparts.of_marker(change, whole, every, ground),
        *_of_leads(change, whole, ground),
    ]
    if not beneath(ground.workspace, whole):  # what the tables say is of names in it
        found.append(_of_tables(change, place, (*place.parts, own), whole, ground))
    if change.what != DELETED:
        found += [_of_link(change, whole, ground), _of_command(change, whole, ground)]
    return found


def _of_leads(change: Change, whole: str, ground: Ground) -> list[Verdict]:
    """What a change is by the names of the host's links that lead to it."""
    found = []
    for way in ground.leads(whole):
        place, every = _place(os.path.dirname(way), ground.workspace), components(way)
        verdicts = (
            _of_guarded(change, every, ground),
            _of_tables(change, place, (*place.parts, every[-1]), whole, ground),
            gitparts.of_git(change, way, every, ground, whole),
        )
        shown = way.removeprefix(f"{ground.workspace.rstrip('/')}/")
        found += [(tier, f"{shown} leads there: {reason}") for tier, reason in verdicts if tier]
    return found


def is_spoken_of(path: str, workspace: str) -> bool:
    """Whether a table speaks of an absolute path, were it a link: of it, or of what would lie in it."""
    folder, name = os.path.split(path)
    place, name = _place(folder, workspace), canonical(name)
    row = autoexec.row_of(place.above, name) or row_above(place.above, name)
    return row is not None or protected.row_of("workspace", (*place.parts, name)) is not None


def _waits(change: Change, path: str, ground: Ground) -> bool:
    """Whether nobody would have to call what comes with a change: it runs with each start, by the table; or
    it leads out of the thing, and who wrote there may have put such a file there, or may later; or a name of
    PATH means another command without it.
    """
    whole = whole_path(ground.thing, path)
    folder, name = os.path.split(whole)
    if change.what == DELETED:
        return folder in ground.thing.commands and bool(ground.shadowed(whole))
    row = _row(change, _place(folder, ground.workspace).above, canonical(name)) if path else None
    return (row is not None and row.uncalled) or bool(_of_link(change, whole, ground)[0])


def whole_path(thing: Held, path: str) -> str:
    """The absolute path of a path in a thing."""
    return f"{thing.path.rstrip('/')}/{path}" if path else thing.path


class _Place(NamedTuple):
    """A folder: `every`: its canonical components; `parts`: those in the workspace, of one that lies
    elsewhere all; `above`: what the table says in the folder; `is_in`: whether the workspace has it.
    """

    every: tuple[str, ...]
    parts: tuple[str, ...]
    above: autoexec.Within
    is_in: bool


@lru_cache(maxsize=256)
def _place(folder: str, workspace: str) -> _Place:
    """Asked again and again for the folder that a sorted list is in."""
    every = components(folder)
    is_in = beneath(folder, workspace)
    parts = every[len(components(workspace)) :] if is_in else every
    return _Place(every, parts, _within(parts), is_in)


def _of_guarded(change: Change, every: tuple[str, ...], ground: Ground) -> Verdict:
    reason = ground.guards.reason(every, kind_of(change))
    return (REFUSED, reason) if reason else NOTHING


def _within(parts: tuple[str, ...]) -> autoexec.Within:
    above = autoexec.TOP
    for part in parts:
        above = autoexec.enter(above, part)
    return above


def _of_tables(change: Change, place: _Place, parts: tuple[str, ...], whole: str, ground: Ground) -> Verdict:
    row = _row(change, place.above, parts[-1])
    tier, reason = (row.tier, row.reason) if row is not None else NOTHING
    if tier != REFUSED and place.is_in:
        root = _of_root(change, parts)
        tier, reason = root if root is not None and (root[0] == REFUSED or not tier) else (tier, reason)
    if tier == REFUSED:
        return tier, reason
    if change.what in (DELETED, MODE):  # what is gone runs no more; both are shown apart, to the last one
        return NOTHING
    return _by_content(change, whole, parts[-1], (tier, reason), ground)


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


def _by_content(change: Change, whole: str, name: str, verdict: Verdict, ground: Ground) -> Verdict:
    """A list of packages is as grave as what changed in it."""
    package = name == "package.json"
    if change.new.kind != "file" or not (package or sources.is_lock(name)):
        return verdict
    contents = ground.contents
    was = whole_path(ground.thing, change.source) if change.source else whole
    old = contents.old(was) if change.old.kind in ("file", "unknown") else None
    new = contents.new(whole)
    if package:
        told = packages.package_changes(old, new)
        return (WARNED, f"{verdict[1]}: {told}") if told else NOTHING
    told = sources.new_sources(name, old, new)
    return (WARNED, told) if told else verdict


def _of_link(change: Change, whole: str, ground: Ground) -> Verdict:
    if change.new.kind != "symlink":
        return NOTHING
    target = ground.contents.target(whole)
    if not target:
        return WARNED, "a link that cannot be read"
    if links.stays(ground.thing.path, os.path.dirname(whole), target, ground.contents.targets):
        return NOTHING
    return WARNED, f"a link that leads out, to {target}"


def _of_way(change: Change, whole: str, ground: Ground) -> Verdict:
    """What a PATH folder is reached by: only a folder may come in the place of nothing or of a folder."""
    if not any(f"{folder}/".startswith(f"{whole}/") for folder in ground.thing.commands):
        return NOTHING
    led = change.old.kind not in ("folder", "absent", "unknown")
    leads = change.what != DELETED and change.new.kind != "folder"
    return (REFUSED, "a folder of PATH lies there") if led or leads else NOTHING


def _of_command(change: Change, whole: str, ground: Ground) -> Verdict:
    if change.new.kind == "folder":
        return NOTHING
    other = ground.shadowed(whole)
    if os.path.dirname(whole) not in ground.thing.commands:
        waiting = other and environments.is_of_commands(os.path.dirname(whole), ground)
        if not waiting or environments.is_the_program(change, whole, ground):
            return NOTHING
        return REFUSED, f"shadows {other} once its folder is in PATH"
    if other:
        return REFUSED, f"shadows {other}"
    if change.what == TYPE or (change.what == MODIFIED and _runs(change)):
        return REFUSED, "a command that you have already, changed"
    return (WARNED, "lies in a folder of PATH") if change.what == MODIFIED else NOTHING


def _runs(change: Change) -> bool:
    sides = (change.old, change.new)
    return any(side.kind == "symlink" or side.mode & 0o111 for side in sides)
