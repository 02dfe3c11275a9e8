"""What an apply says of itself, to whoever keeps it: that it begins, each path, that it is over.

Rule: `begin` is on the disk before anything of the host is touched, and `end` before the journal goes, so
that an apply that was killed is never one of which nothing is said. An apply has an id, that its journal has
too: who finishes it goes on with the same account, and says nothing twice (jail.hold.recorded).
"""

from jail.hold.change import Change
from jail.light import Callable, Final, Sequence

APPLIED: Final = "applied"
REFUSED: Final = "refused"
TAKEN_BACK: Final = "taken back"
Record = Callable[[str, Change], None]
"""Called for each path with what became of it, and the change, with `conflict` set where that was why."""


class Account:
    """The account of one apply for whom a call for each path is enough."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def begin(self, apply: str, changes: Sequence[Change]) -> None:
        """These changes are about to be applied. Raises JailError; then they must not be."""

    def again(self, apply: str) -> None:
        """Go on with an account that was begun, maybe. Raises JailError."""

    def path(self, became: str, change: Change) -> None:
        """What became of one of them: APPLIED or REFUSED. Raises JailError."""
        self._record(became, change)

    def end(self, apply: str, outcome: str, applied: int = 0, refused: int = 0) -> None:
        """It is over: APPLIED or TAKEN_BACK. Raises JailError."""
