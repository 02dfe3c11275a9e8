"""The table of files that some program runs by itself: what a person should see first after a run.

Rule: a name is in the table when an ordinary action on the host (entering, opening, building, testing,
installing, committing, pushing) makes a program run what the file says. They are part of the work and may be
written inside; what changed is listed at the end. Pure, and compared as `jail.plan.protected` compares.
Who walks a tree carries a `Within` from each folder to those in it: a question then costs the same at any
depth.
"""

from jail.light import Final, NamedTuple
from jail.plan.protected import canonical

NEVER: Final = "never"
"""The word for what no row says: that a change cannot be applied at all."""
WARNED: Final = "warned"
REFUSED: Final = "refused"
"""How a person meets a change of such a file: with a warning, or not before it is named, word for word.
Refused is what nobody expects in the day's work and what runs without being called: hooks, what sends git or
python elsewhere, and what the next agent obeys.
"""


TODO: Final = "git-rebase-todo"


class AutoExec(NamedTuple):
    """One kind of file that runs by itself.

    `pattern`: a name anywhere ("Makefile"), with any suffixes ("sitecustomize.*"), an ending ("*.pth"), or
    all beneath a folder (".github/workflows/*", ".git/hooks/*"); `tier`: WARNED or REFUSED; `uncalled`: it
    runs with every start of a program, whoever starts it for whatever, so it is never delivered unasked.
    """

    pattern: str
    reason: str
    tier: str = WARNED
    uncalled: bool = False


def _rows(reason: str, patterns: str, tier: str = WARNED, *, uncalled: bool = False) -> tuple[AutoExec, ...]:
    return tuple(AutoExec(pattern, reason, tier, uncalled) for pattern in patterns.split())


AUTO_EXEC: Final[tuple[AutoExec, ...]] = (
    *_rows("make runs it", "Makefile GNUmakefile *.mk BSDmakefile"),
    *_rows(
        "the task runner runs it",
        "justfile .justfile Taskfile.yml Taskfile.yaml Rakefile noxfile.py tox.ini dodo.py tasks.py",
    ),
    *_rows(
        "the build runs it",
        "CMakeLists.txt meson.build SConstruct wscript build.rs build.gradle build.gradle.kts",
    ),
    *_rows(
        "the build runs it",
        "settings.gradle gradlew pom.xml BUILD.bazel WORKSPACE configure configure.ac binding.gyp",
    ),
    *_rows("cargo takes runner, linker and wrapper from it", ".cargo/*"),
    *_rows("npm, yarn and pnpm run its scripts", "package.json"),
    *_rows(
        "the package manager takes registries, scripts or plugins from it",
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs",
    ),
    *_rows(
        "the package manager takes registries, scripts or plugins from it",
        ".yarn/* pnpm-workspace.yaml bunfig.toml pip.conf",
    ),
    *_rows("pytest imports it", "conftest.py pytest.ini"),
    *_rows(
        "python runs it at each start",
        "*.pth sitecustomize.* usercustomize.* sitecustomize/* usercustomize/*",
        uncalled=True,
    ),
    *_rows("python takes its home and its packages from it", "pyvenv.cfg", REFUSED),
    *_rows(
        "a person's shell runs it on entering the environment",
        "bin/activate bin/activate.csh bin/activate.fish bin/activate.nu bin/activate.ps1 bin/activate.xsh"
        " bin/activate.bat bin/activate_this.py bin/deactivate.nu Scripts/activate Scripts/activate.bat"
        " Scripts/activate.fish Scripts/activate.nu Scripts/activate.ps1 Scripts/activate.xsh"
        " Scripts/activate_this.py",
        REFUSED,
    ),
    *_rows("pip and build run it, or the back end that it names", "setup.py setup.cfg pyproject.toml"),
    *_rows(
        "direnv, mise or asdf runs it on entering the folder",
        ".envrc mise.toml .mise.toml .mise/* .tool-versions",
    ),
    *_rows(
        "a shell runs it at start",
        ".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .bash_logout",
    ),
    *_rows("git obeys it when it is a person's or an included one", ".gitconfig", REFUSED),
    *_rows(
        "the editor runs its tasks and settings",
        ".vscode/* .idea/* .zed/* .fleet/* *.code-workspace .exrc .nvim.lua .vimrc",
    ),
    *_rows("the editor runs its tasks and settings", ".dir-locals.el"),
    *_rows("hooks of git", ".husky/* .githooks/*", REFUSED),
    *_rows(
        "says what hooks of git run",
        ".pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.yml lefthook.yaml",
    ),
    *_rows(
        "says what hooks of git run",
        ".lintstagedrc .lintstagedrc.json lint-staged.config.js .overcommit.yml",
    ),
    *_rows(
        "CI runs it",
        ".github/workflows/* .github/actions/* .gitlab-ci.yml Jenkinsfile .circleci/* .travis.yml",
    ),
    *_rows(
        "CI runs it",
        "azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .woodpecker.yml appveyor.yml action.yml",
    ),
    *_rows(
        "docker runs it",
        "Dockerfile Containerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml",
    ),
    *_rows(
        "commands that an editor runs on the host and in containers", ".devcontainer/* .devcontainer.json"
    ),
    *_rows("selects drivers that git runs", ".gitattributes"),
    *_rows("selects drivers that git runs", "info/attributes", REFUSED),
    *_rows("names repositories that git fetches", ".gitmodules"),
    *_rows("git runs its exec lines when the rebase goes on", TODO),
    *_rows("git runs what is in it", ".git/hooks/*", REFUSED),
    *_rows("its keys make git run programs", ".git/config .git/config.worktree .git/commondir", REFUSED),
    *_rows(
        "instructions or settings of an agent",
        "CLAUDE.md CLAUDE.local.md AGENTS.md GEMINI.md .mcp.json .claude/* .codex/*",
        REFUSED,
    ),
    *_rows(
        "instructions or settings of an agent", ".cursor/* .gemini/* .cursorrules .windsurfrules", REFUSED
    ),
)


