"""What a session holds, laid out in its folder before anything inside exists.

Rule: the copies, what they were made from, and the manifest are there before the fork; a launch that cannot
make them does not start. A run that holds nothing has none of it. What an earlier session holds is taken
over as it is, and only what that one did not hold is made anew.
"""

import os
import time

from jail.errors import JailError
from jail.ledger.place import Session
from jail.light import TYPE_CHECKING, Final, Mapping, NamedTuple, suppress
from jail.plan.held import BASE, FILE, OVERLAY, Held
from jail.plan.steps import Plan

if TYPE_CHECKING:
    from jail.hold.store import Manifest
    from jail.launch.bases import Bases
    from jail.launch.heldsize import HeldSize
    from jail.launch.resume import Resumed

GUARDED: Final = 20_000
"""Guarded paths of one manifest; a repository with some hundred submodules has thousands."""
TIME_STAMP_SLACK: Final = 20_000_000
"""Nanoseconds by which a file's change time may lag behind the clock: it is as coarse as the kernel's tick.
"""


class Rules(NamedTuple):
    """What the review of a run goes by: `deliver` of its policy; `guarded` as in jail.hold.store.Manifest."""

    deliver: tuple[str, ...] = ()
    guarded: tuple[tuple[str, str], ...] = ()


NO_RULES: Final = Rules()


class Holding(NamedTuple):
    """`folder`: of all that the plan holds, "" for nothing; `things`: these; `bases`: lists what the trees
    are meanwhile; `left_out`: paths that a copy does not have, so that the command does not see them; `size`
    weighs what is held.
    """

    folder: str = ""
    bases: "Bases | None" = None
    things: tuple[Held, ...] = ()
    left_out: tuple[str, ...] = ()
    size: "HeldSize | None" = None

    def lacks(self, most: int) -> str:
        """A line that says what is left out and names `most` of it at the most; "" for nothing."""
        if not self.left_out:
            return ""
        names = ", ".join(self.left_out[:most])
        more = f" and {len(self.left_out) - most} more" if len(self.left_out) > most else ""
        return f"held by a copy, which has no sockets, pipes, devices, nor what cannot be read: {names}{more}"

    def changed(self) -> bool:
        """Whether the command may have left something there."""
        if not self.folder:
            return False
        from jail.hold import store

        with suppress(OSError):
            if all(thing.kind == FILE for thing in self.things):
                return any(store.differs(self.folder, thing) for thing in self.things)
        from jail.hold import waiting  # of trees it asks more

        return waiting.has_some(self.folder, self.things)

    def end(self) -> None:
        """End what still runs for it; a second call does nothing."""
        if self.bases is not None:
            self.bases.end()
        if self.size is not None:
            self.size.close()


def begin(
    plan: Plan,
    session: Session,
    environ: Mapping[str, str],
    resumed: "Resumed | None" = None,
    rules: Rules = NO_RULES,
) -> Holding:
    """Lay out all that the plan holds, and begin to list what the trees are. Raises JailError."""
    if not plan.held:
        return Holding()
    # A run that holds nothing needs none of these; nothing is imported once a process was forked.
    from jail.hold import store
    from jail.launch import heldsize

    folder = store.folder_of(session.folder)
    if resumed is not None:
        from jail.launch import resume

        resume.take(resumed, session)
    known = [] if resumed is None else [name for _, name in resumed.names]
    taken = tuple(thing for thing in plan.held if thing.name in known)
    fresh = tuple(thing for thing in plan.held if thing.name not in known)
    started = time.time_ns() - TIME_STAMP_SLACK
    # Root starts jail for another uid, which must be able to write the copies.
    owner = (plan.uid, plan.gid) if os.geteuid() == 0 else (-1, -1)
    try:
        if resumed is None:
            os.mkdir(folder, 0o700)
            os.mkdir(f"{folder}/{BASE}", 0o700)
        copied = store.prepare(folder, fresh, started, owner)
        manifest = _manifest(plan, session, environ, started)
        unasked = tuple(thing.name for thing in plan.held if thing.deliver in rules.deliver)
        manifest = manifest._replace(unasked=unasked, guarded=rules.guarded)
        if resumed is not None:
            from jail.hold.grown import grown

            manifest = grown(resumed.manifest, manifest)
        store.write_manifest(folder, _bounded(manifest))
        before = copied.size + heldsize.copied(folder, taken)
        size = heldsize.HeldSize(folder, plan.held, dict(plan.limits)["held_bytes"], before)
        return Holding(folder, _bases(folder, plan.held, started), plan.held, copied.left_out, size)
    except OSError as error:
        raise JailError(
            f"files that this run holds cannot be laid out in the session's folder: {error.strerror}",
            where=f"{error}; {error.filename or folder}, into {folder}",
            hint=f"start again{_from(resumed, session)}; nothing was executed",
        ) from error


def _bases(folder: str, things: tuple[Held, ...], started: int) -> "Bases | None":
    if not any(thing.kind == OVERLAY for thing in things):
        return None  # that of a copy or a file was made with it
    from jail.launch.bases import Bases

    return Bases.start(folder, things, started)


def _bounded(manifest: "Manifest") -> "Manifest":
    """The manifest, which lists no more than a review can go by."""
    if len(manifest.guarded) > GUARDED:
        raise JailError(
            f"more than {GUARDED} paths of the workspace are obeyed by programs of the host",
            where=f"workspace {manifest.workspace}",
            hint="look at the git configuration and the hooks of this workspace and of its submodules",
        )
    return manifest


def _from(resumed: "Resumed | None", session: Session) -> str:
    """Where a run that goes on from another must go on from, once the other's things were taken."""
    return "" if resumed is None else f" from where they are now: --resume {session.id}"


def _manifest(plan: Plan, session: Session, environ: Mapping[str, str], started: int) -> "Manifest":
    from jail.hold.store import Manifest

    # Only what is put into a tree may shadow a command.
    trees = any(thing.kind != FILE for thing in plan.held)
    entries = environ.get("PATH", "").split(":") if trees else []
    path = tuple(dict.fromkeys(os.path.realpath(entry) for entry in entries if entry.startswith("/")))
    return Manifest(
        session=session.id,
        workspace=plan.workspace,
        uid=plan.uid,
        gid=plan.gid,
        idmap_from=plan.idmap_from,
        started_ns=started,
        path=path,
        held=plan.held,
    )
