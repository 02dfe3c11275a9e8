"""What a run holds, when it is over: delivered where the policy says so, counted, and told in one line.

Rule: all inside is dead, the terminal is the person's again, and the ledger has no end entry yet. Nothing is
lost here: what is not delivered waits for `jail apply`, and so does everything after an error, which is said
and noted. A run that never became one delivers nothing.
"""

from jail.errors import JailError
from jail.hold import choosing, decisions, review
from jail.hold.change import LETTERS, NEVER, PLAIN, REFUSED, WARNED, Change
from jail.kernel.digest import sha256
from jail.launch.bases import Bases
from jail.launch.cutshort import until_signal
from jail.launch.record import Record
from jail.ledger.entries import encode
from jail.light import Final, NamedTuple, Sequence

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
    done, waiting = 0, found.changes
    try:
        done = _deliver(site, found, record)
        waiting = review.reviewed(site.folder).changes if done else waiting
    except Exception as error:  # noqa: BLE001 - whatever it is: the run is over, and its record must end
        _fault(
            record, f"what is held was not delivered, and waits in session {site.session}: {_shown(error)}"
        )
    record.held(**counts(waiting))
    if line := told(waiting, done, site.session):
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


def _deliver(site: Site, found: review.Review, record: Record) -> int:
    """Apply what may be delivered; how many changes that were."""
    chosen = chosen_of(found, site.words)
    if not chosen:
        return 0
    done = decisions.carry_out(found, chosen, kind=DELIVERED)
    if done.problem:
        _fault(record, done.problem)
    return len(done.applied)


def chosen_of(found: review.Review, words: Sequence[str]) -> tuple[Change, ...]:
    """The changes that may be delivered unasked by the `words` of a policy (jail.plan.held.DELIVERIES): those
    of these things that a person would apply without naming a path.
    """
    things = {thing.name for thing in found.manifest.held if thing.deliver in words}
    theirs = tuple(change for change in found.changes if change.tree in things)
    return choosing.chosen(found._replace(changes=theirs), (), "/").taken


def counts(waiting: Sequence[Change]) -> dict[str, object]:
    """The fields of the `held` entry: how many changes of which kind wait, and a digest of the list."""
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
    }


def told(waiting: Sequence[Change], delivered: int, session: str) -> str:
    """The line for a person; "" where nothing was held."""
    said = [f"{_number(delivered)} delivered"] if delivered else []
    if waiting:
        graver = {
            tier: sum(1 for change in waiting if change.tier == tier) for tier in (REFUSED, WARNED, NEVER)
        }
        words = {NEVER: "that cannot be applied", **{tier: tier for tier in (REFUSED, WARNED)}}
        aside = [f"{count} {words[tier]}" for tier, count in graver.items() if count]
        conflicts = sum(1 for change in waiting if change.conflict)
        aside += [f"{conflicts} in conflict"] if conflicts else []
        many = f" ({', '.join(aside)})" if aside else ""
        wait = "waits" if len(waiting) == 1 else "wait"
        said.append(f"{_number(len(waiting))} {wait}{many}")
    if not said:
        return ""
    hint = f"; jail changes {session}" if waiting else ""
    return f"held: {', '.join(said)}{hint}"


def _number(count: int) -> str:
    return f"{count} change" if count == 1 else f"{count} changes"
