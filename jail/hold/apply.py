"""What a session holds, applied to the host: all that was chosen, or nothing.

    look at the host, stage, digest      an error here: the tree was not touched
    syncfs, what is meant into the ledger
    journal `committed`                  from here on a kill -9 is finished by the next call
    swap: deletions, the rest, modes     an error here: all of it is taken back
    syncfs, journal `applied`            from here on it is done
    record, drop from the session, remove the staging folder and the journal

Rule: a path whose host side is not as listed is a conflict of that path, and both sides stay; an error of the
kernel is one of the whole.
"""

from jail.errors import JailError
from jail.hold import journal, stage, staging
from jail.hold.account import TAKEN_BACK, Account
from jail.hold.change import Change
from jail.hold.journal import APPLIED, BACK, COMMITTED, STAGING, Journal
from jail.hold.store import Manifest
from jail.hold.transaction import Applied, Transaction
from jail.light import Sequence, suppress


def apply(
    session_folder: str,
    manifest: Manifest,
    chosen: Sequence[Change],
    account: Account,
    instead: stage.Content | None = None,
) -> Applied:
    """Apply changes of a session whose lock is held, as jail.hold.look listed them and a person chose them; a
    new folder must be among them for what is in it. `account`: of this apply; `instead`:
    jail.hold.stage.Content.

    Raises JailError, with the host as it was before, and when an earlier apply must be finished first.
    """
    if journal.state(session_folder):
        raise JailError(
            "an apply of this session was interrupted", where=session_folder, hint="finish it: jail apply"
        )
    work = Transaction(session_folder, manifest, _new_journal(session_folder), account)
    try:
        try:
            work.begin()
            work.stage(chosen, instead)
            if work.intents:
                work.commit()
        except (OSError, JailError) as error:
            _abandon(work)
            if isinstance(error, JailError):
                raise
            raise stage.failed("write down what is to be applied", session_folder, error) from error
        if work.intents:
            _forward_or_back(work)
        return work.settle()
    finally:
        work.close()


def _new_journal(session_folder: str) -> Journal:
    try:
        return Journal(session_folder, new=True)
    except OSError as error:
        raise stage.failed("begin the journal of this apply", session_folder, error) from error


def _abandon(work: Transaction) -> None:
    """Nothing was touched: remove what was made ready, as far as that goes; the next call does the rest."""
    with suppress(OSError, JailError):
        work.book.say(STAGING)
        work.account.end(work.id, TAKEN_BACK)
        work.tidy()


def _forward_or_back(work: Transaction) -> None:
    try:
        work.forward()
    except OSError as error:
        _take_back(work, error)


def _take_back(work: Transaction, error: OSError) -> None:
    where = work.session_folder
    with suppress(OSError):
        work.book.say(BACK)
    try:
        work.back()
        work.account.end(work.id, TAKEN_BACK)
        problem = work.tidy()
    except OSError as second:
        raise JailError(
            f"cannot apply ({error.strerror}), nor take back what was done of it ({second.strerror})",
            where=where,
            hint="mend the file system, then `jail apply` again: the journal is kept and takes it back",
        ) from second
    failed = stage.failed("apply", where, error)
    raise JailError(
        f"{failed.message}{problem and '; '}{problem}", where=failed.where, hint=failed.hint
    ) from error


def unfinished(session_folder: str) -> str:
    """In which state an earlier apply was left (jail.hold.journal); "" where there is nothing to finish."""
    return journal.state(session_folder)


def finish(session_folder: str, manifest: Manifest, account: Account) -> Applied | None:
    """Finish what an apply left behind that was killed: roll it forward where it had committed, else take it
    away. None where there was nothing. Raises JailError.
    """
    written = journal.read(session_folder)
    if written is None:
        return None
    work = Transaction(session_folder, manifest, Journal(session_folder, new=False), account)
    try:
        work.changes, work.intents, work.conflicts = written.changes, written.intents, written.conflicts
        work.id = written.id
        account.again(written.id)
        if written.state == STAGING:
            work.changes, work.intents = [], []
        for name, (folder, inode) in written.staging.items():
            try:
                staging.reopen(work.tree(name), folder, inode)
            except JailError:
                if written.state != STAGING:
                    raise  # else the tree went with all that was staged in it
        return _finished(work, written.state)
    except OSError as error:
        raise JailError(
            f"an apply that was interrupted cannot be finished: {error.strerror}",
            where=session_folder,
            hint="mend that, then `jail apply` again: the journal is kept",
        ) from error
    finally:
        work.close()


def _finished(work: Transaction, state: str) -> Applied:
    if state in (COMMITTED, APPLIED):
        work.doubt(state)
    if state == COMMITTED:
        work.reopen()
        _forward_or_back(work)
    if state in (COMMITTED, APPLIED):
        return work.settle()
    if state == BACK:
        work.back()
    work.account.end(work.id, TAKEN_BACK)
    return Applied((), (), work.tidy())
