"""What a session holds, as a person reviews it: every change with its tier, and what of it is chosen.

Rule: nothing is chosen by accident. A path chooses itself and all beneath it; what is refused is chosen only
by its own path, word for word; what can never be applied, and what the host changed too, by nothing. A path
that means no change is an error. There are no patterns: a shell has them, and a name may look like one.
"""

import os.path
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from jail.errors import EXIT_USAGE, JailError
from jail.hold import gitconfig, gitkeys, look, names, store, tiers
from jail.hold.change import DELETED, NEVER, REFUSED, RENAMED, SETTINGS, WARNED, Change
from jail.hold.sides import Sides
from jail.hold.store import Manifest
from jail.plan.held import FILE, Held
from jail.plan.protected import canonical

_SHOWN: Final = 3
_NAME_IT: Final = "refused unless it is named, word for word"
_HOLDS_MORE: Final = "something in it stays as it is"
_NO_SETTINGS: Final = "of a git config single settings are taken over, never what stands in its place"
_NO_FOLDER: Final = "the folder that it lies in is not applied"


class Review(NamedTuple):
    """`folder`: of the session; `keys`: of changed settings of git, by tree and path; `things`, `sides`: by
    tree.
    """

    folder: str
    manifest: Manifest
    changes: tuple[Change, ...]
    keys: Mapping[tuple[str, str], gitkeys.Keys]
    things: Mapping[str, Held]
    sides: Mapping[str, Sides]

    def absolute(self, tree: str, path: str) -> str:
        """The path on the host, which is the one inside too."""
        return joined(self.things[tree].path, path)


class Chosen(NamedTuple):
    """`taken`: to be applied or discarded; `left`: what was meant too and is not, with the reason."""

    taken: tuple[Change, ...]
    left: tuple[tuple[Change, str], ...]


def joined(thing: str, path: str) -> str:
    """The absolute path of a path in a thing."""
    return f"{thing.rstrip('/')}/{path}" if path else thing


