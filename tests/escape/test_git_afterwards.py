"""What the person's own git would run or overwrite after a run in a written workspace, wherever the command laid it (agent cases 10–12)."""

import os
import subprocess
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest

from support.jails import Jail, git

COMMON = r"""
set -e
M=$1 V=$2 H=$3 P=$4
evil() { printf '[core]\n\tfsmonitor = "touch %s; false"\n' "$M" >> "$1"; }
commit() { git -C "$1" -c user.name=N -c user.email=e commit -q --allow-empty -m x; }
bare() { mkdir -p "$1/objects" "$1/refs"; echo 'ref: refs/heads/main' > "$1/HEAD"; }
link() { git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),"$1"; }
hook() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\ntouch %s\n' "$M" > "$1"; chmod +x "$1"; }
status() { git status; }
"""
"""$M: a file that no honest git makes; $V: a file of the person's; $H: where the cache lies on the host, $P: what the command calls it."""

STATUS = "git status"
EVIL_IN_CACHE = "rm -rf $P/evil; git init -q $P/evil; commit $P/evil; evil $P/evil/.git/config; git -C $P/evil config core.worktree $PWD/vendor;"
SUBMODULE = (
    "git init -q sub; commit sub; git -c protocol.file.allow=always submodule -q add ./sub vendor; commit ."
)


class Attack(NamedTuple):
    """`runs`: what each run does; `host`: what the person does then; `first`: what the person did before all."""

    runs: tuple[str, ...]
    host: str = STATUS
    first: str = "commit ."


DEEP = """
n=$(printf 'n%.0s' $(seq 250)); way=""
for i in $(seq 15); do mkdir $n; cd $n; way=$way/$n; done
d=$(printf 'd%.0s' $(seq 86)); bare $d; evil $d/config; cd "$OLDPWD" || true
"""
MANY = """
for i in $(seq 12); do bare a$i; mkdir a$i/hooks; for h in $(seq 199); do echo x > a$i/hooks/h$h; done; done
git init -q zz; commit zz; evil zz/.git/config; link zz
"""
PIECES = """
/usr/bin/python3 -I - <<'P'
import os
for i in range(2100):
    for name in ("objects", "refs"):
        os.makedirs(f"a/{i}/{name}")
    for name in ("HEAD", "commondir"):
        with open(f"a/{i}/{name}", "w") as file:
            file.write("ref: refs/heads/x\\n")
P
git init -q zz; commit zz; evil zz/.git/config; link zz
"""

