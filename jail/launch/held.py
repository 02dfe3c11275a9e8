"""What a session holds, laid out in its folder before anything inside exists.

Rule: the copies, what they were made from, and the manifest are there before the fork; a launch that cannot
make them does not start. A run that holds nothing has none of it.
"""

import os
import time

from jail.errors import JailError
from jail.hold import store
from jail.kernel.trees import TooLargeError
from jail.ledger.place import Session
from jail.light import Final, Mapping
from jail.plan.held import FILE
from jail.plan.steps import Plan

TIME_STAMP_SLACK: Final = 20_000_000
"""Nanoseconds by which a file's change time may lag behind the clock: it is as coarse as the kernel's tick.
"""


def prepared(plan: Plan, session: Session, environ: Mapping[str, str]) -> str:
    """The folder of all that the plan holds, made now; "" for nothing. Raises JailError."""
    if not plan.held:
        return ""
    folder = store.folder_of(session.folder)
    started = time.time_ns() - TIME_STAMP_SLACK
    # Root starts jail for another uid, which must be able to write the copies.
    owner = (plan.uid, plan.gid) if os.geteuid() == 0 else (-1, -1)
    try:
        os.mkdir(folder, 0o700)
        os.mkdir(f"{folder}/{store.BASE}", 0o700)
        store.prepare(folder, plan.held, started, owner)
        store.write_manifest(folder, _manifest(plan, session, environ, started))
    except (OSError, TooLargeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it has grown too large since it was weighed"
        raise JailError(
            f"what this run would hold cannot be copied: {said}",
            where=f"{getattr(error, 'filename', None) or folder}, into {folder}",
            hint="start again; nothing was executed",
        ) from error
    return folder


def _manifest(plan: Plan, session: Session, environ: Mapping[str, str], started: int) -> store.Manifest:
    # Only what is put into a tree may shadow a command.
    trees = any(thing.kind != FILE for thing in plan.held)
    entries = environ.get("PATH", "").split(":") if trees else []
    path = tuple(dict.fromkeys(os.path.realpath(entry) for entry in entries if entry.startswith("/")))
    return store.Manifest(
        session=session.id,
        workspace=plan.workspace,
        uid=plan.uid,
        gid=plan.gid,
        idmap_from=plan.idmap_from,
        started_ns=started,
        path=path,
        held=plan.held,
    )
