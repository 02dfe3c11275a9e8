"""The table of files that some program runs by itself."""

import pytest

from jail.plan import autoexec
from jail.plan.autoexec import AUTO_EXEC, AutoExec
from jail.plan.protected import PROTECTED, canonical


def by_path(path: str) -> AutoExec | None:
    """The row that speaks of a relative path, asked as those who walk a tree ask."""
    *folders, name = (canonical(part) for part in path.split("/"))
    above = autoexec.TOP
    for folder in folders:
        above = autoexec.enter(above, folder)
    return autoexec.row_of(above, name)


@pytest.mark.parametrize("row", AUTO_EXEC, ids=lambda row: row.pattern)
def test_each_pattern_has_a_reason_and_finds_what_it_names(row: AutoExec) -> None:
    example = row.pattern.replace("*", "x", 1) if row.pattern.endswith("*") else row.pattern.replace("*", "x")
    assert row.reason
    found = by_path(f"deep/down/{example}")
    assert found is not None, example
    assert by_path(example.upper()) is not None, "case is no difference on some file systems"


@pytest.mark.parametrize("row", AUTO_EXEC, ids=lambda row: row.pattern)
def test_every_name_that_a_row_ends_in_is_spoken_of(row: AutoExec) -> None:
    """The name of the file, or of the folder whose contents the row speaks of: no walk may pass it over."""
    last = row.pattern.removesuffix("/*").rpartition("/")[2]
    assert autoexec.is_spoken_of(canonical(last.replace("*", "x")))


def test_control_ordinary_names_are_not_spoken_of() -> None:
    assert not any(map(autoexec.is_spoken_of, ("x", "main.c", "x.", ".x", "0123abcd")))


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("Makefile", "Makefile"),
        ("a/b/conftest.py", "conftest.py"),
        ("lib/python3/site-packages/evil.pth", "*.pth"),
        ("pkg/.vscode/tasks.json", ".vscode/*"),
        ("pkg/.vscode/deep/tasks.json", ".vscode/*"),
        (".github/workflows/ci.yml", ".github/workflows/*"),
        ("vendor/x/.git/hooks/post-checkout", ".git/hooks/*"),
        ("vendor/x/.git/config", ".git/config"),
        (".git/rebase-merge/git-rebase-todo", "git-rebase-todo"),
        (".vscode", None),
        ("workflows/ci.yml", None),
        (".github/ci.yml", None),
        ("docker-compose.yml", "docker-compose*.yml"),
        ("docker-compose.override.yml", "docker-compose*.yml"),
        ("Compose-DEV.YAML", "compose*.yaml"),
        ("docker-compose.py", None),
        ("composition.yml", None),
        ("compose.yml.bak", None),
        ("eslint.config.mjs", "eslint.config.*"),
        ("eslint.config", None),
        ("x/__pycache__/sitecustomize.cpython-312.pyc", "sitecustomize.*"),
        ("sitecustomize/__init__.py", "sitecustomize/*"),
        (".env", ".env"),
        (".environment", None),
        ("sub/.clinerules/x.md", ".clinerules/*"),
        ("sub/.continue/config.yaml", ".continue/*"),
        ("sub/.github/instructions/a.md", ".github/instructions/*"),
        ("conda/activate.d/x.sh", None),
        ("x/etc/conda/activate.d/x.sh", "etc/conda/activate.d/*"),
        ("Makefile.am.txt", None),
        ("not-a-Makefile", None),
        ("pth", None),
        ("config", None),
        (".git/config.txt", None),
        ("src/main.py", None),
    ],
)
def test_which_paths_run_by_themselves(path: str, pattern: str | None) -> None:
    row = by_path(path)
    assert (row.pattern if row else None) == pattern


def test_what_a_folder_hands_down_does_not_grow_with_its_depth() -> None:
    here = late = autoexec.TOP
    for level in range(1000):
        here = autoexec.enter(here, f"{level}")
        late = autoexec.enter(late, f"{level}") if level > 990 else late
    assert here == late


