"""What one run leaves for the next, or for the person's own commands, to stumble over (CASES.md A5, A14, A15, agent 3, 5, 10)."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.errors import EXIT_CANNOT_ISOLATE
from support.jails import PYTHON, Jail, git

CANARY = "canary of another project"


@pytest.fixture
def repository(jail: Jail) -> Jail:
    """A workspace with a repository of one commit."""
    git(jail.workspace, "init", "-q", ".")
    (jail.workspace / "file").write_text("one\n")
    git(jail.workspace, "add", "file")
    git(jail.workspace, "commit", "-qm", "one")
    return jail


CLOSED: dict[str, Callable[[Path], None]] = {
    "its folder cannot be listed": lambda gitdir: gitdir.chmod(0o311),
    "its folder cannot be entered": lambda gitdir: gitdir.chmod(0o600),
    "its HEAD has another name": lambda gitdir: (gitdir / "HEAD").rename(gitdir / "H2") and None,
    "it has a commondir file": lambda gitdir: (gitdir / "commondir").write_text("../elsewhere\n") and None,
}


@pytest.mark.parametrize("how", CLOSED)
def test_a_git_folder_that_cannot_be_judged_refuses_the_run(repository: Jail, how: str) -> None:
    gitdir = repository.workspace / ".git"
    assert repository.run("true").returncode == 0
    CLOSED[how](gitdir)
    try:
        done = repository.run("sh", "-c", "touch ran; echo '[core]' >> .git/config")
    finally:
        gitdir.chmod(0o755)
    assert done.returncode == EXIT_CANNOT_ISOLATE, done.stderr
    assert "git folder cannot be judged" in done.stderr
    assert not (repository.workspace / "ran").exists()


@pytest.mark.parametrize("planted", [".venv/bin/sh", ".venv/bin", "node_modules/.bin"])
def test_a_link_planted_in_a_path_folder_gives_no_other_project(jail: Jail, planted: str) -> None:
    other = jail.home / "other"
    other.mkdir()
    (other / "key").write_text(CANARY)
    link = jail.workspace / planted
    folder = link.parent if planted.endswith("sh") else link
    control = jail.run("cat", other / "key", options=["--read", other])
    assert control.stdout == CANARY
    done = jail.run("sh", "-c", f"mkdir -p {link.parent}; ln -s {other} {link}")
    assert done.returncode == 0, done.stderr
    path = f"{folder}:/usr/bin:/bin"
    done = jail.run("sh", "-c", f"cat {other}/key; cat {link}/key; true", env={"PATH": path})
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout


@pytest.mark.parametrize("flag", ["--read", "--write"])
@pytest.mark.parametrize("through", ["workspace", "alias"])
def test_a_planted_link_is_not_followed_under_any_name_of_the_workspace(
    jail: Jail, tmp_path: Path, flag: str, through: str
) -> None:
    other = jail.home / "other"
    other.mkdir()
    (other / "key").write_text(CANARY)
    (tmp_path / "alias").symlink_to(jail.workspace)
    (jail.workspace / "data").symlink_to(other)
    (jail.workspace / "plain").mkdir()
    base = jail.workspace if through == "workspace" else tmp_path / "alias"
    assert jail.run("true", options=["--read", base / "plain"]).returncode == 0
    done = jail.run("touch", "ran", options=[flag, base / "data"])
    assert done.returncode == EXIT_CANNOT_ISOLATE, done.stderr
    assert "leads out of what it may write" in done.stderr


def test_a_status_file_is_not_written_through_an_alias_of_a_planted_link(jail: Jail, tmp_path: Path) -> None:
    victim = jail.home / "victim"
    victim.mkdir()
    (tmp_path / "alias").symlink_to(jail.workspace)
    (jail.workspace / "out").symlink_to(victim)
    done = jail.run("true", options=["--status-file", tmp_path / "alias/out/status"])
    assert done.returncode != 0
    assert list(victim.iterdir()) == []


def test_a_second_name_of_a_protected_file_is_protected_too(repository: Jail) -> None:
    os.link(repository.workspace / ".git/config", repository.workspace / "notes.txt")
    before = (repository.workspace / ".git/config").read_bytes()
    done = repository.run("sh", "-c", "echo x >> notes.txt; echo y >> free && exit 7")
    assert done.returncode == 7, done.stderr
    assert (repository.workspace / ".git/config").read_bytes() == before


def test_what_a_hook_leads_to_is_protected(repository: Jail) -> None:
    script = repository.workspace / "pc"
    script.write_text("#!/bin/sh\n")
    (repository.workspace / ".git/hooks/pre-commit").symlink_to("../../pc")
    done = repository.run("sh", "-c", "echo touch /tmp/evil >> pc; echo y >> free && exit 7")
    assert done.returncode == 7, done.stderr
    assert script.read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("close", ["true", "chmod 0311 sub/.git", "chmod 0311 sub"])
def test_a_nested_repository_runs_nothing_on_the_host(repository: Jail, tmp_path: Path, close: str) -> None:
    mark = tmp_path / "mark"
    program = f"""
git init -q sub && git -C sub commit -q --allow-empty -m nested
printf '[core]\\n\\tfsmonitor = "touch {mark}; false"\\n' >> sub/.git/config
git add sub; {close}
"""
    done = repository.run("sh", "-c", program)
    assert done.returncode == 0, done.stderr
    for folder in ("sub", "sub/.git"):
        if (repository.workspace / folder).exists():
            (repository.workspace / folder).chmod(0o755)
    git(repository.workspace, "status")
    assert not mark.exists()
    swept = [entry["fields"]["path"] for entry in repository.ledger() if entry["kind"] == "swept"]
    assert f"{repository.workspace}/sub/.git/config" in swept


def test_closing_the_workspace_as_the_last_act_changes_no_exit_code_and_hides_nothing(jail: Jail) -> None:
    status = jail.home / "status"
    done = jail.run(
        "sh", "-c", "echo all: > Makefile; chmod 0311 .; exit 7", options=["--status-file", status]
    )
    jail.workspace.chmod(0o755)
    assert done.returncode == 7, done.stderr
    assert json.loads(status.read_text())["code"] == 7
    assert "Makefile" in [entry["fields"]["path"] for entry in jail.ledger() if entry["kind"] == "changed"]


def test_a_status_file_in_a_folder_that_the_command_closed_is_written_all_the_same(jail: Jail) -> None:
    forged = '{"code":0,"reason":"exited"}'
    program = f"rm status; echo '{forged}' > status; chmod 555 .; exit 9"
    done = jail.run("sh", "-c", program, options=["--status-file", "status"])
    jail.workspace.chmod(0o755)
    assert done.returncode == 9, done.stderr
    assert json.loads((jail.workspace / "status").read_text())["code"] == 9


def test_no_more_than_half_of_the_callers_inotify_instances_can_be_taken(jail: Jail) -> None:
    program = """
import ctypes, json
libc = ctypes.CDLL(None)
taken = 0
while libc.inotify_init1(0) >= 0 and taken < 100000:
    taken += 1
print(json.dumps([taken, int(open("/proc/sys/user/max_inotify_instances").read())]))
"""
    outside = int(Path("/proc/sys/user/max_inotify_instances").read_text())
    taken, limit = jail.inside(program)
    assert 0 < taken <= limit <= outside // 2
    assert jail.run(PYTHON, "-c", "open('/proc/sys/user/max_inotify_instances', 'w')").returncode == 1
