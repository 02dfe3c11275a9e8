"""How much a command may print, counted by all that copy what it prints.

Rule: what is past the limit is not read, so that it cannot be lost: the run is ended for it (limits.py).
"""

from jail.light import Callable


class Quota:
    """How many bytes may still be taken from the command, by all relays that share it; `keep` is shown them.

    Once more than that was taken nothing more is read: what waits in the inner pipes stays there, and what a
    relay holds still goes out.
    """

    def __init__(self, left: int) -> None:
        self.left = left
        self.keep: Callable[[memoryview], None] | None = None

    def take(self, piece: memoryview) -> None:
        """So much was read."""
        self.left -= len(piece)
        if self.keep is not None:
            self.keep(piece)

    @property
    def spent(self) -> bool:
        """More was printed than may be."""
        return self.left < 0
