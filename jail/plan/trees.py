"""The trees that a plan gives, and what is read-only or absent inside them.

Rule: the most specific path wins, and a path is compared by component. What lies in a writable tree and must
not be written is mounted over itself, and every folder on the way to it is pinned: a mount does not keep its
ancestors from being renamed away with it.
"""

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.light import Final
from jail.plan.facts import Facts, Place
from jail.plan.steps import Step
from jail.policy.paths import between, deepest

PRIVATE: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - the names of folders inside, not files of ours
"""Folders in memory that each jail has for itself, beside HOME and /dev/shm."""


class Trees:
    """The trees that are given, as they are collected: canonical path → how, and what lies inside them."""

    def __init__(self, facts: Facts) -> None:
        self.private = (*(folder for folder in PRIVATE if folder != facts.home), facts.home, "/dev/shm")  # noqa: S108
        self.read_only: dict[str, str] = {}
        self.writable: dict[str, str] = {}
        self.links: list[Step] = []
        self.inner: dict[str, Step] = {}
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
        """Give `path` for writing."""
        if not deepest(path, self.writable):
            self.writable[path] = why

    def holds(self, path: str) -> bool:
        """Whether `path` lies in a given tree."""
        return bool(deepest(path, self.read_only) or deepest(path, self.writable))

    def protect(self, path: str, kind: str, why: str) -> None:
        """Read-only inside a writable tree, its ancestors pinned."""
        tree = deepest(path, self.writable)
        if path == tree:
            return
        self._pin(path, tree)
        if self.inner.get(path, _NO_STEP).verb != "hide":
            self.inner[path] = Step("protect", path, tree, (kind,), why)

    def hide(self, path: str, kind: str, why: str) -> None:
        """Make `path` absent where a given tree holds it."""
        tree = deepest(path, self.writable)
        if tree:
            self._pin(path, tree)
        if path in self.read_only:
            del self.read_only[path]
        elif self.holds(path):
            self.inner[path] = Step("hide", path, tree, (kind,), why)

    def _pin(self, path: str, tree: str) -> None:
        """No folder between `tree` and `path` can be renamed."""
        for folder in between(path, tree):
            self.inner.setdefault(folder, Step("pin", folder, tree, (), f"so that {path} stays where it is"))


_NO_STEP: Final = Step("none")


def refusal(message: str, where: str, hint: str) -> JailError:
    """The error of a plan that must not be carried out."""
    return JailError(message, where=where, hint=hint, code=EXIT_CANNOT_ISOLATE)
