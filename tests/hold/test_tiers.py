"""The tier of a change, by its name, its kind and its content."""

import pytest

from jail.hold.change import (
    ABSENT,
    ADDED,
    DELETED,
    MODE,
    MODIFIED,
    NEVER,
    PLAIN,
    REFUSED,
    RENAMED,
    SETTINGS,
    TIME,
    TYPE,
    UNKNOWN,
    WARNED,
    Change,
)
from jail.hold.ground import Ground, Guards, guards
from jail.hold.tiers import judged, row_above
from jail.plan import autoexec
from jail.plan.held import FILE
from support.changed import FOLDER, WORKSPACE, Sides, change, file, link, met, tree


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("src/main.py", PLAIN),
        ("README.md", PLAIN),
        ("bin/tool", PLAIN),
        # warned: runs in the day's work
        *(
            (path, WARNED)
            for path in ("Makefile", "sub/GNUmakefile", "x.mk", "conftest.py", ".envrc", "a/.envrc")
        ),
        *((path, WARNED) for path in (".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", "x.pth")),
        *((path, WARNED) for path in (".vscode/tasks.json", "pkg/.vscode/tasks.json", ".idea/workspace.xml")),
        *((path, WARNED) for path in (".gitattributes", ".gitmodules", ".devcontainer/devcontainer.json")),
        # refused: hooks, what redirects, what the next agent obeys
        *((path, REFUSED) for path in (".git/hooks/pre-commit", "sub/.git/hooks/x", ".husky/pre-push")),
        *((path, REFUSED) for path in ("CLAUDE.md", "pkg/CLAUDE.md", ".claude/settings.json", "RESEARCH.md")),
        *(
            (path, REFUSED)
            for path in (".agent/state", ".agent/Makefile", ".claude/conftest.py", ".mcp.json")
        ),
        *((path, REFUSED) for path in (".jail.toml", ".github/copilot-instructions.md", ".github/hooks/x")),
        *(
            (path, REFUSED)
            for path in (".windsurf/rules", ".cursorignore", ".git", "sub/.git", "a/.jail.toml")
        ),
        *((path, REFUSED) for path in (".venv/pyvenv.cfg", ".venv/bin/activate", ".venv/bin/Activate.ps1")),
        # names as the most forgiving file system has them
        *(
            (path, REFUSED)
            for path in ("claude.md", "Research.md", ".CLAUDE/x", ".Git", ".g\u200cit", "GIT~1")
        ),
        *((path, WARNED) for path in ("MAKEFILE", "Makefile. ", ".VSCODE/x")),
        # protected in the root of the workspace only
        ("docs/RESEARCH.md", PLAIN),
        ("docs/.agent/x", PLAIN),
    ],
)
@pytest.mark.parametrize("what", [ADDED, MODIFIED])
def test_the_tier_of_a_file_by_its_path(path: str, tier: str, what: str) -> None:
    found, reason = met(change(path, what))
    assert found == tier
    assert bool(reason) == bool(tier)


@pytest.mark.parametrize(
    ("found", "tier"),
    [
        # what is gone runs no more, but what was kept from changing is kept from going
        (change("Makefile", DELETED), PLAIN),
        (change("package.json", DELETED), PLAIN),
        (change("CLAUDE.md", DELETED), REFUSED),
        (change(".git/hooks/pre-commit", DELETED), REFUSED),
        (change(".git", DELETED), REFUSED),
        (change(".git", DELETED, old=FOLDER), PLAIN),
        # a mode, a time
        (change("Makefile", MODE, new=file("old", 0o755)), PLAIN),
        (change(".git/hooks/x", MODE, new=file("old", 0o755)), REFUSED),
        (change("CLAUDE.md", MODE, new=file("old", 0o600)), REFUSED),
        (change("CLAUDE.md", TIME), PLAIN),
        # a folder is nothing yet: what is in it is judged
        *(
            (change(name, new=FOLDER), PLAIN)
            for name in (".vscode", ".claude", ".git", ".husky", ".agent", "x")
        ),
        (change(".git/hooks", new=FOLDER), PLAIN),
        (change(".git/hooks/sub", new=FOLDER), REFUSED),
        # a rename is both: a file that goes and one that comes
        (change("x", RENAMED, source="y"), PLAIN),
        (change("Makefile", RENAMED, source="y"), WARNED),
        (change("y", RENAMED, source="CLAUDE.md"), REFUSED),
        (change("CLAUDE.md", RENAMED, source="y"), REFUSED),
        (change("y", RENAMED, source="Makefile"), PLAIN),
        # another kind
        (change("Makefile", TYPE, new=FOLDER), PLAIN),
        (change(".git", TYPE, old=FOLDER), REFUSED),
    ],
)
def test_the_tier_by_what_happened(found: Change, tier: str) -> None:
    assert met(found)[0] == tier


