"""Where the git repository of a workspace lies, read without git and believed only where it points back.

Rule: what lies in a workspace may have been written by an earlier run, so a `.git` that leads elsewhere is
followed only when the other end names this workspace (as git's own worktrees and submodules do); else the
layout is `untrusted`, with the reason, and the plan leaves the git dir absent. No symlink of the workspace is
followed, nothing is run, every read has a bound.

    worktree:  WS/.git = "gitdir: G", G/gitdir = WS/.git, G/commondir leads to G/../.., above "worktrees"
    submodule: WS/.git = "gitdir: G", core.worktree of G/config leads to WS (so too for --separate-git-dir)
    inside:    WS/.git = "gitdir: G" with G in WS: nothing is gained by it, so nothing must point back
    bare:      no WS/.git, but WS itself is what git takes for a git dir
"""

import os
import stat

from jail.hold import gitconfig, gitprograms
from jail.kernel import files
from jail.light import Final, Iterator, NamedTuple
from jail.plan import protected
from jail.plan.facts import Guarded
from jail.policy.paths import beneath

POINTER_BYTES: Final = 8192
"""`.git`, `gitdir` and `commondir` hold one path: PATH_MAX and a prefix."""
REPOSITORIES: Final = 2000
"""Git dirs of one layout, submodules and worktrees together; each costs a few look-ups and mounts."""
MODULE_DEPTH: Final = 40
"""Folders beneath `modules`: names of submodules may have slashes, and submodules nest."""
INCLUDE_DEPTH: Final = 10
"""MAX_INCLUDE_DEPTH of git (config.c)."""


class GitLayout(NamedTuple):
    """The repository of a workspace.

    `kind`: as in the table above, or "folder". `protected`: what exists and runs programs or redirects git,
    in all git dirs of the repository (`kind` of each as in jail.plan.facts). `absent`: such names that do not
    exist now. `roots`: every git dir, where absent names are to be watched. `untrusted`: why the git dir was
    not believed ("" when it was); then only `.git` itself is protected, if it is a file or link, and all
    else is empty.
    """

    gitdir: str
    commondir: str
    kind: str
    protected: tuple[Guarded, ...]
    absent: tuple[Guarded, ...]
    roots: tuple[str, ...]
    untrusted: str = ""


class UntrustedError(Exception):
    """Why a git dir is not believed."""


def read(workspace: str, home: str = "", hooks_path: str = "") -> GitLayout | None:
    """The layout of the repository at the root of `workspace` (canonical path), or None when git finds none
    there.

    `home` expands "~/" in paths of the configuration; `hooks_path` is the person's own core.hooksPath, which
    counts where the repository has none.
    """
    marker = f"{workspace}/.git"
    kind = _kind(marker)
    if kind == "absent" and not looks_like_git_dir(workspace):
        return None
    try:
        if kind == "absent":
            gitdir, commondir, sort = workspace, workspace, "bare"
        elif kind == "folder":
            gitdir = commondir = marker
            if _kind(f"{marker}/commondir") != "absent":
                raise UntrustedError(
                    ".git/commondir sends git to another folder; only worktrees have that file"
                )
            sort = "folder"
        elif kind == "file":
            gitdir, commondir, sort = _redirected(workspace, marker)
        else:
            raise UntrustedError(f".git is a {kind}")
        if _kind(f"{gitdir}/HEAD") == "absent":
            raise UntrustedError("the git dir has no HEAD, so git takes it for none")
        return _gathered(workspace, home, hooks_path, (gitdir, commondir, sort))
    except UntrustedError as error:
        return _untrusted(marker, kind, str(error))
    except OSError as error:
        return _untrusted(marker, kind, f"cannot be read: {error.strerror} ({error.filename})")


_REDIRECT: Final = "it sends git to another git dir"


def _untrusted(marker: str, kind: str, why: str) -> GitLayout:
    guards = (Guarded(marker, kind, _REDIRECT),) if kind in ("file", "symlink") else ()
    return GitLayout("", "", "", guards, (), (), why)


def looks_like_git_dir(folder: str) -> bool:
    """Whether git would take a folder for a git dir (setup.c, is_git_directory), by its names."""
    if _kind(f"{folder}/HEAD") not in ("file", "symlink"):
        return False
    if _kind(f"{folder}/commondir") == "file":
        return True
    return all(_kind(f"{folder}/{name}") in ("folder", "symlink") for name in ("objects", "refs"))


