"""Where a repository lies: real ones made by git, and those that an earlier run could have forged."""

import os
import subprocess
from pathlib import Path

import pytest

from jail.launch import gitlayout
from jail.launch.gitlayout import GitLayout
from jail.plan import protected

GIT = "/usr/bin/git"


def git(*arguments: str | Path, cwd: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    settings = ["-c", "user.name=N", "-c", "user.email=e@x", "-c", "protocol.file.allow=always"]
    subprocess.run([GIT, *settings, *map(str, arguments)], cwd=cwd, env=env, check=True, capture_output=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def repository(top: Path) -> Path:
    git("init", "main", cwd=top)
    git("commit", "--allow-empty", "-m", "one", cwd=top / "main")
    return top / "main"


def layout_of(workspace: Path, **given: str) -> GitLayout:
    found = gitlayout.read(str(workspace), **given)
    assert found is not None
    return found


def trusted(workspace: Path, **given: str) -> GitLayout:
    found = layout_of(workspace, **given)
    assert found.untrusted == ""
    return found


def paths(guards: object) -> set[str]:
    return {guard.path for guard in guards}  # type: ignore[attr-defined]  # tuples of Guarded


def test_a_folder_without_a_repository_has_no_layout(top: Path) -> None:
    assert gitlayout.read(str(top)) is None


def test_every_row_of_the_table_is_either_protected_or_watched(repository: Path) -> None:
    found = trusted(repository)
    gitdir = repository / ".git"
    assert (found.gitdir, found.commondir, found.kind) == (str(gitdir), str(gitdir), "folder")
    rows = [row for row in protected.PROTECTED if row.place != "workspace"]
    assert paths(found.protected) | paths(found.absent) == {f"{gitdir}/{row.name}" for row in rows}
    assert paths(found.protected).isdisjoint(paths(found.absent))
    for guard in found.protected:
        assert os.path.lexists(guard.path)
    for guard in found.absent:
        assert not os.path.lexists(guard.path)
        assert guard.kind == "absent"
    assert {f"{gitdir}/config", f"{gitdir}/hooks"} <= paths(found.protected)
    assert found.roots == (str(gitdir),)


def test_a_worktree_is_followed_to_its_repository_which_points_back(repository: Path, top: Path) -> None:
    git("worktree", "add", top / "wt", cwd=repository)
    found = trusted(top / "wt")
    common = f"{repository}/.git"
    assert (found.gitdir, found.commondir, found.kind) == (f"{common}/worktrees/wt", common, "worktree")
    assert {
        f"{top}/wt/.git",
        f"{common}/config",
        f"{common}/hooks",
        f"{common}/worktrees/wt/commondir",
        f"{common}/worktrees/wt/gitdir",
    } <= paths(found.protected)
    assert f"{common}/worktrees/wt/config.worktree" in paths(found.absent)
    assert set(found.roots) == {common, f"{common}/worktrees/wt"}


def test_the_repository_of_a_worktree_protects_that_worktrees_redirects(repository: Path, top: Path) -> None:
    git("worktree", "add", top / "wt", cwd=repository)
    assert f"{repository}/.git/worktrees/wt/commondir" in paths(trusted(repository).protected)


def test_submodules_and_theirs_are_protected_in_the_repository_above(repository: Path, top: Path) -> None:
    for name in ("inner", "middle"):
        git("init", name, cwd=top)
        git("commit", "--allow-empty", "-m", "one", cwd=top / name)
    git("submodule", "add", top / "inner", "libs/in", cwd=top / "middle")
    git("commit", "-am", "two", cwd=top / "middle")
    git("submodule", "add", "--name", "a/b", top / "middle", "mid", cwd=repository)
    git("submodule", "update", "--init", "--recursive", cwd=repository)
    modules = f"{repository}/.git/modules/a/b"
    found = trusted(repository)
    expected = {f"{modules}/config", f"{modules}/hooks", f"{modules}/modules/libs/in/config"}
    assert expected <= paths(found.protected)
    assert f"{modules}/modules/libs/in/commondir" in paths(found.absent)

    inside = trusted(repository / "mid")
    assert (inside.gitdir, inside.kind) == (modules, "submodule")
    assert f"{repository}/mid/.git" in paths(inside.protected)


def test_a_separate_git_dir_is_believed_only_once_it_names_the_workspace(top: Path) -> None:
    git("init", "--separate-git-dir", top / "away", "ws", cwd=top)
    refused = layout_of(top / "ws")
    assert "core.worktree" in refused.untrusted
    assert paths(refused.protected) == {f"{top}/ws/.git"}
    assert (refused.gitdir, refused.absent, refused.roots) == ("", (), ())
    git("config", "core.worktree", top / "ws-other", cwd=top / "ws")
    assert "core.worktree" in layout_of(top / "ws").untrusted
    git("config", "core.worktree", top / "ws", cwd=top / "ws")
    assert trusted(top / "ws").gitdir == f"{top}/away"


def test_a_git_dir_elsewhere_in_the_workspace_needs_no_pointing_back(top: Path) -> None:
    git("init", "--separate-git-dir", top / "ws/.bare", "ws", cwd=top)
    found = trusted(top / "ws")
    assert (found.gitdir, found.kind) == (f"{top}/ws/.bare", "inside")
    assert f"{top}/ws/.bare/config" in paths(found.protected)


def test_a_workspace_that_is_a_bare_repository_is_one(top: Path) -> None:
    git("init", "--bare", "bare.git", cwd=top)
    found = trusted(top / "bare.git")
    assert found.kind == "bare"
    assert f"{top}/bare.git/config" in paths(found.protected)


def forge(workspace: Path, target: str) -> None:
    workspace.mkdir()
    (workspace / ".git").write_text(f"gitdir: {target}\n")


def test_a_forged_git_file_to_another_repository_is_not_followed(repository: Path, top: Path) -> None:
    forge(top / "ws", f"{repository}/.git")
    assert "does not name this workspace" in layout_of(top / "ws").untrusted


def test_a_forged_git_file_to_another_ones_worktree_is_not_followed(repository: Path, top: Path) -> None:
    git("worktree", "add", top / "wt", cwd=repository)
    forge(top / "ws", f"{repository}/.git/worktrees/wt")
    assert "does not name this workspace" in layout_of(top / "ws").untrusted


def test_a_worktree_whose_commondir_leads_away_is_not_followed(repository: Path, top: Path) -> None:
    git("worktree", "add", top / "wt", cwd=repository)
    git("init", "evil", cwd=top)
    (repository / ".git/worktrees/wt/commondir").write_text(f"{top}/evil/.git\n")
    assert "whose worktree it is not" in layout_of(top / "wt").untrusted


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("gitdir: ..\n", "core.worktree"),
        ("gitdir: ../nowhere\n", "no folder"),
        ("gitdir: \n", "does not name one folder"),
        ("nonsense\n", "does not name one folder"),
        ("gitdir: a\nb\n", "does not name one folder"),
        ("", "does not name one folder"),
        ("gitdir: " + "x" * 10_000, "longer than"),
    ],
)
def test_a_git_file_that_makes_no_sense_is_untrusted(top: Path, content: str, reason: str) -> None:
    (top / "ws").mkdir()
    (top / "ws/.git").write_text(content)
    assert reason in layout_of(top / "ws").untrusted


