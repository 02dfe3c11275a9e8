"""What a change does to a git dir, wherever one lies: its parts, its coming into being, what leads to one.

Rule: as jail.hold.freshgit has it for a git dir that was made during a run, asked of two sides at once. What
a folder is to git is asked of its names as they would be after all changes, so that a git dir that comes into
being piece by piece, in two sessions too, is one at the last piece; then what lies there already counts as
well. A `.git` file, and what it leads to, is plain only where both ends lead to each other and nothing is
obeyed that was not obeyed before (jail.hold.gitlinks).
"""

import os
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final, NamedTuple

from jail.hold import freshgit, gitconfig, gitlinks
from jail.hold.change import ADDED, DELETED, MODE, REFUSED, RENAMED, WARNED, Change
from jail.hold.ground import NOTHING, Contents, Ground, Verdict, kind_of
from jail.plan import autoexec, protected
from jail.plan.protected import canonical

_LEADS_GIT: Final = "as a file or link it sends git to another git dir"
_LINK: Final = "a link in a git dir: git reads or writes where it leads"
_MAKES: Final = "makes a git dir of a folder that has hooks or a config which make git run programs"
_WORKTREE: Final = frozenset(["commondir", "gitdir"])
_HASHES: Final = (40, 64)
"""Digits of a commit's name (gitformat-commit-graph(5): SHA-1, SHA-256)."""


def of_git(change: Change, way: str, parts: tuple[str, ...], ground: Ground, whole: str = "") -> Verdict:
    """The verdict on a change under the absolute path `way`, with its canonical components; `whole`: where it
    lies, if that is only a link's name for it.
    """
    contents, whole = ground.contents, whole or way
    folder, last = os.path.dirname(way), parts[-1]
    inside = _in_git_dirs(folder, parts[:-1], contents)
    here = (len(parts) - 1,) if last in freshgit.JUDGED and _is_git_dir(folder, contents) else ()
    for depth in (*inside.depths, *here):
        row = _row_of_git(parts[depth : depth + protected.DEEPEST])
        where = _Where(_above(way, depth), way, whole, parts[depth:])
        found = _of_part(change, row, where, ground) if row is not None else NOTHING
        if found[0]:
            return found
    if change.what != DELETED and change.new.kind == "symlink":
        found = _of_link(way, parts, contents.target(whole), contents)
        if found[0]:
            return found
    if inside.state is not None and change.what != DELETED and kind_of(change) != "folder":
        return inside.state.tier, inside.state.reason
    made = last in freshgit.MAKE_A_GIT_DIR and change.what not in (DELETED, MODE)
    return _of_making(folder, contents) if made else NOTHING


def _above(path: str, depth: int) -> str:
    """The folder of an absolute path that has `depth` names."""
    return "/".join(path.split("/", depth + 1)[: depth + 1])


class _InGitDirs(NamedTuple):
    """A folder: `depths` of the names in its path that are parts of git dirs of which a row may speak;
    `state`: of what git left half done there, and goes on with.
    """

    depths: tuple[int, ...]
    state: autoexec.AutoExec | None


@lru_cache(maxsize=256)
def _in_git_dirs(folder: str, parts: tuple[str, ...], contents: Contents) -> _InGitDirs:
    """Asked once for a folder, whatever the number of names in it: each part of its path may be one of git's.
    Of the depths those go on that the folder decides, and those that a name in it may.
    """
    if freshgit.JUDGED.isdisjoint(parts) and _STATES.keys().isdisjoint(parts):
        return _InGitDirs((), None)
    depths: list[int] = []
    state = None
    for depth, name in enumerate(parts):
        judged = name in freshgit.JUDGED and (
            _row_of_git(parts[depth : depth + protected.DEEPEST]) is not None
            or depth + protected.DEEPEST > len(parts)
        )
        if (judged or name in _STATES) and _is_git_dir(_above(folder, depth), contents):
            state = state or _STATES.get(name)
            depths += [depth] if judged else []
    return _InGitDirs(tuple(depths), state)


