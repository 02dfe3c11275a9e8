"""Which added file is a deleted one under another name.

Rule: the same content, of a regular file that is not empty, and nothing of it in conflict; one to one, files
of the same last name first, else in the order of the list, so that equal lists pair alike. Contents of
deleted files are read only where an added one has their size.
"""

from jail.hold.change import ADDED, DELETED, RENAMED, Change
from jail.hold.digests import CELLS
from jail.light import Callable

_Keys = tuple[str, str]


def paired(changes: list[Change], digest: Callable[[str, str], str]) -> list[Change]:
    """The changes of one tree with pairs of added and deleted as one rename, at the added one's place.
    `digest`: of a path on the host, in the form of another digest.
    """
    added = [
        at
        for at, each in enumerate(changes)
        if each.what == ADDED and each.new.digest and _counts(each, each.new.size)
    ]
    forms: dict[int, set[str]] = {}
    for at in added:
        new = changes[at].new
        forms.setdefault(new.size, set()).add(CELLS if new.digest.startswith(CELLS) else "plain")
    sources: dict[_Keys, list[int]] = {}
    for at, each in enumerate(changes):
        if each.what == DELETED and each.old.kind == "file" and _counts(each, each.old.size):
            for form in sorted(forms.get(each.old.size, ())):
                content = digest(each.path, form)
                for name in ("", _last(each.path)) if content else ():
                    sources.setdefault((content, name), []).append(at)
    for lists in sources.values():
        lists.reverse()
    taken: dict[int, int] = {}
    used: set[int] = set()
    for by_name in (True, False):
        for at in added:
            if at not in taken:
                key = (changes[at].new.digest, _last(changes[at].path) if by_name else "")
                _take(at, sources.get(key, []), taken, used)
    return [_renamed(each, changes, taken.get(at)) for at, each in enumerate(changes) if at not in used]


def _take(at: int, sources: list[int], taken: dict[int, int], used: set[int]) -> None:
    while sources:
        source = sources.pop()
        if source not in used:
            taken[at] = source
            used.add(source)
            return


def _counts(change: Change, size: int) -> bool:
    side = change.new if change.what == ADDED else change.old
    return side.kind == "file" and size > 0 and not change.conflict


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _renamed(change: Change, changes: list[Change], source: int | None) -> Change:
    if source is None:
        return change
    was = changes[source]
    return change._replace(what=RENAMED, source=was.path, old=was.old._replace(digest=change.new.digest))
