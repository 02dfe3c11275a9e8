"""A change as it is shown: as a row of a list, as a diff, as an object of JSON.

Rule: a path is shown as it can be typed, relative to the workspace where it lies in it. What is said beside
it comes from the states, so that a list opens nothing but links; contents are read for a diff alone. Nothing
is escaped here: jail.report and who prints do that.
"""

import json
import stat
import time
from collections.abc import Iterator
from typing import Any, Final

from jail.hold import packages, sources
from jail.hold.change import (
    ADDED,
    DELETED,
    LETTERS,
    MODE,
    NEVER,
    REFUSED,
    RENAMED,
    SETTINGS,
    TIME,
    TYPE,
    WARNED,
    Change,
    State,
)
from jail.hold.review import Review
from jail.plan.protected import canonical
from jail.policy.amounts import measured_size
from jail.report.changes import Row
from jail.report.difference import difference, too_long

_FILLED: Final = frozenset(["node_modules", "site-packages", ".git"])
"""Folders that a program fills: of what is plain in them a list says the number."""
_STORES: Final = frozenset(["node_modules"])
"""Those where each package has a package.json."""
SETTING_CHARACTERS: Final = 300
"""Of one key or value of git that is shown; `--json` has all of it."""


def path_of(review: Review, tree: str, path: str) -> str:
    """A path as it is shown and can be typed."""
    whole, workspace = review.absolute(tree, path), review.manifest.workspace.rstrip("/")
    if whole == workspace:
        return "."
    return whole[len(workspace) + 1 :] if whole.startswith(f"{workspace}/") else whole


def row(review: Review, change: Change) -> Row:
    """A change as a row of the list."""
    path = path_of(review, change.tree, change.path)
    moves = review.moved.get((change.tree, change.path), ())
    folder = "/" if change.new.kind == "folder" and change.what in (ADDED, TYPE) else ""
    return Row(
        LETTERS[change.what],
        path + folder,
        change.tier,
        change.reason,
        _conflict(change),
        _detail(review, change) if not moves else moves[0] if len(moves) == 1 else f"{len(moves)} refs",
        _mode(change),
        _to_write(review, change) if change.what not in (DELETED, MODE, TIME, SETTINGS) else 0,
        _fold(path, change),
        moves,
    )


def _to_write(review: Review, change: Change) -> int:
    """Bytes that would be written; holes are kept, and a file that is large may be all of one."""
    if change.new.size < _MAY_BE_SPARSE:
        return change.new.size
    return min(change.new.size, review.sides[change.tree].new_on_disk(change.path))


_MAY_BE_SPARSE: Final = 1 << 20
"""Bytes from which on a list asks how much of a file is on the disk: of smaller ones there are many."""


def _conflict(change: Change) -> str:
    if not change.conflict or change.tier == NEVER:
        return ""
    return f"conflict: {change.conflict}" if change.tier == REFUSED else change.conflict


def _fold(path: str, change: Change) -> str:
    """The folder that a change is told with as one number: what is plain in one that a program fills, and in
    a store of packages their lists too, where these say no more than that.
    """
    if change.tier == WARNED:
        is_list = canonical(path.rpartition("/")[2]) == "package.json" and change.new.kind == "file"
        if not is_list or not packages.is_ordinary(change.reason):
            return ""
    elif change.tier:
        return ""
    at = path.find("/")
    start = 0
    while at >= 0:
        name = canonical(path[start:at])
        if name in _STORES or (name in _FILLED and change.tier != WARNED):
            return path[:at]
        start, at = at + 1, path.find("/", at + 1)
    return ""


def _detail(review: Review, change: Change) -> str:
    old, new = change.old, change.new
    if change.what == RENAMED:
        return f"was {path_of(review, change.tree, change.source)}"
    if change.what == SETTINGS:
        return "; ".join(line for line in settings_lines(review, change) if line.startswith(("+", "-")))
    if change.what in (DELETED, TIME, MODE):
        return ""
    leads = ""
    if new.kind == "symlink" and change.tier != WARNED:  # a warning says where it leads
        leads = f"to {review.sides[change.tree].target(change.path)}"
    if change.what == TYPE:
        return f"{old.kind} → {new.kind} {leads}".rstrip()
    if new.kind != "file":
        return leads
    return measured_size(new.size) if change.what == ADDED else f"{_size(old)} → {_size(new)}"


def _mode(change: Change) -> str:
    old, new = change.old, change.new
    if new.kind not in ("file", "folder") or change.what == SETTINGS:
        return ""
    dropped = ", of which setuid and setgid are dropped" if new.mode & _SET_ID else ""
    if old.kind != new.kind:
        return f"mode {new.mode:04o}{dropped}" if dropped else ""
    return f"{old.mode:04o} → {new.mode:04o}{dropped}" if old.mode != new.mode else ""


_SET_ID: Final = stat.S_ISUID | stat.S_ISGID


def _size(state: State) -> str:
    return measured_size(state.size) if state.kind == "file" else state.kind


