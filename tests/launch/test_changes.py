"""Files that run by themselves and changed during a run: listed, whatever the program did to hide it."""

import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jail.hold.freshgit import Place
from jail.kernel import walk
from jail.launch import changes
from jail.launch.changes import Changed

GIT = "/usr/bin/git"


def git(*arguments: str, cwd: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([GIT, *arguments], cwd=cwd, env=env, check=True, capture_output=True)


def changed(top: Path, since: int, **bounds: int) -> list[Changed]:
    fd = os.open(top, os.O_RDONLY)
    try:
        return list(changes.auto_exec_changes(fd, since, **bounds))
    finally:
        os.close(fd)


def start() -> int:
    """A launch: what was written before is older, what is written after is newer, whatever the tick."""
    time.sleep(0.03)
    now = time.time_ns()
    time.sleep(0.03)
    return now


def deep(top: Path, levels: int, name: str, file: str = "Makefile") -> None:
    """A chain of folders, each with a file that is not in the table, the last with `file`."""
    fd = os.open(top, os.O_RDONLY)
    for level in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        os.close(os.open(file if level == levels - 1 else "plain", os.O_CREAT, dir_fd=fd))
    os.close(fd)


def paths(rows: list[Changed]) -> list[str]:
    return [row.path for row in rows]


def test_new_and_changed_files_are_listed_with_their_digest_and_old_ones_are_not(tmp_path: Path) -> None:
    for name in ("Makefile", "setup.py", "main.py"):
        (tmp_path / name).write_text("old")
    since = start()
    (tmp_path / "Makefile").write_text("abc")
    (tmp_path / "main.py").write_text("new")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/conftest.py").write_text("new")
    rows = changed(tmp_path, since)
    assert paths(rows) == ["Makefile", "deep/er/conftest.py"]
    assert rows[0].digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert rows[0].reason == "make runs it"


def test_each_has_the_tier_of_the_table(tmp_path: Path) -> None:
    since = start()
    for name in ("Makefile", "CLAUDE.md", ".husky/pre-commit", ".venv/pyvenv.cfg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("new")
    git("init", "evil", cwd=tmp_path)
    git("config", "core.fsmonitor", "./x", cwd=tmp_path / "evil")
    assert {row.path: row.tier for row in changed(tmp_path, since)} == {
        ".husky": "refused",
        ".husky/pre-commit": "refused",
        ".venv/pyvenv.cfg": "refused",
        "CLAUDE.md": "refused",
        "Makefile": "warned",
        "evil/.git/config": "refused",
    }


def test_a_time_set_back_does_not_hide_a_change(tmp_path: Path) -> None:
    since = start()
    (tmp_path / "Makefile").write_text("new")
    os.utime(tmp_path / "Makefile", ns=(0, 0))
    assert paths(changed(tmp_path, since)) == ["Makefile"]


def test_a_worktree_in_order_offends_only_where_nobody_says_where_it_may_lead(tmp_path: Path) -> None:
    since = start()
    work = tmp_path / "work"
    git("init", "-q", "work", cwd=tmp_path)
    git("-c", "user.name=N", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "x", cwd=work)
    git("worktree", "add", "-q", "tree", cwd=work)
    offending = {row.path for row in changed(tmp_path, since) if row.offends}
    assert offending == {f"work/.git/worktrees/tree/{name}" for name in ("commondir", "gitdir")}
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        where = Place(str(tmp_path), ((str(tmp_path), fd),))
        rows = list(changes.auto_exec_changes(fd, since, where=where))
    finally:
        os.close(fd)
    assert not [row for row in rows if row.offends]


def test_a_rename_over_it_and_a_symlink_are_changes(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    since = start()
    os.rename(tmp_path / "other", tmp_path / "Makefile")
    (tmp_path / "package.json").symlink_to("/dev/null")
    rows = changed(tmp_path, since)
    assert [(row.path, row.kind) for row in rows] == [("Makefile", "file"), ("package.json", "symlink")]
    assert len(rows[1].digest) == 64


def test_a_folder_that_the_table_names_is_listed_when_it_was_moved_there(tmp_path: Path) -> None:
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/tasks.json").write_text("old")
    since = start()
    os.rename(tmp_path / "sample", tmp_path / ".vscode")
    assert ".vscode" in paths(changed(tmp_path, since))


def test_nested_repositories_with_something_to_run_are_listed_whatever_their_name(tmp_path: Path) -> None:
    since = start()
    git("init", "plain", cwd=tmp_path)
    git("init", "evil", cwd=tmp_path)
    git("config", "core.fsmonitor", "./x", cwd=tmp_path / "evil")
    (tmp_path / "evil/.git/hooks/post-checkout").write_text("#!/bin/sh\n")
    git("init", "--bare", "odd-name", cwd=tmp_path)
    git("config", "core.sshCommand", "./x", cwd=tmp_path / "odd-name")
    rows = {row.path: row.reason for row in changed(tmp_path, since)}
    assert set(rows) == {"evil/.git/config", "evil/.git/hooks/post-checkout", "odd-name/config"}
    assert "core.fsmonitor" in rows["evil/.git/config"]
    assert "core.sshcommand" in rows["odd-name/config"]


def test_a_rebase_that_was_left_open_is_listed(tmp_path: Path) -> None:
    since = start()
    (tmp_path / ".git/rebase-merge").mkdir(parents=True)
    (tmp_path / ".git/rebase-merge/git-rebase-todo").write_text("exec evil\n")
    assert paths(changed(tmp_path, since)) == [".git/rebase-merge/git-rebase-todo"]


def test_installed_packages_are_one_row_with_their_number(tmp_path: Path) -> None:
    since = start()
    for number in range(30):
        package = tmp_path / f"web/node_modules/p{number}"
        package.mkdir(parents=True)
        (package / "package.json").write_text("{}")
    (tmp_path / "web/package.json").write_text("{}")
    rows = changed(tmp_path, since)
    assert paths(rows) == ["web/package.json", "web/node_modules"]
    assert rows[1].reason.startswith("30 changed files")


def test_rows_past_the_bound_are_counted(tmp_path: Path) -> None:
    since = start()
    for number in range(10):
        (tmp_path / f"{number}.mk").write_text("x")
    rows = changed(tmp_path, since, rows=4)
    assert len(rows) == 5
    assert rows[-1] == Changed("", "more", "6 more such files changed", "")


def test_hostile_names_and_pipes_are_listed_and_not_opened(tmp_path: Path) -> None:
    since = start()
    for name in ("-rf", "new\nline", "\udcff"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text("x")
    os.mkfifo(tmp_path / "Jenkinsfile")
    rows = changed(tmp_path, since)
    assert set(paths(rows)) == {"-rf/Makefile", "new\nline/Makefile", "\udcff/Makefile", "Jenkinsfile"}
    assert next(row for row in rows if row.path == "Jenkinsfile").digest == ""


def test_a_tree_past_the_bound_says_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ENTRIES", 3)
    since = start()
    for number in range(10):
        (tmp_path / f"{number}").write_text("x")
    assert changed(tmp_path, since)[0].reason.startswith("not listed from here on")


def counted(monkeypatch: pytest.MonkeyPatch, top: Path, **bounds: int) -> Counter[str]:
    """How often one look asks for what may cost more where a tree is deeper."""
    calls: Counter[str] = Counter()
    canonical, enter, path = changes.canonical, changes.autoexec.enter, walk.Folder.path.fget  # type: ignore[attr-defined]  # a property has it

    def counting(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(changes, "canonical", counting("canonical", canonical))
        patch.setattr(changes.autoexec, "canonical", counting("canonical", canonical))
        patch.setattr(changes.autoexec, "enter", counting("enter", enter))
        patch.setattr(walk.Folder, "path", property(counting("path", path)))
        calls["rows"] = len(changed(top, 0, **bounds))
    return calls


def test_what_a_look_asks_grows_with_the_entries_and_not_with_their_depth(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}
    for levels in (50, 500):
        top = memory / f"{levels}"
        top.mkdir()
        deep(top, levels, "d")
        asked[levels] = counted(monkeypatch, top)
        entries = 2 * levels
        assert asked[levels]["rows"] == 1
        assert asked[levels]["path"] == 1, "a path is built for a row, and for nothing else"
        assert asked[levels]["canonical"] <= 2 * entries
        assert asked[levels]["enter"] <= entries
    assert asked[500]["canonical"] <= 10 * asked[50]["canonical"]
    assert asked[500]["enter"] <= 10 * asked[50]["enter"]


def test_no_path_is_built_for_rows_past_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/Makefile").write_text("x")
    asked = counted(monkeypatch, tmp_path, rows=4)
    assert asked["rows"] == 5
    assert asked["path"] == 4


def test_what_lies_deeper_than_a_path_can_say_is_one_row_with_its_number(memory: Path) -> None:
    since = start()
    deep(memory, 3_000, "d")
    deep(memory, 30, "n" * 250, "package.json")
    (memory / "z").mkdir()
    (memory / "z/Makefile").write_text("x")
    first, *rows = changed(memory, since)
    assert first.path == "z/Makefile"
    assert [row.path for row in rows] == ["/".join("d" * 1921), "/".join(["n" * 250] * 16)]
    assert all(len(row.path) < 4096 for row in rows)
    assert {(row.kind, row.reason.split()[0], row.digest) for row in rows} == {("more", "1", "")}


def test_a_repository_deeper_than_a_path_can_say_offends_too(memory: Path) -> None:
    since = start()
    deep(memory, 20, "n" * 250, "HEAD")
    here = os.getcwd()
    os.chdir(memory)
    try:
        for _ in range(20):
            os.chdir("n" * 250)
        os.mkdir("objects")
        os.mkdir("refs")
        Path("config").write_text("[core]\n\tfsmonitor = ./x\n")
    finally:
        os.chdir(here)
    (row,) = changed(memory, since)
    assert row.offends
    assert row.name == "config"
    assert row.path.endswith("/…/config")
    assert len(os.fsencode(row.path)) < 4096


def test_folders_beside_and_after_a_deep_one_are_known_by_their_own_ancestors(tmp_path: Path) -> None:
    since = start()
    for name in (
        "a/.vscode/deep/er/tasks.json",
        "a/b/tasks.json",
        "c/.github/workflows/x/y.yml",
        "c/.github/z/y.yml",
        "c/node_modules/p/package.json",
        "c/zz/package.json",
        "d/workflows/y.yml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert paths(changed(tmp_path, since)) == [
        "a/.vscode",
        "a/.vscode/deep/er/tasks.json",
        "c/.github/workflows",
        "c/.github/workflows/x/y.yml",
        "c/zz/package.json",
        "c/node_modules",
    ]


def test_closed_folders_are_opened_and_what_stays_closed_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = start()
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/Makefile").write_text("x")
    os.chmod(tmp_path / "closed", 0)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "chmod", refuse)
        (row,) = changed(tmp_path, since)
    assert (row.path, row.kind) == ("", "more")
    assert row.reason.endswith("could not be entered, and were not looked at: 1")
    assert paths(changed(tmp_path, since)) == ["closed/Makefile"]


def test_what_makes_git_run_something_offends_and_no_number_of_rows_hides_it(tmp_path: Path) -> None:
    since = start()
    git("init", "nested", cwd=tmp_path)
    (tmp_path / "nested/.git/hooks/post-checkout").write_text("#!/bin/sh\n")
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text("x")
    rows = changed(tmp_path, since, rows=1)
    assert [(row.path, row.offends) for row in rows if row.kind == "file"] == [
        ("a/Makefile", False),
        ("nested/.git/hooks/post-checkout", True),
    ]


def test_past_the_bound_of_entries_and_of_rows_what_offends_is_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "ENTRIES", 3)
    since = start()
    for number in range(10):
        (tmp_path / f"{number}").write_text("x")
    for name in ("one", "two"):
        git("init", name, cwd=tmp_path)
        git("config", "core.fsmonitor", "./x", cwd=tmp_path / name)
    rows = [row for row in changed(tmp_path, since, rows=1) if row.offends]
    assert [(row.path, bool(row.digest)) for row in rows] == [
        ("one/.git/config", True),
        ("two/.git/config", False),
    ]