def test_what_was_said_before_stays() -> None:
    never = change("CLAUDE.md", tier=NEVER, reason="a device")
    assert met(never) == (NEVER, "a device")
    assert met(change(".git/config", SETTINGS)) == (PLAIN, "")


@pytest.mark.parametrize(
    ("path", "target", "tier", "reason"),
    [
        ("a", "b", PLAIN, ""),
        ("a/b", "../c", PLAIN, ""),
        ("a", f"{WORKSPACE}/x", PLAIN, ""),
        ("a/b", "../../c", WARNED, "a link that leads out, to ../../c"),
        ("a", "/etc/passwd", WARNED, "a link that leads out, to /etc/passwd"),
        ("a", f"{WORKSPACE}-other", WARNED, f"a link that leads out, to {WORKSPACE}-other"),
        ("a", "x/../../../y", WARNED, "a link that leads out, to x/../../../y"),
        ("a", "", WARNED, "a link that cannot be read"),
        # in the place of a folder that something runs from
        (".husky", "x", REFUSED, "hooks of git"),
        (".vscode", "x", WARNED, "the editor runs its tasks and settings"),
        (".github/workflows", "x", WARNED, "CI runs it"),
        (".github", "x", REFUSED, "settings, hooks or permissions of an agent"),
        (".claude", "x", REFUSED, "instructions or settings of an agent"),
        (".git", "x", REFUSED, "as a file or link it sends git to another git dir"),
        ("Makefile", "x", WARNED, "make runs it"),
    ],
)
def test_links(path: str, target: str, tier: str, reason: str) -> None:
    assert met(change(path, new=link()), new={path: target}) == (tier, reason)


VENV = tree(
    f"{WORKSPACE}/.venv", "t1", [f"{WORKSPACE}/.venv/{way}" for way in ("bin", "link/bin")], "commands"
)
ALREADY = "a command that you have already, changed"


@pytest.mark.parametrize(
    ("found", "tier", "reason"),
    [
        (change("bin/tool"), PLAIN, ""),
        (change("bin/git"), REFUSED, "shadows /usr/bin/git"),
        (change("bin/Git"), REFUSED, "shadows /usr/bin/git"),
        (change("bin/git", new=link()), REFUSED, "shadows /usr/bin/git"),
        (change("bin/git", MODE, new=file("old", 0o755)), REFUSED, "shadows /usr/bin/git"),
        (change("bin/git", RENAMED, source="bin/x"), REFUSED, "shadows /usr/bin/git"),
        (change("bin/git", DELETED), PLAIN, ""),
        (change("bin/git", new=FOLDER), PLAIN, ""),
        (change("bin/sub/git"), PLAIN, ""),
        (change("lib/git"), PLAIN, ""),
        (change("bin/tool", MODIFIED, new=file("new", 0o755)), REFUSED, ALREADY),
        (change("bin/tool", MODIFIED, old=link(), new=link()), REFUSED, ALREADY),
        (change("bin/tool", TYPE, new=link()), REFUSED, ALREADY),
        (
            change("bin/data", MODIFIED, old=file("old", 0o644), new=file("new", 0o644)),
            WARNED,
            "lies in a folder of PATH",
        ),
        (change("bin/tool", MODE, new=file("old", 0o755)), PLAIN, ""),
        (change("bin", TYPE, old=FOLDER, new=link()), REFUSED, "a folder of PATH lies there"),
        (change("", TYPE, old=FOLDER, new=link()), REFUSED, "a folder of PATH lies there"),
        (change("link", DELETED, old=link()), REFUSED, "a folder of PATH lies there"),
        (change("link", TYPE, old=link(), new=FOLDER), REFUSED, "a folder of PATH lies there"),
        (change("link", RENAMED, source="x", old=link(), new=link()), REFUSED, "a folder of PATH lies there"),
        (change("x", RENAMED, source="link", old=link(), new=link()), REFUSED, "a folder of PATH lies there"),
        (change("link", new=FOLDER), PLAIN, ""),
        (change("bin", DELETED, old=FOLDER), PLAIN, ""),
        (change("link/bin/git"), REFUSED, "shadows /usr/bin/git"),
        (change("bin/activate", MODIFIED), REFUSED, "a person's shell runs it on entering the environment"),
        (change("pyvenv.cfg", MODIFIED), REFUSED, "python takes its home and its packages from it"),
        (change("lib/site-packages/x.pth"), WARNED, "python runs it at each start"),
    ],
)
def test_commands_of_a_folder_in_path(found: Change, tier: str, reason: str) -> None:
    sides = {found.path: "other"} if found.new.kind == "symlink" else {}
    assert met(found, new=sides, thing=VENV) == (tier, reason)