ATTACKS = {
    "a .git file leads into the cache": Attack(
        (EVIL_IN_CACHE + 'mkdir vendor; echo "gitdir: $H/evil/.git" > vendor/.git; link vendor',)
    ),
    "a .git link leads into the cache": Attack(
        (EVIL_IN_CACHE + "mkdir vendor; ln -s $H/evil/.git vendor/.git; link vendor",)
    ),
    "a .git file leads there by a link": Attack(
        (
            EVIL_IN_CACHE
            + 'mkdir vendor; ln -s $H way; echo "gitdir: ../way/evil/.git" > vendor/.git; link vendor',
        )
    ),
    "it leads there before there is anything": Attack(
        ('mkdir vendor; echo "gitdir: $H/evil/.git" > vendor/.git; link vendor', EVIL_IN_CACHE)
    ),
    "a link leads to a repository in the cache": Attack(
        (EVIL_IN_CACHE + "git -C $P/evil config --unset core.worktree; ln -s $H/evil vendor",),
        "cd vendor && git status",
    ),
    "a submodule's .git file is overwritten": Attack(
        (EVIL_IN_CACHE + 'echo "gitdir: $H/evil/.git" > vendor/.git',), first=SUBMODULE
    ),
    "the file leads to a git dir that was there": Attack(
        ('mkdir vendor; echo "gitdir: ../sample/dot" > vendor/.git; link vendor',),
        first="commit .; bare sample/dot; evil sample/dot/config",
    ),
    "a git dir that was there gets another name": Attack(
        ("mkdir vendor; mv sample/dot vendor/.git; link vendor",),
        first="commit .; bare sample/dot; evil sample/dot/config",
    ),
    "the config before the HEAD": Attack(
        ("mkdir -p sub/.git; evil sub/.git/config", "bare sub/.git; link sub"),
    ),
    "the config before the HEAD, elsewhere": Attack(
        ("mkdir -p x; evil x/config", "bare x; mkdir sub; mv x sub/.git; link sub"),
    ),
    "the hooks before the HEAD": Attack(
        ("hook x/hooks/pre-commit", "bare x; mkdir sub; mv x sub/.git"), "cd sub && commit ."
    ),
    "old hooks moved into an existing repository": Attack(
        ("hook x/pre-commit", "rm -rf sub/.git/hooks; mv x sub/.git/hooks"),
        "cd sub && commit .",
        "commit .; git init -q sub; commit sub",
    ),
    "the HEAD is away while the config changes": Attack(
        ("mv sub/.git/HEAD sub/.git/was; evil sub/.git/config", "mv sub/.git/was sub/.git/HEAD"),
        first="git init -q sub; commit sub; git add sub; commit .",
    ),
    "a link as COMMIT_EDITMSG": Attack(
        ("rm -f .git/COMMIT_EDITMSG; ln -s $V .git/COMMIT_EDITMSG; echo evil > .git/MERGE_MSG",),
        "GIT_EDITOR=true commit .",
    ),
    "a link as logs/HEAD": Attack(("rm -f .git/logs/HEAD; ln -s $V .git/logs/HEAD",), "commit ."),
    "a link as the index": Attack(("mv .git/index x; ln -s $V.new .git/index",), "touch new; git add new"),
    "a folder with an old link becomes logs": Attack(
        ("mkdir x; ln -s $V x/HEAD", "rm -rf .git/logs; mv x .git/logs"), "commit ."
    ),
    "a pipe as COMMIT_EDITMSG": Attack(
        ("rm -f .git/COMMIT_EDITMSG; mkfifo .git/COMMIT_EDITMSG",),
        "timeout 1 git -c user.name=N -c user.email=e commit -q --allow-empty -m x || [ $? != 124 ] || touch $M",
    ),
    "a git dir deeper than a path": Attack(
        ("W=$PWD; " + DEEP + 'cd $W; mkdir sub7; echo "gitdir: ..$way/$d" > sub7/.git',),
        "cd sub7 && git status",
    ),
    "more offences than rows": Attack((MANY,)),
    "more offences than are kept": Attack((PIECES,)),
}


