"""What a run holds: trees and files whose writes stay in the session until they are delivered or applied.

Rule: a held thing is named in the plan with how it is held, why, and what of it is delivered by itself. The
outermost wins: what lies in a held tree is held with it. A tree that has mounts in it is many: each mount is
one, and the tree itself is the rest.
"""

from jail.light import TYPE_CHECKING, Final, Iterable, NamedTuple
from jail.policy import value
from jail.policy.paths import beneath, deepest

if TYPE_CHECKING:
    from jail.plan.facts import Facts, Place

OVERLAY: Final = "overlay"
COPY: Final = "copy"
FILE: Final = "file"
KINDS: Final = (OVERLAY, COPY, FILE)
"""How a thing is held: a tree by an overlay file system, a tree by a copy where no overlay can be had, one
file by a symlink that is mounted over it and leads to a copy.
"""
COMMANDS: Final = value.COMMANDS
GIT_CONFIG: Final = value.GIT_CONFIG
DELIVERIES: Final = value.DELIVERIES
"""What may be delivered at the end of a run without being asked for: the words of a policy."""
FILES: Final = "files"
BASE: Final = "base"
UPPER: Final = "upper"
WORK: Final = "work"
TREE: Final = "tree"
"""Names in the folder where a session holds things; jail/hold/store.py says what lies where."""
FILES_INSIDE: Final = "/run/jail/held"
"""Where the copies of files lie inside: each in a folder of its own, in which git makes its lock file."""
KEPT_BITS: Final = 0o3777
"""Mode bits that the root of an upper layer has of the tree beneath; setuid means nothing there."""


class Held(NamedTuple):
    """One held thing.

    `name`: its folder in the session's `held` ("t0", "t1" for trees, "f0" for files); `kind` in KINDS;
    `path`: canonical, on the host and inside; `why` for a person; `deliver`: the word in DELIVERIES by which
    it may be delivered, "" where a person decides; `commands`: PATH folders in it, in each of their
    spellings.
    """

    name: str
    kind: str
    path: str
    why: str
    deliver: str = ""
    commands: tuple[str, ...] = ()


def link_to(name: str) -> str:
    """The link, inside, that is mounted over the held file `name` and leads to its copy."""
    return f"/run/jail/links/{name}"


def name_for(letter: str, path: str, held: "Iterable[Held]", facts: "Facts") -> str:
    """The name of a thing at `path`, beside those that are held already: a number after `letter`, but in a
    run that goes on from another the name that it has there.
    """
    given = dict(facts.held_names)
    used = {thing.name for thing in held} | set(given.values())
    return given.get(path) or next(
        name for at in range(len(used) + 1) if (name := f"{letter}{at}") not in used
    )


COPY_BYTES: Final = 1 << 30
COPY_ENTRIES: Final = 100_000
"""The largest tree that is held by a copy, as it is planned and as it is made: before each run, at some
10,000 entries a second.
"""
STORES: Final = ("node_modules", ".venv", "venv")
"""Trees that package managers fill with hard links into a store that other projects share (pnpm, uv)."""
HARD_LINKS: Final = "hard links into a place outside the workspace"
BY_COMMANDS: Final = "a PATH folder: what is put here would run as a command of the host"


class Wanted(NamedTuple):
    """A thing that is to be held, before it is clear how; fields as in Held. `rule`: the policy names it."""

    path: str
    why: str
    deliver: str = ""
    commands: tuple[str, ...] = ()
    rule: bool = False
    kind: str = "folder"


def wanted(facts: "Facts") -> tuple[Wanted, ...]:
    """What the rules, PATH and hard links have a run hold, outermost first."""
    return _wanted(facts) if facts.wanted is None else facts.wanted


