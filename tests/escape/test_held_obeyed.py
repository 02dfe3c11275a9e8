"""What a command lays into a held workspace for the host's programs, applied as a person does without naming anything; then
git, really run by the same user (CASES.md A15, A16, I1, I9).
"""

import json
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from support.attempts import PRELUDE, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, git
from support.running import Running

MARK: Final = "marker"
EVIL: Final = '[core]\\n\\tfsmonitor = "touch {mark}; false"\\n'
HOOK: Final = "#!/bin/sh\\ntouch {mark}\\n"


class Ground(NamedTuple):
    jail: Jail
    mark: Path

    @property
    def top(self) -> Path:
        return self.jail.workspace

    def run(self, program: str, *options: str) -> None:
        """A run that holds; `{evil}` and `{hook}` are payloads for printf(1)."""
        text = program.replace("{evil}", EVIL).replace("{hook}", HOOK).replace("{mark}", str(self.mark))
        time.sleep(0.03)  # what changed while a run begins has no base
        done = self.jail.run("sh", "-euc", text, options=options or ("--hold",))
        assert done.returncode == 0, done.stderr

    def apply(self) -> str:
        done = self.jail.call("apply", "last")
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def marked(self, *folders: str) -> bool:
        """Whether git ran a payload in one of these folders."""
        for folder in folders:
            git_or_not(self.top / folder)
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


def git_or_not(folder: Path) -> None:
    if folder.is_dir():
        for arguments in (
            ("status",),
            ("commit", "--allow-empty", "-qm", "x"),
            ("add", "-A"),
            ("update-ref", "-d", "refs/heads/none"),
        ):
            try:
                git(folder, *arguments)
            except AssertionError:
                continue


@pytest.fixture
def ground(installed: Installed, tmp_path: Path) -> Ground:
    jail = warm_jail(installed, tmp_path)
    top = jail.workspace
    git(top, "init", "-q", ".")
    (top / "file").write_text("text\n")
    git(top, "add", "file")
    git(top, "commit", "-qm", "one")
    return Ground(jail, tmp_path / MARK)


MAKE: Final = "mkdir -p {0}/objects {0}/refs/heads; printf 'ref: refs/heads/main\\n' > {0}/HEAD; "
BARE_EVIL: Final = "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = ..\\n' > {0}/config; printf '{evil}' >> {0}/config"
PIECES: Final = {
    "the last piece is renamed": (
        MAKE.format("bar") + BARE_EVIL.replace("{0}", "bar") + "; mv bar/HEAD bar/H",
        "mv bar/H bar/HEAD",
        ("bar",),
    ),
    "the last piece is written": (
        MAKE.format("bar") + BARE_EVIL.replace("{0}", "bar") + "; echo none > bar/HEAD; mv bar/HEAD bar/H",
        "printf 'ref: refs/heads/main\\n' > bar/HEAD",
        ("bar",),
    ),
    "a commondir": (
        MAKE.format("evil")
        + BARE_EVIL.replace("{0}", "evil")
        + "; mkdir evil/hooks; printf '{hook}' > evil/hooks/reference-transaction; chmod +x evil/hooks/*"
        "; rm evil/HEAD; mkdir foo; echo ../evil > foo/commondir",
        "printf 'ref: refs/heads/main\\n' > foo/HEAD",
        ("foo",),
    ),
    "a folder in place of a file": (
        MAKE.format("bar") + BARE_EVIL.replace("{0}", "bar") + "; rm -r bar/objects; echo > bar/objects",
        "rm bar/objects; mkdir bar/objects",
        ("bar",),
    ),
}


@pytest.mark.parametrize("pieces", PIECES)
def test_a_git_dir_that_comes_in_pieces_runs_nothing(ground: Ground, pieces: str) -> None:
    first, second, folders = PIECES[pieces]
    for program in (first, second):
        ground.run(program)
        ground.apply()
    assert not ground.marked(*folders)
    # The control: the same without walls.
    for name in ("bar", "foo", "evil"):
        ground.jail.outside("import shutil, sys; shutil.rmtree(sys.argv[1], True); print(0)", name)
    for program in (first, second):
        text = program.replace("{evil}", EVIL).replace("{hook}", HOOK).replace("{mark}", str(ground.mark))
        ground.jail.outside(
            "import subprocess, sys; print(subprocess.call(['sh', '-euc', sys.argv[1]]))", text
        )
    assert ground.marked(*folders)


