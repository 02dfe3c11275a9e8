"""A run between its first and its last entry: what is held is laid out, all is supervised, and what became of
it is recorded.

Rule: whatever fails, the parts that are still possible are done: what ran is dead, what is held can be
compared with what was there, and the ledger has an end. The first failure is the one that is told.
"""

import os

from jail import __version__
from jail.errors import EXIT_JAIL, JailError, say
from jail.kernel import cache, filters, netlink
from jail.launch import held, keeper, outcome
from jail.launch.outcome import Outcome
from jail.launch.supervise import Supervisor
from jail.ledger.place import Session
from jail.light import TYPE_CHECKING, Callable, Final, signal

if TYPE_CHECKING:
    from jail.launch.record import Record
    from jail.launch.start import Prepared

SHOWN: Final = 5
"""Paths named in one line; the ledger has them all."""

_UNFIT: Final = frozenset([outcome.FAILED, outcome.REFUSED, outcome.NOT_EXECUTED])
"""How a run ended whose changes are delivered to nobody unasked."""


def run(prepared: "Prepared", session: Session, group: str) -> Outcome:
    """Run it and return how it ended; `group`: its control group. Raises JailError, OSError."""
    cached = prepared.own.cache
    made = _loopback(cached), filters.compiled(cached), prepared.identities
    rules = held.Rules(prepared.policy.deliver, prepared.guarded)
    holding = held.begin(prepared.plan, session, os.environ, prepared.resumed, rules)
    try:
        built_from = keeper.BuiltFrom(*made, holding.folder)
        supervisor = Supervisor(prepared.plan, built_from, group, holding.size)
        return _supervised(prepared, session, supervisor, holding)
    except JailError as error:
        if prepared.resumed is not None:
            # The other session has it no more, so who tries again must name this one.
            error.hint = f"{error.hint}; what was held is in this session now: --resume {session.id}"
        raise
    finally:
        holding.end()


def _supervised(
    prepared: "Prepared", session: Session, supervisor: Supervisor, holding: held.Holding
) -> Outcome:
    failure: BaseException | None = None
    try:
        found = supervisor.run(lambda: _opened(prepared, session, holding))
    except BaseException as error:  # noqa: BLE001 - raised again below, once the end is recorded
        failure, found = error, outcome.of_error(error)
    record = supervisor.record
    if record is not None:
        words = () if failure is not None or found.reason in _UNFIT else prepared.policy.deliver
        try:
            found = _recorded(record, found, lambda: _settle(record, session, holding, words))
        except (OSError, JailError) as error:
            failure = failure or error
    if failure is not None:
        raise failure
    _summarise(found, record, session)
    return found


def _settle(record: "Record", session: Session, holding: held.Holding, words: tuple[str, ...]) -> None:
    """What is held, now that all inside is dead."""
    if holding.changed():
        from jail.launch import deliver  # most runs hold no change

        deliver.settle(deliver.Site(session.folder, session.id, words, holding.bases), record)


def _recorded(record: "Record", found: Outcome, settle: Callable[[], None]) -> Outcome:
    """The last look and the last entry; a protected thing that still stands is no success."""
    problem: Exception | None = None
    for part in (record.finish, settle):
        try:
            part()
        except (OSError, JailError) as error:
            problem = problem or error
    if problem is not None:
        record.end(outcome.of_error(problem) if found.code == 0 else found)
        raise problem
    if record.standing and found.code == 0:
        detail = f"protected, and still there: {', '.join(record.standing[:SHOWN])}"
        found = found._replace(code=EXIT_JAIL, reason=outcome.FAILED, detail=detail)
    record.end(found)
    return found


def _opened(prepared: "Prepared", session: Session, holding: held.Holding) -> "Record":
    """The ledger with its first entry. Imported here: another process builds the walls meanwhile."""
    from jail.launch.record import Record

    resumed = prepared.resumed.manifest.session if prepared.resumed is not None else ""
    record = Record(prepared.plan, prepared.policy, prepared.watched, prepared.before, session, resumed)
    record.start()
    if holding.left_out:
        record.note(holding.lacks(len(holding.left_out)))
        record.tell(holding.lacks(SHOWN))
    return record


def _loopback(folder: str) -> bytes:
    """The message that brings up `lo`, from the cache or from pyroute2."""
    makers = cache.generation(os.path.dirname(os.path.abspath(netlink.__file__)), ("netlink.py",))
    key = cache.key("loopback", __version__, makers)
    kept = cache.read(folder, "netlink-loopback", key)
    if kept is None:
        kept = netlink.loopback_up()
        cache.write(folder, "netlink-loopback", key, kept)
    return kept


def _summarise(found: Outcome, record: "Record | None", session: Session) -> None:
    """One line when there is something to say that the exit code alone does not."""
    said = ["stopped by `jail stop`"] if record is not None and record.stopped else []
    if found.reason == outcome.KILLED:
        if found.signal != signal.SIGPIPE:  # `| head`: the reader has what it wanted
            said.append(f"killed by signal {found.signal} ({signal.strsignal(found.signal)})")
    elif found.reason not in (outcome.EXITED, outcome.NOT_EXECUTED):
        said.append(found.reason)
    if found.detail and found.reason != outcome.NOT_EXECUTED:
        said.append(found.detail)
    if record is not None and record.swept:
        said.append(f"{record.swept} protected paths were made inside and moved away")
    if record is not None and record.self_running:
        said.append(f"{record.self_running} files that run by themselves changed: jail logs last")
    if said:
        say(f"{'; '.join(said)}; session {session.id}")
