"""CASES.md A31 and agent cases 3, 7, 8, 53: what the agent may write, call or be, and what the walls of this and the next run are."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, lay, state_of, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail
from support.policies import EXIT_CANNOT_ISOLATE, EXIT_USAGE, RUN, nothing_ran, policy, started


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


# ---- A31: what the next run will obey ----


@pytest.mark.parametrize("way", ["edit", "replace", "rename the folder"])
def test_a31_a_policy_file_that_lies_in_the_workspace_cannot_be_changed_by_the_command_it_holds(
    way: str, warm: Jail
) -> None:
    (warm.workspace / "conf").mkdir()
    path = policy(warm.workspace / "conf")
    before = path.read_text()
    script = {
        "edit": "echo '# wider' >> conf/policy.toml",
        "replace": "echo wider > conf/new && mv conf/new conf/policy.toml",
        "rename the folder": "mv conf old && mkdir conf && echo wider > conf/policy.toml",
    }[way]
    done = warm.run("sh", "-c", f"{script}; echo free > free", options=["--policy", path])
    assert path.read_text() == before
    if done.returncode != EXIT_CANNOT_ISOLATE:
        assert (warm.workspace / "free").exists()


def test_a31_the_status_file_is_not_written_through_a_link_of_the_command(warm: Jail, tmp_path: Path) -> None:
    lay(tmp_path, {"victim": "mine\n", "victims/x": "x"})
    before = state_of(tmp_path / "victim", tmp_path / "victims")
    assert (
        warm.run("ln", "-sf", tmp_path / "victim", "status", options=["--status-file", "status"]).returncode
        == 0
    )
    assert json.loads((warm.workspace / "status").read_text())["code"] == 0
    (warm.workspace / "folder").mkdir()
    script = f"rm -r folder; ln -s {tmp_path}/victims folder"
    warm.run("sh", "-c", script, options=["--status-file", "folder/status"])
    assert state_of(tmp_path / "victim", tmp_path / "victims") == before


def test_a31_a_status_file_that_cannot_be_written_leaves_nothing_else_behind(warm: Jail) -> None:
    done = warm.run("mkdir", "status", options=["--status-file", "status"])
    assert "status" in done.stderr
    assert os.listdir(warm.workspace) == ["status"]


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"])
def test_a31_jails_own_folders_are_never_in_the_workspace(variable: str, warm: Jail) -> None:
    done = started(warm, env={variable: str(warm.workspace / "own")})
    assert nothing_ran(warm, done), done.stdout + done.stderr
    assert "jail's own files" in done.stderr


@pytest.mark.parametrize("folder", ["~/.config", "~/.local", "~/.cache"])
def test_a31_a_folder_that_holds_jails_own_can_be_read_without_them(folder: str, warm: Jail) -> None:
    warm = warm._replace(
        environment={key: value for key, value in warm.environment.items() if key != "XDG_CACHE_HOME"}
    )
    place = warm.home / folder[2:]
    lay(place, {"program/settings": "plain"})
    done = warm.run(
        "sh",
        "-c",
        f"cat {place}/program/settings; find {place}/jail {place}/state/jail -mindepth 1",
        options=["--read", folder],
    )
    assert done.stdout == "plain", done.stderr


# ---- agent cases 3, 7, 8: what lies in the workspace decides nothing ----

WIDE = """
name = "overnight"
description = "wide"
[files]
system = ["/usr", "/bin", "/lib", "/lib64"]
write = ["{other}"]
read = []
hide = []
[environment]
pass = ["API_TOKEN"]
[limits]
processes = 8000
open_files = 100000
tmp = "9 GiB"
timeout = "0"
[accept]
losses = ["limits-memory", "landlock"]
"""


def test_agent_7_no_file_of_the_workspace_is_read_as_policy_or_environment(
    warm: Jail, tmp_path: Path
) -> None:
    lay(tmp_path, {"other/file": "canary"})
    wide = WIDE.format(other=tmp_path / "other")
    names = (
        "jail.toml",
        "overnight.toml",
        "overnight",
        "policies/overnight.toml",
        ".config/jail/overnight.toml",
    )
    lay(warm.workspace, dict.fromkeys(names, wide))
    lay(
        warm.workspace,
        {
            ".env": f"HOME={tmp_path}\nJAIL_POLICY=wide\nXDG_CONFIG_HOME={warm.workspace}\n",
            ".envrc": "export API_TOKEN=x\n",
        },
    )
    lay(warm.workspace, {"pyproject.toml": f'[tool.jail.files]\nwrite = ["{tmp_path}/other"]\n'})
    script = f"cat {tmp_path}/other/file; echo x > {tmp_path}/other/planted; echo token=$API_TOKEN; ulimit -u"
    done = warm.run(
        "bash",
        "-c",
        script,
        env={"API_TOKEN": "canary", "JAIL_POLICY": "overnight.toml", "JAIL_WRITE": str(tmp_path)},
    )
    assert done.stdout.splitlines() == ["token=", "4096"]
    assert os.listdir(tmp_path / "other") == ["file"]
    lay(tmp_path, {"mine.toml": wide})
    named = warm.run("cat", tmp_path / "other/file", options=["--policy", tmp_path / "mine.toml"])
    assert named.stdout == "canary", f"the control: named by the person, that policy gives it\n{named.stderr}"


def test_agent_7_a_project_file_that_asks_for_more_refuses_the_run_and_says_all_of_it(
    warm: Jail, tmp_path: Path
) -> None:
    """CVE-2025-59536, CVE-2026-21852: what a clone brings along is read before anybody has looked at it."""
    lay(tmp_path, {"other/file": "canary"})
    lay(warm.workspace, {".jail.toml": WIDE.format(other=tmp_path / "other")})
    done = started(warm)
    assert nothing_ran(warm, done), done.stdout
    assert done.returncode == EXIT_USAGE
    for key in ("name", "files.system", "files.write[0]", "environment.pass[0]", "limits.processes"):
        assert f"{key}: a project may not" in done.stderr
    for key in ("limits.open_files", "limits.tmp", "limits.timeout"):
        assert f"{key}: a project may not" in done.stderr
    assert warm.sessions() == []


def test_agent_7_a_project_file_only_takes_away_and_cannot_be_changed_from_inside(warm: Jail) -> None:
    narrow = (
        '[limits]\nprocesses = 100\n[files]\nhide = ["secret"]\nread = ["docs"]\n[environment]\npass = []\n'
    )
    lay(warm.workspace, {".jail.toml": narrow, "secret": "canary", "docs/file": "kept"})
    script = (
        "ulimit -u; cat secret; echo x > docs/file; echo x > .jail.toml; mv .jail.toml y; echo ${TZ-none}"
    )
    done = warm.run("bash", "-c", script, env={"TZ": "UTC"})
    assert done.stdout.splitlines() == ["100", "none"], done.stderr
    assert (warm.workspace / "docs/file").read_text() == "kept"
    assert (warm.workspace / ".jail.toml").read_text() == narrow
    sources = next(entry for entry in warm.ledger() if "policy_sources" in entry["fields"])["fields"]
    assert str(warm.workspace / ".jail.toml") in [file for file, _ in sources["policy_sources"]]
    assert warm.run("bash", "-c", "ulimit -u", options=["--policy", "ci"]).stdout == "100\n"


def test_agent_7_a_project_file_made_inside_does_not_reach_the_next_run(warm: Jail) -> None:
    warm.run("sh", "-c", "echo '[limits]' > .jail.toml; echo 'processes = 20' >> .jail.toml")
    assert warm.run("bash", "-c", "ulimit -u").stdout == "4096\n"
    assert not (warm.workspace / ".jail.toml").exists()


def test_agent_7_what_a_project_hides_is_not_given_by_a_flag_that_forgets_it(warm: Jail) -> None:
    lay(warm.workspace, {".jail.toml": '[files]\nhide = ["secret"]\n', "secret/key": "canary"})
    done = started(warm, "--read", "secret/key")
    assert nothing_ran(warm, done), done.stdout
    assert "--read secret/key" in done.stderr


@pytest.mark.parametrize("place", ["the workspace", "a folder that is written too"])
def test_a31_the_persons_own_policy_is_read_only_where_a_link_leads_to_it(
    place: str, warm: Jail, tmp_path: Path
) -> None:
    folder = warm.workspace if place == "the workspace" else tmp_path / "dotfiles"
    lay(folder, {"policy.toml": "[limits]\nprocesses = 300\n", "other": "x"})
    lay(warm.home, {".config/jail/README": "mine"})
    (warm.home / ".config/jail/policy.toml").symlink_to(folder / "policy.toml")
    script = f"ulimit -u; echo > {folder}/other; echo > {folder}/policy.toml; mv {folder}/other {folder}/policy.toml"
    options = [] if folder == warm.workspace else ["--write", folder]
    done = warm.run("bash", "-c", script, options=options)
    assert done.stdout == "300\n", done.stderr
    assert (folder / "other").read_text() == "\n"
    assert (folder / "policy.toml").read_text() == "[limits]\nprocesses = 300\n"


VARIABLES = (
    *(
        "JAIL_POLICY",
        "JAIL_WRITE",
        "JAIL_READ",
        "JAIL_OPTIONS",
        "JAIL_DISABLE",
        "JAIL_UNSAFE",
        "JAIL_WORKSPACE",
        "JAIL_ENV",
    ),
    *("NO_JAIL", "SANDBOX", "IS_SANDBOX", "CLAUDE_CODE_SANDBOX", "_JAIL_COMPLETE"),
)


def test_agent_8_no_variable_switches_a_wall_off(warm: Jail, tmp_path: Path) -> None:
    lay(tmp_path, {"other/file": "canary"})
    script = f"cat {tmp_path}/other/file; echo x > {tmp_path}/other/planted; echo ran; ls -A /home /root 2>/dev/null"
    done = warm.run("sh", "-c", script, env=dict.fromkeys(VARIABLES, "1"))
    assert done.stdout == "ran\n"
    assert os.listdir(tmp_path / "other") == ["file"]


FLAGS = (
    "--no-sandbox",
    "--dangerously-skip-walls",
    "--disable",
    "--no-seccomp",
    "--share-net",
    "--privileged",
    "--unsafe",
    "--writ=/",
    "-w",
)


@pytest.mark.parametrize("flag", FLAGS)
def test_agent_8_there_is_no_flag_that_opens_and_an_unknown_one_runs_nothing(flag: str, warm: Jail) -> None:
    done = warm.call("run", flag, "--", *RUN)
    assert nothing_ran(warm, done), done.stderr


@pytest.mark.parametrize("way", ["by name", "by its path", "by its interpreter", "as a module"])
def test_agent_8_jail_cannot_be_started_again_from_inside(way: str, warm: Jail) -> None:
    installed = warm.installed
    command = {
        "by name": ["jail"],
        "by its path": [str(installed.command)],
        "by its interpreter": [str(installed.python), "-m", "jail"],
        "as a module": [PYTHON, "-m", "jail"],
    }[way]
    jail = warm._replace(
        environment={**warm.environment, "PATH": f"{installed.command.parent}:/usr/bin:/bin"}
    )
    done = jail.run(*command, "run", "--write", warm.home, "--", "sh", "-c", "echo ran > ran")
    assert done.returncode != 0
    assert not (warm.workspace / "ran").exists()


def test_agent_3_the_workspace_is_what_it_was_at_launch_wherever_the_command_goes(
    warm: Jail, tmp_path: Path
) -> None:
    lay(warm.workspace, {"sub/x": "x"})
    lay(tmp_path, {"beside/x": "x"})
    program = """
