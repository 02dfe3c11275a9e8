"""The one table of protected paths, and the table of files that some program runs by itself.

Rule: mounts, sweep, report and tests read these tables and nothing else, so that a name is protected
everywhere or nowhere. Pure: no question to the host. Names are compared by `canonical`, as the most forgiving
file system would (ext4 casefold, vfat, NTFS, HFS+), since the workspace may lie on one or be cloned to one;
paths are compared component by component, never by prefix of text.

What is not in the table, and why: `.git/branches` and `.git/remotes` give only URLs, as `remote.*.url` in the
config does, which is delivered anyway; `.gitattributes` is part of the work (it selects drivers, the config
defines them) and is listed at the end; `rebase-merge/git-rebase-todo` must be written for a rebase to work,
and is listed at the end; `HEAD`, `index`, `refs` and `objects` are the work itself.
"""

import unicodedata

from jail.errors import IGNORABLE
from jail.light import Collection, Final, Mapping, NamedTuple


class Protected(NamedTuple):
    """One protected path.

    `place`: "workspace" (its root), "commondir" (what all worktrees of a repository share) or "gitdir" (what
    each has). `name`: relative to the place, components joined by "/". `kind`: "file", "folder" or "any",
    what is expected there; all kinds are protected, except that a `.git` folder is protected by the rows of
    its parts. `verb`: as in the policy.
    """

    place: str
    name: str
    kind: str
    verb: str
    reason: str


def _rows(place: str, kind: str, reason: str, names: str, verb: str = "read") -> tuple[Protected, ...]:
    return tuple(Protected(place, name, kind, verb, reason) for name in names.split())


_RESEARCH: Final = "record of findings, read as fact by later sessions"
_MEMORY: Final = "instructions that the next agent session obeys"
_SETTINGS: Final = "settings, hooks or permissions of an agent"
_TOOLS: Final = "tools that an agent starts by itself"

PROTECTED: Final[tuple[Protected, ...]] = (
    *_rows("workspace", "file", _RESEARCH, "RESEARCH.md"),
    *_rows("workspace", "folder", "state of the loop and of its agents", ".agent"),
    *_rows("workspace", "file", "policy of jail for this project", ".jail.toml"),
    *_rows("workspace", "file", "as a file or link it sends git to another git dir", ".git"),
    *_rows(
        "workspace",
        "file",
        _MEMORY,
        "CLAUDE.md CLAUDE.local.md AGENTS.md AGENTS.override.md GEMINI.md QWEN.md CRUSH.md",
    ),
    *_rows(
        "workspace",
        "file",
        _MEMORY,
        "WARP.md .goosehints .windsurfrules .cursorrules .clinerules .roorules .rules",
    ),
    *_rows("workspace", "file", _MEMORY, ".github/copilot-instructions.md"),
    *_rows("workspace", "folder", _MEMORY, ".github/instructions .github/prompts"),
    *_rows("workspace", "folder", _SETTINGS, ".github/agents .github/hooks"),
    *_rows(
        "workspace",
        "folder",
        _SETTINGS,
        ".claude .codex .gemini .cursor .windsurf .opencode .qwen .crush .continue",
    ),
    *_rows("workspace", "folder", _SETTINGS, ".roo .kiro .amazonq .junie .augment .trae .factory"),
    *_rows(
        "workspace",
        "file",
        _SETTINGS,
        ".roomodes .aider.conf.yml .aider.model.settings.yml opencode.json opencode.jsonc",
    ),
    *_rows("workspace", "file", _SETTINGS, "crush.json .crush.json"),
    *_rows(
        "workspace",
        "file",
        "what an agent may not read or index",
        ".cursorignore .cursorindexingignore .aiderignore",
    ),
    *_rows("workspace", "file", _TOOLS, ".mcp.json"),
    *_rows(
        "workspace",
        "folder",
        "tasks and settings that an editor runs on opening the folder",
        ".vscode .idea .zed .fleet",
    ),
    *_rows("workspace", "file", "direnv runs it on entering the folder", ".envrc"),
    *_rows(
        "workspace",
        "any",
        "commands that an editor runs on the host and in containers",
        ".devcontainer .devcontainer.json",
    ),
    *_rows("commondir", "folder", "git runs what is in it", "hooks"),
    *_rows("commondir", "file", "its keys make git run programs", "config", verb="hold"),
    *_rows("commondir", "file", "selects drivers of the person's git, unseen by git diff", "info/attributes"),
    *_rows("commondir", "file", "hides new files from git status", "info/exclude"),
    *_rows("commondir", "file", "makes git read objects of another folder", "objects/info/alternates"),
    *_rows("gitdir", "file", "its keys make git run programs", "config.worktree"),
    *_rows("gitdir", "file", "sends git to another config and other hooks", "commondir"),
    *_rows("gitdir", "file", "says which folder this git dir belongs to", "gitdir"),
)