SITE = "lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("found", "target", "waits"),
    [
        (change(f"{SITE}/x.pth"), "", True),
        (change(f"{SITE}/x.PTH", MODIFIED), "", True),
        (change(f"{SITE}/x.pth", MODE, new=file("old", 0o644)), "", True),
        (change(f"{SITE}/x.pth", RENAMED, source=f"{SITE}/x.txt"), "", True),
        (change(f"{SITE}/x.pth", new=link()), "inside.txt", True),
        (change(f"{SITE}/sitecustomize.py"), "", True),
        (change(f"{SITE}/sitecustomize.cpython-311-x86_64-linux-gnu.so"), "", True),
        (change(f"{SITE}/usercustomize.pyc"), "", True),
        (change(f"{SITE}/sitecustomize/__init__.py"), "", True),
        (change(f"{SITE}/sitecustomize", new=link()), "inside", True),
        (change(f"{SITE}/x.pth", DELETED), "", False),
        (change(SITE, TYPE, old=FOLDER, new=link()), "/elsewhere", True),
        (change("lib/link", new=link()), "../../elsewhere", True),
        (change("lib64", new=link()), "lib", False),
        (change("bin/git", DELETED), "", True),
        (change("bin/new", RENAMED, source="bin/git"), "", True),
        (change("bin/tool", DELETED), "", False),
        (change(f"{SITE}/package/setup.py"), "", False),
        (change(f"{SITE}/package/conftest.py", MODIFIED), "", False),
        (change("package.json"), "", False),
    ],
    ids=lambda value: f"{value.what} {value.path}" if isinstance(value, Change) else "",
)
def test_what_runs_without_being_called_waits_where_the_rest_is_delivered(
    found: Change, target: str, *, waits: bool
) -> None:
    new = {found.path: target} if target else {}
    sides = Sides({}, new, VENV.path)
    ground = Ground(VENV, WORKSPACE, sides, lambda path: "/usr/bin/git" * path.endswith("/git"))
    assert judged(found, ground).waits is waits
    undelivered = ground._replace(thing=VENV._replace(deliver=""))
    assert judged(found, undelivered).waits is False, "all of it waits"


@pytest.mark.parametrize(
    ("path", "tier"),
    [("settings.json", REFUSED), ("projects/x/notes.md", REFUSED), ("Makefile", REFUSED)],
)
def test_a_tree_outside_of_the_workspace_is_judged_by_its_own_name_too(path: str, tier: str) -> None:
    assert met(change(path), thing=tree("/home/someone/.claude"))[0] == tier
    assert met(change(path.replace("Makefile", "x")), thing=tree("/home/someone/.claude-notes"))[0] == PLAIN


def test_a_tree_in_the_workspace_is_judged_by_its_place_in_it_and_not_by_what_lies_above() -> None:
    assert met(change("x"), thing=tree(f"{WORKSPACE}/.agent"))[0] == REFUSED
    assert met(change("x"), thing=tree(f"{WORKSPACE}/docs/.agent"))[0] == PLAIN
    assert met(change("", MODIFIED), thing=tree(f"{WORKSPACE}/RESEARCH.md"))[0] == REFUSED
    ground = Ground(tree("/h/.claude/w"), "/h/.claude/w", Sides({}, {}), lambda _: "")
    assert judged(change("x"), ground).tier == PLAIN