def settings_lines(review: Review, change: Change) -> list[str]:
    """The keys of a git config: those that are taken over as + and -, those that never arrive as !."""
    keys = review.keys[change.tree, change.path]
    lines = []
    for each in keys.offered:
        lines += [f"-{_setting(each.key, value)}" for value in each.before]
        lines += [f"+{_setting(each.key, value)}" for value in each.after]
    return [*lines, *(f"!{key} (never)" for key in keys.refused)]


def _setting(key: str, value: str | None) -> str:
    return _quoted(key) if value is None else f"{_quoted(key)} = {_quoted(value)}"


def _quoted(text: str) -> str:
    """A key or a value, which ends where it seems to: settings stand beside each other in a row."""
    shown = text if len(text) <= SETTING_CHARACTERS else f"{text[:SETTING_CHARACTERS]}…"
    return shown if _ENDS.isdisjoint(shown) else json.dumps(shown, ensure_ascii=False)


_ENDS: Final = frozenset(" ;\"'=\\\n\t")


def diff(review: Review, change: Change) -> Iterator[str]:
    """What changed, as lines: in the form of `diff -u` for texts. Of a conflict both sides."""
    path = path_of(review, change.tree, change.path)
    yield f"{LETTERS[change.what]} {path}"
    if change.tier:
        yield f"  {change.tier}: {change.reason}"
    if change.conflict:
        yield f"  conflict: {change.conflict}"
        yield from both_sides(review, change)
        return
    if change.source:
        yield f"renamed from {path_of(review, change.tree, change.source)}"
    if change.what == SETTINGS:
        yield from settings_lines(review, change)
    else:
        yield from _between(review, change, change.old, path)


def both_sides(review: Review, change: Change) -> Iterator[str]:
    """Of a conflict what was, what the host has and what the session has, and from the host's to that."""
    for when, state in (("when the run began", change.old), ("host", change.now), ("session", change.new)):
        yield f"  {when}: {_told(state)}"
    if change.what != SETTINGS:
        yield from _between(review, change, change.now, path_of(review, change.tree, change.path))


def _told(state: State) -> str:
    told = [state.kind]
    if state.kind in ("file", "folder"):
        told.append(f"mode {state.mode:04o}")
    if state.kind == "file":
        told.append(measured_size(state.size))
    if state.mtime_ns:
        told.append(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(state.mtime_ns // 10**9)))
    return ", ".join(told)


def _between(review: Review, change: Change, old: State, path: str) -> Iterator[str]:
    """From a state of the host to what the command left."""
    new, sides = change.new, review.sides[change.tree]
    if old.kind == new.kind and old.mode != new.mode and new.kind != "symlink":
        yield f"mode {old.mode:04o} → {new.mode:04o}"
    elif old.kind != new.kind and "absent" not in (old.kind, new.kind):
        yield f"{old.kind} → {new.kind}"
    if old.kind == "symlink":
        yield f"-link to {sides.old_target(change.source or change.path)}"
    if new.kind == "symlink":
        yield f"+link to {sides.target(change.path)}"
    if "file" not in (old.kind, new.kind) or old.digest == new.digest != "":
        return
    if change.what in (MODE, TIME):
        return
    before = sides.old(change.source or change.path) if old.kind == "file" else b""
    after = sides.new(change.path) if new.kind == "file" else b""
    if before is None or after is None:
        long = max(old.size, new.size) > sources.MOST_BYTES
        yield too_long(old.size, new.size) if long else "it cannot be read"
        return
    lines = difference(before, after)
    first = next(lines, "")
    if first.startswith("@@"):
        yield f"--- {f'a/{path}' if old.kind == 'file' else '/dev/null'}"
        yield f"+++ {f'b/{path}' if new.kind == 'file' else '/dev/null'}"
    if first:
        yield first
    yield from lines


def as_object(review: Review, change: Change) -> dict[str, Any]:
    """A change as the object that --json prints."""
    keys = review.keys.get((change.tree, change.path))
    return {
        "path": review.absolute(change.tree, change.path),
        "what": change.what,
        "source": review.absolute(change.tree, change.source) if change.source else None,
        "tier": change.tier or "plain",
        "reason": change.reason or None,
        "conflict": change.conflict or None,
        "old": _state(change.old),
        "new": _state(change.new),
        "host": _state(change.now),
        "refs": list(review.moved.get((change.tree, change.path), ())) or None,
        "settings": None
        if keys is None
        else {
            "offered": [{"key": each.key, "old": each.before, "new": each.after} for each in keys.offered],
            "refused": list(keys.refused),
        },
    }


def _state(state: State) -> dict[str, Any]:
    known = state.kind in ("file", "folder")
    return {
        "kind": state.kind,
        "mode": f"{state.mode:04o}" if known else None,
        "bytes": state.size if state.kind == "file" else None,
        "mtime_ns": state.mtime_ns or None,
        "sha256": state.digest or None,
    }
