"""PATH as a shell of the host has it: each folder in which it looks for commands, and the ways there.

Rule: what counts is what the host's shell will do after the run, not what is given inside. So an entry counts
where it is relative too (from the workspace, and from the folder that the person is in), where it leads
through a link that is not believed, and where nothing is there yet. Whoever changes a link on the way, or a
folder that `..` comes out of, says which programs run.
"""

import os

from jail.kernel import files
from jail.launch import watchlist
from jail.launch.ways import MOST_LINKS
from jail.light import Final, Iterable, NamedTuple
from jail.plan import held
from jail.plan.facts import Guarded, Searched
from jail.policy.paths import beneath, deepest

_REASON: Final = "a PATH folder of the host: what is put here would run there as a command"


_HERE: Final = ("", ".", "./")


COMMANDS: Final = "commands"
"""The kind of an absent path that stands for all names which would shadow a command."""
_ANY: Final = "*"


class _Way(NamedTuple):
    """`forms` of a path: as spelt, after each link was followed, and canonical; `links` on it, `turns`: what
    `..` comes out of.
    """

    forms: tuple[str, ...]
    links: tuple[str, ...]
    turns: tuple[str, ...]


def searched(path: str, workspace: str, folder: str, home: str) -> tuple[Searched, ...]:
    """The folders of PATH for one who stands in `workspace` or in `folder`; all three are canonical."""
    found: dict[tuple[str, str, bool], Searched] = {}
    for text in path.split(":"):
        for whole in _wholes(text, workspace, folder, home):
            way = _walked(whole)
            real = way.forms[-1]
            # People work in these: they cannot be held because somebody has `.` in PATH.
            loose = beneath(workspace, real) or text in _HERE
            each = Searched(text, way.forms, _kind(real), way.links, way.turns, loose)
            found.setdefault((way.forms[0], real, loose), each)
    return tuple(found.values())


def _wholes(text: str, workspace: str, folder: str, home: str) -> Iterable[str]:
    """The absolute paths that an entry may stand for; bash takes a tilde in it for the home folder."""
    if text.startswith("/"):
        return (text,)
    found = [f"{base}/{text}" for base in (workspace, folder)]
    if text == "~" or text.startswith("~/"):
        found.append(home + text[1:])
    return found


def _walked(path: str) -> _Way:
    pending = [name for name in path.split("/") if name not in ("", ".")][::-1]
    here, forms, links, turns = "", [_joined("", pending)], list[str](), list[str]()
    while pending and len(links) < MOST_LINKS:
        name = pending.pop()
        if name == "..":
            if here:
                turns.append(here)
            here = here.rpartition("/")[0]
            continue
        there = f"{here}/{name}"
        try:
            text = os.readlink(there)
        except OSError:
            here = there
            continue
        links.append(there)
        pending += [part for part in text.split("/") if part not in ("", ".")][::-1]
        here = "" if text.startswith("/") else here
        forms.append(_joined(here, pending))
    forms.append(_joined(here, pending))
    before = tuple(form for form in dict.fromkeys(forms) if form != forms[-1])
    return _Way((*before, forms[-1]), tuple(links), tuple(turns))


def _joined(here: str, pending: list[str]) -> str:
    return f"{here}/{'/'.join(pending[::-1])}".rstrip("/") or "/"


def _kind(path: str) -> str:
    try:
        return files.kind(os.lstat(path).st_mode)
    except OSError:
        return "absent"


def guards(found: tuple[Searched, ...], trees: Iterable[str]) -> tuple[list[Guarded], list[Guarded]]:
    """What in written `trees` decides what a PATH entry means: what is there, and what is absent."""
    trees = frozenset(trees)
    present: dict[str, Guarded] = {}
    absent: dict[str, Guarded] = {}
    for each in found:
        why = f"PATH entry {each.given} leads through it"
        for link in each.links:
            if deepest(link, trees):
                present[link] = Guarded(link, "symlink", why, git=True)
        for turn in each.turns:
            if deepest(turn, trees) not in ("", turn):
                if _kind(turn) == "absent":
                    absent[turn] = Guarded(turn, "absent", why)
                else:
                    present.setdefault(turn, Guarded(turn, _kind(turn), why, git=True, verb="pin"))
        if not deepest(each.real, trees):
            continue
        if each.loose:
            absent[each.real] = Guarded(f"{each.real}/{_ANY}", COMMANDS, watchlist.SHADOWS)
            present.update((guard.path, guard) for guard in _standing(each.real, _names_after(each, found)))
        elif each.kind == "absent":
            absent[each.real] = Guarded(each.real, "absent", _REASON)
        elif each.kind == "file":
            present[each.real] = Guarded(each.real, "file", f"PATH entry {each.given}", git=True)
    return list(present.values()), list(absent.values())


def _names_after(loose: Searched, found: tuple[Searched, ...]) -> set[str]:
    """The names in those folders that a shell would come to later."""
    later = dict.fromkeys(each.real for each in found[found.index(loose) + 1 :] if each.real != loose.real)
    return {name for folder in later for name in _listed(folder)}


def _standing(folder: str, names: set[str]) -> list[Guarded]:
    """The commands by such names that are there already."""
    fd = os.open(folder, files.FOLDER)
    try:
        there = [name for name in _listed(folder) if name in names and watchlist.is_command(fd, name)]
    finally:
        os.close(fd)
    paths = [f"{folder.rstrip('/')}/{name}" for name in there]
    return [Guarded(path, _kind(path), watchlist.SHADOWS, git=True) for path in paths]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def spelt(absent: list[Guarded], found: tuple[Searched, ...]) -> list[Guarded]:
    """`absent` with every name that stands behind a COMMANDS."""
    plain = [guard for guard in absent if guard.kind != COMMANDS]
    folders = {guard.path.rpartition("/")[0] for guard in absent if guard.kind == COMMANDS}
    for each in found:
        if each.loose and each.real in folders:
            names = sorted(_names_after(each, found))
            plain += [Guarded(f"{each.real}/{name}", "absent", watchlist.SHADOWS) for name in names]
    return plain


def trees_of(found: Iterable[Searched], written: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """PATH folders in trees that are given for writing, each with the tree that it is held with."""
    trees = {}
    for each in found:
        if each.kind != "folder" or each.loose or not deepest(each.real, written):
            continue
        above = each.real.rpartition("/")[0]
        environment = above not in written and os.path.isfile(f"{above}/pyvenv.cfg")
        tree = held.tree_of_commands(each.real, environment=environment)
        trees[each.real] = each.real if tree in written else tree
    return tuple(trees.items())
