"""Every row of the one table of protected paths, present and absent, against every way to change or make it.

Issue 2, Must show 3; CASES.md A15, A17, agent cases 4, 11, 49. What is tried comes from `PROTECTED`, so that
a new row is tested by itself; few starts of jail, many attempts in each.
"""

import json
import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pytest

from jail.kernel import trees
from jail.plan.protected import PROTECTED, Protected
from support import refusing
from support.assaults import APPEAR, ASSAULT, THROUGH_A_LINK
from support.attempts import DONE, PRELUDE, REFUSED, offences, state_of, warm_jail
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, Jail, git, survivors
from support.policies import undelivered

WAYS_A_ROW: Final = 10
"""How many ways support.assaults.APPEAR has."""
FREE: Final = "free"
"""The one folder of the workspace that the attempts may change."""


class Done(NamedTuple):
    """One run: what was tried inside and met, and the host's tree before and after it, `free` left out."""

    jail: Jail
    found: dict[str, str]
    before: dict[str, tuple[object, ...]]
    after: dict[str, tuple[object, ...]]
    entries: list[dict[str, Any]]

    def met(self, path: str) -> dict[str, str]:
        """What attempts on one path met, by verb."""
        return {name: met for name, met in self.found.items() if name.split(": ", 1)[1] == path}


