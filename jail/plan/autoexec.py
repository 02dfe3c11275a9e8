"""The table of files that some program runs by itself: what a person should see first after a run.

Rule: a name is in the table when an ordinary action on the host (entering, opening, building, testing,
installing, committing, pushing) makes a program run what the file says. They are part of the work and may be
written inside; what changed is listed at the end. Pure, and compared as `jail.plan.protected` compares.
Who walks a tree carries a `Within` from each folder to those in it: a question then costs the same at any
depth.
"""

from jail.light import Final, NamedTuple
from jail.plan.protected import PROTECTED, canonical

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

    `pattern`: a name anywhere ("Makefile"), a path ("bin/activate"), an ending ("*.pth"), a name with one
    `*` in it or at its end ("compose*.yml"), or all beneath a folder (".github/workflows/*"); `tier`: WARNED
    or REFUSED; `uncalled`: it runs with every start of a program, whoever starts it for whatever, so it is
    never delivered unasked.
    """

    pattern: str
    reason: str
    tier: str = WARNED
    uncalled: bool = False


def _rows(reason: str, patterns: str, tier: str = WARNED, *, uncalled: bool = False) -> tuple[AutoExec, ...]:
    return tuple(AutoExec(pattern, reason, tier, uncalled) for pattern in patterns.split())


_ROWS: Final[tuple[AutoExec, ...]] = (
    *_rows("make runs it", "Makefile GNUmakefile *.mk BSDmakefile"),
    *_rows(
        "the task runner runs it",
        "justfile .justfile Taskfile.yml Taskfile.yaml Rakefile noxfile.py tox.ini dodo.py tasks.py"
        " Vagrantfile Tiltfile",
    ),
    *_rows(
        "the build runs it",
        "CMakeLists.txt meson.build SConstruct wscript build.rs build.gradle build.gradle.kts",
    ),
    *_rows(
        "the build runs it",
        "settings.gradle gradlew pom.xml BUILD.bazel WORKSPACE configure configure.ac binding.gyp *.cmake"
        " CMakePresets.json CMakeUserPresets.json BUILD *.bzl MODULE.bazel"
        " WORKSPACE.bazel .bazelrc tools/bazel",
    ),
    *_rows(
        "the build runs it",
        "mvnw mvnw.cmd .mvn/* gradle/wrapper/* gradle.properties gradlew.bat settings.gradle.kts flake.nix"
        " shell.nix default.nix devenv.nix",
    ),
    *_rows("cargo takes runner, linker and wrapper from it", ".cargo/* rust-toolchain rust-toolchain.toml"),
    *_rows("npm, yarn and pnpm run its scripts", "package.json"),
    *_rows(
        "the package manager takes registries, scripts or plugins from it",
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs",
    ),
    *_rows(
        "the package manager takes registries, scripts or plugins from it",
        ".yarn/* pnpm-workspace.yaml bunfig.toml pip.conf uv.toml .pypirc Gemfile composer.json deno.json"
        " deno.jsonc",
    ),
    *_rows("node runs it before anything of yarn's", ".pnp.cjs .pnp.loader.mjs"),
    *_rows("pytest imports it", "conftest.py pytest.ini conftest*.pyc conftest*.so"),
    *_rows(
        "python runs it at each start",
        "*.pth sitecustomize.* usercustomize.* sitecustomize/* usercustomize/*",
        uncalled=True,
    ),
    *_rows(
        "a debugger or an interpreter runs it at its start",
        ".Rprofile .Renviron .irbrc .pryrc .pdbrc .gdbinit .lldbinit .ghci .iex.exs .psqlrc .sqliterc",
    ),
    *_rows("python takes its home and its packages from it", "pyvenv.cfg *._pth pybuilddir.txt", REFUSED),
    *_rows(
        "a person's shell runs it on entering the environment",
        "bin/activate bin/activate.csh bin/activate.fish bin/activate.nu bin/activate.ps1 bin/activate.xsh"
        " bin/activate.bat bin/activate_this.py bin/deactivate.nu Scripts/activate Scripts/activate.bat"
        " Scripts/activate.fish Scripts/activate.nu Scripts/activate.ps1 Scripts/activate.xsh"
        " Scripts/activate_this.py etc/conda/activate.d/* etc/conda/deactivate.d/*",
        REFUSED,
    ),
    *_rows("pip and build run it, or the back end that it names", "setup.py setup.cfg pyproject.toml"),
    *_rows(
        "direnv, mise or asdf runs it on entering the folder",
        ".envrc mise.toml .mise.toml .mise/* .tool-versions mise.local.toml .mise.local.toml mise/*"
        " .config/mise/* .config/mise.toml .direnv/*",
    ),
    *_rows(
        "direnv runs it on entering the folder and asks nobody again",
        ".envrc.local flake-profile*.rc nix-profile*.rc",
        REFUSED,
    ),
    *_rows("its variables reach what is run in the folder", ".env .env.local"),
    *_rows(
        "a shell runs it at start",
        ".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .bash_logout .bash_aliases"
        " .zlogin .zlogout .config/fish/* .inputrc .tmux.conf",
    ),
    *_rows("a folder that PATH leads into, where it is a person's", ".local/bin/*"),
    *_rows("the session of a person runs it", ".config/systemd/* .config/autostart/*", REFUSED),
    *_rows("ssh obeys it, and who may log in with it", ".ssh/*", REFUSED),
    *_rows("git obeys it when it is a person's or an included one", ".gitconfig .config/git/*", REFUSED),
    *_rows(
        "its keys make hg or jj run programs", ".hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml", REFUSED
    ),
    *_rows("arc loads the libraries that it names", ".arcconfig"),
    *_rows(
        "the editor runs its tasks and settings",
        ".vscode/* .idea/* .zed/* .fleet/* *.code-workspace .exrc .nvim.lua .vimrc .nvimrc .lvimrc"
        " .helix/* .vs/* .nova/*",
    ),
    *_rows("the editor runs its tasks and settings", ".dir-locals.el .dir-locals-2.el"),
    *_rows(
        "the editor's checker runs it, or what it names",
        "rust-analyzer.toml .rubocop.yml .solargraph.yml eslint.config.* .eslintrc .eslintrc.*"
        " prettier.config.* .prettierrc .prettierrc.*",
    ),
    *_rows(
        "hooks of git",
        ".husky/* .githooks/* .git-hooks/* .hooks/* .lefthook/* .lefthook-local/*",
        REFUSED,
    ),
    *_rows(
        "says what hooks of git run",
        ".pre-commit-config.yaml .pre-commit-config.yml lefthook.* .lefthook.* lefthook-local.*"
        " .lefthook-local.*",
    ),
    *_rows(
        "says what hooks of git run",
        ".lintstagedrc .lintstagedrc.* lint-staged.config.* .overcommit.yml .commitlintrc .commitlintrc.*"
        " commitlint.config.* .simple-git-hooks.*",
    ),
    *_rows(
        "CI runs it",
        ".github/workflows/* .github/actions/* .gitlab-ci.yml Jenkinsfile .circleci/* .travis.yml",
    ),
    *_rows(
        "CI runs it",
        "azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .woodpecker.yml appveyor.yml action.yml"
        " action.yaml .gitlab/* .buildkite/* .cirrus.yml .semaphore/*",
    ),
    *_rows(
        "docker runs it",
        "Dockerfile Containerfile Dockerfile.* Containerfile.* *.dockerfile docker-compose*.yml"
        " docker-compose*.yaml compose*.yml compose*.yaml",
    ),
    *_rows(
        "commands that an editor runs on the host and in containers", ".devcontainer/* .devcontainer.json"
    ),
    *_rows("selects drivers that git runs", ".gitattributes"),
    *_rows("selects drivers that git runs", "info/attributes", REFUSED),
    *_rows("names repositories that git fetches", ".gitmodules"),
    *_rows("git runs its exec lines when the rebase goes on", TODO),
    *_rows(
        "git goes on with it, and runs what it names",
        ".git/rebase-merge/* .git/rebase-apply/* .git/sequencer/* .git/rr-cache/* BISECT_*",
    ),
    *_rows("git fetches from it and pushes to it", ".git/remotes/* .git/branches/*"),
    *_rows("git runs what is in it", ".git/hooks/*", REFUSED),
    *_rows("its keys make git run programs", ".git/config .git/config.worktree .git/commondir", REFUSED),
    *_rows(
        "instructions or settings of an agent",
        "CLAUDE.md CLAUDE.local.md AGENTS.md GEMINI.md .mcp.json .claude/* .codex/*",
        REFUSED,
    ),
    *_rows(
        "instructions or settings of an agent",
        ".cursor/* .gemini/* .cursorrules .windsurfrules .agents/* .kilocode/* .kilocodemodes .kilocoderules",
        REFUSED,
    ),
    *_rows(
        "instructions that the next agent session obeys",
        ".clinerules .clinerules/* .roorules .roorules/* .rules .rules/*",
        REFUSED,
    ),
)


_ROOT_ALONE: Final = frozenset([".git", ".agent", "RESEARCH.md"])
"""What is protected in the root of a workspace, and a name like any other in a folder of it."""


def _of_workspaces() -> tuple[AutoExec, ...]:
    """What is protected in the root of a workspace counts in any folder: somebody opens that one alone."""
    known = {row.pattern for row in _ROWS}
    patterns = {
        f"{row.name}/*" if row.kind == "folder" else row.name: row.reason
        for row in PROTECTED
        if row.place == "workspace" and row.name not in _ROOT_ALONE
    }
    return tuple(
        AutoExec(name, why, REFUSED)
        for name, why in patterns.items()
        if name not in known and f"{name}/*" not in known
    )


AUTO_EXEC: Final[tuple[AutoExec, ...]] = (*_ROWS, *_of_workspaces())


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
    """The table, to be asked: names, endings, and names with a `*` by their first letters, parted at it;
    paths, and folders with all beneath them, by their last component.
    """

    names: dict[str, AutoExec]
    endings: dict[str, AutoExec]
    starred: dict[str, list[tuple[str, str, AutoExec]]]
    paths: _ByLast
    folders: _ByLast


_LETTERS: Final = 4
"""How many a name with a `*` has before it, at least: a name is compared with few of them."""


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
        elif "*" in parts[0]:
            head, _, tail = parts[0].partition("*")
            table.starred.setdefault(head[:_LETTERS], []).append((head, tail, row))
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
    return (
        name in _SPOKEN_OF
        or name[:_LETTERS] in _TABLE.starred
        or ("." in name and name[name.rindex(".") :] in _TABLE.endings)
    )


def enter(above: Within, name: str) -> Within:
    """What the folder `name`, a canonical name in the folder `above`, says of the names in it."""
    parts = (*above.tail, name)
    return Within(parts[-_TAIL:], _graver(above.row, _ending(_TABLE.folders, parts)))


def row_of(above: Within, name: str) -> AutoExec | None:
    """The gravest row that speaks of a canonical name in the folder `above`, by the name wherever it lies, or
    by the folders it lies in; of two alike the one by the name. None where there is none.
    """
    found = _TABLE.names.get(name) or _starred(name)
    if found is None and "." in name:
        found = _TABLE.endings.get(name[name.rindex(".") :])
    return _graver(_graver(found, above.row), _ending(_TABLE.paths, (*above.tail, name)))


def _starred(name: str) -> AutoExec | None:
    for head, tail, row in _TABLE.starred.get(name[:_LETTERS], ()):
        if len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail):
            return row
    return None


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