def test_a_git_symlink_is_untrusted_and_protected_itself(repository: Path, top: Path) -> None:
    (top / "ws").mkdir()
    (top / "ws/.git").symlink_to(repository / ".git")
    found = layout_of(top / "ws")
    assert "symlink" in found.untrusted
    assert [(guard.path, guard.kind) for guard in found.protected] == [(f"{top}/ws/.git", "symlink")]


def test_a_git_file_through_a_symlink_of_the_workspace_is_not_followed(repository: Path, top: Path) -> None:
    git("worktree", "add", top / "wt", cwd=repository)
    (top / "wt/way").symlink_to(repository / ".git/worktrees")
    (top / "wt/.git").write_text("gitdir: way/wt\n")
    assert "symlink of the workspace" in layout_of(top / "wt").untrusted


def test_a_pipe_in_place_of_a_pointer_does_not_hang(repository: Path, top: Path) -> None:
    git("worktree", "add", top / "wt", cwd=repository)
    (repository / ".git/worktrees/wt/commondir").unlink()
    os.mkfifo(repository / ".git/worktrees/wt/commondir")
    assert layout_of(top / "wt").untrusted


def test_a_git_folder_with_a_commondir_is_untrusted(repository: Path) -> None:
    (repository / ".git/commondir").write_text("../evil")
    assert "commondir" in layout_of(repository).untrusted


def test_a_configuration_that_cannot_be_understood_but_may_redirect_is_untrusted(repository: Path) -> None:
    with open(repository / ".git/config", "a") as config:
        config.write("[core\n\thooksPath = x\n")
    assert "cannot be understood" in layout_of(repository).untrusted


