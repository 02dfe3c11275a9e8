"""What a search for toolchains has found, and what it may believe.

Rule: what a command may have filled is doubtful, and told from what the person installed; the links on the
way are kept, so that they are inside what they are on the host.
"""

from jail.launch import managers, tables
from jail.launch.managers import Manager, Shape
from jail.launch.searchpath import Ask
from jail.plan.facts import Toolchain, Tools
from jail.plan.workspace import is_reserved
from jail.policy.paths import beneath, deepest


class Finds:
    """What one search has found so far."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.roots = tables.roots(ask.environ, ask.home, ask.written)
        self.shared = tables.shared(ask.home)
        self.found: dict[str, Toolchain] = {}
        self.links: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.settings: dict[str, tuple[str, str]] = {}
        self.notes: dict[str, None] = {}
        self.given: list[str] = []
        self.folders = {
            place.real
            for place in ask.path
            if place.real_kind == "folder" and not place.strays and not beneath(ask.home, place.real)
        }

    def result(self) -> Tools:
        """All of it, as facts."""
        pointers = [
            (name, self.ask.environ[name]) for name in managers.POINTERS if self.ask.environ.get(name)
        ]
        return Tools(
            tuple(self.found.values()),
            tuple(self.links.items()),
            tuple(self.left.items()),
            tuple(self.variables.items()),
            tuple(pointers),
            tuple(self.notes),
            tuple((path, text, why) for path, (text, why) in self.settings.items()),
        )

    def is_doubtful(self, folder: str) -> bool:
        """Whether a command may have filled a PATH folder: in this run, in an earlier one, or in a project
        whose runs nobody recorded.
        """
        known = self._owner(folder)[0] is not None
        return self.ask.written.holds(folder) or not (known or tables.is_no_project(folder, self.ask.home))

    def _owner(self, path: str) -> tuple[Manager | None, str]:
        held = [(root, manager) for manager, root in self.roots if beneath(path, root)]
        root, manager = max(held, key=lambda pair: len(pair[0]), default=("", None))
        return manager, root

    def _shape(self, folder: str) -> Shape | None:
        return None if folder in self.shared else tables.shape_of(folder)

    def _is_shown(self, real: str) -> bool:
        shown = (*self.ask.system, *self.given, *self.folders)
        return bool(deepest(real, shown))

    def _remember(self, links: list[tuple[str, str]]) -> None:
        for path, text in links:
            if not is_reserved(path) and not beneath(path, self.ask.workspace):
                self.links[path] = text

    def _resolved(self, path: str) -> tuple[str, list[tuple[str, str]]]:
        return tables.resolved(path)
