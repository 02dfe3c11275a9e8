"""Symbolic links on the way to a path, and which of them a command may have laid.

Rule: whoever may write a tree may put a link in its place of anything in it. So a link that lies in a tree
that is given for writing, now or by an earlier run, is believed only where it stays in that tree: what a
person, their policy or PATH names through another one leads to where a command wanted it to.
"""

import os

from jail.ledger import written
from jail.light import Final, Iterable, NamedTuple
from jail.policy.paths import beneath

MOST_LINKS: Final = 40
"""Symbolic links on one way, as the kernel counts them (path_resolution(7))."""
_END: Final = "\0"
"""Before a tree: the text of a link that lies in it has been walked. No path has this character."""


class Written(NamedTuple):
    """Canonical paths. `workspace`: of this run; `trees`: all that is or was given for writing; `folded`:
    folders in which no link is believed, as too many trees in them were; `now`: the trees of this run.
    """

    workspace: str
    trees: frozenset[str]
    folded: frozenset[str] = frozenset()
    now: frozenset[str] = frozenset()

    def also(self, paths: Iterable[str]) -> "Written":
        """The same, and more trees of this run."""
        more = frozenset(filter(None, paths))
        return self._replace(trees=self.trees | more, now=self.now | more)

    def holders(self, path: str) -> list[str]:
        """Each tree, and each folded folder, that holds the canonical `path`, the deepest first."""
        found = []
        while True:
            if path in self.trees or path in self.folded:
                found.append(path)
            if path in ("/", ""):
                return found
            path = path[: path.rfind("/")] or "/"

    def holds(self, path: str) -> bool:
        """Whether a command may have written the canonical `path`."""
        return bool(self.holders(path))

    def strays(self, path: str) -> str:
        """The first link on the way to the absolute `path` that is not believed, "" where all are."""
        pending = path.split("/")[::-1]
        here, count = "", 0
        followed: dict[str, str] = {}  # tree → a link in it
        while pending:
            name = pending.pop()
            if name.startswith(_END):
                tree, link = name[1:].split(_END)
                followed[tree] = link
            elif name == "..":
                here = here.rpartition("/")[0]
                # Behind a link `..` is another folder than it was before there was a link.
                for tree, link in followed.items():
                    if not beneath(here or "/", tree):
                        return link
            elif name not in ("", "."):
                there = f"{here}/{name}"
                text = _target(there)
                if not text:
                    here = there
                    continue
                count += 1
                doubtful = self._holders_of_link(there)
                end = os.path.realpath(there)
                if count > MOST_LINKS or not all(self._keeps(tree, end) for tree in doubtful):
                    return there
                pending += [f"{_END}{tree}{_END}{there}" for tree in doubtful]
                pending += text.split("/")[::-1]
                here = "" if text.startswith("/") else here
        return ""

    def _holders_of_link(self, link: str) -> list[str]:
        """The trees that a link must not leave: what is in the workspace is given as a whole in any case."""
        if beneath(link, self.workspace) and beneath(os.path.realpath(link), self.workspace):
            return []
        return self.holders(link)

    def _keeps(self, tree: str, end: str) -> bool:
        return tree not in self.folded and beneath(end, tree)


def links(path: str) -> list[str]:
    """Each symbolic link on the way to the absolute `path`, by its canonical place."""
    pending = path.split("/")[::-1]
    here, found = "", list[str]()
    while pending and len(found) < MOST_LINKS:
        name = pending.pop()
        if name == "..":
            here = here.rpartition("/")[0]
        elif name not in ("", "."):
            there = f"{here}/{name}"
            text = _target(there)
            if text:
                found.append(there)
                pending += text.split("/")[::-1]
            here = there if not text else "" if text.startswith("/") else here
    return found


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def known(state: str, workspace: str) -> Written:
    """What earlier runs were given, and the workspace of this one (canonical). Raises JailError."""
    found = written.read(state)
    return of(workspace)._replace(trees=found.apart | {workspace}, folded=found.folded)


def of(workspace: str) -> Written:
    """A workspace before any other tree was written."""
    return Written(workspace, frozenset()).also([workspace])
