"""The host's git as jail runs it: by absolute path, in a clean environment, bounded."""

import os
from pathlib import Path

import pytest

from jail.hold import hostgit
from jail.hold.hostgit import Said


def fake(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(hostgit, "GITS", (str(program),))


def test_git_is_found_by_a_fixed_list_and_never_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexit 77\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hostgit.path() in hostgit.GITS
    said = hostgit.config(("--file", "/dev/null", "--list"), {})
    assert said == Said(0, b"")


def test_no_repository_and_no_variable_of_the_caller_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[a]\n\tb = c\n")
    for name in ("GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "planted.key")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "1")
    monkeypatch.chdir(tmp_path)
    assert hostgit.config(("--list",), {}) == Said(0, b"")
    control = hostgit.config(("--file", f"{tmp_path}/config", "--list"), {})
    assert control == Said(0, b"a.b=c\n")


def test_what_a_caller_sets_goes_before(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[a]\n\tb = c\n")
    assert hostgit.config(("--global", "--list"), {"HOME": str(tmp_path)}) == Said(0, b"a.b=c\n")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 3", Said(3, b"")),
        ("kill -9 $$", Said(-9, b"")),
        ("cat", Said(0, b"")),
        ("exec sleep 60", None),
        ("exec yes", None),
    ],
)
def test_how_it_ends_is_said_and_what_does_not_end_is_ended(
    tmp_path: Path, body: str, said: Said | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, body, monkeypatch)
    monkeypatch.setattr(hostgit, "SECONDS", 0.3 if said is None else 10)
    assert hostgit.config(("--list",), {}) == said
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("gits", [(), ("/nowhere/git",)])
def test_without_git_there_is_no_answer(gits: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostgit, "GITS", gits)
    assert hostgit.path() == ""
    assert hostgit.config(("--list",), {}) is None