PLACES: Final = ("workspace", "commondir", "gitdir")


def canonical(name: str) -> str:
    """The form in which two names are one for some file system or for git.

    Canonical caseless matching of Unicode (chapter 3.13, D145), without default-ignorable characters (as ext4
    casefold, fs/unicode, and HFS+, git's utf8.c, do) and without trailing dots and spaces (vfat and NTFS drop
    them; git's path.c, is_ntfs_dotgit).
    """
    if not name.isascii():
        name = "".join(char for char in name if ord(char) not in IGNORABLE)
        name = unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
        name = unicodedata.normalize("NFC", name.casefold())
    name = name.lower()
    folded = name.rstrip(" .") or name
    return _SHORT_NAMES.get(folded, folded)


_SHORT_NAMES: Final = {"git~1": ".git"}
"""The 8.3 name that vfat and NTFS give to `.git` (git's path.c)."""


def components(path: str) -> tuple[str, ...]:
    """`path` as canonical components; empty ones and "." are dropped, ".." stays as it is and matches
    nothing.
    """
    return tuple(
        canonical(part) if part != ".." else part for part in path.split("/") if part not in ("", ".")
    )


_BY_PLACE: Final = {
    place: {components(row.name): row for row in PROTECTED if row.place == place} for place in PLACES
}


def is_protected_name(name: str) -> Protected | None:
    """The row of one name in the root of the workspace, or None."""
    return _BY_PLACE["workspace"].get((canonical(name),))


def row_of(place: str, parts: tuple[str, ...]) -> Protected | None:
    """The row of `place` that names the path of these canonical components, or a folder that it lies in."""
    rows = _BY_PLACE[place]
    found = (rows.get(parts[:depth]) for depth in range(1, min(len(parts), DEEPEST) + 1))
    return next((row for row in found if row is not None), None)


DEEPEST: Final = max(len(parts) for rows in _BY_PLACE.values() for parts in rows)
"""Components of the longest path of the table."""


def folders(place: str) -> tuple[str, ...]:
    """The folders, relative to the place, whose listings `split` asks for; "" is the place itself."""
    names = [row.name.split("/") for row in PROTECTED if row.place == place]
    return tuple(sorted({"/".join(parts[:depth]) for parts in names for depth in range(len(parts))}))


class Split(NamedTuple):
    """The rows of a place against its listings: `present` (path as spelt there, row) and `absent` rows."""

    present: tuple[tuple[str, Protected], ...]
    absent: tuple[Protected, ...]


def split(place: str, listings: Mapping[str, Collection[str]]) -> Split:
    """Which rows of `place` exist. `listings`: for each of `folders(place)` that is a folder, the names in
    it.

    A name in another spelling (`claude.md`) counts as present under that spelling, and its row as absent too:
    the spelling of the table could still be created beside it.
    """
    spelt: dict[tuple[str, ...], list[str]] = {}
    exact: set[str] = set()
    for folder, names in listings.items():
        for name in names:
            path = f"{folder}/{name}" if folder else name
            exact.add(path)
            spelt.setdefault(components(path), []).append(path)
    present = tuple(
        (path, row) for parts, row in _BY_PLACE[place].items() for path in sorted(spelt.get(parts, ()))
    )
    return Split(present, tuple(row for row in _BY_PLACE[place].values() if row.name not in exact))