workspace = os.getcwd()
for folder in ("/", "/usr", "/tmp", "..", "../..", os.environ["HOME"]):
    os.chdir(workspace)
    os.chdir(folder)
    pid = os.fork()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", f"echo x > {workspace}/../beside/planted; echo x > /usr/planted; echo x > /planted"])
    os.waitpid(pid, 0)
os.chdir(workspace)
attempt("workspace", lambda: keep("made", "x"))
attempt("rename it", lambda: os.rename(workspace, workspace + "-moved"))
attempt("replace it", lambda: os.symlink("/", workspace + "-link"))
say()
"""
    before = state_of(tmp_path / "beside")
    found = warm.inside(PRELUDE + program)
    assert found["workspace"] == DONE
    assert found["rename it"] in REFUSED
    assert state_of(tmp_path / "beside") == before
    assert sorted(os.listdir(tmp_path)) == ["beside", "home", "workspace"]


@pytest.mark.parametrize(
    "folder",
    [
        "/",
        "/usr",
        "/etc",
        "{home}",
        "{above}",
        "{home}/.ssh",
        "{home}/.aws/sso",
        "/proc",
        "/dev",
        "/sys",
        "/run",
        "/tmp",
    ],
)
def test_agent_3_a_workspace_that_is_too_wide_is_refused(folder: str, warm: Jail) -> None:
    lay(warm.home, {".ssh/id": "canary", ".aws/sso/cache": "canary"})
    path = folder.format(home=warm.home, above=warm.home.parent)
    by_flag = folder.startswith("/")
    done = started(warm, "--workspace", path) if by_flag else started(warm, cwd=Path(path))
    assert nothing_ran(warm, done), done.stdout + done.stderr


def test_agent_3_a_workspace_in_shared_memory_works_or_is_refused_by_its_name(warm: Jail) -> None:
    with tempfile.TemporaryDirectory(prefix="jail-", dir="/dev/shm") as folder:
        done = started(warm, cwd=Path(folder))
        assert (
            done.returncode == 0 and os.listdir(folder) == ["ran"]
        ) or f"workspace {folder}" in done.stderr, done.stderr


# ---- agent 53: names that begin alike ----

ALIKE = r"""
given, hidden = sys.argv[1:3]
def read_by(path):
    try:
        return content(path)
    except OSError as error:
        return errno.errorcode[error.errno]
