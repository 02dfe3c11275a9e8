"""What a change means to git: a part of a git dir, or what makes one of a folder.

Rule: as jail.hold.freshgit has it for a git dir that was made during a run; of one that was there before no
part that git obeys may change. What a folder is to git is asked of its names as they would be after all
changes, so that a git dir that comes to be piece by piece, in two sessions too, is one at the last piece.
"""

import os.path
from functools import lru_cache
from typing import Final, NamedTuple

from jail.hold import freshgit, gitconfig
from jail.hold.change import ADDED, DELETED, PLAIN, REFUSED, RENAMED, WARNED, Change
from jail.hold.freshgit import is_git_dir
from jail.hold.ground import Ground, Verdict, kind_of
from jail.plan import autoexec, protected
from jail.plan.protected import canonical


def verdict(change: Change, folder: str, folded: tuple[str, ...], ground: Ground) -> Verdict:
    """How grave a change is for a git dir that its path is a part of, or that it makes. `folder`: where it
    lies in the thing; `folded`: the canonical components of its path.
    """
    if not folded:
        return PLAIN, ""
    inside = _in_git_dirs(folder, folded[:-1], ground)
    here = (len(folded) - 1,) if folded[-1] in freshgit.JUDGED and _is_git_dir(folder, ground) else ()
    for depth in (*inside.depths, *here):
        row = _row_of_git(folded[depth : depth + protected.DEEPEST])
        found = _of_part(change, row, folded[depth:], ground) if row is not None else (PLAIN, "")
        if found[0]:
            return found
    if inside.state is not None and change.what != DELETED and kind_of(change) != "folder":
        return inside.state.tier, inside.state.reason
    made = folded[-1] in freshgit.MAKE_A_GIT_DIR and change.what != DELETED
    return _of_making(change, folder, ground) if made else (PLAIN, "")


class _InGitDirs(NamedTuple):
    """A folder: `depths` of the names in its path that are parts of git dirs of which a row may speak;
    `state`: of what git left half done there, and goes on with.
    """

    depths: tuple[int, ...]
    state: autoexec.AutoExec | None


@lru_cache(maxsize=256)
def _in_git_dirs(folder: str, folded: tuple[str, ...], ground: Ground) -> _InGitDirs:
    """Asked once for a folder, whatever the number of names in it: each part of its path may be one of git's.
    Of the depths those go on that the folder decides, and those that a name in it may.
    """
    if freshgit.JUDGED.isdisjoint(folded) and _STATES.keys().isdisjoint(folded):
        return _InGitDirs((), None)
    names = folder.split("/")
    depths: list[int] = []
    state = None
    for depth, name in enumerate(folded):
        judged = name in freshgit.JUDGED and (
            _row_of_git(folded[depth : depth + protected.DEEPEST]) is not None
            or depth + protected.DEEPEST > len(folded)
        )
        if (judged or name in _STATES) and _is_git_dir("/".join(names[:depth]), ground):
            state = state or _STATES.get(name)
            depths += [depth] if judged else []
    return _InGitDirs(tuple(depths), state)


_STATES: Final = {
    row.pattern.removeprefix(".git/").removesuffix("/*"): row
    for row in autoexec.AUTO_EXEC
    if row.pattern.startswith(".git/") and row.pattern.endswith("/*") and row.tier == WARNED
}


def _row_of_git(rest: tuple[str, ...]) -> protected.Protected | None:
    return protected.row_of("commondir", rest) or protected.row_of("gitdir", rest)


def _is_git_dir(folder: str, ground: Ground) -> bool:
    path = f"{ground.thing.path}/{folder}".rstrip("/")
    if canonical(os.path.basename(path)) == ".git":
        return True
    return is_git_dir(ground.contents.names(folder), folded=True)


def _of_part(change: Change, row: protected.Protected, rest: tuple[str, ...], ground: Ground) -> Verdict:
    """One part of a git dir: as jail.hold.freshgit has it for one that was made during the run."""
    kind, path = kind_of(change), change.path
    refused = REFUSED, row.reason
    if row.name == "hooks":
        sample = len(rest) == 2 and rest[1].endswith(".sample") and kind == "file"
        return (PLAIN, "") if sample or (len(rest) == 1 and kind == "folder") else refused
    if row.name not in ("config", "info/exclude") or len(rest) > len(row.name.split("/")):
        return refused
    if kind != "file" or change.what not in (ADDED, RENAMED):
        return refused
    content = ground.contents.new(path)
    if content is None:
        return refused
    if row.name == "info/exclude":  # `git init` makes one that only explains itself
        lines = content.split(b"\n")
        return (PLAIN, "") if all(line[:1] in (b"", b"#") for line in lines) else refused
    wrong = gitconfig.offences(content)
    return (REFUSED, f"{row.reason}: {', '.join(wrong[:3])}") if wrong else (PLAIN, "")


def _of_making(change: Change, folder: str, ground: Ground) -> Verdict:
    """A part without which git would not take the folder for a git dir: what lies there already would count
    from then on.
    """
    contents = ground.contents
    if change.old.kind != "absent" or not is_git_dir(contents.names(folder), folded=True):
        return PLAIN, ""
    above = f"{folder}/" if folder else ""
    config = contents.old(f"{above}config")
    hooks = [name for name in contents.had(f"{above}hooks") if not name.endswith(".sample")]
    if hooks or (config is not None and gitconfig.offences(config)):
        return REFUSED, "makes a git dir of a folder that has hooks or a config which make git run programs"
    return PLAIN, ""
