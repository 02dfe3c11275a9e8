"""Whether a symlink of a held tree stays in it, read as a kernel would follow it.

Rule: what a path passes through counts, not its text: `..` behind a name leads to wherever that name leads.
A name that is a link on one of the two sides is followed on each side that has it, since nobody knows which
of both will be there; who leaves the tree on any of these ways leads out, and so does who leaves it on the
way and comes back. Nothing is opened but the links themselves.
"""

from collections.abc import Callable
from typing import Final

from jail.policy.paths import beneath

HOPS: Final = 40
"""Links that one path may pass through (path_resolution(7)), and of both sides together."""
Targets = Callable[[str], tuple[str, ...]]
"""An absolute path → where symlinks lead that are there, on the host and in the session."""


def stays(tree: str, folder: str, target: str, targets: Targets) -> bool:
    """Whether a symlink in `folder` of `tree` that leads to `target` stays in the tree."""
    waiting = [(folder, target)]
    for _ in range(HOPS):
        here, rest = waiting.pop()
        found = _step(tree, here, rest, targets)
        if found is None:
            return False
        waiting += found
        if not waiting:
            return True
    return False


def _step(tree: str, here: str, rest: str, targets: Targets) -> list[tuple[str, str]] | None:
    """Follow a path up to the first link: the ways to go on from there, [] at its end; None for out."""
    if rest.startswith("/"):
        # What lies above the tree is the host's own, and the tree's path has no link in it.
        if not beneath(rest, tree):
            return None
        here, rest = tree, rest[len(tree) :]
    names = rest.split("/")
    for at, name in enumerate(names):
        if name in ("", "."):
            continue
        if name == "..":
            if here == tree:
                return None
            here = here.rpartition("/")[0]
            continue
        below = f"{here.rstrip('/')}/{name}"
        if led := targets(below):
            after = "/".join(names[at + 1 :])
            return [(here, f"{each}/{after}" if after else each) for each in led]
        here = below
    return []
