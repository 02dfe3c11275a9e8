"""The trees that a plan gives, and what is read-only or absent inside them.

Rule: the most specific path wins, and a path is compared by component. What lies in a writable tree and must
not be written is mounted over itself, and every folder on the way to it is pinned: a mount does not keep its
ancestors from being renamed away with it.
"""

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.light import Final
from jail.plan.facts import Facts, Place
from jail.plan.held import COPY, Held
from jail.plan.steps import Loss, Step
from jail.policy.paths import between, deepest

PRIVATE: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - the names of folders inside, not files of ours
"""Folders in memory that each jail has for itself, beside HOME and /dev/shm."""


class Trees:
    """The trees that are given, as they are collected: canonical path → how, and what lies inside them.

    `held`: what is kept in the session; `over`: what is mounted at a path before `inner` is, from the
    outermost inwards; `lost`: trees that should be held and can only be read-only.
    """

    def __init__(self, facts: Facts) -> None:
        self.private = (*(folder for folder in PRIVATE if folder != facts.home), facts.home, "/dev/shm")  # noqa: S108
        self.read_only: dict[str, str] = {}
        self.writable: dict[str, str] = {}
        self.links: list[Step] = []
        self.inner: dict[str, Step] = {}
        self.held: dict[str, Held] = {}
        self.over: dict[str, list[Step]] = {}
        self.lost: set[str] = set()
        self.losses: list[Loss] = []
        self.notes: list[str] = []

    def system(self, place: Place) -> None:
        """A shipped system path: a link stays a link, so that the layout is the host's."""
        if place.kind == "symlink":
            self.links.append(Step("link", place.path, place.real, (), "as on the host"))
            self.reads_of_links(place)
        elif place.kind in ("file", "folder"):
            self.read(place.path, "system")

    def reads_of_links(self, place: Place) -> None:
        """What a linked system path leads to, where no other rule gives it."""
        if place.real_kind in ("file", "folder") and not self.holds(place.real):
            self.read(place.real, f"{place.path} leads there")

    def read(self, path: str, why: str, kind: str = "folder") -> None:
        """Give `path` read-only; inside a writable tree that is a protection."""
        if deepest(path, self.writable):
            self.protect(path, kind, why)
        elif not deepest(path, self.read_only):
            self.read_only[path] = why

    def write(self, path: str, why: str) -> None:
        """Give `path` for writing; in a held tree that is the real thing again."""
        if not deepest(path, self.writable):
            self.writable[path] = why
        elif self.keeps(path):
            tree = deepest(path, self.writable)
            self.pin(path, tree)
            self.over.setdefault(path, []).extend(real_steps(path, why))
            self.writable[path] = why

    def hold(self, thing: Held, step: Step) -> None:
        """Hold what is given already; `step` mounts it."""
        self.held[thing.path] = thing
        if thing.path != step.source:
            self.pin(thing.path, step.source)
        self.over.setdefault(thing.path, []).append(step)

    def roots(self) -> list[str]:
        """The trees beneath which something may be written, inside."""
        found = [path for path in self.writable if path not in self.lost]
        return found + [path for path in self.held if not deepest(path, found)]

    def keeps(self, path: str) -> bool:
        """Whether what is written to `path` stays in the session: its innermost tree is a held one."""
        tree = deepest(path, self.held)
        return bool(tree) and len(tree) >= len(deepest(path, self.writable))

    def holds(self, path: str) -> bool:
        """Whether `path` lies in a given tree."""
        return bool(deepest(path, self.read_only) or deepest(path, self.writable))

    def protect(self, path: str, kind: str, why: str) -> None:
        """Read-only inside a writable tree, its ancestors pinned."""
        tree = deepest(path, self.writable)
        if path == tree:
            return
        self.pin(path, tree)
        if self.inner.get(path, _NO_STEP).verb != "hide":
            self.inner[path] = Step("protect", path, tree, (kind,), why)

    def hide(self, path: str, kind: str, why: str) -> None:
        """Make `path` absent where a given tree holds it."""
        tree = deepest(path, self.writable)
        if tree:
            self.pin(path, tree)
        if path in self.read_only:
            del self.read_only[path]
        elif self.holds(path):
            if self.keeps(path) and self.held[deepest(path, self.held)].kind == COPY:
                kind = "if-there"  # a copy has no sockets, nor what may not be read
            self.inner[path] = Step("hide", path, tree, (kind,), why)

    def pin(self, path: str, tree: str) -> None:
        """No folder between `tree` and `path` can be renamed."""
        for folder in between(path, tree):
            self.inner.setdefault(folder, Step("pin", folder, tree, (), f"so that {path} stays where it is"))


_NO_STEP: Final = Step("none")


def real_steps(path: str, why: str) -> list[Step]:
    """A tree of the host, for writing, over a read-only one from which what is lost in it is restored."""
    return [Step("keep", path, path, ("ro",), ""), Step("bind", path, path, ("rw",), why)]


def refusal(message: str, where: str, hint: str) -> JailError:
    """The error of a plan that must not be carried out."""
    return JailError(message, where=where, hint=hint, code=EXIT_CANNOT_ISOLATE)
