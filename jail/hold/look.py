"""What the command changed in held things, as values: its side, the base and the host's side, compared.

Rule: the list is complete or there is none. All that differs from the base is in it, every path of a deleted
folder too; what the host has already is not; what the host changed meanwhile is a conflict, and so is what
nobody knows the base of. Only what the command touched is read, so a look takes time for what changed and for
streaming the base. What has lost its permission bits is read all the same (jail.hold.closed).

What is equal to what, jail.hold.compared says. What was written and is not on the host any more counts as
modified: nobody can compare it.
"""

import os

from jail.errors import JailError
from jail.hold import base, closed, compared, freshgit, inside, opening, renames, store
from jail.hold.change import ABSENT, MODE, MODIFIED, SETTINGS, TIME, UNKNOWN, Change, State
from jail.hold.hostside import HostSide
from jail.hold.store import Manifest
from jail.light import Final, Iterable, Iterator
from jail.plan.held import BASE, FILE, GIT_CONFIG, OVERLAY, Held
from jail.plan.protected import canonical

CHANGED: Final = "changed on the host since the run began"
APPEARED: Final = "added on the host since the run began"
VANISHED: Final = "deleted on the host since the run began"
FOLDER_GONE: Final = "its folder is gone from the host"
GREW: Final = "something was added in it on the host since the run began"
HOLDS_CONFLICT: Final = "something in it changed on the host since the run began"
NOT_WHOLE: Final = "its base is unknown: the snapshot was not finished"
BEGAN: Final = "its base is unknown: it changed on the host while the run began"
BEYOND: Final = "its path is too long for what is in it to be looked at"


def changes(session_folder: str, manifest: Manifest) -> tuple[Change, ...]:
    """The changes that a session holds, sorted by thing and by the bytes of the path; `tier` and `reason` are
    not set.

    Of a rename, `old` is what the source was. Raises JailError for what cannot be looked at.
    """
    try:
        found = _all(session_folder, manifest, strict=True)
    except PermissionError:
        rows = closed.answer(lambda: [_row(each) for each in _all(session_folder, manifest, strict=False)])
        found = [_change(row) for row in rows]
    except OSError as error:
        raise _unreadable(error) from error
    return tuple(found)


def _row(change: Change) -> tuple[object, ...]:
    """As marshal takes it: plain tuples."""
    return tuple(tuple(each) if isinstance(each, State) else each for each in change)


def _change(row: tuple[object, ...]) -> Change:
    return Change._make(State._make(each) if isinstance(each, tuple) else each for each in row)


def _unreadable(error: OSError) -> JailError:
    return JailError(
        "what this session holds cannot be looked at",
        where=f"{error.filename or ''}: {error.strerror or error}",
        hint="nothing was applied, and nothing is lost",
    )


def _all(session_folder: str, manifest: Manifest, *, strict: bool) -> list[Change]:
    found: list[Change] = []
    try:
        for thing in manifest.held:
            if thing.kind == FILE:
                found += _of_file(session_folder, thing)
            else:
                found += _Tree(session_folder, thing, strict=strict).changes()
    except PermissionError as error:
        if strict:
            raise
        raise _unreadable(error) from error
    return found


