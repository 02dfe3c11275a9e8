"""The person's git identity: from their own configuration, cached, never from a workspace."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.hold import hostgit
from jail.kernel import cache as caching
from jail.launch import gitidentity
from jail.launch.gitidentity import Personal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def personal(home: Path, **environ: str) -> Personal:
    return gitidentity.personal(str(home), environ, str(home.parent / "cache"))


def write(home: Path, text: str) -> None:
    (home / ".gitconfig").write_text(text)


def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("git was started")

    monkeypatch.setattr(os, "posix_spawn", refuse)


def test_name_email_and_hooks_folder_come_from_the_persons_file(home: Path) -> None:
    write(home, "[user]\n\tname = Ada \u00c9\n\temail = ada@example.org\n[core]\n\thooksPath = .githooks\n")
    assert personal(home) == Personal("Ada \u00c9", "ada@example.org", ".githooks", "")


def test_the_environment_goes_before_the_file(home: Path) -> None:
    write(home, "[user]\n\tname = Ada\n\temail = ada@example.org\n")
    found = personal(home, GIT_AUTHOR_NAME="Bob", GIT_COMMITTER_EMAIL="bob@example.org")
    assert found == Personal("Bob", "bob@example.org", "", "")


def test_includes_are_followed_and_not_cached(home: Path) -> None:
    write(home, "[include]\n\tpath = more\n")
    (home / "more").write_text("[user]\n\tname = Ada\n")
    assert personal(home).name == "Ada"
    (home / "more").write_text("[user]\n\tname = Bob\n")
    assert personal(home).name == "Bob"


def test_the_other_place_of_the_file_counts(home: Path) -> None:
    (home / "xdg/git").mkdir(parents=True)
    (home / "xdg/git/config").write_text("[user]\n\tname = Ada\n")
    assert personal(home, XDG_CONFIG_HOME=f"{home}/xdg").name == "Ada"
    assert personal(home, XDG_CONFIG_HOME="xdg").name == "", "a relative one is ignored, as its standard says"


def test_a_repository_in_the_current_folder_says_nothing(
    home: Path, tmp_path: Path, monkeypatch: object
) -> None:
    write(home, "[user]\n\tname = Ada\n")
    (tmp_path / "ws/.git").mkdir(parents=True)
    (tmp_path / "ws/.git/config").write_text("[user]\n\temail = planted@example.org\n")
    here = os.getcwd()
    os.chdir(tmp_path / "ws")
    try:
        found = personal(home, GIT_DIR=f"{tmp_path}/ws/.git", GIT_CONFIG_GLOBAL=f"{tmp_path}/ws/.git/config")
    finally:
        os.chdir(here)
    assert found == Personal("Ada", "", "", "")


def test_git_is_not_started_again_until_the_file_changes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "[user]\n\tname = Ada\n")
    assert personal(home).name == "Ada"
    with monkeypatch.context() as patched:
        no_git(patched)
        assert personal(home).name == "Ada"
    write(home, "[user]\n\tname = Adele\n")
    assert personal(home).name == "Adele"


def test_git_is_not_started_for_a_person_without_configuration(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_git(monkeypatch)
    assert personal(home) == Personal("", "", "", "")


def altered(cache: Path) -> None:
    cache.write_bytes(cache.read_bytes().replace(b"Ada", b"Eve"))


def nonsense(cache: Path) -> None:
    cache.write_bytes(b"\xff\xfe nonsense")


def of_another_home(cache: Path) -> None:
    other = cache.parent.parent / "other"
    other.mkdir()
    write(other, "[user]\n\tname = Eve\n")
    assert personal(other).name == "Eve"


def writable_by_all(cache: Path) -> None:
    cache.chmod(0o602)


@pytest.mark.parametrize("spoil", [altered, nonsense, of_another_home, writable_by_all])
def test_a_cache_that_cannot_be_trusted_is_made_anew_silently(
    home: Path,
    spoil: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    write(home, "[user]\n\tname = Ada\n")
    assert personal(home).name == "Ada"
    (cache,) = (home.parent / "cache").iterdir()
    good = cache.read_bytes()
    spoil(cache)
    assert personal(home).name == "Ada"
    assert cache.read_bytes() == good
    no_git(monkeypatch)
    assert personal(home).name == "Ada"
    assert capfd.readouterr() == ("", "")


def test_files_of_equal_stamps_in_two_homes_are_told_apart(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inode numbers are those of one file system, and two homes may lie on two."""
    monkeypatch.setattr(gitidentity, "_stamp", lambda _: "1 1 1")
    other = home.parent / "other"
    other.mkdir()
    write(home, "[user]\n\tname = Ada\n")
    write(other, "[user]\n\tname = Eve\n")
    assert [personal(home).name, personal(other).name] == ["Ada", "Eve"]


@pytest.mark.parametrize("change", ["jail", "its own code"])
def test_another_jail_asks_git_again(home: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "[user]\n\tname = Ada\n")
    assert personal(home).name == "Ada"
    if change == "jail":
        monkeypatch.setattr(gitidentity, "__version__", "99")
    else:
        monkeypatch.setattr(caching, "generation", lambda folder, modules: f"{folder} {modules} edited")
    monkeypatch.setattr(hostgit, "GITS", ())
    assert personal(home).name == ""


def test_no_git_a_failing_git_and_a_sleeping_git_are_no_identity(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "[user]\n\tname = Ada\n")
    monkeypatch.setattr(hostgit, "SECONDS", 0.2)
    for body in ("", "#!/bin/sh\nexit 128\n", "#!/bin/sh\nexec sleep 60\n", "#!/bin/sh\nexec yes\n"):
        fake = home / "git"
        fake.write_text(body or "#!/nowhere\n")
        fake.chmod(0o755)
        monkeypatch.setattr(hostgit, "GITS", (str(fake),))
        assert personal(home) == Personal("", "", "", "")
    monkeypatch.setattr(hostgit, "GITS", ())
    assert personal(home) == Personal("", "", "", "")


def test_a_broken_configuration_is_no_identity(home: Path) -> None:
    write(home, "[user\n")
    assert personal(home) == Personal("", "", "", "")


def test_what_would_break_a_commit_line_is_taken_out(home: Path) -> None:
    assert personal(home, GIT_AUTHOR_NAME="A\n<x>\x1b[31m B ").name == "Ax[31m B"