@pytest.mark.parametrize(
    ("value", "path"),
    [(".husky", ".husky"), ("tools/../.hooks", ".hooks"), ("~/main/h", "h"), ("/outside", "")],
)
def test_a_hooks_folder_in_the_workspace_is_protected_or_watched(
    repository: Path, top: Path, value: str, path: str
) -> None:
    git("config", "core.hooksPath", value, cwd=repository)
    found = trusted(repository, home=str(top))
    assert (f"{repository}/{path}" in paths(found.absent)) is bool(path)
    if path:
        (repository / path).mkdir()
        assert f"{repository}/{path}" in paths(trusted(repository, home=str(top)).protected)


def test_hooks_behind_a_symlink_are_protected_with_the_link(repository: Path) -> None:
    (repository / "real").mkdir()
    (repository / "alias").symlink_to("real")
    git("config", "core.hooksPath", "alias", cwd=repository)
    guards = {guard.path: guard.kind for guard in trusted(repository).protected}
    assert guards[f"{repository}/alias"] == "symlink"
    assert guards[f"{repository}/real"] == "folder"


def test_the_workspace_as_hooks_folder_is_refused(repository: Path) -> None:
    git("config", "core.hooksPath", ".", cwd=repository)
    assert "the workspace itself" in layout_of(repository).untrusted


def test_the_persons_own_relative_hooks_path_counts_too(repository: Path) -> None:
    assert f"{repository}/.githooks" in paths(trusted(repository, hooks_path=".githooks").absent)


def test_included_files_in_the_workspace_are_protected_and_read_on(repository: Path) -> None:
    git("config", "include.path", "../shared.inc", cwd=repository)
    git("config", "includeIf.gitdir:/.path", "../later.inc", cwd=repository)
    circle = "[core]\n\thooksPath = from-include\n[include]\n\tpath = shared.inc\n"
    (repository / "shared.inc").write_text(circle)
    found = trusted(repository)
    assert f"{repository}/shared.inc" in paths(found.protected)
    assert {f"{repository}/later.inc", f"{repository}/from-include"} <= paths(found.absent)


def test_a_part_that_is_a_symlink_is_protected_itself(repository: Path) -> None:
    (repository / "myhooks").mkdir()
    hooks = repository / ".git/hooks"
    for sample in hooks.iterdir():
        sample.unlink()
    hooks.rmdir()
    hooks.symlink_to("../myhooks")
    guards = {guard.path: guard.kind for guard in trusted(repository).protected}
    assert guards[f"{hooks}"] == "symlink"
    assert guards[f"{repository}/myhooks"] == "folder"


def test_more_git_dirs_than_the_bound_are_untrusted(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitlayout, "REPOSITORIES", 5)
    for number in range(10):
        (repository / f".git/modules/{number}").mkdir(parents=True)
        (repository / f".git/modules/{number}/HEAD").write_text("ref: refs/heads/main")
    assert "more submodules" in layout_of(repository).untrusted


def test_no_git_is_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git("config", "core.hooksPath", ".husky", cwd=repository)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    for call in ("posix_spawn", "posix_spawnp", "fork", "system"):
        monkeypatch.setattr(os, call, refuse)
    assert trusted(repository)


def test_programs_that_the_configuration_names_in_the_workspace_are_protected(repository: Path) -> None:
    for name in ("tools/clean", "tools/show", "tools/watch", "plain"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text("")
    (repository / "tools/linked").symlink_to("show")
    for key, value in (
        ("filter.x.clean", "tools/clean %f"),
        ("diff.x.textconv", "python3 tools/linked"),
        ("merge.x.driver", "tools/absent %O"),
        ("core.fsmonitor", f"{repository}/tools/watch"),
        ("core.editor", "vi"),
        ("core.sshCommand", "/usr/bin/ssh plain"),
        ("alias.x", "log plain"),
    ):
        git("config", key, value, cwd=repository)
    found = trusted(repository)
    own = {each.path: each.reason for each in found.protected if each.reason.startswith("git runs it")}
    names = ("tools/clean", "tools/linked", "tools/show", "tools/watch", "plain")
    assert own.keys() == {f"{repository}/{name}" for name in names}
    assert own[f"{repository}/tools/clean"] == "git runs it (filter.clean)"
    assert f"{repository}/tools/absent" in paths(found.absent)
