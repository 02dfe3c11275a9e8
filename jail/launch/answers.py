r"""Which answers of the terminal are still on their way: a question passed outwards, nothing came in yet.

Rule: an answer that comes after the end belongs to nobody, and a shell would take it for typed text. A
terminal answers in the order of the questions, and does not answer what it does not know; so an answer
settles every question before it, and a question is given up after ANSWER_WAIT.

Pure: the caller has the clock. Imported only where there is a terminal: it needs `re`.
"""

import re

from jail.light import Final, Iterable

ANSWER_WAIT: Final = 0.5
"""Seconds that an answer may take: a slow connection over half the earth. A person does not notice it at the
end of a program, and it is waited for only where a question was asked within this time."""
OPEN_LIMIT: Final = 64
"""Questions that are remembered."""
_BEGUN_LIMIT: Final = 4096
"""Bytes of an answer that has no end yet."""

_ANSWER: Final = re.compile(
    rb"\x1b(?:\[(?:[?>]?[0-9;]*(?:\$(?=y))?([RSncmtxy])|\?[0-9]*(u))|([\]P])[^\x07\x1b]*(?:\x07|\x1b\\))"
)
_BEGUN: Final = re.compile(rb"\x1b(?:\[[?>=0-9;:$]*|[\]P][^\x07\x1b]*\x1b?)?\Z")


class Answers:
    """The questions of one run that are open, oldest first."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._until = 0.0
        self._begun = b""

    def asked(self, kinds: Iterable[str], now: float) -> None:
        """Questions passed outwards, as Filter.asked has them: the final byte of the answer, `P` or `]`."""
        self._open += kinds
        del self._open[:-OPEN_LIMIT]
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
        if kind in self._open:
            del self._open[: self._open.index(kind) + 1]

    def wait(self, now: float) -> float:
        """Seconds that an answer may still be waited for; 0 when none is open."""
        return max(0.0, self._until - now) if self._open else 0.0
