"""Absent protected names: swept as soon as they appear, whatever they are and however often."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jail.kernel import inotify
from jail.launch import gitlayout, quarantine, sweep
from jail.launch.sweep import Place, Swept, Watch
from jail.plan.facts import Guarded
from jail.plan.protected import PROTECTED, Protected

GIT = "/usr/bin/git"
ROOT = [row for row in PROTECTED if row.place == "workspace" and row.name != ".git"]
GITDIR = [row for row in PROTECTED if row.place != "workspace"]


class Stage:
    """A workspace, watched as a launch would: every absent row of the table."""

    def __init__(self, top: Path, *, present: tuple[str, ...] = ()) -> None:
        self.ws, self.kept = top / "ws", top / "kept"
        self.ws.mkdir(exist_ok=True)
        self.kept.mkdir()
        self.fd = os.open(self.kept, os.O_RDONLY)
        rows = [row for row in PROTECTED if row.place == "workspace"]
        absent = [row for row in rows if not os.path.lexists(self.ws / row.name)]
        guards = [Guarded(f"{self.ws}/{row.name}", "absent", row.reason) for row in absent]
        there = [Guarded(f"{self.ws}/{name}", "file", "") for name in present]
        folders = [str(self.ws)]
        layout = gitlayout.read(str(self.ws))
        if layout is not None:
            guards += layout.absent
            there += layout.protected
            folders += layout.roots
        self.watch = Watch(sweep.places(folders, guards, there), self.fd)

    def handle(self) -> list[Swept]:
        assert select.select([self.watch], [], [], 60)[0], "no event came"
        return self.watch.handle()

    def handled(self) -> list[Swept]:
        return self.watch.handle()

    def names(self) -> list[str]:
        return sorted(os.listdir(self.ws))

    def close(self) -> None:
        self.watch.close()
        os.close(self.fd)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(Path(os.path.realpath(tmp_path)))
    yield made
    made.close()


@pytest.fixture
def in_repository(tmp_path: Path) -> Iterator[Stage]:
    top = Path(os.path.realpath(tmp_path))
    git("init", "ws", cwd=top)
    (top / "ws/.git/info/exclude").unlink()
    made = Stage(top)
    yield made
    made.close()


def git(*arguments: str, cwd: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    settings = ["-c", "user.name=N", "-c", "user.email=e@x"]
    subprocess.run([GIT, *settings, *arguments], cwd=cwd, env=env, check=True, capture_output=True)


def as_file(path: Path) -> None:
    path.write_text("planted")


def as_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)
    (path / "deep/file").write_text("planted")


def as_symlink(path: Path) -> None:
    path.symlink_to("/etc")


def as_hard_link(path: Path) -> None:
    (path.parent / "source").write_text("planted")
    os.link(path.parent / "source", path)
    os.unlink(path.parent / "source")


def as_renamed(path: Path) -> None:
    (path.parent / "source").write_text("planted")
    os.rename(path.parent / "source", path)


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


WAYS: list[Callable[[Path], None]] = [as_file, as_folder, as_symlink, as_hard_link, as_renamed, as_pipe]


@pytest.mark.parametrize("row", ROOT, ids=lambda row: row.name)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_each_absent_name_of_the_table_is_gone_at_once_however_it_is_made(
    stage: Stage, row: Protected, way: Callable[[Path], None]
) -> None:
    path = stage.ws / row.name
    path.parent.mkdir(exist_ok=True)
    way(path)
    found = stage.handle()
    assert [(item.path, item.reason, item.taken.how) for item in found] == [(str(path), row.reason, "moved")]
    assert not os.path.lexists(path)
    assert len(os.listdir(stage.kept)) == 1


@pytest.mark.parametrize(
    "row", [row for row in GITDIR if row.name not in ("config", "hooks")], ids=lambda row: row.name
)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_each_absent_name_of_a_git_dir_is_gone_at_once(
    in_repository: Stage, row: Protected, way: Callable[[Path], None]
) -> None:
    path = in_repository.ws / ".git" / row.name
    path.parent.mkdir(exist_ok=True)
    way(path)
    found = in_repository.handle()
    assert [item.path for item in found] == [str(path)]
    assert not os.path.lexists(path)


def test_ordinary_names_are_left_alone(stage: Stage) -> None:
    for name in ("src", ".gitignore", "README.md", "CLAUDE.md.txt", "xAGENTS.md", ".claude-evil"):
        as_file(stage.ws / name)
    (stage.ws / "pkg/.claude").mkdir(parents=True)
    (stage.ws / ".github/workflows").mkdir(parents=True)
    as_file(stage.ws / ".github/workflows/ci.yml")
    before = stage.names()
    assert stage.handle() == []
    assert stage.names() == before
    assert stage.watch.finish() == []


@pytest.mark.parametrize("name", ["claude.md", "CLAUDE.MD", ".MCP.json", ".c\u200claude", "AGENTS.md."])
def test_another_spelling_is_swept_too(stage: Stage, name: str) -> None:
    as_file(stage.ws / name)
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/{name}"]


def test_a_spelling_that_was_there_before_stays(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "ws").mkdir()
    as_file(top / "ws/claude.md")
    stage = Stage(top, present=("claude.md",))
    as_file(stage.ws / "CLAUDE.md")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/CLAUDE.md"]
    assert stage.names() == ["claude.md"]
    stage.close()


def test_a_name_made_between_the_survey_and_the_watch_is_found_by_the_first_look(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "ws").mkdir()
    (top / "kept").mkdir()
    as_file(top / "ws/CLAUDE.md")
    fd = os.open(top / "kept", os.O_RDONLY)
    watch = Watch([Place(str(top / "ws"), (("CLAUDE.md", "why"),))], fd)
    assert [item.path for item in watch.handle()] == [f"{top}/ws/CLAUDE.md"]
    watch.close()
    os.close(fd)


def test_a_folder_between_may_come_by_rename_with_the_name_in_it(stage: Stage) -> None:
    (stage.ws / "x/hooks").mkdir(parents=True)
    assert stage.handle() == []
    os.rename(stage.ws / "x", stage.ws / ".github")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.github/hooks"]


def test_a_folder_between_may_be_swapped_for_another(in_repository: Stage) -> None:
    info = in_repository.ws / ".git/info"
    os.rename(info, in_repository.ws / "old")
    info.mkdir()
    in_repository.handle()
    as_file(info / "attributes")
    assert [item.path for item in in_repository.handle()] == [f"{info}/attributes"]
    as_file(in_repository.ws / "old/attributes")
    assert in_repository.handled() == []


def test_a_symlink_in_place_of_a_folder_between_is_swept_itself(stage: Stage) -> None:
    (stage.ws / "elsewhere/hooks").mkdir(parents=True)
    (stage.ws / ".github").symlink_to("elsewhere")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.github"]
    assert (stage.ws / "elsewhere/hooks").is_dir()


def launched(tmp_path: Path, *present: str) -> Stage:
    """Watched once the workspace has what stood at launch: a link `.github`, or what the test made."""
    top = Path(os.path.realpath(tmp_path))
    (top / "ws/shared/github").mkdir(parents=True)
    (top / "ws/.github").symlink_to("shared/github")
    return Stage(top, present=present)


def test_a_link_that_stood_at_launch_where_protected_names_would_lie_is_left_alone(tmp_path: Path) -> None:
    stage = launched(tmp_path, ".github")
    as_file(stage.ws / "shared/github/instructions")
    as_file(stage.ws / ".envrc")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.envrc"]
    assert [item.path for item in stage.watch.finish()] == [f"{stage.ws}/.envrc"]
    assert os.readlink(stage.ws / ".github") == "shared/github"
    stage.close()


def test_such_a_link_may_be_made_again_as_it_was(tmp_path: Path) -> None:
    stage = launched(tmp_path, ".github")
    (stage.ws / ".github").unlink()
    (stage.ws / ".github").symlink_to("shared/github")
    assert stage.handle() == []
    assert stage.watch.finish() == []
    stage.close()


@pytest.mark.parametrize("made", ["unlinked", "renamed over"])
def test_another_link_in_its_place_is_swept(tmp_path: Path, made: str) -> None:
    stage = launched(tmp_path, ".github")
    (stage.ws / "new").symlink_to("shared")
    if made == "unlinked":
        (stage.ws / ".github").unlink()
    os.rename(stage.ws / "new", stage.ws / ".github")
    assert [(item.path, item.taken.kind) for item in stage.handle()] == [(f"{stage.ws}/.github", "symlink")]
    assert not os.path.lexists(stage.ws / ".github")
    stage.close()


def test_a_folder_in_its_place_stays_without_the_protected_names_in_it(tmp_path: Path) -> None:
    stage = launched(tmp_path, ".github")
    (stage.ws / ".github").unlink()
    (stage.ws / ".github/workflows").mkdir(parents=True)
    (stage.ws / ".github/hooks").mkdir()
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.github/hooks"]
    assert os.listdir(stage.ws / ".github") == ["workflows"]
    stage.close()


def test_a_link_in_another_spelling_beside_it_is_swept(tmp_path: Path) -> None:
    stage = launched(tmp_path, ".github")
    (stage.ws / ".GitHub").symlink_to("shared/github")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.GitHub"]
    assert (stage.ws / ".github").is_symlink()
    stage.close()


def test_a_link_that_went_for_good_is_new_when_it_comes_again_and_a_folder_is_welcome(tmp_path: Path) -> None:
    stage = launched(tmp_path, ".github")
    (stage.ws / ".github").unlink()
    stage.watch.add(str(stage.ws), ".github", "was there at launch")
    (stage.ws / ".github").symlink_to("shared/github")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.github"]
    (stage.ws / ".github").mkdir()
    as_file(stage.ws / ".github/dependabot.yml")
    assert stage.handle() == []
    as_file(stage.ws / ".github/hooks")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.github/hooks"]
    stage.close()


@pytest.mark.parametrize("way", [as_file, as_pipe], ids=lambda way: way.__name__)
def test_what_is_neither_folder_nor_link_can_have_no_name_in_it_and_stays(
    tmp_path: Path, way: Callable[[Path], None]
) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "ws").mkdir()
    way(top / "ws/.github")
    stage = Stage(top, present=(".github",))
    as_file(stage.ws / ".envrc")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.envrc"]
    assert os.path.lexists(stage.ws / ".github")
    stage.close()


def test_a_folder_of_a_git_dir_that_was_a_link_at_launch_is_left_alone(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    git("init", "ws", cwd=top)
    os.rename(top / "ws/.git/info", top / "ws/kept-info")
    (top / "ws/.git/info").symlink_to("../kept-info")
    stage = Stage(top)
    assert stage.handled() == []
    assert stage.watch.finish() == []
    assert (top / "ws/.git/info").is_symlink()
    stage.close()


def test_what_was_taken_has_its_digest_only_at_the_end_when_nobody_can_write_to_it(stage: Stage) -> None:
    (stage.ws / ".claude").mkdir()
    held = os.open(stage.ws / ".claude", os.O_RDONLY)
    first = stage.handle()
    assert [item.digest for item in first] == [""]
    fd = os.open("late", os.O_CREAT | os.O_WRONLY, dir_fd=held)
    os.write(fd, b"written after the move")
    os.close(fd)
    os.close(held)
    final = stage.watch.finish()
    assert [item.path for item in final] == [f"{stage.ws}/.claude"]
    assert len(final[0].digest) == 64
    assert final[0].complete
    assert (stage.kept / final[0].taken.kept / "late").read_text() == "written after the move"


def test_the_last_look_needs_no_event(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    as_file(stage.ws / ".envrc")
    monkeypatch.setattr(inotify.Inotify, "read", lambda _: [])
    assert stage.handled() == []
    assert [item.path for item in stage.watch.finish()] == [f"{stage.ws}/.envrc"]


def test_after_lost_events_everything_is_looked_at_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_file(stage.ws / ".envrc")
    answers = [[inotify.Event(-1, inotify.IN_Q_OVERFLOW, "")]]
    monkeypatch.setattr(inotify.Inotify, "read", lambda _: answers.pop() if answers else [])
    assert [item.path for item in stage.handled()] == [f"{stage.ws}/.envrc"]


RECREATE = """
import os, sys
os.chdir(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    kind = number % 3
    try:
        if kind == 0: os.close(os.open(".mcp.json", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        elif kind == 1: os.symlink("/etc/passwd", ".mcp.json")
        else: os.mkdir(".mcp.json"); os.mkdir(".mcp.json/x")
    except FileExistsError: pass
    except FileNotFoundError: pass
"""


def test_a_program_that_makes_it_again_in_a_loop_never_keeps_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "KEPT", 50)
    before = Path("/etc/passwd").stat()
    with subprocess.Popen(
        [sys.executable, "-I", "-c", RECREATE, str(stage.ws), "20000"], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        came_back = 0
        while child.poll() is None:
            if select.select([stage.watch], [], [], 0.05)[0]:
                stage.watch.handle()
                came_back += child.poll() is None
        assert came_back > 1, "the other work of the supervisor waits for the loop"
    final = stage.watch.finish()
    assert stage.names() == []
    assert final[-1].taken.how == "counted"
    assert final[-1].times > 0
    assert len(os.listdir(stage.kept)) == 50
    assert len([item for item in final if item.taken.how == "moved"]) == 50
    assert Path("/etc/passwd").stat().st_ino == before.st_ino


SWAP = """
import os, sys
os.chdir(sys.argv[1])
os.makedirs("real/hooks", exist_ok=True)
print("ready", flush=True)
for number in range(1000):
    for step in (lambda: os.symlink(sys.argv[2], ".github"), lambda: os.unlink(".github"),
                 lambda: os.rename("real", ".github"), lambda: os.rename(".github", "real"),
                 lambda: os.makedirs("real/hooks", exist_ok=True)):
        try: step()
        except OSError: pass
"""


def test_swapping_folders_and_links_never_leads_the_sweep_outside(stage: Stage) -> None:
    outside = stage.ws.parent / "outside"
    (outside / "hooks").mkdir(parents=True)
    (outside / "hooks/file").write_text("stays")
    with subprocess.Popen(
        [sys.executable, "-I", "-c", SWAP, str(stage.ws), str(outside)], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        while child.poll() is None:
            if select.select([stage.watch], [], [], 0.05)[0]:
                stage.watch.handle()
    stage.watch.finish()
    assert (outside / "hooks/file").read_text() == "stays"
    assert not (stage.ws / ".github").is_symlink()
    assert not (stage.ws / ".github/hooks").exists()


def test_a_repository_made_inside_is_delivered_when_it_is_plain(stage: Stage) -> None:
    git("init", ".", cwd=stage.ws)
    (stage.ws / "file").write_text("x")
    git("add", "file", cwd=stage.ws)
    git("commit", "-m", "one", cwd=stage.ws)
    git("switch", "-c", "topic", cwd=stage.ws)
    git("remote", "add", "origin", "https://example.org/x.git", cwd=stage.ws)
    assert stage.handle() == []
    final = stage.watch.finish()
    assert [(item.path, item.taken.how) for item in final] == [(f"{stage.ws}/.git", "delivered")]
    git("fsck", cwd=stage.ws)


@pytest.mark.parametrize("when", ["made with it", "later by git", "later in place"])
def test_a_config_that_runs_something_is_taken_and_the_repository_stays(stage: Stage, when: str) -> None:
    config = stage.ws / ".git/config"
    if when == "made with it":
        git("init", "other", cwd=stage.ws.parent)
        git("config", "core.fsmonitor", "./evil", cwd=stage.ws.parent / "other")
        os.rename(stage.ws.parent / "other/.git", stage.ws / ".git")
    else:
        git("init", ".", cwd=stage.ws)
        assert stage.handle() == []
        if when == "later by git":
            git("config", "core.fsmonitor", "./evil", cwd=stage.ws)
        else:
            with open(config, "a") as file:
                file.write("[core]\n\tfsmonitor = ./evil\n")
    found = stage.handle()
    assert [item.path for item in found] == [str(config)]
    assert "core.fsmonitor" in found[0].reason
    assert not config.exists()
    assert (stage.ws / ".git/HEAD").exists()


def test_a_hook_in_a_repository_made_inside_is_taken(stage: Stage) -> None:
    git("init", ".", cwd=stage.ws)
    stage.handle()
    as_file(stage.ws / ".git/hooks/post-checkout")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.git/hooks/post-checkout"]
    assert any(name.endswith(".sample") for name in os.listdir(stage.ws / ".git/hooks"))


def test_hooks_that_come_back_in_a_new_folder_are_taken(stage: Stage) -> None:
    git("init", ".", cwd=stage.ws)
    stage.handle()
    os.rename(stage.ws / ".git/hooks", stage.ws / "x")
    (stage.ws / ".git/hooks").mkdir()
    stage.handle()
    as_file(stage.ws / ".git/hooks/pre-push")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.git/hooks/pre-push"]


@pytest.mark.parametrize(
    "name", ["commondir", "config.worktree", "info/attributes", "objects/info/alternates"]
)
def test_a_redirect_in_a_repository_made_inside_is_taken(stage: Stage, name: str) -> None:
    git("init", ".", cwd=stage.ws)
    stage.handle()
    as_file(stage.ws / ".git" / name)
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.git/{name}"]


def test_a_second_repository_after_the_first_was_moved_away_is_watched(stage: Stage) -> None:
    git("init", ".", cwd=stage.ws)
    stage.handle()
    os.rename(stage.ws / ".git", stage.ws / "old")
    stage.handle()
    git("init", ".", cwd=stage.ws)
    stage.handle()
    as_file(stage.ws / ".git/hooks/pre-push")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.git/hooks/pre-push"]


@pytest.mark.parametrize("way", [as_file, as_symlink, as_pipe], ids=lambda way: way.__name__)
def test_a_git_that_is_no_folder_is_taken(stage: Stage, way: Callable[[Path], None]) -> None:
    way(stage.ws / ".git")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.git"]


def test_a_config_changed_through_a_memory_map_is_found_at_the_end(stage: Stage) -> None:
    import mmap

    git("init", ".", cwd=stage.ws)
    config = stage.ws / ".git/config"
    with open(config, "a") as file:
        file.write("#" + " " * 100 + "\n")
    stage.handle()
    fd = os.open(config, os.O_RDWR)
    mapped = mmap.mmap(fd, 0)
    evil = b"[core]\n\tfsmonitor = ./evil\n#"
    mapped[-len(evil) - 1 : -1] = evil
    stage.handled()
    mapped.close()
    os.close(fd)
    final = stage.watch.finish()
    assert [item.path for item in final if item.taken.how == "moved"] == [str(config)]


def test_the_workspace_itself_cannot_become_a_git_dir(stage: Stage) -> None:
    git("init", "--bare", ".", cwd=stage.ws)
    assert f"{stage.ws}/HEAD" in [item.path for item in stage.handle()]
    assert not (stage.ws / "HEAD").exists()


def test_a_project_with_a_file_called_HEAD_is_left_alone(stage: Stage) -> None:  # noqa: N802 -- the file's name
    as_file(stage.ws / "HEAD")
    (stage.ws / "objects").mkdir()
    assert stage.handle() == []


def test_a_name_can_be_added_while_the_watch_runs(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "ws").mkdir()
    as_file(top / "ws/CLAUDE.md")
    stage = Stage(top, present=("CLAUDE.md",))
    os.unlink(stage.ws / "CLAUDE.md")
    stage.watch.add(str(stage.ws), "CLAUDE.md", "was there at launch")
    as_file(stage.ws / "CLAUDE.md")
    assert [item.reason for item in stage.handle()] == ["was there at launch"]
    with pytest.raises(ValueError, match="not watched"):
        stage.watch.add("/", "x", "y")
    stage.close()


def test_a_name_beneath_a_folder_can_be_added_though_it_was_there_at_launch(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / "ws/.github/hooks").mkdir(parents=True)
    stage = Stage(top, present=(".github/hooks",))
    (stage.ws / ".github/hooks").rmdir()
    stage.watch.add(str(stage.ws), ".github/hooks", "was there at launch")
    as_file(stage.ws / ".github/hooks")
    assert [item.path for item in stage.handle()] == [f"{stage.ws}/.github/hooks"]
    stage.close()


def test_a_name_of_a_git_dir_is_added_there_and_the_dir_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    git("init", "ws", cwd=top)
    git("config", "core.fsmonitor", "./theirs", cwd=top / "ws")
    as_file(top / "ws/.git/hooks/pre-commit")
    stage = Stage(top)
    exclude = stage.ws / ".git/info/exclude"
    exclude.unlink()
    stage.watch.add(str(stage.ws), ".git/info/exclude", "was there at launch")
    as_file(exclude)
    assert [item.path for item in stage.handle()] == [str(exclude)]
    assert [item.path for item in stage.watch.finish()] == [str(exclude)]
    assert (stage.ws / ".git/config").exists()
    assert (stage.ws / ".git/hooks/pre-commit").exists()
    stage.close()


def test_a_place_behind_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="openat2"):
        Watch([Place(f"{tmp_path}/link", (("x", "y"),))], 0)


def test_what_cannot_be_taken_is_said_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(quarantine, "_rename", refuse)
    as_file(stage.ws / "CLAUDE.md")
    assert [item.taken.how for item in stage.handle()] == ["stuck"]
    os.rename(stage.ws / "CLAUDE.md", stage.ws / "x")
    os.rename(stage.ws / "x", stage.ws / "CLAUDE.md")
    assert stage.handle() == []


def test_a_closed_watch_leaves_no_fd(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    stage = Stage(Path(os.path.realpath(tmp_path)))
    git("init", ".", cwd=stage.ws)
    stage.handle()
    as_file(stage.ws / "CLAUDE.md")
    stage.watch.finish()
    stage.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("mode", [0, 0o200, 0o300, 0o400, 0o500])
def test_a_folder_that_is_closed_on_the_way_to_a_name_is_opened_and_swept(stage: Stage, mode: int) -> None:
    (stage.ws / ".github/hooks").mkdir(parents=True)
    os.chmod(stage.ws / ".github", mode)
    found = stage.handle()
    assert [(item.path, item.taken.how) for item in found] == [(f"{stage.ws}/.github/hooks", "moved")]


def test_a_workspace_that_is_closed_does_not_keep_a_name(stage: Stage) -> None:
    (stage.ws / "CLAUDE.md").write_text("planted")
    os.chmod(stage.ws, 0o400)
    try:
        assert [item.taken.how for item in stage.handle()] == ["moved"]
    finally:
        os.chmod(stage.ws, 0o700)
    assert stage.names() == []


@pytest.mark.parametrize("number", [28, 24])
def test_a_watch_refused_during_the_run_makes_it_blind_and_everything_is_looked_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(inotify.Inotify, "add", refuse)
    (stage.ws / ".github").mkdir()
    assert stage.handle() == []
    assert stage.watch.blind
    (stage.ws / ".github/hooks").mkdir()
    assert [item.path for item in stage.handled()] == [f"{stage.ws}/.github/hooks"]


def test_a_last_look_that_could_not_look_says_so_and_takes_what_it_saw(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.ws / ".github").mkdir()
    assert stage.handle() == []
    (stage.ws / ".github/hooks").mkdir()
    (stage.ws / "CLAUDE.md").write_text("planted")
    stage.watch.stop()
    listed = os.listdir

    def refuse(fd: int) -> list[str]:
        if os.path.samestat(os.stat(fd), os.stat(stage.ws / ".github")):
            raise OSError(24, os.strerror(24))
        return listed(fd)

    monkeypatch.setattr(os, "listdir", refuse)
    assert [item.path for item in stage.watch.finish()] == [f"{stage.ws}/CLAUDE.md"]
    assert stage.watch.missed is not None
    assert stage.watch.missed.errno == 24


def test_a_folder_of_somebody_else_is_no_look_that_was_missed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, os.strerror(13))

    (stage.ws / ".github").mkdir()
    stage.watch.stop()
    monkeypatch.setattr(sweep.walk, "enter", refuse)
    assert stage.watch.finish() == []
    assert stage.watch.missed is None


def test_a_watch_refused_before_the_command_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inotify.Inotify, "add", refuse)
    with pytest.raises(OSError, match="No space"):
        Stage(Path(os.path.realpath(tmp_path)))


def test_spellings_without_end_take_no_fds_without_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(sweep.SPOTS + 100):
        (stage.ws / f".github{'.' * (number % 240)}{' ' * (number // 240)}").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    stage.handle()
    assert len(os.listdir("/proc/self/fd")) - before <= sweep.SPOTS
    assert stage.watch.blind
    for name in os.listdir(stage.ws):
        (stage.ws / name / "hooks").mkdir()
    assert len(stage.handled()) == sweep.SPOTS + 100


def test_a_repository_is_judged_once_for_all_events(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    git("init", ".", cwd=stage.ws)
    stage.handle()
    judged: list[int] = []
    offences = sweep.freshgit.offences
    monkeypatch.setattr(sweep.freshgit, "offences", lambda fd: judged.append(fd) or offences(fd))
    for number in range(150):
        (stage.ws / f".git/hooks/{number}.sample").write_text("")
    stage.handle()
    assert len(judged) == 1