HELD_ALONE: Final = {
    ".git/hooks": "pre-commit",
    ".git/hooks/pre-commit": "",
    ".git/info": "attributes",
    ".github/workflows": "ci.yml",
    ".claude": "settings.json",
}


@pytest.mark.parametrize("held", HELD_ALONE)
def test_what_is_held_alone_is_judged_by_where_it_lies(ground: Ground, held: str) -> None:
    path = f"{held}/{HELD_ALONE[held]}".rstrip("/")
    target = ground.top / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("#!/bin/sh\n")
    target.chmod(0o755)
    ground.run(f"printf '{{hook}}' > {path}", "--hold-path", held)
    said = ground.jail.call("changes", "last").stdout
    tier = "to look at" if held == ".github/workflows" else "refused"
    assert tier in said, said
    assert "0755" not in said
    if tier == "refused":
        ground.apply()
        assert target.read_text() == "#!/bin/sh\n"
        assert not ground.marked(".")
        ground.jail.call("apply", "last", path)  # word for word
    if path == ".git/hooks/pre-commit":
        assert ground.marked("."), "the control"


def test_what_the_configuration_has_git_run_is_refused_wherever_it_lies(ground: Ground) -> None:
    top = ground.top
    for name in ("tools/hooks/pre-commit", "tools/clean", "tools/target"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("#!/bin/sh\ncat\n")
        (top / name).chmod(0o755)
    (top / "team.cfg").write_text("")
    os.symlink("../target", top / "tools/hooks/pre-push")
    for key, value in (
        ("core.hooksPath", "tools/hooks"),
        ("include.path", "../team.cfg"),
        ("filter.x.clean", "tools/clean"),
        ("diff.x.textconv", "tools/absent"),
    ):
        git(top, "config", key, value)
    (top / ".gitattributes").write_text("* filter=x\n")
    names = ("tools/hooks/pre-commit", "tools/hooks/new", "tools/clean", "tools/target", "tools/absent")
    program = "; ".join(f"printf '{{hook}}cat\\n' > {name}; chmod +x {name}" for name in names)
    program += "; printf '{evil}' > team.cfg; echo new > free"
    ground.run(program)
    said = ground.apply()
    assert (top / "free").exists()
    for name in (*names, "team.cfg"):
        assert f" {name}: " in said, (name, said)
    assert not ground.marked(".")
    for name in (*names, "team.cfg"):
        assert ground.jail.call("apply", "last", name).returncode == 0
    assert ground.marked("."), "the control"


@pytest.mark.parametrize("deliver", [False, True])
@pytest.mark.parametrize("form", ["ln -s {0}/payload config", "mkdir config", "true"])
@pytest.mark.parametrize("whose", [".git/config", ".git/modules/sub/config"])
def test_nothing_in_the_place_of_a_held_config_arrives(
    ground: Ground, form: str, whose: str, deliver: bool
) -> None:
    top = ground.top
    origin = top.parent / "origin"
    origin.mkdir()
    git(origin, "init", "-q", ".")
    git(origin, "commit", "-q", "--allow-empty", "-m", "one")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "sub")
    before = {path: (top / path).read_bytes() for path in (".git/config", ".git/modules/sub/config")}
    policy = ground.jail.home / "p.toml"
    policy.write_text(
        'name = "p"\nbase = "overnight"\n[hold]\ndeliver = ["commands", "git-config"]\n' if deliver else ""
    )
    program = f"for d in /run/jail/held/f*; do cd $d; printf '{{evil}}' > {top}/payload; rm config; {form.format(top)}; done"
    ground.run(program, *(("--policy", str(policy)) if deliver else ("--write", ".")))
    ground.jail.call("apply", "last")
    for path, content in before.items():
        ground.jail.call("apply", "last", path)
        assert (top / path).is_file()
        assert not (top / path).is_symlink()
        assert (top / path).read_bytes() == content
    assert not ground.marked(".", "sub")
    (top / whose).unlink()
    (top / whose).symlink_to(top / "payload")
    (top / "payload").write_text(
        before[whose].decode() + EVIL.replace("{mark}", str(ground.mark)).encode().decode("unicode_escape")
    )
    assert ground.marked(".", "sub"), "the control"


