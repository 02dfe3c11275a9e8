"""What a run holds, when it is over: delivered where the policy says so, counted, and told in one line.

Rule: all inside is dead, the terminal is the person's again, and the ledger has no end entry yet. Nothing is
lost here: what is not delivered waits for `jail apply`, and so does everything after an error, which is said
and noted. A run that never became one delivers nothing. What would run without being called by anybody waits
for a person; of the rest what is warned of is delivered and counted, since half a package is none.
"""

from jail.errors import JailError
from jail.hold import choosing, decisions, review
from jail.hold.change import LETTERS, PLAIN, SETTINGS, WARNED, Change
from jail.kernel.digest import sha256
from jail.launch.bases import Bases
from jail.launch.cutshort import until_signal
from jail.launch.record import Record
from jail.ledger.entries import encode
from jail.light import Final, Mapping, NamedTuple, Sequence
from jail.plan.held import GIT_CONFIG
from jail.report.words import held_text

DELIVERED: Final = "delivered"


class Site(NamedTuple):
    """A run at its end: the session's folder and id, what may be delivered unasked (nothing of a run that was
    none), the process that lists what the trees were.
    """

    folder: str
    session: str
    words: tuple[str, ...]
    bases: Bases | None


def settle(site: Site, record: Record) -> None:
    """Deliver, count, and tell; a signal cuts it short. Raises JailError only for an entry of the ledger that
    cannot be written.
    """
    if not until_signal(lambda: _settle(site, record)):
        _fault(
            record, f"a signal came before all of it was listed: what is held waits in session {site.session}"
        )


def _settle(site: Site, record: Record) -> None:
    problem = _wait(site.bases)
    if problem:
        _fault(record, f"what was there when the run began is not known, so changes are conflicts: {problem}")
    try:
        found = review.reviewed(site.folder)
    except (JailError, OSError) as error:
        _fault(record, f"what is held cannot be listed, and waits in session {site.session}: {_shown(error)}")
        return
    done = decisions.NOTHING
    try:
        done = _deliver(site, found, record)
    except Exception as error:  # noqa: BLE001 - whatever it is: the run is over, and its record must end
        _fault(
            record, f"what is held was not delivered, and waits in session {site.session}: {_shown(error)}"
        )
    fields = counts(decisions.remaining(found, done), done.applied)
    record.held(**fields)
    if line := told(fields, site.session):
        record.tell(line)


def _shown(error: Exception) -> str:
    return (
        f"{error.message} ({error.where})"
        if isinstance(error, JailError)
        else str(error) or type(error).__name__
    )


def _wait(bases: Bases | None) -> str:
    if bases is None:
        return ""
    try:
        return bases.wait()
    finally:
        bases.end()


def _fault(record: Record, text: str) -> None:
    record.note(text)
    record.tell(text)


def _deliver(site: Site, found: review.Review, record: Record) -> decisions.Done:
    """Apply what may be delivered."""
    done = decisions.carry_out(found, chosen_of(found, site.words), kind=DELIVERED)
    if done.problem:
        _fault(record, done.problem)
    return done


def chosen_of(found: review.Review, words: Sequence[str]) -> tuple[Change, ...]:
    """The changes that may be delivered unasked by the `words` of a policy (jail.plan.held.DELIVERIES): those
    of these things that a person would apply without naming a path, but for those that wait all the same, and
    for things of which an earlier run, that this one went on from, was to deliver nothing.
    """
    manifest = found.manifest
    things = {
        thing.name: thing.deliver
        for thing in manifest.held
        if thing.deliver in words and thing.name in manifest.unasked
    }
    theirs = found._replace(
        changes=tuple(
            change
            for change in found.changes
            if change.tree in things and (things[change.tree] != GIT_CONFIG or change.what == SETTINGS)
        )
    )
    whole = choosing.chosen(theirs, (), "/")
    waiting = [change for change in whole.taken if change.waits]
    taken = [change for change in whole.taken if not change.waits]
    return choosing.whole(theirs, taken, whole.left, waiting).taken if waiting else whole.taken


def counts(waiting: Sequence[Change], delivered: Sequence[Change] = ()) -> dict[str, object]:
    """The fields of the `held` entry: how many changes of which kind wait, and a digest of the list; how many
    were delivered, and how many of these are warned of.
    """
    total = sha256()
    tiers: dict[str, int] = {}
    letters: dict[str, int] = {}
    for change in waiting:
        fields = (change.tree, change.path, change.what, change.source, list(change.new))
        total.update(encode(fields).encode("ascii") + b"\n")
        letters[LETTERS[change.what]] = letters.get(LETTERS[change.what], 0) + 1
        if change.tier != PLAIN:
            tiers[change.tier] = tiers.get(change.tier, 0) + 1
    return {
        "changes": len(waiting),
        "tiers": tiers,
        "letters": letters,
        "conflicts": sum(1 for change in waiting if change.conflict),
        "digest": total.hexdigest(),
        "delivered": len(delivered),
        # Of settings only what nobody is warned of is delivered.
        "delivered_warned": sum(1 for each in delivered if each.tier == WARNED and each.what != SETTINGS),
    }


def told(fields: Mapping[str, object], session: str) -> str:
    """The line for a person, of the fields of the `held` entry; "" where nothing was held."""
    if not (fields["changes"] or fields["delivered"]):
        return ""
    hint = f"; jail changes {session}" if fields["changes"] else ""
    return f"held: {held_text(fields)}{hint}"