def host_state(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Modes, owners, links, times and contents of all that must not change."""
    found = state_of(*folders)
    free = tuple(str(folder / FREE) for folder in folders)
    return {path: state for path, state in found.items() if not path.startswith(free)}


def assault(jail: Jail, targets: list[tuple[str, str]], *beside: Path) -> Done:
    """Try every verb on every target in one run, of which nothing held is delivered."""
    (jail.workspace / FREE).mkdir(exist_ok=True)
    options = ["--policy", undelivered(jail.workspace.parent)]
    before = host_state(jail.workspace, *beside)
    found = jail.inside(PRELUDE + ASSAULT, json.dumps(targets), options=options)
    return Done(jail, found, before, host_state(jail.workspace, *beside), jail.ledger())


_VALID = {"config.worktree": "", ".jail.toml": "# already here\n"}
"""What is read before anything runs must be what it says it is."""


def lay_row(folder: Path, row: Protected) -> str:
    """Make what a row names; its kind in the words of ASSAULT."""
    path = folder / row.name
    if row.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        (path / "child").write_text("already here\n")
        return "folder"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(_VALID.get(row.name, "already here\n"))
    return "file"


def parents(path: str) -> Iterator[str]:
    """The folders above a path, the workspace itself left out."""
    while path := os.path.dirname(path):
        yield path


# Present: a repository with a linked worktree, all rows laid, PATH folders inside and outside.


def _rows(*places: str) -> list[Protected]:
    """The rows of these places; `.git` itself, which is a folder here, is that of `worktree` below."""
    return [row for row in PROTECTED if row.place in places and row.name != ".git"]


@pytest.fixture(scope="module")
def present(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("present")
    tools, venv = folder / "tools" / "bin", folder / "workspace" / ".venv" / "bin"
    path = f"{venv}:{tools}:/usr/bin:/bin"
    jail = warm_jail(installed, folder, PATH=path)
    for where in (tools, venv):
        where.mkdir(parents=True)
        (where / "tool").write_text("#!/bin/sh\n")
    git(jail.workspace, "init", "-q")
    git(jail.workspace, "commit", "-q", "--allow-empty", "-m", "first")
    git(jail.workspace, "worktree", "add", "-q", "../worktree")
    targets = [(row.name, lay_row(jail.workspace, row)) for row in _rows("workspace")]
    common, linked = jail.workspace / ".git", jail.workspace / ".git/worktrees/worktree"
    (common / "objects/info").mkdir(exist_ok=True)
    shutil.copytree(common / "objects", folder / "store")
    (common / "objects/info/alternates").write_text(f"{folder}/store\n")
    targets += [(f".git/{row.name}", lay_row(common, row)) for row in _rows("commondir")]
    lay_row(common, next(row for row in PROTECTED if row.name == "config.worktree"))
    targets.append((".git/config.worktree", "file"))
    targets += [(f".git/worktrees/worktree/{row.name}", lay_row(linked, row)) for row in _rows("gitdir")]
    targets += [(".venv/bin", "folder"), (".venv/bin/tool", "file")]
    targets += [(f"{tools}", "folder"), (f"{tools}/tool", "file")]
    above = {above for path, _ in targets if not path.startswith("/") for above in parents(path)}
    return assault(
        jail, [*targets, *((path, "pinned") for path in sorted(above))], tools.parent, folder / "home"
    )


def present_paths() -> list[str]:
    """Every protected path of the fixture `present`, from the table."""
    places = {"workspace": "", "commondir": ".git/", "gitdir": ".git/worktrees/worktree/"}
    return [f"{places[row.place]}{row.name}" for row in _rows(*places)] + [".git/config.worktree"]


def held(met: dict[str, str], path: str) -> dict[str, str]:
    """What went to the copy of a held file, taken out of what was met: by verb."""
    return {verb: met.pop(f"{verb}: {path}") for verb in THROUGH_A_LINK}


@pytest.mark.parametrize("path", present_paths())
def test_a_protected_path_that_is_there_cannot_be_changed_or_replaced(present: Done, path: str) -> None:
    met = present.met(path)
    assert len(met) > 20
    if path == ".git/config":
        assert held(met, path) == dict.fromkeys(THROUGH_A_LINK, DONE)
    assert offences(met, REFUSED) == {}


@pytest.mark.parametrize(
    "path", sorted({above for path in (*present_paths(), ".venv/bin") for above in parents(path)})
)
def test_no_parent_of_a_protected_path_can_be_moved(present: Done, path: str) -> None:
    met = present.met(path)
    assert len(met) >= 4
    assert offences(met, REFUSED) == {}


def test_what_path_leads_to_cannot_be_changed(present: Done) -> None:
    folder = str(present.jail.workspace.parent / "tools/bin")
    met = present.met(folder) | present.met(f"{folder}/tool")
    assert len(met) > 40
    assert offences(met, REFUSED) == {}


def test_what_path_leads_to_in_the_workspace_is_held(present: Done) -> None:
    """It can be changed; `test_the_host_is_the_same_after_all_that` says that it was not."""
    met = present.met(".venv/bin") | present.met(".venv/bin/tool")
    assert DONE in met.values()
    assert present.jail.workspace / ".venv/bin/tool" in map(Path, present.before)


def test_every_verb_works_on_unprotected_neighbours(present: Done) -> None:
    control = {name: met for name, met in present.found.items() if name.startswith("control")}
    assert len(control) > 60
    assert offences(control, frozenset((DONE,))) == {}


def test_the_host_is_the_same_after_all_that(present: Done) -> None:
    assert len(present.before) > 100
    changed = {
        path for path in present.before | present.after if present.before.get(path) != present.after.get(path)
    }
    # The state of the run itself.
    assert {path for path in changed if "/.local/" not in path and not path.endswith(".local")} <= {
        str(present.jail.home)
    }


def test_nothing_was_swept_or_lost_for_it(present: Done) -> None:
    assert [entry["kind"] for entry in present.entries] == ["start", "probes", "running", "held", "end"]


def test_what_was_done_to_the_held_tree_and_to_the_held_config_waits(present: Done) -> None:
    listed = present.jail.call("changes", "last", "--json")
    assert listed.returncode == 0, listed.stderr
    waiting = {
        os.path.relpath(json.loads(line)["path"], present.jail.workspace)
        for line in listed.stdout.splitlines()
    }
    assert {".venv/bin/planted", ".venv/bin/planted.link", ".git/config"} <= waiting
    assert {path for path in waiting if not f"{path}/".startswith(".venv/bin/")} == {".git/config"}


# Present as symlinks: the link and what it leads to.


@pytest.fixture(scope="module")
def linked(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Done:
    jail = warm_jail(installed, tmp_path_factory.mktemp("linked"))
    (jail.workspace / "real").mkdir()
    targets: list[tuple[str, str]] = []
    rows = [row for row in _rows("workspace") if row.name != ".jail.toml"]  # as a link it refuses the run
    for number, row in enumerate(rows):
        real = jail.workspace / "real" / f"{number}-{os.path.basename(row.name)}"
        path = jail.workspace / row.name
        path.parent.mkdir(exist_ok=True)
        if row.kind == "folder":
            real.mkdir()
            (real / "child").write_text("already here\n")
        else:
            real.write_text("already here\n")
            targets.append((row.name, "link"))
        path.symlink_to(real if number % 2 else os.path.relpath(real, path.parent))
        targets.append((f"real/{real.name}", "folder" if row.kind == "folder" else "file"))
    return assault(jail, [*targets, ("real", "pinned")])


def test_a_protected_symlink_and_what_it_leads_to_cannot_be_changed(linked: Done) -> None:
    tried = {name: met for name, met in linked.found.items() if not name.startswith("control")}
    assert len(tried) > 600
    assert offences(tried, REFUSED) == {}
    assert linked.before == linked.after


# A workspace that is a linked worktree: `.git` is a file, the git dirs lie elsewhere.


@pytest.fixture(scope="module")
def worktree(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("worktree")
    jail = warm_jail(installed, folder)
    main = folder / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    jail.workspace.rmdir()
    git(main, "worktree", "add", "-q", str(jail.workspace))
    common, own = main / ".git", main / ".git/worktrees/workspace"
    targets = [(".git", "file")]
    targets += [
        (f"{common}/{row.name}", lay_row(common, row))
        for row in _rows("commondir")
        if "alternates" not in row.name
    ]
    targets += [(f"{own}/{row.name}", lay_row(own, row)) for row in _rows("gitdir")]
    return assault(jail, targets, main)


def test_the_git_dir_of_a_linked_worktree_is_protected_too(worktree: Done) -> None:
    tried = {name: met for name, met in worktree.found.items() if not name.startswith("control")}
    assert len(tried) > 150
    config = worktree.jail.workspace.parent / "main/.git/config"
    assert held(tried, str(config)) == dict.fromkeys(THROUGH_A_LINK, DONE)
    assert offences(tried, REFUSED) == {}
    assert worktree.before == worktree.after


# Absent: each row made in every way, and gone again.


class Watcher(threading.Thread):
    """Looks on the host, without a pause, for names that nobody may leave there."""

    def __init__(self, paths: list[Path]) -> None:
        super().__init__(daemon=True)
        self._paths = [str(path) for path in paths]
        self._over = threading.Event()
        self.seen: dict[str, float] = {}
        self.looks = 0

    def run(self) -> None:
        while not self._over.is_set():
            for path in self._paths:
                if os.path.lexists(path):
                    self.seen.setdefault(path, time.monotonic())
            self.looks += 1

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self.join()


ABSENT: Final = {"workspace": "", "commondir": ".git/", "gitdir": ".git/"}


def absent_paths() -> list[str]:
    """Every row as a path of a plain repository."""
    return list(dict.fromkeys(f"{ABSENT[row.place]}{row.name}" for row in _rows(*ABSENT)))


def bare_repository(jail: Jail) -> None:
    """A repository without a single protected path, and a PATH folder that is not there."""
    git(jail.workspace, "init", "-q")
    for name in ("hooks", "info"):
        shutil.rmtree(jail.workspace / ".git" / name)
    (jail.workspace / ".git/config").unlink()


@pytest.fixture
def empty(installed: Installed, tmp_path: Path) -> Jail:
    jail = warm_jail(installed, tmp_path, PATH=f"{tmp_path}/workspace/node_modules/.bin:/usr/bin:/bin")
    bare_repository(jail)
    (jail.workspace / FREE).mkdir()
    return jail


def tree_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Names, kinds, modes, contents; times of what is no folder, as things came and went in those."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        if path.relative_to(folder).parts[0] == FREE:
            continue
        facts = path.lstat()
        content = (
            path.read_bytes()
            if stat.S_ISREG(facts.st_mode)
            else os.readlink(path)
            if path.is_symlink()
            else None
        )
        found[str(path.relative_to(folder))] = (facts.st_mode, content, content and facts.st_mtime_ns)
    return found


def test_no_stub_of_an_absent_path_is_seen_while_jail_runs(empty: Jail) -> None:
    before = host_state(empty.workspace)
    watched = [empty.workspace / name for name in (*absent_paths(), "node_modules", ".git/config.lock")]
    with Watcher(watched) as watcher:
        done = empty.run("sh", "-c", "git --no-optional-locks status --short; ls -la . .git; sleep 0.2")
    assert done.returncode == 0, done.stderr
    assert watcher.looks > 100
    assert watcher.seen == {}
    assert host_state(empty.workspace) == before


def spellings(path: str) -> list[str]:
    """The path as the table has it, and in another case, which is the same name for some file systems."""
    folder, _, name = path.rpartition("/")
    return [path, os.path.join(folder, name.swapcase())]


SPELT: Final = [spelt for path in absent_paths() for spelt in spellings(path)] + ["node_modules/.bin"]
CHUNK: Final = 50
"""Paths of one run: each is made in WAYS_A_ROW ways, and a run keeps a thousand things (quarantine.KEPT)."""


@pytest.mark.parametrize("start", range(0, len(SPELT), CHUNK))
def test_what_is_made_under_an_absent_name_is_gone_at_once_kept_and_told(empty: Jail, start: int) -> None:
    paths = SPELT[start : start + CHUNK]
    before = tree_of(empty.workspace)
    found = empty.inside(PRELUDE + APPEAR, json.dumps(paths))
    control = {name: met for name, met in found.items() if name.startswith("control")}
    assert len(control) == WAYS_A_ROW
    assert offences(control, frozenset(("there",))) == {}
    assert {name for name in found if name.startswith("stays")} == set()
    tried = {name: met for name, met in found.items() if not name.startswith("control")}
    assert len(tried) == len(paths) * WAYS_A_ROW
    assert offences(tried, frozenset((DONE,))) == {}
    after = tree_of(empty.workspace)
    above = {folder for path in paths for folder in parents(path)}
    assert {name for name in after if name not in before} <= above
    assert {name: after.get(name) for name in before} == before
    assert_kept(empty, paths)


def assert_kept(jail: Jail, paths: list[str]) -> None:
    """Each path is in the ledger, with what was kept of it in the session's folder."""
    told = [entry["fields"] for entry in jail.ledger() if entry["kind"] == "swept"]
    session = jail.sessions()[-1]
    for path in paths:
        entries = [fields for fields in told if fields["path"] == str(jail.workspace / path)]
        kinds = {fields["kind"] for fields in entries}
        assert kinds == {"file", "folder", "symlink", "special", "socket"}, path
        for fields in entries:
            assert fields["moved_to"], fields
            kept = session / fields["moved_to"]
            assert os.path.lexists(kept), fields
    finals = [fields for fields in told if fields["kind"] in ("file", "folder") and fields["digest"]]
    assert len(finals) >= 6 * len(paths)
    for fields in finals[:20]:
        fd = os.open(session / fields["moved_to"], os.O_RDONLY)
        try:
            assert trees.digest_tree(fd).hex == fields["digest"]
        finally:
            os.close(fd)


def test_a_git_file_or_link_made_where_no_repository_is_is_swept(
    installed: Installed, tmp_path: Path
) -> None:
    jail = warm_jail(installed, tmp_path)
    (jail.workspace / FREE).mkdir()
    program = PRELUDE + APPEAR.replace('"move a tree onto": whole,', "").replace('"mkdir": os.mkdir,', "")
    found = jail.inside(program, json.dumps([".git", ".GIT", "git~1"]))
    assert {name for name in found if name.startswith("stays")} == set()
    assert [path.name for path in jail.workspace.iterdir()] == [FREE]


def test_a_repository_made_inside_is_delivered_without_what_would_run(
    installed: Installed, tmp_path: Path
) -> None:
    jail = warm_jail(installed, tmp_path)
    script = (
        "git init -q . && git commit -q --allow-empty -m made && echo 'touch /tmp/x' > .git/hooks/pre-commit"
        " && git config core.fsmonitor /bin/true; sleep 0.3; git log --oneline | wc -l"
    )
    done = jail.run("sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert git(jail.workspace, "log", "--format=%s") == "made\n"
    assert not (jail.workspace / ".git/hooks/pre-commit").exists()
    config = jail.workspace / ".git/config"
    assert not config.exists()
    swept = [entry["fields"]["path"] for entry in jail.ledger() if entry["kind"] == "swept"]
    assert any(path.startswith(f"{jail.workspace}/.git/hooks") for path in swept)
    assert f"{jail.workspace}/.git/config" in swept


def test_the_run_says_what_was_swept(empty: Jail) -> None:
    done = empty.run("sh", "-c", "echo obey > CLAUDE.md; sleep 0.2")
    assert f"{empty.workspace}/CLAUDE.md" in done.stderr
    assert "swept" in done.stderr


def test_a_name_made_again_and_again_until_the_end_is_not_there_afterwards(empty: Jail) -> None:
    loop = (
        "setsid sh -c 'while :; do echo obey > CLAUDE.md; mkdir -p .claude/x; done 2>/dev/null' & sleep 0.5"
    )
    done = empty.run("sh", "-c", loop)
    assert done.returncode == 0
    assert {path.name for path in empty.workspace.iterdir()} == {".git", FREE}


PLANT: Final = (
    "for n in CLAUDE.md RESEARCH.md .mcp.json .envrc; do echo obey > $n; done; mkdir .claude .vscode"
)


def planted(jail: Jail) -> set[str]:
    """What a run left in the workspace that may not be there."""
    return {path.name for path in jail.workspace.iterdir()} - {".git", FREE}


FLOOD: Final = """
import os, time
for turn in range(2000):
    with open("CLAUDE.md", "w") as file:
        file.write("obey")
    end = time.monotonic() + 60
    while os.path.lexists("CLAUDE.md") and time.monotonic() < end:
        time.sleep(0.0005)
time.sleep(1000)
"""


def test_messages_that_nobody_reads_stop_no_wall(empty: Jail) -> None:
    """The one who started jail waits for its end and reads then; until then what jail says fills a pipe."""
    process = empty.popen(PYTHON, "-I", "-c", FLOOD, options=("--timeout", "3s"), stderr=subprocess.PIPE)
    try:
        code = process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        code = None
        process.kill()
    process.communicate()
    assert code == 124, "the time was over, and the run went on"
    assert planted(empty) == set()


def test_messages_to_a_reader_that_is_gone_stop_no_wall(empty: Jail) -> None:
    process = empty.popen("sh", "-c", f"sleep 0.3; {PLANT}; sleep 0.3; exit 7", stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(timeout=PATIENCE) == 7
    assert planted(empty) == set()
    assert empty.ledger()[-1]["kind"] == "end"


def test_a_run_that_fails_because_it_cannot_be_recorded_leaves_nothing_planted(empty: Jail) -> None:
    mark = f"jail-full-{os.getpid()}"
    arguments = ["run", "--", "sh", "-c", f"{PLANT}; sleep 60", mark]
    # start, index, probes and running are written; the first thing swept is not.
    ended = refusing.failed_writing(empty, mark, 5, arguments)
    assert (ended.code, ended.hung) == (125, False)
    assert "No space left" in ended.errors
    assert survivors(mark) == []
    assert planted(empty) == set()
