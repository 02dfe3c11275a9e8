"""What becomes of a change, as an entry of the session's review ledger.

Rule: an entry names the path on the host, not in a tree that only the session knows, and both states by
digest, kind and mode, so that it tells without the session what was done.
"""

from jail.hold.change import RENAMED, Change, State
from jail.hold.store import Manifest
from jail.ledger.review import ReviewLedger
from jail.light import Callable


def into(review: ReviewLedger, manifest: Manifest) -> Callable[[str, Change], None]:
    """What `hold.apply` and `hold.discard` call for each change that is done, and who refuses one for that:
    it appends an entry of that kind. Raises JailError where it cannot be written.
    """
    roots = {thing.name: thing.path for thing in manifest.held}

    def record(kind: str, change: Change) -> None:
        root = roots[change.tree]
        more = {"source": _joined(root, change.source)} if change.what == RENAMED else {}
        review.append(
            kind,
            path=_joined(root, change.path),
            what=change.what,
            tier=change.tier,
            reason=change.conflict or change.reason,
            **_state("before", change.old),
            **_state("after", change.new),
            **more,
        )

    return record


def _joined(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if path else root


def _state(when: str, state: State) -> dict[str, object]:
    return {
        f"digest_{when}": state.digest or None,
        f"kind_{when}": state.kind,
        f"mode_{when}": f"{state.mode:04o}" if state.mode else None,
    }