class _Tree:
    """The look at one held tree."""

    def __init__(self, session_folder: str, thing: Held, *, strict: bool) -> None:
        self._thing = thing
        self._held = store.folder_of(session_folder)
        self._top = opening.new_top(session_folder, thing)
        self._host = HostSide(thing.path, strict=strict)
        self._blocked: set[str] = set()
        self._left = inside.Left()
        self._base = base.Entries()

    def changes(self) -> list[Change]:
        """The changes, sorted by the bytes of their paths."""
        try:
            paths = sorted(self._paths(), key=os.fsencode)
            by_folder: dict[str, list[str]] = {}
            for path in paths:
                if path:
                    folder, _, name = path.rpartition("/")
                    by_folder.setdefault(folder, []).append(name)
            judged = [change for path in paths if (change := self._judged(path))]
            judged = self._folders_that_stay(judged, by_folder)
            return renames.paired(judged, self._host.digest)
        finally:
            self._host.close()

    def _paths(self) -> Iterable[str]:
        """The paths that differ or may."""
        try:
            top = opening.open_top(self._top)
        except FileNotFoundError:
            return ()  # the run did not come so far
        try:
            if self._thing.kind == OVERLAY:
                self._left = inside.look(top, lambda *_: True)
                self._base = base.read(self._held, self._thing.name, self._left.concerns)
            else:
                self._base = base.read(self._held, self._thing.name, lambda _: True)
                made_ns = base.written_ns(self._held, self._thing.name)
                self._left = inside.look(top, self._is_touched, made_ns)
        finally:
            os.close(top)
        if not self._base.complete:
            # The names of the host's side stand in for those of the base; what they were, nobody knows.
            overlay = self._thing.kind == OVERLAY
            for path in self._host.paths():
                if path not in self._base and (not overlay or self._left.concerns(path)):
                    self._base[path] = base.UNKNOWN
        if self._thing.kind == OVERLAY:
            return {*self._left.states, *self._base}
        return {*self._left.states, *self._gone_from_copy()}

    def _is_touched(self, path: str, found: os.stat_result) -> bool:
        entry = self._base[path]
        return (entry.own_ino, entry.own_ctime_ns) != (found.st_ino, found.st_ctime_ns)

    def _gone_from_copy(self) -> Iterator[str]:
        left = self._left
        unseen = set(left.beyond)
        for path in sorted(self._base) if unseen else self._base:
            if path.rpartition("/")[0] in unseen and path:
                unseen.add(path)
            elif path not in left.states and path not in left.same and not self._was_left_out(path):
                yield path

    def _was_left_out(self, path: str) -> bool:
        """Whether a name of the base has no copy, so that its absence there says nothing."""
        entry = self._base[path]
        left_out = not entry.own_ino and entry.kind in ("socket", "special", "unknown", "absent")
        return left_out and self._base.complete

    def _judged(self, path: str) -> Change | None:
        new = self._left.states.get(path, ABSENT)
        entry = self._base[path]
        found = self._host.stat(path)
        now = self._host.state(path, found, new)
        unchanged = compared.is_base(entry, found, now)
        old = compared.as_state(entry, now.digest if compared.has_content(entry, found, now) else "")
        before = now if old.kind == "unknown" else old
        what = compared.differs(before, new)
        if not what and path in self._left.stirred:
            return Change(self._thing.name, path, MODIFIED, old, new, now, "", BEYOND)
        is_blocked = bool(path) and path.rpartition("/")[0] in self._blocked
        if new.kind == "folder" and (is_blocked or (now.kind not in ("folder", before.kind))):
            self._blocked.add(path)
        if not what or (not unchanged and compared.is_done(new, now)):
            return None
        conflict = "" if unchanged else self._conflict(entry, now)
        conflict = FOLDER_GONE if is_blocked and entry.kind != "unknown" else conflict
        if what == MODIFIED and path.rpartition("/")[2] == "config" and self._is_git_dir(path):
            what = SETTINGS
        return Change(self._thing.name, path, what, old, new, now, "", conflict)

    def _conflict(self, entry: base.Entry, now: State) -> str:
        if entry.kind == "unknown":
            return BEGAN if self._base.complete else NOT_WHOLE
        if entry.kind == "absent":
            return APPEARED
        return VANISHED if now.kind == "absent" else CHANGED

    def _is_git_dir(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        beside = f"{folder}/" if folder else ""
        made = {name for name in freshgit.PARTS if beside + name in self._left.states}
        return freshgit.is_git_dir({*self._host.names(folder), *made})

    def _folders_that_stay(self, judged: list[Change], by_folder: dict[str, list[str]]) -> list[Change]:
        """Deleted folders that the host needs: they, and those above them, are conflicts."""
        kept: set[str] = set()
        for at in range(len(judged) - 1, -1, -1):
            change = judged[at]
            if not change.conflict and change.new.kind != "folder" and change.now.kind == "folder":
                conflict = self._why_it_stays(change.path, kept, by_folder)
                change = judged[at] = change._replace(conflict=conflict)
            if change.conflict:
                kept.add(change.path.rpartition("/")[0])
        return judged

    def _why_it_stays(self, path: str, kept: set[str], by_folder: dict[str, list[str]]) -> str:
        if path in kept:
            return HOLDS_CONFLICT
        prefix = f"{path}/" if path else ""
        known = {name for name in by_folder.get(path, ()) if self._base[prefix + name].kind != "absent"}
        # Of a folder that may not be looked into, nobody knows.
        seen = self._host.folder(path) >= 0
        return "" if seen and known.issuperset(self._host.names(path)) else GREW


def _of_file(session_folder: str, thing: Held) -> list[Change]:
    """The change of a held file; its base is a content, so the host's side may have changed beside it."""
    held = os.path.realpath(store.folder_of(session_folder))
    new = _file_state(opening.new_top(session_folder, thing), os.path.basename(thing.path))
    if new is None:
        return []  # the run did not come so far
    old = _file_state(f"{held}/{BASE}", thing.name) or ABSENT
    if old.kind != "file":
        old = UNKNOWN
    now = _file_state(opening.host_top(thing), os.path.basename(thing.path)) or ABSENT
    what = compared.differs(now if old.kind == "unknown" else old, new)
    if what in ("", MODE, TIME) or compared.differs(now, new) in ("", MODE, TIME):
        return []
    conflict = ""
    if old.kind == "unknown":
        conflict = NOT_WHOLE
    elif now.kind != "file":
        conflict = VANISHED if now.kind == "absent" else CHANGED
    elif not is_git_config(thing) and compared.differs(old, now) not in ("", MODE, TIME):
        conflict = CHANGED
    what = SETTINGS if what == MODIFIED and is_git_config(thing) else what
    return [Change(thing.name, "", what, old, new, now, "", conflict)]


def is_git_config(thing: Held) -> bool:
    """Whether git obeys a held file; a rule of the policy may name one too, by its path."""
    *folders, name = map(canonical, thing.path.split("/"))
    of_git = ".git" in folders or os.path.lexists(f"{os.path.dirname(thing.path)}/HEAD")
    return thing.deliver == GIT_CONFIG or (name == "config" and of_git)


def _file_state(folder_path: str, name: str) -> State | None:
    """The state of a name in a folder; None where there is no such folder."""
    try:
        folder = opening.open_top(folder_path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return inside.state(folder, name)
    except FileNotFoundError:
        return ABSENT
    finally:
        os.close(folder)
