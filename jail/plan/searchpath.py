"""PATH in a plan: which folders of it are given, and what they lead to.

Rule: read-only, whoever's they are; one in the workspace is held, or protected where it cannot be, since the
host runs what is put into it. What cannot be given safely leaves PATH, with a note.
"""

from jail.light import Iterator
from jail.plan.facts import Facts, Place, Tools
from jail.plan.held import BY_COMMANDS
from jail.plan.trees import Trees
from jail.plan.withheld import found_withheld
from jail.policy.paths import beneath, deepest, overlaps


def give_tools(trees: Trees, facts: Facts) -> dict[str, str]:
    """What PATH leads to, and the variables that it needs. Most runs have none, and import nothing for it."""
    if facts.tools == Tools():
        return {}
    from jail.plan import toolchains

    toolchains.give(trees, facts)
    toolchains.hide_secrets(trees, facts)
    return toolchains.environment(trees, facts)


def entries(trees: Trees, facts: Facts) -> list[str]:
    """PATH as the command gets it: entries that can be given, in their order."""
    _protect(trees, facts)
    trees.notes += dict.fromkeys(_loose(trees, facts))
    kept: list[str] = []
    left = dict(facts.tools.left)
    for place in facts.path:
        problem = left.get(place.given) or _unusable(place, facts)
        if problem:
            trees.notes.append(f"PATH entry {place.given or '(empty)'} is left out: {problem}")
            continue
        if not trees.holds(place.real):
            trees.read(place.real, "a PATH folder")
        shown = place.given if trees.holds(place.given) or _is_linked(place.given, trees) else place.real
        if shown not in kept:
            kept.append(shown)
    return kept


def _protect(trees: Trees, facts: Facts) -> None:
    """PATH folders that are not held, also those that the command does not get as such."""
    for each in facts.searched:
        tree = deepest(each.real, trees.writable)
        if each.kind == "folder" and not each.loose and tree and not trees.keeps(each.real):
            trees.protect(each.real, "folder", BY_COMMANDS)


def _loose(trees: Trees, facts: Facts) -> Iterator[str]:
    for each in facts.searched:
        if each.loose and deepest(each.real, trees.writable):
            fate = "is refused when you apply" if trees.keeps(each.real) else "is moved away"
            name = each.given or "(empty)"
            yield f"PATH entry {name} is {each.real}: what would run there in the place of a command {fate}"


def _is_linked(path: str, trees: Trees) -> bool:
    return any(beneath(path, link.target) for link in trees.links)


def _unusable(place: Place, facts: Facts) -> str:
    if not place.given.startswith("/"):
        return "it is not an absolute path"
    if place.real_kind == "file":
        return "it is a file"
    if place.strays:
        return f"{place.strays}, which a command may have laid, leads out of what it may write"
    if place.real_kind != "folder":
        return "it is not there"
    return found_withheld(place.real, facts, overlaps)