_STATES: Final = {
    row.pattern.removeprefix(".git/").removesuffix("/*"): row
    for row in autoexec.AUTO_EXEC
    if row.pattern.startswith(".git/") and row.pattern.endswith("/*") and row.tier == WARNED
}


def of_marker(change: Change, whole: str, parts: tuple[str, ...], ground: Ground) -> Verdict:
    """The verdict on what is called `.git` and is no folder."""
    if parts[-1] != ".git" or kind_of(change) in ("folder", "absent"):
        return NOTHING
    fresh = change.what in (ADDED, RENAMED) and change.new.kind == "file"
    return NOTHING if fresh and _leads_in_order(whole, ground) else (REFUSED, _LEADS_GIT)


def _row_of_git(rest: tuple[str, ...]) -> protected.Protected | None:
    return protected.row_of("commondir", rest) or protected.row_of("gitdir", rest)


def _is_git_dir(folder: str, contents: Contents) -> bool:
    return canonical(os.path.basename(folder)) == ".git" or freshgit.is_git_dir(
        contents.names(folder), folded=True
    )


class _Where(NamedTuple):
    """`gitdir`: a git dir; `way`: the path of a part of it, which lies at `whole`; `rest`: the canonical
    components beneath the git dir.
    """

    gitdir: str
    way: str
    whole: str
    rest: tuple[str, ...]


def _of_part(change: Change, row: protected.Protected, where: _Where, ground: Ground) -> Verdict:
    """One part of a git dir: as jail.hold.freshgit has it for one that was made during the run."""
    gitdir, way, whole, rest = where
    kind = kind_of(change)
    refused = REFUSED, row.reason
    if row.name == "hooks":
        sample = len(rest) == 2 and rest[1].endswith(".sample") and kind == "file"
        return NOTHING if sample or (len(rest) == 1 and kind == "folder") else refused
    if kind != "file" or change.what not in (ADDED, RENAMED) or len(rest) > len(row.name.split("/")):
        return refused
    content = ground.contents.new(whole)
    if content is None:
        return refused
    if row.name in _WORKTREE and way == whole == f"{gitdir}/{row.name}":
        return NOTHING if _is_worktree(gitdir, ground) else refused
    if row.name == "info/exclude":  # `git init` makes one that only explains itself
        lines = content.split(b"\n")
        return NOTHING if all(line[:1] in (b"", b"#") for line in lines) else refused
    if row.name != "config":
        return refused
    wrong = gitconfig.offences(content, _is_submodule(gitdir, ground))
    return (REFUSED, f"{row.reason}: {', '.join(wrong[:3])}") if wrong else NOTHING


def _of_link(way: str, parts: tuple[str, ...], target: str, contents: Contents) -> Verdict:
    """Git makes one link in a git dir, an old form of HEAD (git-symbolic-ref(1))."""
    for depth in range(1, len(parts)):
        if _is_git_dir(_above(way, depth), contents):
            plain = target.startswith("refs/") and ".." not in target.split("/")
            return NOTHING if plain and parts[depth:] == ("head",) else (REFUSED, _LINK)
    return NOTHING


def _of_making(folder: str, contents: Contents) -> Verdict:
    """A part without which git would not take the folder for a git dir: what lies there already would count
    from then on.
    """
    if not freshgit.is_git_dir(contents.names(folder), folded=True) or _was_git_dir(folder, contents):
        return NOTHING
    return (REFUSED, _MAKES) if _offends(folder, contents) else NOTHING


def _was_git_dir(folder: str, contents: Contents) -> bool:
    """Whether the host's git takes a folder for a git dir (setup.c, is_git_directory)."""
    head = contents.old(f"{folder}/HEAD") or b""
    name = head.removeprefix(b"ref:").strip()
    named = head.startswith(b"ref:") and name.startswith(b"refs/")
    commit = len(name) in _HASHES and all(byte in b"0123456789abcdef" for byte in name)
    if not named and not commit:
        return False
    if contents.kind(f"{folder}/commondir") == "file":
        return True
    return all(contents.kind(f"{folder}/{name}") == "folder" for name in ("objects", "refs"))