class Within(NamedTuple):
    """What a folder says of the names in it. `tail`: the last canonical components of its path, as many as a
    pattern can need; `row`: the row that speaks of all beneath it, or None.
    """

    tail: tuple[str, ...]
    row: AutoExec | None


TOP: Final = Within((), None)
"""The folder that paths are relative to."""

_ByLast = dict[str, list[tuple[tuple[str, ...], AutoExec]]]


class _Compiled(NamedTuple):
    """The table, to be asked: names, those before the first dot, and endings; paths, and folders with all
    beneath them, by their last component.
    """

    names: dict[str, AutoExec]
    stems: dict[str, AutoExec]
    endings: dict[str, AutoExec]
    paths: _ByLast
    folders: _ByLast


def _compile() -> _Compiled:
    table = _Compiled({}, {}, {}, {}, {})
    for row in AUTO_EXEC:
        parts = tuple(canonical(part) for part in row.pattern.split("/"))
        if len(parts) > 1 and parts[-1] == "*":
            table.folders.setdefault(parts[-2], []).append((parts[:-1], row))
        elif len(parts) > 1:
            table.paths.setdefault(parts[-1], []).append((parts, row))
        elif parts[0].startswith("*."):
            table.endings[parts[0][1:]] = row
        elif parts[0].endswith(".*"):
            table.stems[parts[0][:-2]] = row
        else:
            table.names[parts[0]] = row
    return table


_TABLE: Final = _compile()
_TAIL: Final = max(
    len(parts) for rows in (*_TABLE.paths.values(), *_TABLE.folders.values()) for parts, _ in rows
)
"""Components that the longest pattern asks for."""


_SPOKEN_OF: Final = frozenset((*_TABLE.names, *_TABLE.paths, *_TABLE.folders))


def is_spoken_of(name: str) -> bool:
    """Whether a row may speak of a canonical name in a folder that no row speaks of: most names end here."""
    return name in _SPOKEN_OF or ("." in name and _by_dots(name) is not None)


def _by_dots(name: str) -> AutoExec | None:
    """The row of a name that has a dot, by what stands before the first or after the last."""
    return _TABLE.stems.get(name[: name.index(".")]) or _TABLE.endings.get(name[name.rindex(".") :])


def enter(above: Within, name: str) -> Within:
    """What the folder `name`, a canonical name in the folder `above`, says of the names in it."""
    parts = (*above.tail, name)
    return Within(parts[-_TAIL:], _graver(above.row, _ending(_TABLE.folders, parts)))


def row_of(above: Within, name: str) -> AutoExec | None:
    """The gravest row that speaks of a canonical name in the folder `above`, by the name wherever it lies, or
    by the folders it lies in; of two alike the one by the name. None where there is none.
    """
    found = _TABLE.names.get(name)
    if found is None and "." in name:
        found = _by_dots(name)
    return _graver(_graver(found, above.row), _ending(_TABLE.paths, (*above.tail, name)))


def _graver(row: AutoExec | None, other: AutoExec | None) -> AutoExec | None:
    """The graver of two, the first where they are alike."""
    if row is None or (other is not None and row.tier == WARNED and other.tier == REFUSED):
        return other
    return row


def _ending(table: _ByLast, parts: tuple[str, ...]) -> AutoExec | None:
    for pattern, row in table.get(parts[-1], ()):
        if parts[-len(pattern) :] == pattern:
            return row
    return None
