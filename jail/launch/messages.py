"""Lines for a person while a command runs: at once, or when the terminal is theirs again.

Rule: a reader that does not read holds nothing up; the ledger has all that is said here.
"""

import select
import sys

from jail.errors import say
from jail.light import Final, suppress

MESSAGES: Final = 200
"""Most messages that wait; the ledger has them all."""
LAST_WORDS_MS: Final = 500
"""How long the end waits for a reader of messages, for each of them."""


class Messages:
    """The lines of one run, in their order."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._at_once = True

    def hold(self) -> None:
        """From here on the terminal is the command's: what there is to say waits for `say`."""
        self._at_once = False

    def say(self) -> None:
        """Print what waited; the terminal is the caller's again."""
        self._at_once = True
        self._print(LAST_WORDS_MS)

    def tell(self, message: str) -> None:
        """One line more."""
        if len(self._waiting) < MESSAGES:
            self._waiting.append(message)
        if self._at_once:
            self._print(0)

    def _print(self, patience: int) -> None:
        """As many of the waiting messages as can be written without blocking: a reader that does not read
        must not hold up the sweep.
        """
        poller = select.poll()
        with suppress(OSError, ValueError, AttributeError):
            poller.register(sys.stderr.fileno(), select.POLLOUT)
            while self._waiting and poller.poll(patience):
                say(self._waiting.pop(0))
