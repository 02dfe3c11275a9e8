r"""Which answers of the terminal are still on their way: a question passed outwards, nothing came in yet.

Rule: an answer that comes after the end belongs to nobody, and a shell would take it for typed text. A
terminal answers in the order of the questions, and does not answer what it does not know; so an answer
settles every question before it, and what nothing settles is given up. No more questions pass than are
remembered (`room`): each answer that can come is known.

Pure: the caller has the clock. Imported only where there is a terminal: it needs `re`.
"""

import re

from jail.light import Final, Iterable

ANSWER_WAIT: Final = 0.5
"""Seconds that an answer may take: a slow connection over half the earth. A person does not notice it at the
end of a program, and it is waited for only where a question was asked within this time."""
OPEN_LIMIT: Final = 512
"""Questions that are open at a time: programs ask for all 256 colours at once, and some thirty more."""
GIVEN_UP: Final = 4 * ANSWER_WAIT
"""Seconds after which a question makes room for others: the terminal does not know it."""
_BEGUN_LIMIT: Final = 4096
"""Bytes of an answer that has no end yet."""

_ANSWER: Final = re.compile(
    rb"\x1b(?:\[(?:[?>]?[0-9;]*(?:\$(?=y))?([RSncmtxy])|\?[0-9]*(u))|([\]P])[^\x07\x1b]*(?:\x07|\x1b\\))"
)
_BEGUN: Final = re.compile(rb"\x1b(?:\[[?>=0-9;:$]*|[\]P][^\x07\x1b]*\x1b?)?\Z")


class Answers:
    """The questions of one run that are open, oldest first."""

    def __init__(self) -> None:
        self._open: list[tuple[str, float]] = []
        self._until = 0.0
        self._settled = False
        self._begun = b""

    def room(self, count: int, now: float) -> bool:
        """Whether `count` more questions may pass."""
        if len(self._open) + count > OPEN_LIMIT:
            self._open = [(kind, at) for kind, at in self._open if at > now - GIVEN_UP]
        return len(self._open) + count <= OPEN_LIMIT

    def asked(self, kinds: Iterable[str], now: float) -> None:
        """Questions passed outwards, as Filter.asked has them: the final byte of the answer, `P` or `]`."""
        self._open += [(kind, now) for kind in kinds]
        self._until = now + ANSWER_WAIT

    def feed(self, data: bytes) -> bytes:
        """Bytes came from the terminal, keys among them; they are passed as they are (relay.Edit)."""
        if self._open:
            self._look(self._begun + data)
        return data

    def finish(self) -> bytes:
        """Nothing is kept back."""
        return b""

    def _look(self, data: bytes) -> None:
        after = 0
        for found in _ANSWER.finditer(data):
            self._settle(found[found.lastindex or 0].decode())
            after = found.end()
        begun = _BEGUN.search(data, max(after, len(data) - _BEGUN_LIMIT))
        self._begun = begun[0] if begun else b""

    def _settle(self, kind: str) -> None:
        kind = "n" if kind == "R" else kind
        for place, (asked, _) in enumerate(self._open):
            if asked == kind:
                del self._open[: place + 1]
                self._settled = True
                return

    def wait(self, now: float) -> float:
        """Seconds that an answer may still be waited for, ANSWER_WAIT after one came; 0 when none is open."""
        if self._settled:
            self._until, self._settled = now + ANSWER_WAIT, False
        return max(0.0, self._until - now) if self._open else 0.0