def test_a_worktree_and_a_submodule_made_inside_are_applied_as_a_whole(ground: Ground) -> None:
    top = ground.top
    git(top, "config", "core.editor", "vi")
    git(top, "init", "-q", "--bare", "origin.git")
    git(top, "push", "-q", "./origin.git", "main")
    ground.run("git worktree add -q wt2 -b w2")
    assert "left" not in ground.apply()
    assert git(top / "wt2", "status", "--short") == ""
    ground.run(f"git -c protocol.file.allow=always submodule add -q file://{top}/origin.git sub")
    assert "left" not in ground.apply()
    assert "sub (heads/main)" in git(top, "submodule", "status")
    assert git(top / "sub", "status", "--short") == ""


LEADS: Final = {
    "to a folder that does not lead back": MAKE.format("evil")
    + "printf '{evil}' > evil/config; echo 'gitdir: ../evil' > foo/.git",
    "to the worktree of another repository": (
        MAKE.format("fixture/worktrees/foo")
        + "echo ../.. > fixture/worktrees/foo/commondir; printf '%s\\n' $PWD/foo/.git > fixture/worktrees/foo/gitdir;"
        " printf 'gitdir: %s\\n' $PWD/fixture/worktrees/foo > foo/.git"
    ),
    "a link": MAKE.format("evil") + "printf '{evil}' > evil/config; ln -s ../evil foo/.git",
    "in other letters": MAKE.format(".git/worktrees/foo")
    + "echo ../.. > .git/worktrees/foo/commondir; printf '%s\\n' $PWD/foo/.git > .git/worktrees/foo/gitdir;"
    " printf 'gitdir: %s\\n' $PWD/.git/worktrees/foo > foo/.GIT",
}


@pytest.mark.parametrize("leads", LEADS)
def test_what_leads_git_somewhere_else_is_refused(ground: Ground, leads: str) -> None:
    git(ground.top, "init", "-q", "--bare", "fixture")
    with open(ground.top / "fixture/config", "a", encoding="ascii") as file:
        file.write(EVIL.replace("{mark}", str(ground.mark)).encode().decode("unicode_escape"))
    git(ground.top, "config", "safe.bareRepository", "explicit")
    ground.run("mkdir foo; " + LEADS[leads])
    said = ground.apply()
    assert " foo/.git: " in said.lower(), said
    assert not ground.marked("foo")


def test_links_in_a_git_dir_are_refused_and_those_through_a_link_of_the_host_are_warned_of(
    ground: Ground,
) -> None:
    os.symlink("/", ground.top / "hostlink")
    ground.run(
        "ln -sf ~/.bashrc .git/COMMIT_EDITMSG; ln -sf ../file .git/logs/x; ln -s hostlink/../x inside; ln -s file ok"
    )
    said = ground.jail.call("changes", "last", "--json").stdout
    tiers = {
        each["path"].removeprefix(f"{ground.top}/"): each["tier"]
        for each in map(json.loads, said.splitlines())
    }
    assert tiers == {
        ".git/COMMIT_EDITMSG": "refused",
        ".git/logs/x": "refused",
        "inside": "warned",
        "ok": "plain",
    }


def test_a_written_workspace_has_the_programs_of_the_configuration_read_only(ground: Ground) -> None:
    (ground.top / "clean").write_text("#!/bin/sh\ncat\n")
    git(ground.top, "config", "filter.x.clean", "./clean")
    program = "attempt('program', lambda: keep('clean', 'x', os.O_WRONLY))\nsay()"
    assert ground.jail.inside(PRELUDE + program)["program"] in ("EROFS", "EACCES")
    git(ground.top, "config", "--unset", "filter.x.clean")
    assert ground.jail.inside(PRELUDE + program)["program"] == "done", "the control"


def test_nothing_is_applied_into_a_tree_that_another_session_writes(ground: Ground) -> None:
    ground.run("echo new > file")
    name = ground.jail.sessions()[-1].name
    wait = "import time\nprint('ready', flush=True)\nwhile not os.path.exists('end'): time.sleep(0.01)"
    with Running(ground.jail, PYTHON, "-I", "-c", PRELUDE + wait) as running:
        running.ready()
        done = ground.jail.call("apply", name)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "runs and writes here" in done.stderr
        assert (ground.top / "file").read_text() == "text\n"
        (ground.top / "end").touch()
        assert running.wait() == 0
    assert ground.jail.call("apply", name).returncode == 0
    assert (ground.top / "file").read_text() == "new\n"
