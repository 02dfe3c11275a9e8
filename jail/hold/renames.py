"""Which added file is a deleted one under another name.

Rule: the same content, of a regular file that is not empty, and nothing of it in conflict; one to one, files
of the same last name first, else in the order of the list, so that equal lists pair alike. Contents of
deleted files are read only where an added one has their size.
"""

from jail.hold.change import ADDED, DELETED, RENAMED, Change, State
from jail.hold.digests import CELLS
from jail.light import Callable

_Content = tuple[str, str]
"""A digest and a last name, or "" for any."""


def paired(changes: list[Change], digest: Callable[[str, str], str]) -> list[Change]:
    """The changes of one tree with pairs of added and deleted as one rename, at the added one's place.
    `digest`: of a path on the host, in the form of another digest.
    """
    added = [at for at, each in enumerate(changes) if each.what == ADDED and _counts(each, each.new)]
    sources = _sources(changes, [changes[at].new for at in added], digest)
    taken: dict[int, int] = {}
    used: set[int] = set()
    for by_name in (True, False):
        for at in added:
            change = changes[at]
            key = (change.new.digest, _last(change.path) if by_name else "")
            if at not in taken:
                _take(at, sources.get(key, []), taken, used)
    return [_renamed(each, changes, taken.get(at)) for at, each in enumerate(changes) if at not in used]


def _sources(
    changes: list[Change], added: list[State], digest: Callable[[str, str], str]
) -> dict[_Content, list[int]]:
    """Content → where in the list deleted files had it, the last first."""
    forms: dict[int, set[str]] = {}
    for state in added:
        forms.setdefault(state.size, set()).add(CELLS if state.digest.startswith(CELLS) else "plain")
    sources: dict[_Content, list[int]] = {}
    for at in range(len(changes) - 1, -1, -1):
        change = changes[at]
        if change.what == DELETED and _counts(change, change.old):
            for form in sorted(forms.get(change.old.size, ())):
                content = digest(change.path, form)
                for name in ("", _last(change.path)):
                    sources.setdefault((content, name), []).append(at)
    return sources


def _take(at: int, sources: list[int], taken: dict[int, int], used: set[int]) -> None:
    while sources:
        source = sources.pop()
        if source not in used:
            taken[at] = source
            used.add(source)
            return


def _counts(change: Change, side: State) -> bool:
    # An added file without a digest is equal to nothing; a deleted one has none yet.
    known = change.what == DELETED or bool(side.digest)
    return side.kind == "file" and side.size > 0 and known and not change.conflict


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _renamed(change: Change, changes: list[Change], source: int | None) -> Change:
    if source is None:
        return change
    was = changes[source]
    return change._replace(what=RENAMED, source=was.path, old=was.old._replace(digest=change.new.digest))
