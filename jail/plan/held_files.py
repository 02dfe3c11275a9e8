"""Files of the workspace that a command may write in a copy: git's configuration.

Rule: over the file lies a symlink that leads to a copy in the session. git follows a link of its `config`,
locks and renames beside the copy; a read-only mount would make `git branch -m`, `git remote add` and `git
submodule add` fail. Where the policy itself makes the file read-only or hides it, that stands.
"""

from jail.light import Final
from jail.plan.facts import Facts, Guarded
from jail.plan.held import FILE, FILES_INSIDE, GIT_CONFIG, Held, link_to, name_for
from jail.plan.steps import Step
from jail.plan.trees import Trees
from jail.policy.paths import between, deepest

_WHY: Final = "git reads and writes a copy of it, which the session keeps"


def hold(trees: Trees, guarded: Guarded, facts: Facts) -> bool:
    """Hold a file in a written tree if it is one that is held; False where it must be protected."""
    path, tree = guarded.path, deepest(guarded.path, trees.writable)
    if guarded.verb != "hold" or _is_ruled(trees, path):
        return False
    name = name_for("f", path, trees.held.values(), facts)
    step = Step("held-file", path, tree, (name,), _WHY)
    trees.hold(Held(name, FILE, path, guarded.reason, GIT_CONFIG), step)
    return True


def _is_ruled(trees: Trees, path: str) -> bool:
    above = (path, *between(path, "/"))
    return any(trees.inner[at].verb in ("protect", "hide") for at in above if at in trees.inner)


def withdraw(trees: Trees) -> None:
    """Take back files that a later rule hides."""
    hidden = [at for at, step in trees.inner.items() if step.verb == "hide"]
    for path, thing in list(trees.held.items()):
        if thing.kind == FILE and deepest(path, hidden):
            del trees.held[path], trees.over[path]


def steps(held: tuple[Held, ...]) -> list[Step]:
    """What must be there before a link can be mounted."""
    copies = [thing for thing in held if thing.kind == FILE]
    if not copies:
        return []
    links = [
        Step(
            "link",
            link_to(thing.name),
            f"{FILES_INSIDE}/{thing.name}/{thing.path.rpartition('/')[2]}",
            (),
            "made by jail",
        )
        for thing in copies
    ]
    return [
        Step("held-files", FILES_INSIDE, "", ("rw",), "copies of held files, which this session keeps"),
        *links,
    ]