def _wanted(facts: "Facts") -> tuple[Wanted, ...]:
    ruled = [
        Wanted(place.real, _why(place.given, place.real, facts), rule=True, kind=place.real_kind)
        for place in facts.hold
        if place.real_kind in ("file", "folder") and not place.strays
    ]
    if deepest(facts.workspace.real, [each.path for each in ruled]):
        ruled += [Wanted(path, _REPOSITORY, rule=True) for path in repository_folders(facts)]
    found = _outermost(ruled)
    written = given(facts)
    read = [place.real for place in facts.read]
    for folder, tree in facts.command_trees:
        # Who gives a PATH folder itself for writing wants programs to come, not to come unseen.
        if _is_open(tree, written, [*read, *found], whole=folder == tree != facts.workspace.real):
            found[tree] = Wanted(tree, BY_COMMANDS, COMMANDS)
    for path in facts.hardlinked:
        tree = store_of(path, deepest(path, written), facts)
        if tree and tree not in found and _is_open(tree, written, [*read, *found]):
            found[tree] = Wanted(tree, HARD_LINKS)
    outer = _outermost(found.values())
    folders = command_folders(facts)
    return tuple(
        each._replace(commands=tuple(folder for folder in folders if beneath(folder, each.path)))
        for each in outer.values()
    )


def named(facts: "Facts") -> frozenset[str]:
    """The paths that rules of the policy hold by name, apart from the workspace as a whole."""
    found = {path for place in facts.hold for path in (place.path, place.real) if path}
    return frozenset(found - {facts.workspace.real})


def is_absent_in_a_held_tree(place: "Place", facts: "Facts") -> bool:
    """Whether the place of a rule is not there and would be held, were it made."""
    trees = [other.real for other in facts.hold if other.real_kind == "folder"]
    return place.kind == "absent" and not place.strays and bool(deepest(place.path, trees))


def command_folders(facts: "Facts") -> tuple[str, ...]:
    """PATH folders as the host's shell finds them: canonical, as spelt, and behind each link on the way."""
    ways = [way for each in facts.searched for way in each.ways]
    return tuple(dict.fromkeys([*(folder for folder, _ in facts.command_trees), *ways]))


def given(facts: "Facts") -> tuple[str, ...]:
    """The trees that are given for writing, for real or held."""
    rules = (*facts.write, *facts.hold)
    return (facts.workspace.real, *(place.real for place in rules if place.real), *repository_folders(facts))


_REPOSITORY: Final = "git folder of the workspace, which is held"


def _why(given: str, real: str, facts: "Facts") -> str:
    return "the workspace" if real == facts.workspace.real else f"hold = {given}"


def repository_folders(facts: "Facts") -> tuple[str, ...]:
    """The git folders of the workspace that lie elsewhere, where they may be given."""
    found = facts.repository
    if found is None or found.refused:
        return ()
    folders = dict.fromkeys((found.commondir, found.gitdir))
    return tuple(folder for folder in folders if not beneath(folder, facts.workspace.real))


def _outermost(found: "Iterable[Wanted]") -> dict[str, Wanted]:
    kept: dict[str, Wanted] = {}
    for each in sorted(found, key=lambda each: each.path.split("/")):
        holder = deepest(each.path, kept)
        if not holder:
            kept[each.path] = each
        elif each.rule and not kept[holder].rule:
            # The person wants to look at a part of it: then nothing of it is delivered unseen.
            kept[holder] = kept[holder]._replace(deliver="")
    return kept


def _is_open(tree: str, written: tuple[str, ...], closed: list[str], *, whole: bool = False) -> bool:
    """Whether a tree lies in one that is written, or where `whole` is one, and in none of `closed`, of which
    a rule speaks.
    """
    above = deepest(tree, written)
    return bool(above) and (whole or above != tree) and not deepest(tree, closed)


def store_of(path: str, tree: str, facts: "Facts") -> str:
    """The store in `tree` that a hard-linked file lies in, "" for a single file and for git's objects."""
    names = path[len(tree) :].strip("/").split("/")
    common = [facts.repository.commondir] if facts.repository else []
    if not tree or ".git" in names or deepest(path, common):
        return ""
    place = next((index for index, name in enumerate(names[:-1]) if name in STORES), -1)
    return "/".join([tree, *names[: place + 1]]) if place >= 0 else ""


def tree_of_commands(folder: str, *, environment: bool) -> str:
    """The tree that a PATH folder is held with. `environment`: a virtual environment begins above it (PEP
    405, pyvenv.cfg).
    """
    above, _, name = folder.rpartition("/")
    if environment:
        return above
    return above if name == ".bin" and above.endswith("/node_modules") else folder
