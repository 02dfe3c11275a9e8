"""What a session holds, as a person reviews it: every change with its tier.

Rule: each change is judged by what is gravest of it: a name that can never be applied, then the keys of a git
config, one by one, then the tables (jail.hold.tiers). Nothing is left out.
"""

import os.path
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from jail.errors import EXIT_USAGE, JailError
from jail.hold import environments, gitconfig, gitkeys, ground, leads, look, names, refs, store, tiers
from jail.hold.change import NEVER, SETTINGS, WARNED, Change
from jail.hold.ground import Ground
from jail.hold.merged import Merged
from jail.hold.sides import Sides
from jail.hold.store import Manifest
from jail.plan.held import FILE, Held
from jail.policy.paths import beneath

_SHOWN: Final = 3
_NO_SETTINGS: Final = "of a git config single settings are taken over, never what stands in its place"
_NO_FILE: Final = "of a single held file the content is taken over, never what stands in its place"


class Review(NamedTuple):
    """`folder`: of the session; `keys`: of changed settings of git, by tree and path; `things`, `sides`: by
    tree; `moved`: what of git's branches, tags and HEADs, a line each.
    """

    folder: str
    manifest: Manifest
    changes: tuple[Change, ...]
    keys: Mapping[tuple[str, str], gitkeys.Keys]
    things: Mapping[str, Held]
    sides: Mapping[str, Sides]
    moved: refs.Moved = MappingProxyType({})

    def absolute(self, tree: str, path: str) -> str:
        """The path on the host, which is the one inside too."""
        return joined(self.things[tree].path, path)


def joined(thing: str, path: str) -> str:
    """The absolute path of a path in a thing."""
    return f"{thing.rstrip('/')}/{path}" if path else thing


def reviewed(session_folder: str, manifest: Manifest | None = None) -> Review:
    """All that the session in a folder holds, judged; `manifest`, where it was read and nobody can have taken
    anything since. Raises JailError, too where it holds nothing.
    """
    manifest = manifest or store.read_manifest(session_folder)
    if manifest is None:
        raise JailError(
            "this session holds nothing: its command wrote the real files",
            where=session_folder,
            hint="`jail run --hold -- COMMAND` keeps what it writes until you have looked",
            code=EXIT_USAGE,
        )
    return judged(session_folder, manifest, look.changes(session_folder, manifest))


def judged(session_folder: str, manifest: Manifest, changes: Iterable[Change]) -> Review:
    """The review of changes that were found already."""
    things = {thing.name: thing for thing in manifest.held}
    sides = {name: Sides(session_folder, thing) for name, thing in things.items()}
    # Of a link to a system's folder, as /bin is, the first name is enough.
    shadowed = commands(tuple(dict.fromkeys((*manifest.path, *environments.SYSTEM))))
    leading = leads.of_host(session_folder, manifest)
    merged, guards = Merged(things, sides), ground.guards(manifest.guarded)
    grounds = {
        name: Ground(_with_path(thing, manifest), manifest.workspace, merged, shadowed, leading, guards)
        for name, thing in things.items()
    }
    keys: dict[tuple[str, str], gitkeys.Keys] = {}
    found = []
    for change in changes:
        why = names.complaint(change.path, change.new)
        if why:
            found.append(change._replace(tier=NEVER, reason=why))
        elif change.what == SETTINGS:
            compared = _compared(change, things[change.tree], sides[change.tree])
            keys[change.tree, change.path] = compared
            found.append(_of_keys(change, compared, sides[change.tree]))
        elif things[change.tree].kind == FILE and (why := _in_place_of(change, things[change.tree])):
            found.append(change._replace(tier=NEVER, reason=why))
        else:
            found.append(tiers.judged(change, grounds[change.tree]))
    tops = {name: thing.path for name, thing in things.items()}
    return Review(
        session_folder, manifest, tuple(found), keys, things, sides, refs.moved(found, merged, tops)
    )


def _in_place_of(change: Change, thing: Held) -> str:
    """Why a change of a held file that is none of its content never arrives, "" for the content."""
    if look.is_git_config(thing):
        return _NO_SETTINGS
    return "" if change.new.kind == "file" else _NO_FILE


def _with_path(thing: Held, manifest: Manifest) -> Held:
    """A thing with all PATH folders in it, those too that were not there when the run began."""
    more = [folder for folder in manifest.path if beneath(folder, thing.path)]
    return thing._replace(commands=tuple(dict.fromkeys((*thing.commands, *more))))


def _compared(change: Change, thing: Held, sides: Sides) -> gitkeys.Keys:
    base = sides.base() if thing.kind == FILE else sides.old(change.path)
    new = sides.new(change.path)
    if base is None or new is None:
        return gitkeys.Keys((), ("a file that cannot be read",))
    return gitkeys.compared(base, new)


def _of_keys(change: Change, keys: gitkeys.Keys, sides: Sides) -> Change:
    if not keys.offered:
        return change._replace(tier=NEVER, reason=not_offered(keys))
    if keys.refused:
        change = change._replace(tier=WARNED, reason=not_offered(keys))
    return change if change.conflict else change._replace(conflict=_other_value(change, keys, sides))


def not_offered(keys: gitkeys.Keys) -> str:
    """What of the settings never arrives, as the reason of a tier."""
    if not keys.refused:
        return "no setting changed that could be taken over"
    more = f" and {len(keys.refused) - _SHOWN} more" if len(keys.refused) > _SHOWN else ""
    return f"not offered: {', '.join(keys.refused[:_SHOWN])}{more}"


def _other_value(change: Change, keys: gitkeys.Keys, sides: Sides) -> str:
    """Why the keys do not go into the host's file as it is now, "" where they do."""
    host = sides.old(change.path)
    try:
        other = () if host is None else gitkeys.conflicts(host, keys.offered)
    except gitconfig.ConfigError as error:
        return f"the host's git config cannot be read: {error}"
    if host is None:
        return "the host's git config cannot be read"
    return f"the host has another value for {other[0].key} by now" if other else ""


def commands(path: Sequence[str]) -> Callable[[str], str]:
    """The absolute path of a command → that of one by the same name in another folder of `path`, or "". The
    names are the host's, compared as jail.plan.protected compares, and without a version at their end: who
    has `python3` means it by `python` too.
    """
    known: dict[str, list[str]] = {}
    for folder in path:
        try:
            found = os.listdir(folder)
        except OSError:
            continue
        for name in found:
            known.setdefault(environments.unversioned(name), []).append(joined(folder, name))

    def shadowed(command: str) -> str:
        folder, name = os.path.split(command)
        others = known.get(environments.unversioned(name), ())
        return next((other for other in others if os.path.dirname(other) != folder), "")

    return shadowed