def test_all_beneath_a_named_folder_is_spoken_of_and_not_the_folder_itself() -> None:
    assert autoexec.row_of(autoexec.TOP, ".vscode") is None
    here = autoexec.enter(autoexec.TOP, ".vscode")
    for _ in range(10):
        row = autoexec.row_of(here, "file")
        assert row is not None
        assert row.pattern == ".vscode/*"
        here = autoexec.enter(here, "folder")


def test_a_name_with_a_star_has_letters_enough_before_it_to_be_found_by() -> None:
    starred = [
        row.pattern
        for row in AUTO_EXEC
        if "*" in row.pattern and not row.pattern.endswith("/*") and not row.pattern.startswith("*.")
    ]
    assert starred
    assert all(pattern.index("*") >= 4 and pattern.count("*") == 1 for pattern in starred)
    assert not any("/" in pattern for pattern in starred)


def test_what_is_protected_in_the_root_of_a_workspace_counts_in_each_folder() -> None:
    """Somebody opens that folder alone, and it is the root then."""
    own = (".git", ".agent", "RESEARCH.md")
    for row in PROTECTED:
        if row.place == "workspace" and row.name not in own:
            paths = [f"deep/down/{row.name}{below}" for below in ("", "/x")]
            assert any(map(by_path, paths[row.kind == "folder" :])), row.name
    assert [by_path(f"docs/{name}") for name in own] == [None] * 3


def test_no_pattern_stands_twice() -> None:
    patterns = [row.pattern for row in AUTO_EXEC]
    assert len(patterns) == len(set(patterns))


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        # refused: what runs without being called, and what the next agent obeys
        *((path, "refused") for path in ("x/.git/hooks/post-checkout", ".husky/pre-commit", ".githooks/x")),
        *(
            (path, "refused")
            for path in (".git/config", "sub/.git/commondir", ".gitconfig", "info/attributes")
        ),
        *((path, "refused") for path in (".venv/pyvenv.cfg", ".venv/bin/activate", "e/Scripts/Activate.ps1")),
        *((path, "refused") for path in ("CLAUDE.md", "pkg/AGENTS.md", ".claude/settings.json", ".mcp.json")),
        *(
            (path, "refused")
            for path in (".envrc.local", ".direnv/flake-profile-a1.rc", ".ssh/config", ".config/git/config")
        ),
        *((path, "refused") for path in (".hg/hgrc", ".jj/repo/config.toml", ".git-hooks/x", ".lefthook/x")),
        *((path, "refused") for path in ("sub/.clinerules", "sub/.kiro/x", "sub/.jail.toml", ".agents/x")),
        # warned: the day's work, which runs when somebody builds, tests, opens or pushes
        *((path, "warned") for path in ("Makefile", ".envrc", "conftest.py", "site-packages/x.pth")),
        *((path, "warned") for path in (".github/workflows/ci.yml", ".gitlab-ci.yml", "package.json")),
        *((path, "warned") for path in (".vscode/tasks.json", ".idea/x", ".pre-commit-config.yaml")),
        *((path, "warned") for path in (".gitattributes", ".gitmodules", "git-rebase-todo", "BISECT_RUN")),
        *((path, "warned") for path in (".git/rebase-merge/strategy", ".git/remotes/x", ".git/rr-cache/a/b")),
        *((path, "warned") for path in (".direnv/python-3.12/bin/x", ".env", "flake.nix", ".Rprofile")),
        *(
            (path, "warned")
            for path in ("lefthook-local.yml", ".lintstagedrc.mjs", "Dockerfile.dev", ".bzl.bzl")
        ),
        *((path, "warned") for path in (".devcontainer/x", "sub/.devcontainer.json")),
    ],
)
def test_the_tier_of_a_path(path: str, tier: str) -> None:
    row = by_path(path)
    assert row is not None
    assert row.tier == tier
