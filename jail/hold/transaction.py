"""One apply as a transaction: staged, committed, swapped, taken back, settled; new, or found in a journal.

Rule: nothing is asked of memory that the journal does not have, so the same functions finish an apply that
was killed. One fsync of the journal and one syncfs a tree and phase, however many files.
"""

import os

from jail.errors import JailError
from jail.hold import base, drop, journal, stage, staging, store, swap
from jail.hold.account import APPLIED, REFUSED, Account
from jail.hold.beneath import Tree
from jail.hold.change import Change
from jail.hold.journal import COMMITTED, MODE, PUT, TAKE, Intent, Journal
from jail.hold.kept import Kept
from jail.hold.making import ConflictError
from jail.hold.store import Manifest
from jail.kernel import files
from jail.light import Callable, Iterator, NamedTuple, Sequence, suppress


class Applied(NamedTuple):
    """`conflicts`: what was not applied, `conflict` says why; `problem`: what could not be tidied up, "" for
    nothing; the next call tries again.
    """

    done: tuple[Change, ...]
    conflicts: tuple[Change, ...]
    problem: str = ""


class Transaction:
    """One apply, new or found in a journal, with all trees that it needs open."""

    def __init__(self, session_folder: str, manifest: Manifest, book: Journal, account: Account) -> None:
        self.session_folder = session_folder
        self.manifest = manifest
        self.book = book
        self.account = account
        self.id = ""
        self.things = {thing.name: thing for thing in manifest.held}
        self.trees: dict[str, Tree] = {}
        self.changes: list[Change] = []
        self.intents: list[Intent] = []
        self.conflicts: dict[int, str] = {}

    def tree(self, name: str) -> Tree:
        """The host's side of a thing. Raises JailError where it is not there any more."""
        if name not in self.trees:
            self.trees[name] = Tree(self.things[name])
        return self.trees[name]

    def stage(self, chosen: Sequence[Change], instead: stage.Content | None) -> None:
        """Stage all of it. Raises JailError, OSError."""
        self.changes = sorted(chosen, key=_place)
        current = ""
        stages: dict[str, stage.Stage] = {}
        try:
            for number, change in enumerate(self.changes):
                if change.tree not in stages:
                    kept = Kept(self.session_folder, self.things[change.tree], changing=False)
                    stages[change.tree] = stage.Stage(
                        self.session_folder, self.tree(change.tree), kept, self.book, instead
                    )
                current = self.things[change.tree].path
                try:
                    self.intents += stages[change.tree].intents(number, change)
                except ConflictError as conflict:
                    self.conflicts[number] = str(conflict)
        except OSError as error:
            raise stage.failed("make ready what is to be applied", current, error) from error
        finally:
            for each in stages.values():
                each.kept.close()
                each.tree.forget()

    def begin(self) -> None:
        """Give it an id that whoever finishes it finds, before anybody else has it. Raises OSError."""
        self.id = os.urandom(8).hex()
        self.book.add([journal.called(self.id)])
        self.book.reserve()

    def commit(self) -> None:
        """Write down what will be done, before any of it. Raises OSError, JailError."""
        self._sync()
        self.book.add(journal.meant(self.changes, self.intents))
        self.book.add(journal.refused(self.conflicts))
        self.account.begin(self.id, self.changes)
        self.book.say(COMMITTED)

    def _sync(self) -> None:
        for tree in self.trees.values():
            if tree.slots >= 0:
                files.sync(tree.slots)

    def forward(self) -> None:
        """Do all that is not done yet. Raises OSError, with some of it done."""
        known = len(self.conflicts)
        swaps = list(_swaps(self.intents))
        done: dict[int, list[Intent]] = {}
        # Of what became a conflict after a kill, a part may have been done before it.
        for intent in reversed(swaps):
            if intent.change in self.conflicts:
                swap.back(self.tree(intent.tree), intent)
        for intent in swaps:
            self._unless_conflict(swap.forward, intent, done)
        for intent in swaps:
            self._unless_conflict(swap.prove, intent, done)
        for intent in _endings(self.intents):
            if intent.verb == MODE:
                self._unless_conflict(swap.forward, intent, done)
            elif intent.change not in self.conflicts:
                swap.completed(self.tree(intent.tree), intent)
        self._sync()
        # Who had a file open may have written it until now.
        for intent in swaps:
            self._unless_conflict(swap.verify, intent, done)
        self.book.add(journal.refused(dict(list(self.conflicts.items())[known:])))
        self.book.say(journal.APPLIED)

    def _unless_conflict(
        self, do: Callable[[Tree, Intent], None], intent: Intent, done: dict[int, list[Intent]]
    ) -> None:
        if intent.change in self.conflicts:
            return
        try:
            do(self.tree(intent.tree), intent)
            done.setdefault(intent.change, []).append(intent)
        except ConflictError as conflict:
            self.conflicts[intent.change] = str(conflict)
            for other in reversed(done.get(intent.change, ())):
                if other is not intent:
                    swap.back(self.tree(other.tree), other)

    def doubt(self, state: str) -> None:
        """After a kill: what is staged must still be that, and what is said to be done must be there. Raises
        OSError.
        """
        for intent in self.intents:
            tree = self.tree(intent.tree)
            if (
                state == journal.APPLIED
                and intent.change not in self.conflicts
                and staging.missing(tree, intent)
            ):
                self.conflicts[intent.change] = "the host changed it after it was applied"
            elif state == COMMITTED and staging.make(tree, self.book) and staging.spoiled(tree, intent):
                self.conflicts[intent.change] = "what was staged for it was changed"

    def reopen(self) -> None:
        """Make folders that were closed at the end passable again, as they were before. Raises OSError."""
        for intent in reversed(list(_endings(self.intents))):
            undo = swap.back if intent.verb == MODE else swap.reopened
            undo(self.tree(intent.tree), intent)

    def back(self) -> None:
        """Take back all that is done, the newest first. Raises OSError when something resists, with the rest
        taken back.
        """
        self.reopen()
        resisted: OSError | None = None
        for intent in reversed(list(_swaps(self.intents))):
            try:
                swap.back(self.tree(intent.tree), intent)
            except OSError as error:
                resisted = resisted or error
        if resisted is not None:
            raise resisted

    def tidy(self) -> str:
        """Remove the staging folders and the journal; what could not be, for a person."""
        problem = ""
        for tree in self.trees.values():
            try:
                problem = staging.remove(tree, self.intents) or problem
            except OSError as error:
                return f"{tree.thing.path}/{tree.staging} cannot be removed: {error.strerror}"
        for name in self.trees:
            with suppress(FileNotFoundError):
                os.unlink(base.file_of(store.folder_of(self.session_folder), name) + drop.NEXT)
        self.book.remove()
        return problem

    def close(self) -> None:
        """Close all of it."""
        for tree in self.trees.values():
            tree.close()
        self.book.close()

    def settle(self) -> Applied:
        """Say what was done, take it out of the session, and tidy up. Raises JailError where it cannot be
        said: the next call says it.
        """
        numbered = list(enumerate(self.changes))
        done = [change for number, change in numbered if number not in self.conflicts]
        left = [each._replace(conflict=self.conflicts[at]) for at, each in numbered if at in self.conflicts]
        for change in done:
            self.account.path(APPLIED, change)
        for change in left:
            self.account.path(REFUSED, change)
        self.account.end(self.id, APPLIED, len(done), len(left))
        try:
            by_tree: dict[str, list[Change]] = {}
            for change in done:
                by_tree.setdefault(change.tree, []).append(change)
            for name, changes in by_tree.items():
                drop.drop(self.session_folder, self.tree(name), changes)
            problem = self.tidy()
        except JailError as error:
            problem = f"{error.message} ({error.where})"
        except OSError as error:
            problem = f"what was applied is still in the session: {error.strerror}; apply again"
        return Applied(tuple(done), tuple(left), problem)


def _place(change: Change) -> tuple[str, str]:
    return change.tree, change.path


def _swaps(intents: list[Intent]) -> Iterator[Intent]:
    """Deletions first, the deepest first; then what is put, each folder before what is in it."""
    ordered = sorted(intents, key=_by_path)
    yield from (each for each in reversed(ordered) if each.verb == TAKE)
    yield from (each for each in ordered if each.verb == PUT)


def _endings(intents: list[Intent]) -> Iterator[Intent]:
    """Folders that get a mode, and those that are new and get mode and time: the deepest first, since a mode
    can close a folder.
    """
    ordered = sorted(intents, key=_by_path, reverse=True)
    yield from (each for each in ordered if each.verb == MODE or _new_folder(each))


def _new_folder(intent: Intent) -> bool:
    return intent.verb == PUT and intent.made is not None and intent.made.kind == "folder"


def _by_path(intent: Intent) -> tuple[str, str]:
    return intent.tree, intent.path
