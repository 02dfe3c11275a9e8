"""Held trees in a plan: how each is held, what is mounted for it, and what this host cannot hold.

Rule: an overlay where the survey could make one; else a copy, where the tree is small enough to be copied
before each run; else the tree is read-only inside, and that is a loss. A mount in a held tree is held apart:
no overlay of ours may uncover what lies beneath it (mount_namespaces(7)).
"""

from jail.light import Final, Iterator
from jail.plan.facts import Facts
from jail.plan.held import COPY, COPY_BYTES, COPY_ENTRIES, FILE, OVERLAY, Held, Wanted, name_for, wanted
from jail.plan.steps import Loss, Step
from jail.plan.trees import Trees
from jail.policy.amounts import size_text
from jail.policy.paths import beneath, deepest

WHY: Final = "held: what is written stays in the session"
_REMEDY: Final = (
    "set XDG_STATE_HOME to a folder on a file system that overlays can use (ext4, xfs, btrfs; `jail doctor` "
    "tries it)"
)
_UNMOUNT: Final = "start jail without the mounts that are in it"


def give(trees: Trees, facts: Facts) -> list[Loss]:
    """Hold what is to be held of the given trees; the losses of what cannot be."""
    lost: dict[str, str] = {}
    for each in wanted(facts):
        if each.kind == "folder":
            lost.update(_tree(trees, facts, each))
        else:
            name = name_for("f", each.path, trees.held.values(), facts)
            _hold(trees, each, Held(name, FILE, each.path, each.why), "held-file")
    _part_objects(trees, facts)
    trees.notes += _notes(trees, facts)
    if not lost:
        return []
    by_mounts = all(any(beneath(inner, path) for inner, _ in facts.submounts) for path in lost)
    return [Loss("hold", "; ".join(lost.values()), _UNMOUNT if by_mounts else _REMEDY)]


def _part_objects(trees: Trees, facts: Facts) -> None:
    """Make a mount of git's objects in an overlay. `git clone` of a path links them, and gives up where a
    link has another inode number than the file had (clone.c, copy_or_link_directory), which it has in an
    overlay without privileges: copying up forgets the number. From a mount of its own a link is EXDEV, and
    git copies.
    """
    objects = facts.repository.objects if facts.repository else ""
    tree = deepest(objects, trees.held)
    if tree and trees.held[tree].kind == OVERLAY and trees.keeps(objects):
        trees.inner[objects] = Step("pin", objects, tree, (), "so that `git clone` copies out of it")


def _tree(trees: Trees, facts: Facts, each: Wanted) -> Iterator[tuple[str, str]]:
    """Hold a tree and each mount in it; what of that is lost: the path, and a sentence."""
    mounts = [
        (path, kind) for path, kind in facts.submounts if path != each.path and beneath(path, each.path)
    ]
    for path, kind in [(each.path, "folder"), *mounts]:
        source = deepest(path, trees.writable)
        if path != each.path:
            trees.over.setdefault(path, []).append(
                Step("bind", path, path, ("ro",), "a mount in a held tree")
            )
        how = _how(path, facts) if kind == "folder" else ""
        if how:
            name = name_for("t", path, trees.held.values(), facts)
            inner = tuple(folder for folder in each.commands if beneath(folder, path))
            _hold(trees, each, Held(name, how, path, each.why, each.deliver, inner), how)
            continue
        if path == source:
            trees.lost.add(path)
        elif path == each.path:
            trees.protect(path, "folder", each.why)
        yield path, f"{path} is read-only inside: {_why_not(path, kind, facts)}"


def _hold(trees: Trees, each: Wanted, thing: Held, verb: str) -> None:
    source = deepest(thing.path, trees.writable)
    why = WHY if each.rule else f"{WHY}; {each.why}"
    trees.hold(thing, Step(verb, thing.path, source, (thing.name,), why))


def _how(path: str, facts: Facts) -> str:
    if path not in dict(facts.no_overlay):
        return OVERLAY
    return COPY if _is_small(path, facts) else ""


def _is_small(path: str, facts: Facts) -> bool:
    return any(
        tree == path and size <= COPY_BYTES and entries <= COPY_ENTRIES for tree, size, entries in facts.sizes
    )


def _why_not(path: str, kind: str, facts: Facts) -> str:
    if kind != "folder":
        return "it is a mount of a single file"
    why = dict(facts.no_overlay)[path]
    return f"no overlay ({why}), and it is larger than {size_text(COPY_BYTES)} or {COPY_ENTRIES} files"


def _notes(trees: Trees, facts: Facts) -> Iterator[str]:
    kinds = [thing.kind for thing in trees.held.values()]
    if OVERLAY in kinds:
        yield (
            "held by an overlay: to rename a folder that was there before is EXDEV; mv copies it instead, "
            "`git mv` does not; `git clone` of another repository in it needs its file:// address; "
            "`.git` itself cannot be moved or removed"
        )
    for path in facts.strange:
        if path in trees.held and trees.held[path].kind == OVERLAY:
            yield (
                f"{path} is of another user or group than the command: what is of them cannot be changed "
                "inside (EOVERFLOW)"
            )
    for path, why in facts.no_overlay:
        if path in trees.held:
            yield f"{path} is held by a copy, made at each start, as no overlay can hold it: {why}"
