"""What a person decided about held changes, carried out and written into the session's review ledger.

Rule: whoever calls holds the session's lock. Every path that was meant is in the ledger, with what became of
it: applied, discarded, or refused and why. What an earlier apply left half done is finished first.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.hold import apply as applier
from jail.hold import discard as discarder
from jail.hold import drop, gitkeys, opening, recorded
from jail.hold.account import APPLIED
from jail.hold.change import NEVER, SETTINGS, Change
from jail.hold.review import Review, not_offered
from jail.hold.stage import Instead
from jail.hold.store import Manifest
from jail.hold.transaction import Applied
from jail.ledger import writers
from jail.ledger.review import ReviewLedger
from jail.ledger.reviewed import open_applies
from jail.plan.held import FILE


class Done(NamedTuple):
    """`applied`, `discarded`: what was; `left`: what was meant and is not, with the reason; `problem`: what
    could not be tidied up, "" for nothing.
    """

    applied: tuple[Change, ...]
    discarded: tuple[Change, ...]
    left: tuple[tuple[Change, str], ...]
    problem: str


NOTHING: Final = Done((), (), (), "")


def finished(session_folder: str, manifest: Manifest) -> Done | None:
    """Finish an apply that was interrupted; None where there is none. Raises JailError."""
    unfinished = bool(applier.unfinished(session_folder))
    if not unfinished and not open_applies(session_folder):
        return None
    writers.refuse(session_folder, {opening.host_top(thing) for thing in manifest.held})
    ledger = ReviewLedger.open(session_folder, manifest.session)
    try:
        if not unfinished:
            recorded.close_lost(ledger, session_folder)
            return None
        account = recorded.Recorded(ledger, session_folder, manifest)
        found = applier.finish(session_folder, manifest, account)
    finally:
        ledger.close()
    return None if found is None else Done(found.done, (), _conflicts(found.conflicts), found.problem)


def carry_out(
    review: Review,
    apply: Sequence[Change] = (),
    discard: Sequence[Change] = (),
    left: Sequence[tuple[Change, str]] = (),
    kind: str = APPLIED,
) -> Done:
    """Apply, discard and leave as it was decided; what is applied has entries of `kind`. Raises JailError,
    with nothing applied.
    """
    if not (apply or discard or left):
        _empty(review, NOTHING)
        return NOTHING
    writers.refuse(review.folder, {opening.host_top(review.things[change.tree]) for change in apply})
    ledger = ReviewLedger.open(review.folder, review.manifest.session)
    try:
        record = recorded.into(ledger, review.manifest)
        for change, why in left:
            known = why.startswith(change.conflict or change.reason or NEVER)
            record("refused", change if known else change._replace(reason=why, conflict=""))
        applied, conflicts, problem = Applied((), ())
        if apply:
            account = recorded.Recorded(ledger, review.folder, review.manifest, kind)
            applied, conflicts, problem = applier.apply(
                review.folder, review.manifest, apply, account, lambda change: _settings(review, change)
            )
        discarded, stay, _ = Applied((), ())
        if discard:
            discarded, stay, _ = discarder.discard(review.folder, review.manifest, discard, record)
    finally:
        ledger.close()
    done = Done(applied, discarded, (*left, *_conflicts((*conflicts, *stay))), problem)
    _empty(review, done)
    return done


def remaining(review: Review, done: Done) -> tuple[Change, ...]:
    """The changes of a review that the session still holds, without looking at it again."""
    gone = {(change.tree, change.path) for change in (*done.applied, *done.discarded)}
    left = {(change.tree, change.path): change for change, _ in done.left}
    settings = {(change.tree, change.path) for change in done.applied if change.what == SETTINGS}
    rest = []
    for change in review.changes:
        key = change.tree, change.path
        if key not in gone:
            rest.append(left.get(key, change))
        elif key in settings and review.keys[key].refused:
            rest.append(change._replace(tier=NEVER, reason=not_offered(review.keys[key]), conflict=""))
    return tuple(rest)


def _empty(review: Review, done: Done) -> None:
    """Empty the layers where nothing of the list is left: what the command touched and left as it was is in
    them still.
    """
    if done.problem or remaining(review, done):
        return
    with suppress(OSError, JailError):
        drop.empty(review.folder, review.manifest)


def _conflicts(changes: Sequence[Change]) -> tuple[tuple[Change, str], ...]:
    return tuple((change, change.conflict) for change in changes)


def _settings(review: Review, change: Change) -> Instead | None:
    """Of a git config the host's own, with the keys that are taken over.

    The base gets the same keys, and nothing of what the host changed itself: that would look as if the
    command had taken it away.
    """
    if change.what != SETTINGS:
        return None
    sides, offered = review.sides[change.tree], review.keys[change.tree, change.path].offered
    host = gitkeys.merged(sides.old(change.path) or b"", offered)
    of_file = review.things[change.tree].kind == FILE
    return Instead(host, gitkeys.merged(sides.base() or b"", offered) if of_file else None)