for name in ("", "-evil", "2", ".bak", " "):
    found[f"given{name}"] = read_by(f"{given}{name}/file")
    found[f"workspace{name}"] = read_by(f"{os.getcwd()}{name}/file")
    attempt(f"write {name}", lambda: keep(f"{given}{name}/planted", "x"))
    found[f"hidden{name}"] = read_by(f"{hidden}{name}")
    found[f"RESEARCH.md{name}"] = outcome(lambda: keep(f"RESEARCH.md{name}", "x"))
say()
"""


@pytest.fixture(scope="module")
def alike(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("alike")
    jail = warm_jail(installed, folder)
    for name in ("", "-evil", "2", ".bak", " "):
        lay(folder, {f"given{name}/file": "file", f"workspace{name}/file": "file"})
        lay(jail.workspace, {f"secret{name}": "file", f"RESEARCH.md{name}": "x"})
    before = {
        name: state_of(folder / f"given{name}", folder / f"workspace{name}")
        for name in ("-evil", "2", ".bak", " ")
    }
    options: list[str | Path] = ["--write", folder / "given", "--hide", "secret"]
    found: dict[str, Any] = jail.inside(
        PRELUDE + ALIKE, str(folder / "given"), str(jail.workspace / "secret"), options=options
    )
    found["unchanged"] = {
        name: state_of(folder / f"given{name}", folder / f"workspace{name}") == old
        for name, old in before.items()
    }
    return found


@pytest.mark.parametrize("name", ["-evil", "2", ".bak", " "])
def test_agent_53_a_folder_whose_name_begins_like_a_given_one_is_not_given(
    name: str, alike: dict[str, Any]
) -> None:
    assert alike["given"] == alike["workspace"] == "file"
    assert alike["write "] == DONE
    assert alike[f"given{name}"] in GONE
    assert alike[f"workspace{name}"] in GONE
    assert alike[f"write {name}"] in GONE | REFUSED
    assert alike["unchanged"][name] is True


@pytest.mark.parametrize("name", ["-evil", "2", ".bak", " "])
def test_agent_53_a_name_that_begins_like_a_hidden_or_protected_one_is_an_ordinary_file(
    name: str, alike: dict[str, Any]
) -> None:
    assert alike["hidden"] in GONE
    assert alike[f"hidden{name}"] == "file"
    assert alike["RESEARCH.md"] in REFUSED
    if name != " ":  # a closing space is dropped by vfat and NTFS: such a name is protected too
        assert alike[f"RESEARCH.md{name}"] == DONE
