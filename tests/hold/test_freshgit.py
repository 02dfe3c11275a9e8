"""A git dir made inside: what may stay, from real ones made by git, and what may not, row by row."""

import os
import subprocess
from pathlib import Path

import pytest

from jail.hold import freshgit
from jail.plan.protected import PROTECTED

GIT = "/usr/bin/git"


def git(*arguments: str, cwd: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=N", "-c", "user.email=e@x"]
    subprocess.run([GIT, *identity, *arguments], cwd=cwd, env=env, check=True, capture_output=True)


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    git("init", "ws", cwd=tmp_path)
    return tmp_path / "ws/.git"


def offences(gitdir: Path) -> dict[str, str]:
    fd = os.open(gitdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return dict(freshgit.offences(fd))
    finally:
        os.close(fd)


def test_what_git_makes_and_ordinary_work_leaves_may_stay(fresh: Path) -> None:
    assert offences(fresh) == {}
    work = fresh.parent
    git("commit", "--allow-empty", "-m", "one", cwd=work)
    git("switch", "-c", "topic", cwd=work)
    git("remote", "add", "origin", "https://example.org/x.git", cwd=work)
    git("gc", cwd=work)
    git("stash", "list", cwd=work)
    assert offences(fresh) == {}


MUST_GO = [
    row
    for row in PROTECTED
    if row.place != "workspace" and row.name not in ("config", "hooks", "info/exclude")
]


@pytest.mark.parametrize("row", MUST_GO, ids=lambda row: row.name)
@pytest.mark.parametrize("kind", ["file", "folder", "symlink"])
def test_each_redirecting_name_of_the_table_may_not_stay(fresh: Path, row: object, kind: str) -> None:
    path = fresh / row.name  # type: ignore[attr-defined]  # a Protected
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.write_text("x")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/nowhere")
    assert list(offences(fresh)) == [row.name]  # type: ignore[attr-defined]  # a Protected


@pytest.mark.parametrize("kind", ["folder", "symlink", "pipe", "runs something", "unreadable size"])
def test_a_config_that_is_no_plain_file_may_not_stay(fresh: Path, kind: str) -> None:
    config = fresh / "config"
    if kind == "runs something":
        with open(config, "a") as file:
            file.write("[core]\n\tfsmonitor = ./x\n")
        assert "core.fsmonitor" in offences(fresh)["config"]
        return
    config.unlink()
    if kind == "folder":
        config.mkdir()
    elif kind == "symlink":
        config.symlink_to("../evil")
    elif kind == "pipe":
        os.mkfifo(config)
    else:
        config.write_bytes(b"#" * 1_000_000)
    assert list(offences(fresh)) == ["config"]


def test_hooks_that_are_no_samples_may_not_stay(fresh: Path) -> None:
    hooks = fresh / "hooks"
    (hooks / "post-checkout").write_text("#!/bin/sh\n")
    (hooks / "pre-commit").symlink_to("/bin/sh")
    (hooks / "linked.sample").symlink_to("/bin/sh")
    (hooks / "folder.sample").mkdir()
    expected = {"hooks/post-checkout", "hooks/pre-commit", "hooks/linked.sample", "hooks/folder.sample"}
    assert set(offences(fresh)) == expected


def test_a_hooks_folder_that_is_a_link_may_not_stay(fresh: Path) -> None:
    os.rename(fresh / "hooks", fresh / "old")
    (fresh / "hooks").symlink_to("old")
    assert set(offences(fresh)) == {"hooks"}


def test_too_many_hooks_go_as_one(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshgit, "HOOK_NAMES", 3)
    for number in range(5):
        (fresh / f"hooks/{number}").write_text("x")
    assert set(offences(fresh)) == {"hooks"}


@pytest.mark.parametrize("part", ["info", "objects"])
def test_a_part_that_is_a_symlink_may_not_stay(fresh: Path, part: str) -> None:
    os.rename(fresh / part, fresh.parent / "away")
    (fresh / part).symlink_to("../away")
    assert part in offences(fresh)


@pytest.mark.parametrize("part", ["", "hooks", "info", "objects"])
def test_a_part_that_was_closed_is_opened_or_offends(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    (fresh / "hooks/post-checkout").write_text("#!/bin/sh\n")
    (fresh / "info/attributes").write_text("x")
    (fresh / "objects/info/alternates").write_text("x")
    expected = {"hooks/post-checkout", "info/attributes", "objects/info/alternates"}
    fd = os.open(fresh, os.O_RDONLY)
    os.chmod(fresh / part, 0)
    assert {path for path, _ in freshgit.offences(fd)} == expected
    os.chmod(fresh / part, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "chmod", refuse)
        assert part in dict(freshgit.offences(fd))
    os.chmod(fresh / part, 0o700)
    os.close(fd)


def refuse(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")