def reviewed(session_folder: str) -> Review:
    """All that the session in a folder holds, judged. Raises JailError, too where it holds nothing."""
    manifest = store.read_manifest(session_folder)
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
    shadowed = commands(manifest.path)
    grounds = {
        name: tiers.Ground(thing, manifest.workspace, sides[name], shadowed) for name, thing in things.items()
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
        elif things[change.tree].kind == FILE and look.is_git_config(things[change.tree]):
            found.append(change._replace(tier=NEVER, reason=_NO_SETTINGS))
        else:
            found.append(tiers.judged(change, grounds[change.tree]))
    return Review(session_folder, manifest, tuple(found), keys, things, sides)


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
    names are the host's, compared as jail.plan.protected compares.
    """
    known: dict[str, list[str]] = {}
    for folder in path:
        try:
            found = os.listdir(folder)
        except OSError:
            continue
        for name in found:
            known.setdefault(canonical(name), []).append(joined(folder, name))

    def shadowed(command: str) -> str:
        folder, name = os.path.split(command)
        others = known.get(canonical(name), ())
        return next((other for other in others if os.path.dirname(other) != folder), "")

    return shadowed


def chosen(review: Review, words: Sequence[str], cwd: str, *, all_but: bool = False) -> Chosen:
    """What is applied when these paths are given, or all but these; no path at all is everything.

    A path is relative to `cwd` or, where that means no change, to the workspace. Raises JailError with
    EXIT_USAGE for one that means none.
    """
    places = _meant(review, words, cwd)
    taken: list[Change] = []
    left: list[tuple[Change, str]] = []
    for change in review.changes:
        if words and _is_in(review, change, places) == all_but:
            continue
        exactly = review.absolute(change.tree, change.path) in places
        why = _why_not(change, named=exactly and not all_but)
        if why:
            left.append((change, why))
        else:
            taken.append(change)
    return whole(review, taken, left)


def meant(review: Review, words: Sequence[str], cwd: str, *, all_but: bool = False) -> tuple[Change, ...]:
    """The changes that these paths are, or all but these, however grave; no path at all is everything."""
    if not words:
        return review.changes
    places = _meant(review, words, cwd)
    return tuple(change for change in review.changes if _is_in(review, change, places) != all_but)


def thrown(review: Review, chosen: Sequence[Change]) -> Chosen:
    """What can be discarded of `chosen`: not a new folder in which something stays held, which is meant by
    nobody who chose something else in it; and what was in a folder not while something else is in its place.
    """
    folders = _that_come_or_go(review.changes)
    lost = {_key(change) for change in chosen}
    stays = [change for change in review.changes if _key(change) not in lost]
    filled = {key for change in stays for key in _folders_of(change.tree, change.path, folders)}
    covers = {_key(change) for change in stays if change.new.kind not in ("folder", "absent")}
    taken: list[Change] = []
    left: list[tuple[Change, str]] = []
    for each in chosen:
        was = each.source if each.what == RENAMED else each.path if each.what == DELETED else ""
        cover = next((key for key in _folders_of(each.tree, was, folders) if key in covers), None)
        if cover is not None:
            left.append((each, f"{review.absolute(*cover)} is in place of its folder: discard that first"))
        elif _key(each) not in filled or each.new.kind != "folder":
            taken.append(each)
    return Chosen(tuple(taken), tuple(left))


def _is_in(review: Review, change: Change, places: set[str]) -> bool:
    """Whether a change lies at one of these places, or did before it was renamed."""
    paths = (change.path, change.source) if change.source else (change.path,)
    return any(_above(review.absolute(change.tree, path), places) for path in paths)


def _why_not(change: Change, *, named: bool) -> str:
    if change.tier == NEVER:
        return change.reason or NEVER
    if change.conflict:
        return change.conflict
    if change.tier == REFUSED and not named:
        return f"{change.reason}: {_NAME_IT}"
    return ""


def _meant(review: Review, words: Sequence[str], cwd: str) -> set[str]:
    """The absolute paths that `words` are."""
    bases = (cwd, review.manifest.workspace)
    ways = {word: [os.path.normpath(os.path.join(base, word)) for base in bases] for word in words}
    candidates = {way for both in ways.values() for way in both}
    hit: set[str] = set()
    for change in review.changes:
        for path in (change.path, change.source) if change.source else (change.path,):
            hit.update(_above(review.absolute(change.tree, path), candidates))
        if hit == candidates:
            break
    meant = {word: next((way for way in both if way in hit), "") for word, both in ways.items()}
    lost = [word for word, way in meant.items() if not way]
    if lost:
        workspace = review.manifest.workspace
        raise JailError(
            f"nothing that is held lies at {', '.join(lost[:_SHOWN])}",
            where=cwd if cwd == workspace else f"{cwd}, and the workspace {workspace}",
            hint="`jail changes` lists what is held; nothing was done",
            code=EXIT_USAGE,
        )
    return set(meant.values())


def _above(path: str, candidates: set[str]) -> list[str]:
    """Those of `candidates` that are `path` or a folder above it."""
    found = []
    while True:
        if path in candidates:
            found.append(path)
        if len(path) <= 1:
            return found
        path = path[: path.rindex("/")] or "/"


def whole(
    review: Review,
    taken: Sequence[Change],
    left: Sequence[tuple[Change, str]],
    thrown: Sequence[Change] = (),
) -> Chosen:
    """What can be applied of `taken`: a new folder comes along with what is in it, unless it is refused or is
    in `thrown`, and then nothing in it can be; a folder in which something stays cannot go.
    """
    folders = _that_come_or_go(review.changes)
    picked = {_key(change) for change in taken}
    lost = {_key(change) for change in thrown}
    kept: dict[_Key, Change] = {}
    stay = list(left)
    for change in taken:
        comes = [folders[key] for key in _folders_of(change.tree, change.path, folders)]
        comes = [folder for folder in comes if folder.new.kind == "folder"]
        missing = [each for each in comes if _key(each) not in picked]
        if any(_key(each) in lost or _why_not(each, named=False) for each in missing):
            stay.append((change, _NO_FOLDER))
            continue
        kept.update((_key(each), each) for each in (*comes, change))
    filled = {
        key
        for change in review.changes
        if _key(change) not in kept
        for path in (change.path, change.source or change.path)
        for key in _folders_of(change.tree, path, folders)
    }
    gone = [key for key in filled & kept.keys() if kept[key].old.kind == "folder"]
    stay += [(kept.pop(key), _HOLDS_MORE) for key in gone]
    order = {_key(change): place for place, change in enumerate(review.changes)}
    return Chosen(
        tuple(sorted(kept.values(), key=lambda change: order[_key(change)])),
        tuple(sorted(stay, key=lambda pair: order[_key(pair[0])])),
    )


_Key = tuple[str, str]


def _key(change: Change) -> _Key:
    return change.tree, change.path


def _that_come_or_go(changes: Iterable[Change]) -> dict[_Key, Change]:
    """The folders that are there on one side alone."""
    return {
        _key(change): change
        for change in changes
        if "folder" in (change.old.kind, change.new.kind) and change.old.kind != change.new.kind
    }


def _folders_of(tree: str, path: str, folders: Mapping[tuple[str, str], Change]) -> list[tuple[str, str]]:
    """Of the folders that come or go, those above a path, the outermost first."""
    found = []
    at = path.find("/")
    while at >= 0:
        key = (tree, path[:at])
        if key in folders:
            found.append(key)
        at = path.find("/", at + 1)
    if path and (tree, "") in folders:
        found.insert(0, (tree, ""))
    return found
