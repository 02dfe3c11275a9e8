"""What is read-only or absent inside the given trees: protected names, hidden paths, sockets, hard links.

Rule: a thing is guarded only where a tree shows it; what is not shown needs no guard.
"""

from jail.plan.facts import Facts, Guarded, Place
from jail.plan.held import HARD_LINKS, named, store_of
from jail.plan.trees import Trees, refusal
from jail.policy.paths import beneath, deepest


def guard(trees: Trees, facts: Facts) -> None:
    """Add to `trees` what is read-only or absent inside them, and notes for a person."""
    held = named(facts)
    for guarded in facts.guarded:
        if guarded.path in held or (guarded.git and trees.keeps(guarded.path)):
            continue
        if guarded.path in trees.writable:
            what = f"{guarded.path} must not be written: {guarded.reason}"
            raise refusal(what, trees.writable[guarded.path], "take that rule out")
        if guarded.verb == "pin":
            trees.pin(f"{guarded.path}/.", deepest(guarded.path, trees.writable))
        elif deepest(guarded.path, trees.writable) and not _is_held(trees, guarded, facts):
            trees.protect(guarded.path, guarded.kind, guarded.reason)
    _guard_hard_links(trees, facts)
    for place in facts.hide:
        _hide(trees, place)
    for path in facts.sockets:
        trees.hide(path, "socket", "a socket or pipe of a program outside")
    secret = {
        **dict.fromkeys(facts.credentials, "credentials"),
        **dict.fromkeys(facts.own, "jail's own files"),
    }
    for path, why in secret.items():
        in_another = any(other != path and beneath(path, other) for other in secret)
        if not in_another and trees.holds(path):
            trees.hide(path, "if-there", why)
    trees.notes += _notes(facts)


def _is_held(trees: Trees, guarded: Guarded, facts: Facts) -> bool:
    if guarded.verb != "hold":
        return False
    from jail.plan import held_files  # a folder that is no repository has none

    return held_files.hold(trees, guarded, facts)


def _hide(trees: Trees, place: Place) -> None:
    if place.kind == "absent":
        swept = deepest(place.path, trees.writable) and not trees.keeps(place.path)
        watched = "; what is made there is moved away" if swept else ""
        trees.notes.append(f"hide = {place.given}: there is no such path{watched}")
        return
    for path, kind in dict.fromkeys(((place.path, place.kind), (place.real, place.real_kind))):
        if path in trees.writable:
            hint = "take one of the two rules out"
            raise refusal(f"{place.given} is hidden and given at once", "files.hide", hint)
        if path:
            trees.hide(path, kind, f"hide = {place.given}")


def _notes(facts: Facts) -> list[str]:
    notes = [f"{path} was too large, or closed in part, to be searched for sockets" for path in facts.unseen]
    notes += [
        f"write = {place.given}: names that are protected in the workspace are not protected there"
        for place in facts.write
    ]
    if facts.enclosing:
        notes.append(
            f"the repository at {facts.enclosing} lies above the workspace, so git does not work inside: "
            "start there, or use --workspace"
        )
    if facts.repository and facts.repository.refused:
        notes.append(f"git: {facts.repository.refused}")
    return notes


def _guard_hard_links(trees: Trees, facts: Facts) -> None:
    inside_git = False
    for path in facts.hardlinked:
        if trees.keeps(path):
            continue
        tree = deepest(path, trees.writable)
        names = path[len(tree) :].strip("/").split("/")
        if ".git" in names or deepest(path, [facts.repository.commondir] if facts.repository else []):
            inside_git = True
            continue
        store = store_of(path, tree, facts)
        trees.protect(store or path, "folder" if store else "file", HARD_LINKS)
    if inside_git:
        trees.notes.append(
            "git objects are hard links into another repository (git clone of a local path): a command "
            "inside can damage that copy's objects, not change what they mean; `git repack -a -d` parts them"
        )
