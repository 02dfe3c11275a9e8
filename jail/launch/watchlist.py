"""Where absent protected names are watched, and the names by their components.

Rule: a name is watched from a folder that nobody inside can replace (the workspace, a git dir: their
ancestors are pinned), one component at a time; a folder in between may come, go and be replaced.
"""

from jail.light import Iterable, NamedTuple
from jail.plan import protected
from jail.plan.facts import Guarded


class Place(NamedTuple):
    """One folder (canonical path) that nobody inside can replace, and the names beneath it that were absent:
    (name, reason).

    Names may have slashes. `present`: paths relative to it that existed, exactly as spelt: another spelling
    of an absent name (`claude.md`) that was there before is not swept.
    """

    folder: str
    names: tuple[tuple[str, str], ...]
    present: tuple[str, ...] = ()


def places(
    folders: Iterable[str], absent: Iterable[Guarded], present: Iterable[Guarded]
) -> tuple[Place, ...]:
    """Absent protected paths by the folder in which they are watched: of `folders`, the deepest that each
    lies in.

    `folders`: the workspace, and each git dir of the layout (their ancestors are pinned). Paths in none of
    them are left out.
    """
    deepest = sorted({folder.rstrip("/") for folder in folders}, key=len, reverse=True)
    names: dict[str, list[tuple[str, str]]] = {}
    there: dict[str, list[str]] = {}
    for guard in absent:
        for folder in deepest:
            if guard.path.startswith(f"{folder}/"):
                names.setdefault(folder, []).append((guard.path[len(folder) + 1 :], guard.reason))
                break
    for guard in present:
        for folder in deepest:
            if guard.path.startswith(f"{folder}/"):
                there.setdefault(folder, []).append(guard.path[len(folder) + 1 :])
    return tuple(Place(folder, tuple(found), tuple(there.get(folder, ()))) for folder, found in names.items())


class Node:
    """One component of watched names: `below` by canonical name; `reason` is not "" where a name ends."""

    __slots__ = ("below", "name", "reason")

    def __init__(self, name: str) -> None:
        self.name = name
        self.reason = ""
        self.below: dict[str, Node] = {}


def tree(names: Iterable[tuple[str, str]]) -> Node:
    """The names, each with its reason, by their components."""
    top = Node("")
    for name, reason in names:
        node = top
        for part in name.split("/"):
            node = node.below.setdefault(protected.canonical(part), Node(part))
        node.reason = reason
    return top


def merge(node: Node, added: Node) -> None:
    """Add the names of one tree to another."""
    for folded, below in added.below.items():
        if folded in node.below:
            merge(node.below[folded], below)
            node.below[folded].reason = below.reason or node.below[folded].reason
        else:
            node.below[folded] = below
