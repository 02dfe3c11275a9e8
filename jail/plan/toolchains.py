"""The toolchains of the person in a plan: what is given, what is absent in it, and why each was found.

Rule: read-only, and never what lies in a credential place or in jail's own; a secret that a given tree holds
is hidden. Imported only where PATH leads to some.
"""

from jail.light import Final
from jail.plan.facts import Facts, Toolchain
from jail.plan.steps import Step
from jail.plan.trees import Trees
from jail.plan.withheld import found_withheld
from jail.policy.paths import beneath, deepest

SHOWN: Final = 8
"""Paths in one note; the steps have them all."""


def give(trees: Trees, facts: Facts) -> None:
    """Add the toolchains of `facts` to `trees`, with a note on each."""
    alone: dict[str, list[str]] = {}
    for tool in facts.tools.found:
        given, refused = [], []
        for place in tool.given:
            problem = found_withheld(place.real, facts, beneath)
            if problem:
                refused.append(f"{place.real} ({problem})")
            else:
                trees.read(place.real, place.given, place.real_kind)
                given.append(place.path)
        if not tool.known and not tool.part and len(given) == 1 and not refused:
            alone.setdefault(tool.name, []).append(f"{given[0]} ({tool.through})")
        elif given or refused:
            trees.notes.append(_note(tool, given, refused))
    for name, found in alone.items():
        trees.notes.append(f"PATH leads to {name}: {_some(found)}")
    trees.notes += facts.tools.notes
    folders = [place.real for place in facts.path]
    for path, text in facts.tools.links:
        if not trees.holds(path) and not deepest(path, folders):
            trees.links.append(Step("link", path, text, (), "as on the host"))
    hidden = [path for place in facts.hide for path in (place.path, place.real) if path]
    for path, text, why in facts.tools.settings:
        unseen = deepest(path, hidden) or found_withheld(path, facts, beneath)
        if not (unseen or trees.holds(path) or deepest(path, folders)):
            trees.links.append(Step("file", path, text, (), why))


def hide_secrets(trees: Trees, facts: Facts) -> None:
    """Make absent what a given toolchain holds beside programs."""
    for tool in facts.tools.found:
        for path in tool.secrets:
            if trees.holds(path):
                trees.hide(path, "if-there", f"settings of {tool.name}, in which passwords stand")


def environment(trees: Trees, facts: Facts) -> dict[str, str]:
    """Variables that the toolchains need; one that points to folders counts where all of them are given."""
    found = dict(facts.tools.variables)
    for name, value in facts.tools.pointers:
        paths = value.split(":")
        if all(path.startswith("/") and trees.holds(path) for path in paths):
            found[name] = value
    return found


def _note(tool: Toolchain, given: list[str], refused: list[str]) -> str:
    part = f"toolchain {tool.part}" if tool.part else "toolchain"
    text = f"{part}: {tool.name} in {tool.root}, through {tool.through}: {_some(_short(tool.root, given))}"
    if refused:
        text += f"; not given: {_some(refused)}"
    if tool.secrets:
        text += f"; absent: {_some(_short(tool.root, list(tool.secrets)))}"
    return text


def _short(root: str, paths: list[str]) -> list[str]:
    return [path[len(root) + 1 :] or "all of it" if beneath(path, root) else path for path in paths]


def _some(words: list[str]) -> str:
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