def _kind(path: str) -> str:
    try:
        return files.kind(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"


def _read(path: str, limit: int) -> bytes:
    """A regular file's content; raises UntrustedError for anything else and for one that is longer."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UntrustedError(f"{path} is not a regular file")
        content = b""
        while len(content) <= limit and (chunk := os.read(fd, limit + 1 - len(content))):
            content += chunk
    finally:
        os.close(fd)
    if len(content) > limit:
        raise UntrustedError(f"{path} is longer than {limit} bytes")
    return content


def pointer(path: str, prefix: str = "") -> str:
    """The path that a one-line file names, canonical; relative ones count from the folder of the file."""
    said = os.fsdecode(_read(path, POINTER_BYTES)).rstrip("\r\n")
    if not said.startswith(prefix) or "\n" in said or "\0" in said or len(said) == len(prefix):
        raise UntrustedError(f"{path} does not name one folder")
    return os.path.realpath(os.path.join(os.path.dirname(path), said[len(prefix) :]))


def _plain(path: str) -> str:
    """An absolute path made plain by its text alone; os.path.normpath would keep two leading slashes."""
    return "/" + os.path.normpath(path).lstrip("/")


def _redirected(workspace: str, marker: str) -> tuple[str, str, str]:
    gitdir = pointer(marker, "gitdir: ")
    said = _plain(os.path.join(workspace, os.fsdecode(_read(marker, POINTER_BYTES))[8:].rstrip("\r\n")))
    if beneath(said, workspace) and said != gitdir:
        raise UntrustedError(f".git leads through a symlink of the workspace to {gitdir}")
    if _kind(gitdir) != "folder":
        raise UntrustedError(f".git leads to {gitdir}, which is no folder")
    if os.lstat(gitdir).st_uid != os.lstat(workspace).st_uid:
        raise UntrustedError(f".git leads to {gitdir}, which belongs to somebody else")
    worktree = _kind(f"{gitdir}/commondir") != "absent"
    if worktree:
        commondir = pointer(f"{gitdir}/commondir")
        if os.path.dirname(gitdir) != f"{commondir}/worktrees":
            raise UntrustedError(f"{gitdir}/commondir leads to {commondir}, whose worktree it is not")
        back = pointer(f"{gitdir}/gitdir") if _kind(f"{gitdir}/gitdir") == "file" else ""
        if back != marker:
            raise UntrustedError(f".git leads to {gitdir}, whose file gitdir does not name this workspace")
        return gitdir, commondir, "worktree"
    if beneath(gitdir, workspace):
        return gitdir, gitdir, "inside"
    settings = _settings(f"{gitdir}/config")
    back = next((item.value for item in reversed(settings) if item.key == "core.worktree" and item.value), "")
    if not back or os.path.realpath(os.path.join(gitdir, back)) != workspace:
        raise UntrustedError(
            f".git leads to {gitdir}, whose core.worktree does not name this workspace"
            f" (git -C {workspace} config core.worktree {workspace} makes it so)"
        )
    return gitdir, gitdir, "submodule"


def _settings(config: str) -> tuple[gitconfig.Setting, ...]:
    if _kind(config) == "absent":
        return ()
    try:
        return gitconfig.parse(_read(config, gitconfig.CONFIG_BYTES))
    except gitconfig.ConfigError as error:
        raise UntrustedError(f"{config} cannot be understood: {error}") from error


def _gathered(workspace: str, home: str, hooks_path: str, where: tuple[str, str, str]) -> GitLayout:
    gitdir, commondir, sort = where
    roots = tuple(_git_dirs(commondir))
    guards: dict[str, Guarded] = {}
    if sort not in ("folder", "bare"):
        _add(guards, iter((Guarded(f"{workspace}/.git", "file", _REDIRECT),)))
    for path, is_worktree in roots:
        for place in ("gitdir",) if is_worktree else ("commondir", "gitdir"):
            _add(guards, _of_place(path, place, beyond=workspace))
        for name in ("config", "config.worktree"):
            base = workspace if path in (gitdir, commondir) else ""
            _add(guards, of_config(workspace, home, f"{path}/{name}", base))
    if hooks_path and not any(guard.reason == _HOOKS for guard in guards.values()):
        _add(guards, of_hooks(workspace, home, hooks_path, workspace))
    present = tuple(guard for guard in guards.values() if guard.kind != "absent")
    absent = tuple(guard for guard in guards.values() if guard.kind == "absent")
    return GitLayout(gitdir, commondir, sort, present, absent, tuple(path for path, _ in roots))


def _add(guards: dict[str, Guarded], found: Iterator[Guarded]) -> None:
    for guard in found:
        guards.setdefault(guard.path, guard)


def _git_dirs(commondir: str) -> Iterator[tuple[str, bool]]:
    """Each git dir of a repository and whether it is that of a linked worktree: itself, its worktrees, all
    their submodules.
    """
    waiting = [(commondir, False, 0)]
    count = 0
    while waiting:
        path, is_worktree, depth = waiting.pop()
        is_git_dir = is_worktree or depth == 0 or _kind(f"{path}/HEAD") != "absent"
        if is_git_dir:
            count += 1
            yield path, is_worktree
            if not is_worktree:
                waiting += [(below, True, depth) for below in _folders(f"{path}/worktrees")]
            below_here = _folders(f"{path}/modules")
        else:
            below_here = _folders(path)
        waiting += [(below, False, depth + 1) for below in below_here]
        if count > REPOSITORIES or len(waiting) > REPOSITORIES or depth > MODULE_DEPTH:
            raise UntrustedError(
                f"more submodules and worktrees beneath {commondir} than are looked at ({REPOSITORIES})"
            )


def _folders(path: str) -> list[str]:
    if _kind(path) != "folder":
        return []
    with os.scandir(path) as found:
        return [f"{path}/{entry.name}" for entry in found if entry.is_dir(follow_symlinks=False)]


def _of_place(gitdir: str, place: str, beyond: str) -> Iterator[Guarded]:
    """The table's rows for one git dir. A part that is a symlink is guarded itself, and where it leads within
    `beyond` too.
    """
    listings: dict[str, list[str]] = {}
    for folder in protected.folders(place):
        path = f"{gitdir}/{folder}" if folder else gitdir
        kind = _kind(path)
        if kind == "folder":
            listings[folder] = os.listdir(path)
        elif kind == "symlink":
            yield Guarded(path, kind, "what it leads to would be read as part of the git dir")
    present, absent = protected.split(place, listings)
    for name, row in present:
        yield _present(f"{gitdir}/{name}", row)
        if _kind(f"{gitdir}/{name}") == "symlink":
            yield from _guards(beyond, f"{gitdir}/{name}", row.reason)
    for row in absent:
        yield Guarded(f"{gitdir}/{row.name}", "absent", row.reason)


def _present(path: str, row: protected.Protected) -> Guarded:
    """What is there: held is a regular file under its very name, of which a copy can be made."""
    kind = _kind(path)
    can_be = kind == "file" and path.endswith(f"/{row.name}") and os.access(path, os.R_OK)
    return Guarded(path, kind, row.reason, verb=row.verb if can_be else "read")


_HOOKS: Final = "git runs what is in it (core.hooksPath)"
_PROGRAM: Final = "git runs it"
_MARKS: Final = (b"hookspath", b"include", *gitprograms.MARKS)
"""What a configuration has in lower case that is worth a closer look."""
_INCLUDED: Final = "included by the repository's configuration"


def of_config(workspace: str, home: str, config: str, base: str, depth: int = 0) -> Iterator[Guarded]:
    """What a configuration makes code of in the workspace: folders of hooks, included files with theirs.

    `base`: the work tree that a relative hooksPath counts from; "" where it is a submodule's, which
    core.worktree names.
    """
    if _kind(config) not in ("file", "absent"):
        return
    try:
        content = _read(config, gitconfig.CONFIG_BYTES) if _kind(config) == "file" else b""
    except PermissionError:
        return
    lower = content.lower()
    if not any(mark in lower for mark in _MARKS):
        return
    settings = _settings(config)
    if not base:
        tree = next(
            (item.value for item in reversed(settings) if item.key == "core.worktree" and item.value), ""
        )
        base = os.path.realpath(os.path.join(os.path.dirname(config), tree)) if tree else workspace
    for item in settings:
        if item.key == "core.hookspath" and item.value:
            yield from _guards(workspace, _expand(_native(item.value), base, home), _HOOKS)
        elif item.key in ("include.path", "includeif.path") and item.value:
            path = _expand(_native(item.value), os.path.dirname(config), home)
            yield from _guards(workspace, path, _INCLUDED)
            if depth < INCLUDE_DEPTH:
                yield from of_config(workspace, home, os.path.realpath(path), base, depth + 1)
        else:
            yield from _of_programs(workspace, home, item, base)


def of_hooks(workspace: str, home: str, hooks_path: str, base: str) -> Iterator[Guarded]:
    """What the person's own core.hooksPath leads to from a work tree."""
    return _guards(workspace, _expand(hooks_path, base, home), _HOOKS)


def _of_programs(workspace: str, home: str, setting: gitconfig.Setting, base: str) -> Iterator[Guarded]:
    """The files of the workspace, there or not, that are words of a command: git runs it in the work tree."""
    for word in gitprograms.paths(setting):
        path = _plain(_expand(word, base, home))
        real = os.path.realpath(path)
        there = _kind(path) in ("file", "symlink") and _kind(real) != "folder"
        if workspace not in (path, real) and (there or ("/" in word and _kind(path) == "absent")):
            yield from _guards(workspace, path, f"{_PROGRAM} ({setting.key})")


def _native(value: str) -> str:
    """A path of a configuration, read as latin-1, in the form of file names."""
    return os.fsdecode(value.encode("latin-1"))


def _expand(path: str, base: str, home: str) -> str:
    if path.startswith("~/") and home:
        path = home + path[1:]
    return os.path.join(base, path)


def _guards(workspace: str, path: str, reason: str) -> Iterator[Guarded]:
    """Guards for a path when it lies in the workspace, or leads there: the first symlink on the way, and
    where it ends.

    Raises UntrustedError when that is the workspace itself, which cannot be read-only.
    """
    plain = _plain(path)
    real = os.path.realpath(path)
    if workspace in (plain, real):
        raise UntrustedError(f"{reason}: that is the workspace itself")
    if beneath(plain, workspace):
        here = workspace
        for part in plain[len(workspace) :].strip("/").split("/"):
            here = f"{here}/{part}"
            if _kind(here) == "symlink":
                yield Guarded(here, "symlink", reason)
                break
    if beneath(real, workspace):
        yield Guarded(real, _kind(real), reason)