def perform(script: str, folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """As the person, without walls."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["/bin/sh", "-c", COMMON + script, "sh", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def came_true(mark: Path, victim: Path) -> bool:
    return mark.exists() or victim.read_text() != "mine\n" or Path(f"{victim}.new").exists()


@pytest.mark.parametrize("name", ATTACKS)
def test_what_a_run_left_makes_the_persons_git_run_and_overwrite_nothing(
    name: str, jail: Jail, tmp_path: Path
) -> None:
    attack = ATTACKS[name]
    control, mark, victim = tmp_path / "control", tmp_path / "mark", tmp_path / "victim"
    control.mkdir()
    victim.write_text("mine\n")
    (tmp_path / "cache").mkdir()
    git(jail.workspace, "init", "-q", ".")
    git(control, "init", "-q", ".")

    plain = [str(mark), str(victim), str(tmp_path / "cache"), str(tmp_path / "cache")]
    for script in (attack.first, *attack.runs):
        done = perform(script, control, plain)
        assert done.returncode == 0, done.stderr
    perform(attack.host, control, plain)
    assert came_true(mark, victim), "the control: without walls the person's git does it"
    mark.unlink(missing_ok=True)
    Path(f"{victim}.new").unlink(missing_ok=True)
    victim.write_text("mine\n")

    which = uuid.uuid4().hex
    assert jail.run("touch", f"/run/jail/cache/{which}").returncode == 0
    (made,) = Path(jail.environment["XDG_CACHE_HOME"]).glob(f"jail/caches/*/files/{which}")
    walled = [str(mark), str(victim), str(made.parent), "/run/jail/cache"]
    done = perform(attack.first, jail.workspace, walled)
    assert done.returncode == 0, done.stderr
    said = ""
    for script in attack.runs:
        run = jail.run("sh", "-c", COMMON + script, "sh", *walled)
        assert run.returncode == 0, run.stderr
        said += run.stderr
    perform(attack.host, jail.workspace, walled)
    assert not came_true(mark, victim)
    assert "moved away" in said


HONEST = {
    "a submodule": (SUBMODULE, "vendor"),
    "a worktree": ("git worktree add -q tree", "tree"),
    "a submodule again": (
        "git submodule -q deinit vendor; git -c protocol.file.allow=always submodule -q update --init",
        "vendor",
    ),
    "work in a repository of the person's": (
        "cd own; git switch -q -c two; touch new; git add new; commit .; git gc -q; cd ..; git -C own status",
        "own",
    ),
    "a git folder as it was long ago": (
        "git init -q old; cd old; rm .git/HEAD; ln -s refs/heads/main .git/HEAD",
        "old",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_with_git_stays_and_the_persons_own_hooks_and_settings_too(
    name: str, jail: Jail, tmp_path: Path
) -> None:
    git(jail.workspace, "init", "-q", ".")
    script, folder = HONEST[name]
    first = "git init -q own; commit own; git -C own config core.editor vi; mkdir -p own/.git/hooks;"
    first += "echo x > own/.git/hooks/pre-push; commit .;" + (
        SUBMODULE if name == "a submodule again" else ""
    )
    arguments = [str(tmp_path / "mark"), "", "", ""]
    done = perform(first, jail.workspace, arguments)
    assert done.returncode == 0, done.stderr
    done = jail.run("sh", "-c", COMMON + script, "sh", *arguments)
    assert done.returncode == 0, done.stderr
    assert "moved away" not in done.stderr
    assert git(jail.workspace / folder, "status")
    assert git(jail.workspace / "own", "config", "core.editor") == "vi\n"
    assert (jail.workspace / "own/.git/hooks/pre-push").exists()


def test_a_run_in_a_linked_worktree_leaves_the_main_repositorys_hooks_and_config(
    jail: Jail, tmp_path: Path
) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q", ".")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "config", "core.editor", "vi")
    (main / ".git/hooks").mkdir(exist_ok=True)
    (main / ".git/hooks/pre-push").write_text("#!/bin/sh\n")
    os.rmdir(jail.workspace)
    git(main, "worktree", "add", "-q", str(jail.workspace))
    done = jail.run("sh", "-c", "git switch -q -c two; git commit -q --allow-empty -m y")
    assert done.returncode == 0, done.stderr
    assert "moved away" not in done.stderr
    assert git(main, "config", "core.editor") == "vi\n"
    assert (main / ".git/hooks/pre-push").exists()


def test_the_end_says_how_many_files_changed_that_run_by_themselves(jail: Jail) -> None:
    script = "mkdir -p .git/rebase-merge .husky; echo 'exec evil' > .git/rebase-merge/git-rebase-todo; echo > Makefile"
    git(jail.workspace, "init", "-q", ".")
    done = jail.run("sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "2 files that run by themselves changed: jail logs last" in done.stderr
    assert "run by themselves" not in jail.run("sh", "-c", "echo > Makefile").stderr


@pytest.mark.parametrize("made", ["ln -s $V .git/COMMIT_EDITMSG", "mkfifo .git/COMMIT_EDITMSG"])
def test_a_link_and_a_pipe_in_the_git_dir_go_while_the_command_runs(
    jail: Jail, tmp_path: Path, made: str
) -> None:
    git(jail.workspace, "init", "-q", ".")
    script = f"{made}; i=0; while [ -L .git/COMMIT_EDITMSG -o -p .git/COMMIT_EDITMSG ]; do sleep 0.05; done; echo gone"
    done = jail.run("sh", "-c", COMMON + script, "sh", "", str(tmp_path / "victim"))
    assert done.stdout == "gone\n", done.stderr
