"""What is chosen of the changes that a session holds, to be applied or to be forgotten.

Rule: nothing is chosen by accident. A path chooses itself and all beneath it; what is refused is chosen only
by its own path, word for word; what can never be applied, and what the host changed too, by nothing. A path
that means no change is an error. There are no patterns: a shell has them, and a name may look like one.
"""

import os.path
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from jail.errors import EXIT_USAGE, JailError
from jail.hold.change import DELETED, NEVER, REFUSED, RENAMED, Change
from jail.hold.review import Review

_SHOWN: Final = 3
_NAME_IT: Final = "refused unless it is named, word for word"
_HOLDS_MORE: Final = "something in it stays as it is"
_NO_FOLDER: Final = "the folder that it lies in is not applied"


class Chosen(NamedTuple):
    """`taken`: to be applied or discarded; `left`: what was meant too and is not, with the reason."""

    taken: tuple[Change, ...]
    left: tuple[tuple[Change, str], ...]


def chosen(review: Review, words: Sequence[str], cwd: str, *, all_but: bool = False) -> Chosen:
    """What is applied when these paths are given, or all but these; no path at all is everything.

    A path is relative to `cwd` or, where that means no change, to the workspace. Raises JailError with
    EXIT_USAGE for one that means none.
    """
    meant = _meant(review, words, cwd)
    places = set(meant.values())
    exact = {place for word, place in meant.items() if _is_word_for_word(word)}
    taken: list[Change] = []
    left: list[tuple[Change, str]] = []
    for change in review.changes:
        if words and _is_in(review, change, places) == all_but:
            continue
        exactly = review.absolute(change.tree, change.path) in exact
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
    places = set(_meant(review, words, cwd).values())
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


def _is_word_for_word(word: str) -> bool:
    """Whether a path is spelled as it is listed: a shell completes `dir/` and a script joins `a/../b`, and
    neither has read what is there. `./` before it tells it from a session.
    """
    spelled = word[1:] if word.startswith("/") else word.removeprefix("./")
    return {"", ".", ".."}.isdisjoint(spelled.split("/"))


def _why_not(change: Change, *, named: bool) -> str:
    if change.tier == NEVER:
        return change.reason or NEVER
    if change.conflict:
        return change.conflict
    if change.tier == REFUSED and not named:
        return f"{change.reason}: {_NAME_IT}"
    return ""


def _meant(review: Review, words: Sequence[str], cwd: str) -> dict[str, str]:
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
    return meant


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
