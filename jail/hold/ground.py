"""What a change is judged on: the held thing, its two sides, and the commands that it could shadow.

Rule: who judges reads nothing. What is needed of the two sides is asked of a `Contents`, whose answers are
hostile bytes.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from jail.hold.change import DELETED, Change
from jail.plan.held import Held

Verdict = tuple[str, str]
"""A tier, and the reason for it; PLAIN has none."""


class Contents(Protocol):
    """The two sides of one held thing. Paths are relative to it; "" is the thing itself."""

    def old(self, path: str) -> bytes | None:
        """A regular file of the host, at most sources.MOST_BYTES; None for all else."""

    def new(self, path: str) -> bytes | None:
        """The same as the command left it."""

    def target(self, path: str) -> str:
        """Where a symlink of the command leads; "" where there is none."""

    def had(self, path: str) -> Collection[str]:
        """The names in a folder of the host."""

    def names(self, path: str) -> frozenset[str]:
        """The canonical names in a folder as the command left it, and of the host's at least those still
        there. Asked once for each change in it.
        """


def _nowhere(_: str) -> Sequence[str]:
    return ()


class Ground(NamedTuple):
    """What changes of one held thing are judged on: `workspace`, canonical; `shadowed`: the absolute path of
    a command → the path of one by the same name in another folder of the launch PATH, or ""; `leads`: the
    absolute path of a change → the paths by which links of the host lead to it.
    """

    thing: Held
    workspace: str
    contents: Contents
    shadowed: Callable[[str], str]
    leads: Callable[[str], Sequence[str]] = _nowhere


def kind_of(change: Change) -> str:
    """The kind that a change is judged as: of what is gone, what it was."""
    return change.old.kind if change.what == DELETED else change.new.kind
