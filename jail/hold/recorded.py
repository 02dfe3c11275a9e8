"""What becomes of a change, as an entry of the session's review ledger, and an apply as a whole.

Rule: an entry names the path on the host, not in a tree that only the session knows, and both states by
digest, kind and mode, so that it tells without the session what was done. An apply has an entry before the
first of its paths and one after the last, and its id is in all of them; who finishes one that was killed
reads back what it has said, and says the rest.
"""

from jail.hold.account import APPLIED, Account
from jail.hold.change import RENAMED, Change, State
from jail.hold.store import Manifest
from jail.kernel.digest import sha256
from jail.ledger.entries import APPLYING, SETTLED, encode
from jail.ledger.lines import parse
from jail.ledger.review import ReviewLedger
from jail.ledger.reviewed import open_applies, review_lines
from jail.light import Callable, Sequence


def into(
    review: ReviewLedger, manifest: Manifest, more: Callable[[], dict[str, object]] = dict
) -> Callable[[str, Change], None]:
    """What `hold.discard` calls for each change that is done, and who refuses one for that: it appends an
    entry of that kind, with `more` in it. Raises JailError where it cannot be written.
    """
    roots = {thing.name: thing.path for thing in manifest.held}

    def record(kind: str, change: Change) -> None:
        root = roots[change.tree]
        source = {"source": _joined(root, change.source)} if change.what == RENAMED else {}
        review.append(
            kind,
            path=_joined(root, change.path),
            what=change.what,
            tier=change.tier,
            reason=change.conflict or change.reason,
            **_state("before", change.old),
            **_state("after", change.new),
            **source,
            **more(),
        )

    return record


class Recorded(Account):
    """The account of an apply in the review ledger. `kind`: of the entries of what is applied."""

    def __init__(self, review: ReviewLedger, folder: str, manifest: Manifest, kind: str = APPLIED) -> None:
        super().__init__(into(review, manifest, self._more))
        self._review = review
        self._folder = folder
        self._kind = kind
        self._roots = {thing.name: thing.path for thing in manifest.held}
        self._id = ""
        self._open = False
        self._said: set[tuple[str, str]] = set()

    def begin(self, apply: str, changes: Sequence[Change]) -> None:
        """An entry, on the disk, of how many changes are applied, and of which."""
        self._id = apply
        digest = sha256()
        for change in changes:
            fields = (
                _joined(self._roots[change.tree], change.path),
                change.what,
                change.source,
                *(change.old.digest, change.new.kind, change.new.digest, change.new.mode),
            )
            digest.update(encode(fields).encode("ascii") + b"\n")
        self._review.append(
            APPLYING, apply=apply, becomes=self._kind, changes=len(changes), digest=digest.hexdigest()
        )
        self._review.sync()
        self._open = True

    def again(self, apply: str) -> None:
        """Go on with an account that was begun: what it has said is read back. Raises JailError."""
        self._id = apply
        for line in review_lines(self._folder):
            if not apply or line.raw is None or apply.encode("ascii") not in line.raw:
                continue
            entry = parse(line.raw)[0]
            if entry is None or entry.fields.get("apply") != apply:
                continue
            if entry.kind == APPLYING:
                self._open, self._kind = True, str(entry.fields.get("becomes", APPLIED))
            elif entry.kind == SETTLED:
                self._open = False
            else:
                self._said.add((entry.kind, str(entry.fields.get("path"))))

    def path(self, became: str, change: Change) -> None:
        """An entry for it, unless there is one."""
        kind = self._kind if became == APPLIED else became
        if (kind, _joined(self._roots[change.tree], change.path)) not in self._said:
            super().path(kind, change)

    def end(self, apply: str, outcome: str, applied: int = 0, refused: int = 0) -> None:
        """The last entry of it, on the disk; none where it has one, or never began."""
        if self._open:
            self._review.append(SETTLED, apply=apply, outcome=outcome, applied=applied, refused=refused)
            self._open = False
        self._review.sync()

    def _more(self) -> dict[str, object]:
        return {"apply": self._id} if self._id else {}


def close_lost(review: ReviewLedger, folder: str) -> None:
    """An end for each apply that has none and no journal either: nobody can finish it. Raises JailError."""
    for apply in open_applies(folder):
        review.append(SETTLED, apply=apply, outcome=LOST, applied=0, refused=0)


LOST = "unknown: its journal was removed"


def _joined(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if path else root


def _state(when: str, state: State) -> dict[str, object]:
    return {
        f"digest_{when}": state.digest or None,
        f"kind_{when}": state.kind,
        f"mode_{when}": f"{state.mode:04o}" if state.mode else None,
    }
