"""`--resume SESSION`: a run that goes on from what an earlier one holds.

Rule: nothing that is held may fall out of sight, so the new run must hold all that the old one held, at the
same paths, for the same uid; what the command line does not say about that is taken from the manifest. The
old session must have ended, and no apply of it may be half done. What is held is taken at the last moment
before the walls are built (hold/carry.py); a plan that is only printed takes nothing.
"""

import os

from jail.errors import EXIT_USAGE, JailError
from jail.hold import carry, store, waiting
from jail.hold.lock import Lock
from jail.hold.store import Manifest
from jail.launch import reach
from jail.ledger import place, reviewed
from jail.ledger.place import Session
from jail.light import TYPE_CHECKING, NamedTuple
from jail.plan.steps import Plan

if TYPE_CHECKING:
    from jail.launch.start import Options


class Resumed(NamedTuple):
    """The session that is gone on from: its folder, and the manifest of what it holds."""

    folder: str
    manifest: Manifest

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """(path, name) of each thing: it keeps its name, which is that of its folder."""
        return tuple((thing.path, thing.name) for thing in self.manifest.held)


def of(text: str, state: str, workspace: str = ".") -> Resumed:
    """The session that `text` names, if it can be gone on from; `last` is the newest with changes of the
    workspace that a folder lies in, where there is one. Raises JailError.
    """
    here = next(waiting.of_workspace(state, workspace), None) if text == place.LAST else None
    folder = here[0] if here is not None else reach.session_named(state, text)
    session = os.path.basename(folder)
    if place.running(folder):
        raise _refusal(f"session {session} still runs", folder, "wait for its end, or end it: jail stop")
    return _judged(folder)


def _judged(folder: str) -> Resumed:
    session = os.path.basename(folder)
    manifest = store.read_manifest(folder)
    if manifest is None:
        taken = reviewed.resumed_by(folder)
        if taken:
            what = f"session {session} holds nothing any more: {taken} went on from it"
            raise _refusal(what, folder, f"go on from that one: --resume {taken}")
        raise _refusal(f"session {session} holds nothing", folder, "`jail sessions` lists which do")
    if waiting.interrupted(folder):
        what = f"an apply of what session {session} holds was interrupted"
        raise _refusal(what, folder, f"`jail apply {session}` finishes it")
    return Resumed(folder, manifest)


def completed(options: "Options", resumed: Resumed) -> "Options":
    """The options with what the manifest says of the workspace and of what is held. Raises JailError."""
    workspace = resumed.manifest.workspace
    if options.workspace and os.path.realpath(options.workspace) != workspace:
        what = f"session {os.path.basename(resumed.folder)} worked on {workspace}"
        raise _refusal(what, f"--workspace {options.workspace}", "leave --workspace out, or name that folder")
    # What may be delivered is held without being asked for.
    asked = [thing.path for thing in resumed.manifest.held if not thing.deliver]
    paths = tuple(path for path in asked if path != workspace)
    whole = options.hold or workspace in asked
    known = {os.path.realpath(path) for path in options.hold_path}
    more = tuple(path for path in paths if path not in known)
    return options._replace(workspace=workspace, hold=whole, hold_path=(*options.hold_path, *more))


def check(plan: Plan, resumed: Resumed) -> None:
    """Refuse a plan that does not hold all that the old session held. Raises JailError."""
    manifest = resumed.manifest
    where = f"session {os.path.basename(resumed.folder)}"
    if (plan.uid, plan.gid, plan.idmap_from) != (manifest.uid, manifest.gid, manifest.idmap_from):
        then, now = (f"uid {each.uid} and gid {each.gid}" for each in (manifest, plan))
        what = f"it ran as {then}, this run would be {now}"
        raise _refusal(what, where, "start jail as the user that started that session")
    planned = {thing.path: thing for thing in plan.held}
    for thing in manifest.held:
        new = planned.get(thing.path)
        if new is None:
            hint = f"hold it: --hold-path {thing.path}; or apply or discard first what {where} holds"
            raise _refusal(f"{thing.path} was held, and this run would not hold it", where, hint)
        if (new.kind, new.name) != (thing.kind, thing.name):
            what = f"{thing.path} was held by another means ({thing.kind}) than this run would ({new.kind})"
            raise _refusal(what, where, f"apply or discard first what {where} holds")


def take(resumed: Resumed, session: Session) -> None:
    """Have `session` hold what the old one held. Raises JailError; then nothing has moved."""
    with Lock(resumed.folder):
        if _judged(resumed.folder) != resumed:
            raise _refusal("what that session holds was changed meanwhile", resumed.folder, "start again")
        carry.carry(resumed.folder, resumed.manifest, session.folder, session.id)


def _refusal(what: str, where: str, hint: str) -> JailError:
    return JailError(f"this run cannot be resumed: {what}", where=where, hint=hint, code=EXIT_USAGE)
