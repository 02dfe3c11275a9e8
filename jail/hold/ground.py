"""What a change is judged on: the thing it is of, the workspace, and the two sides, asked by absolute path.

Rule: a name means what it means where it lies on the host, however small the held thing is: `pre-commit` in
`.git/hooks` is a hook although that folder alone is held. So all questions are asked by the whole path, and
answered for held and for other folders alike.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from jail.hold.change import DELETED, Change
from jail.plan.held import Held
from jail.plan.protected import canonical

Verdict = tuple[str, str]
"""A tier and its reason."""
NOTHING: Final[Verdict] = ("", "")


class Contents(Protocol):
    """The host, and what the command left. Paths are absolute; the answers are hostile bytes."""

    def __hash__(self) -> int:
        """What was asked once is remembered."""

    def old(self, path: str) -> bytes | None:
        """A regular file of the host, at most sources.MOST_BYTES; None for all else."""

    def new(self, path: str) -> bytes | None:
        """The same as the command left it; None too where it left none."""

    def target(self, path: str) -> str:
        """Where a symlink of the command leads; "" where there is none."""

    def targets(self, path: str) -> tuple[str, ...]:
        """Where symlinks at a path lead, the command's and the host's."""

    def kind(self, path: str) -> str:
        """What the host has there: as jail.kernel.files.kind, or "absent"."""

    def had(self, folder: str) -> Collection[str]:
        """The names in a folder of the host."""

    def names(self, folder: str) -> frozenset[str]:
        """Of the names that make a git dir, canonical, those in a folder as the command left it, and of the
        host's at least those still there. Asked once for each change in it.
        """

    def holds(self, path: str) -> bool:
        """Whether a path lies in something that the session holds."""


class Guards(NamedTuple):
    """What was found at launch that some program of the host obeys: `rows`: canonical components of its path
    → why; `above`: those of the folders that it lies in.
    """

    rows: Mapping[tuple[str, ...], str] = {}
    above: Mapping[tuple[str, ...], str] = {}

    def reason(self, parts: tuple[str, ...], kind: str) -> str:
        """Why what lies there, or comes there as `kind`, is guarded; "" where it is not."""
        if not self.rows:
            return ""
        if kind not in ("folder", "absent") and parts in self.above:
            return self.above[parts]
        found = (self.rows.get(parts[:depth]) for depth in range(1, len(parts) + 1))
        return next((why for why in found if why is not None), "")

    def run(self) -> bool:
        """Whether git runs a program that the configuration names by a path in the workspace."""
        return any(why.startswith(GIT_RUNS) for why in self.rows.values())


GIT_RUNS: Final = "git runs "
"""How the reasons begin of what a configuration has git run (jail.launch.gitlayout)."""


def guards(pairs: Collection[tuple[str, str]]) -> Guards:
    """The guards of a manifest: (path, why)."""
    rows: dict[tuple[str, ...], str] = {}
    above: dict[tuple[str, ...], str] = {}
    for path, why in pairs:
        parts = components(path)
        rows.setdefault(parts, why)
        for depth in range(1, len(parts)):
            above.setdefault(parts[:depth], why)
    return Guards(rows, above)


def components(path: str) -> tuple[str, ...]:
    """The canonical components of an absolute path."""
    return tuple(map(canonical, path.split("/")[1:])) if path != "/" else ()


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
    guards: Guards = Guards()


def kind_of(change: Change) -> str:
    """The kind of what a change is about: of what goes, what it was."""
    return change.old.kind if change.what == DELETED else change.new.kind
