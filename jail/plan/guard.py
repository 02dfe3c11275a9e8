"""What is read-only or absent inside the given trees: protected names, hidden paths, sockets, hard links.

Rule: a thing is guarded only where a tree shows it; what is not shown needs no guard.
"""

from jail.light import Final
from jail.plan.facts import Facts
from jail.plan.paths import deepest
from jail.plan.trees import Trees, refusal

STORES: Final = ("node_modules", ".venv", "venv")
"""Trees that package managers fill with hard links into a store that other projects share (pnpm, uv)."""


def guard(trees: Trees, facts: Facts) -> None:
    """What is read-only or absent inside the given trees."""
    for guarded in facts.guarded:
        if deepest(guarded.path, trees.writable):
            trees.protect(guarded.path, guarded.kind, guarded.reason)
    _guard_hard_links(trees, facts)
    for place in facts.hide:
        if place.kind == "absent":
            trees.notes.append(f"hide = {place.given}: there is no such path")
            continue
        for path, kind in dict.fromkeys(((place.path, place.kind), (place.real, place.real_kind))):
            if path in trees.writable:
                raise refusal(
                    f"{place.given} is hidden and given at once",
                    "files.hide",
                    "take one of the two rules out",
                )
            if path:
                trees.hide(path, kind, f"hide = {place.given}")
    for socket in facts.sockets:
        trees.hide(socket, "socket", "a socket of a program outside")
    for path in (*facts.own, *facts.credentials):
        if deepest(path, trees.read_only) or deepest(path, trees.writable):
            trees.hide(path, "folder", "jail's own files" if path in facts.own else "credentials")
    if facts.repository and facts.repository.refused:
        trees.notes.append(f"git: {facts.repository.refused}")


def _guard_hard_links(trees: Trees, facts: Facts) -> None:
    inside_git = False
    for path in facts.hardlinked:
        tree = deepest(path, trees.writable)
        names = path[len(tree) :].strip("/").split("/")
        if ".git" in names or deepest(path, [facts.repository.commondir] if facts.repository else []):
            inside_git = True
            continue
        store = next((index for index, name in enumerate(names) if name in STORES), len(names) - 1)
        kind = "file" if store == len(names) - 1 else "folder"
        trees.protect(
            "/".join([tree, *names[: store + 1]]), kind, "hard links into a place outside the workspace"
        )
    if inside_git:
        trees.notes.append(
            "git objects are hard links into another repository (git clone of a local path): a command "
            "inside can damage that copy's objects, not change what they mean; `git repack -a -d` parts them"
        )