def _offends(folder: str, contents: Contents, *, ground: Ground | None = None) -> bool:
    """Whether what the host has in a folder would make its git run or read something, were it a git dir.
    `ground`: a core.worktree of a submodule is in order.
    """
    for place in ("commondir", "gitdir"):
        listings: dict[str, Collection[str]] = {}
        for name in protected.folders(place):
            path = f"{folder}/{name}" if name else folder
            if contents.kind(path) in ("symlink", "unknown"):
                return True
            listings[name] = contents.had(path)
        present = protected.split(place, listings).present
        if any(_is_wrong(f"{folder}/{name}", row, contents, ground) for name, row in present):
            return True
    return False


def _is_wrong(path: str, row: protected.Protected, contents: Contents, ground: Ground | None) -> bool:
    if row.name == "info/exclude":
        return False
    if row.name == "hooks":
        found = contents.kind(path) == "folder" and contents.had(path)
        return found is False or any(
            not name.endswith(".sample") or contents.kind(f"{path}/{name}") != "file" for name in found
        )
    if row.name != "config":
        return True
    content = contents.old(path)
    is_fine = None if ground is None else _is_submodule(os.path.dirname(path), ground)
    return content is None or bool(gitconfig.offences(content, is_fine))


def _line(ground: Ground) -> gitlinks.Line:
    """The one line of a file as it would be after all changes."""
    contents = ground.contents

    def line(path: str) -> str:
        found = contents.new(path)
        return gitlinks.line_of(contents.old(path) if found is None else found)

    return line


def _is_submodule(gitdir: str, ground: Ground) -> Callable[[gitconfig.Setting], bool]:
    line = _line(ground)

    def is_fine(setting: gitconfig.Setting) -> bool:
        tree = gitlinks.worktree_of(gitdir, setting, line)
        return bool(tree) and ground.contents.holds(tree) and not ground.guards.run()

    return is_fine


def _is_worktree(gitdir: str, ground: Ground) -> bool:
    """Whether a git dir is that of a linked worktree in order, of a repository that was obeyed before."""
    line = _line(ground)
    marker, common = gitlinks.linked(gitdir, line)
    if (
        not marker
        or ground.guards.run()
        or not freshgit.is_git_dir(ground.contents.names(common), folded=True)
    ):
        return False
    if not (ground.contents.holds(marker) and ground.contents.holds(common)):
        return False
    above = _repository_above(os.path.dirname(os.path.dirname(marker)), ground)
    return common == above or not _offends(common, ground.contents, ground=ground)


def _repository_above(folder: str, ground: Ground) -> str:
    """The git dir, shared by worktrees, that the host's git obeys in a folder; "" for none."""
    contents = ground.contents
    while folder not in ("", "/"):
        marker = f"{folder}/.git"
        kind = contents.kind(marker)
        if kind == "folder":
            return marker
        if kind != "absent":
            said = gitlinks.line_of(contents.old(marker))
            gitdir = gitlinks.pointed(folder, said)
            return gitlinks.linked(gitdir, lambda path: gitlinks.line_of(contents.old(path)))[1]
        folder = os.path.dirname(folder)
    return ""


def _leads_in_order(marker: str, ground: Ground) -> bool:
    """Whether a `.git` file leads to a git dir that leads back, and git obeys nothing there that nobody
    judged.
    """
    folder, _, name = marker.rpartition("/")
    gitdir = gitlinks.pointed(folder, _line(ground)(marker))
    contents = ground.contents
    if name != ".git" or not gitdir or not contents.holds(gitdir):
        return False
    if not freshgit.is_git_dir(contents.names(gitdir), folded=True):
        return False
    if gitlinks.linked(gitdir, _line(ground))[0] == marker:
        return _is_worktree(gitdir, ground)
    path = f"{gitdir}/config"
    config = contents.new(path)
    config = contents.old(path) if config is None else config
    is_fine = _is_submodule(gitdir, ground)
    if config is None or gitconfig.offences(config, is_fine) or _offends(gitdir, contents, ground=ground):
        return False
    trees = [gitlinks.worktree_of(gitdir, each, _line(ground)) for each in gitconfig.parse(config)]
    return [tree for tree in trees if tree] == [folder]
