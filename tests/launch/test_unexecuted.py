"""A command that could not be executed: env(1)'s codes, and the option that gives what only the host has."""

import errno
from pathlib import Path

import pytest

from jail.launch.unexecuted import not_executed


@pytest.mark.parametrize(
    ("number", "code", "hint"),
    [
        (errno.ENOENT, 127, "`jail plan` shows what is there"),
        (errno.ENOTDIR, 127, "`jail plan` shows what is there"),
        (errno.EACCES, 126, "`chmod +x`"),
        (errno.ENOEXEC, 126, "`#!` line"),
        (errno.E2BIG, 126, "execve(2)"),
    ],
)
def test_each_errno_has_its_code_and_what_to_do(number: int, code: int, hint: str) -> None:
    error = not_executed("tool", number, {"PATH": "/nonexistent"})
    assert error.code == code
    assert hint in error.hint
    assert error.where.startswith("inside the jail")


def test_what_only_the_host_has_is_named_with_the_option_that_gives_it(tmp_path: Path) -> None:
    real, shown = tmp_path / "opt", tmp_path / "bin"
    for folder in (real, shown):
        folder.mkdir()
    (real / "tool").write_text("#!/bin/sh\n", encoding="utf-8")
    (real / "tool").chmod(0o755)
    (shown / "tool").symlink_to(real / "tool")
    hint = f"on the host it is {real}/tool: give its folder with --read {real}"
    assert not_executed("tool", errno.ENOENT, {"PATH": f"/nonexistent:{shown}"}).hint == hint
    assert not_executed(f"{shown}/tool", errno.ENOENT, {}).hint == hint
    (real / "tool").chmod(0o644)
    assert "on the host" not in not_executed("tool", errno.ENOENT, {"PATH": str(shown)}).hint
