"""Agent cases 10–12: what the host's git and other tools would run later, wherever the git dir lies."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from support.attempts import DONE, PRELUDE, REFUSED, lay, offences, state_of, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, git

EXIT_CANNOT_ISOLATE = 78


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


# ---- git dirs in other places, and what the host's git would run (agent cases 10–12) ----

PAYLOADS = {
    "core.fsmonitor": "{mark}",
    "core.sshCommand": "{mark}",
    "core.pager": "{mark}",
    "core.editor": "{mark}",
    "diff.external": "{mark}",
    "credential.helper": "!{mark}",
    "gpg.program": "{mark}",
    "alias.status": "!{mark}",
    "filter.x.clean": "{mark}",
    "filter.x.smudge": "{mark}",
    "filter.x.process": "{mark}",
    "diff.x.textconv": "{mark}",
    "core.alternateRefsCommand": "{mark}",
    "uploadpack.packObjectsHook": "{mark}",
}


def test_agent_10_starting_and_ending_a_jail_runs_nothing_that_the_repositorys_config_names(
    warm: Jail, tmp_path: Path
) -> None:
    git(warm.workspace, "init", "-q", ".")
    lay(warm.workspace, {"file": "x", ".gitattributes": "* filter=x diff=x\n"})
    git(warm.workspace, "add", "file")
    git(warm.workspace, "commit", "-qm", "first")
    script = tmp_path / "mark"
    script.write_text(f"#!/bin/sh\necho $0 $* >> {tmp_path}/marks\n")
    script.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "pre-auto-gc"):
        (hooks / name).symlink_to(script)
    git(warm.workspace, "config", "core.hooksPath", str(hooks))
    for key, value in PAYLOADS.items():
        git(warm.workspace, "config", key, value.format(mark=script))
    (warm.workspace / "file").write_text("changed")
    warm.call("plan", "--", "true")
    warm.call("verify", "last")
    assert warm.run("touch", "made").returncode == 0
    assert not (tmp_path / "marks").exists()
    subprocess.run(
        ["/usr/bin/git", "status"],
        cwd=warm.workspace,
        check=False,
        capture_output=True,
        env={"HOME": str(tmp_path)},
    )
    assert (tmp_path / "marks").read_text().count("mark") >= 1, "the control: the host's plain git runs them"


GIT_PLACES = ("a worktree", "a bare repository", "the git dir itself", "the hooks folder", "a submodule")


def git_place(place: str, jail: Jail, folder: Path) -> tuple[Path, Path]:
    """A workspace, and the git dir whose hooks and config the host obeys."""
    main = folder / "main"
    main.mkdir()
    git(main, "init", "-q", ".")
    lay(main, {"file": "x"})
    git(main, "add", "file")
    git(main, "commit", "-qm", "first")
    (main / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    if place == "a worktree":
        git(main, "worktree", "add", "-q", str(folder / "tree"))
        return folder / "tree", main / ".git"
    if place == "a bare repository":
        git(folder, "clone", "-q", "--bare", str(main), "bare")
        return folder / "bare", folder / "bare"
    if place == "a submodule":
        git(jail.workspace, "init", "-q", ".")
        git(jail.workspace, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(main), "sub")
        return jail.workspace, jail.workspace / ".git/modules/sub"
    return (main / ".git" if place == "the git dir itself" else main / ".git/hooks"), main / ".git"


@pytest.mark.parametrize("place", GIT_PLACES)
def test_agent_11_hooks_are_read_only_and_config_is_a_copy_wherever_the_git_dir_lies(
    place: str, warm: Jail, tmp_path: Path
) -> None:
    workspace, gitdir = git_place(place, warm, tmp_path)
    (gitdir / "hooks").mkdir(exist_ok=True)
    before = state_of(gitdir / "hooks", gitdir / "config")
    program = """
gitdir = sys.argv[1]
attempt("hook", lambda: keep(f"{gitdir}/hooks/post-checkout", "x"))
attempt("config", lambda: keep(f"{gitdir}/config", "x", os.O_WRONLY | os.O_APPEND))
attempt("move hooks", lambda: os.rename(f"{gitdir}/hooks", f"{gitdir}/moved"))
attempt("move all", lambda: os.rename(gitdir, f"{gitdir}.moved"))
attempt("free", lambda: keep(f"{gitdir}/description", "x"))
say()
"""
    command = [str(warm.installed.command), "run", "--", PYTHON, "-I", "-c", PRELUDE + program, str(gitdir)]
    done = subprocess.run(
        command,
        cwd=workspace,
        env=dict(warm.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert state_of(gitdir / "hooks", gitdir / "config") == before
    if done.returncode == EXIT_CANNOT_ISOLATE:
        return  # a workspace that is itself such a place may be refused
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("free") == DONE
    assert found.pop("config") == DONE
    assert not offences(found, REFUSED)


def test_agent_12_files_that_run_by_themselves_and_changed_are_in_the_ledger(warm: Jail) -> None:
    lay(warm.workspace, {"old/Makefile": "all:\n", "src/plain.c": "int x;\n"})
    names = (
        "Makefile",
        "conftest.py",
        "package.json",
        ".github/workflows/ci.yml",
        "x.pth",
        "sub/.envrc",
        "sub/.vscode/tasks.json",
    )
    time.sleep(0.05)
    script = "".join(f"mkdir -p $(dirname {name}); echo x > {name}; " for name in (*names, "src/plain2.c"))
    assert warm.run("sh", "-c", script).returncode == 0
    changed = {entry["fields"]["path"] for entry in warm.ledger() if entry["kind"] == "changed"}
    assert changed >= set(names)
    assert not changed & {"old/Makefile", "src/plain.c", "src/plain2.c"}