@pytest.mark.parametrize(
    ("path", "old", "new", "met_with"),
    [
        ("package.json", b'{"version": "1"}', b'{"version": "2"}', (PLAIN, "")),
        (
            "pkg/package.json",
            b"{}",
            b'{"scripts": {"postinstall": "x"}}',
            (WARNED, "npm, yarn and pnpm run its scripts: scripts: +postinstall"),
        ),
        ("yarn.lock", b"https://a.example/", b"https://b.example/", (WARNED, "new sources: b.example")),
        ("yarn.lock", b"https://a.example/", b"https://a.example/x", (PLAIN, "")),
        ("Package-Lock.json", b"", b"{}", (PLAIN, "")),
        ("Package-Lock.json", b"", b"x", (WARNED, "it cannot be read")),
        (".claude/package.json", b"", b"{}", (REFUSED, "instructions or settings of an agent")),
    ],
)
def test_lists_of_packages_are_as_grave_as_what_changed_in_them(
    path: str, old: bytes, new: bytes, met_with: tuple[str, str]
) -> None:
    found = change(path, MODIFIED, old=file(old), new=file(new))
    assert met(found, {path: old}, {path: new}) == met_with
    assert met(found._replace(old=UNKNOWN), {path: old}, {path: new}) == met_with, (
        "the host's is the best there is"
    )
    moved = change(path, RENAMED, source="from", old=file(old), new=file(new))
    assert met(moved, {"from": old}, {path: new}) == met_with


def test_a_list_of_packages_that_cannot_be_read_is_a_warning() -> None:
    assert met(change("package.json")) == (WARNED, "npm, yarn and pnpm run its scripts: it cannot be read")
    assert met(change("go.sum")) == (WARNED, "it cannot be read")
    assert met(change("package.json", new=link()), new={"package.json": "x"})[0] == WARNED


def test_the_whole_thing_gone_is_no_fault() -> None:
    assert met(Change("t0", "", DELETED, FOLDER, ABSENT, FOLDER)) == (PLAIN, "")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".husky", True),
        (".github", True),
        (".github/workflows", True),
        ("x/.vscode", True),
        ("src", False),
        ("bin", False),
    ],
)
def test_a_link_in_the_place_of_a_folder_stands_for_what_would_be_in_it(path: str, found: bool) -> None:
    *folders, name = path.split("/")
    above = autoexec.TOP
    for folder in folders:
        above = autoexec.enter(above, folder)
    assert (row_above(above, name) is not None) == found


@pytest.mark.parametrize(
    ("held", "path", "tier"),
    [
        (".git/hooks", "pre-commit", REFUSED),
        (".git/hooks", "x.sample", PLAIN),
        (".git/info", "attributes", REFUSED),
        (".git/info", "refs", PLAIN),
        (".github/workflows", "ci.yml", WARNED),
        (".github", "hooks/x", REFUSED),
        (".claude", "settings.json", REFUSED),
        ("sub/.git", "hooks/pre-commit", REFUSED),
        ("sub/.git", "index", PLAIN),
        ("sub", ".git/config", REFUSED),
        ("docs", "x", PLAIN),
    ],
)
def test_a_thing_that_is_held_alone_is_judged_by_where_it_lies(held: str, path: str, tier: str) -> None:
    thing = tree(f"{WORKSPACE}/{held}")
    assert met(change(path, MODIFIED), thing=thing)[0] == tier
    alone = thing._replace(path=f"{thing.path}/{path}", kind=FILE)
    assert met(change("", MODIFIED), thing=alone)[0] == tier


@pytest.mark.parametrize(
    ("found", "tier"),
    [
        (change("tools/hooks/pre-commit"), REFUSED),
        (change("tools/hooks/new/deep"), REFUSED),
        (change("Tools/HOOKS/x"), REFUSED),
        (change("tools/hooks", DELETED, old=FOLDER), REFUSED),
        (change("tools", TYPE, old=FOLDER, new=link()), REFUSED),
        (change("tools", new=FOLDER), PLAIN),
        (change("tools/other"), PLAIN),
        (change("x", RENAMED, source="tools/hooks/pre-commit"), REFUSED),
        (change("tools/hooks/x", RENAMED, source="x"), REFUSED),
        (change("team.cfg", MODIFIED), REFUSED),
    ],
)
def test_what_the_launch_found_to_be_obeyed_is_refused(found: Change, tier: str) -> None:
    pairs = [(f"{WORKSPACE}/tools/hooks", "git runs what is in it (core.hooksPath)")]
    pairs.append((f"{WORKSPACE}/team.cfg", "included by the repository's configuration"))
    sides = Sides({}, {"tools": "x"})
    ground = Ground(tree(), WORKSPACE, sides, lambda _: "", guards=guards(pairs))
    assert judged(found, ground).tier == tier
    assert judged(found, ground._replace(guards=Guards())).tier in (PLAIN, WARNED)
