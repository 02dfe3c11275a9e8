"""Both ends of a run that holds something: what is delivered, what waits, and a run that goes on from it.

Issue 4, Must show 2, and CASES.md A21.
"""

import base64
import hashlib
import json
import os
import signal
import subprocess
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.jails import PYTHON, Jail, git
from support.joining import session

GREET = "def main():\n    print('hello')\n"


def wheel(folder: Path, name: str, command: str) -> Path:
    """A package with one console script that says hello."""
    info = f"{name}-1.0.dist-info"
    content = {
        f"{name}.py": GREET,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{command} = {name}:main\n",
    }
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
        for path, text in content.items()
    ]
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    made = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
    return made


@pytest.fixture
def activated(jail: Jail) -> Mapping[str, str]:
    """The environment of a person who activated a virtual environment in the workspace."""
    options = ["--without-pip", "--system-site-packages"]
    subprocess.run([PYTHON, "-m", "venv", *options, jail.workspace / ".venv"], check=True)
    time.sleep(0.05)  # what is younger than the kernel's tick was made after the run began, for all we know
    return {"PATH": f"{jail.workspace}/.venv/bin:/usr/bin:/bin", "VIRTUAL_ENV": f"{jail.workspace}/.venv"}


def newest(jail: Jail) -> Path:
    """The newest session; by its id alone, two of one second would have no order."""
    return max(jail.sessions(), key=lambda folder: (folder / "lock").stat().st_mtime_ns)


def reviewed(jail: Jail) -> list[dict[str, Any]]:
    """The review ledger of the newest session."""
    path = newest(jail) / "review.jsonl"
    found = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    return [each for each in found if "path" in each["fields"]]


def ledger(jail: Jail) -> list[dict[str, Any]]:
    text = (newest(jail) / "ledger.jsonl").read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


def entry(jail: Jail, kind: str) -> dict[str, Any]:
    """The fields of the one entry of a kind in the ledger of the newest session."""
    (found,) = [each for each in ledger(jail) if each["kind"] == kind]
    return dict(found["fields"])


def test_pip_works_inside_its_tool_is_delivered_and_a_planted_git_is_not(
    jail: Jail, activated: Mapping[str, str]
) -> None:
    made = wheel(jail.workspace, "greeting", "greet")
    program = (
        f"python -m pip install -q --no-index --no-compile ./{made.name}; greet; "
        "printf '#!/bin/sh\\necho planted\\n' > .venv/bin/git; chmod +x .venv/bin/git; git status"
    )
    done = jail.run("sh", "-euc", program, env=activated)
    assert (done.returncode, done.stdout) == (0, "hello\nplanted\n"), done.stderr
    tool, planted = jail.workspace / ".venv/bin/greet", jail.workspace / ".venv/bin/git"
    assert subprocess.check_output([tool], text=True) == "hello\n"
    assert not planted.exists()
    name = newest(jail).name
    (line,) = [line for line in done.stderr.splitlines() if "held:" in line]
    assert line.endswith(f"delivered, 1 change waits (1 refused); jail changes {name}")
    paths = {each["fields"]["path"]: each["kind"] for each in reviewed(jail)}
    assert paths[str(tool)] == "delivered"
    assert str(planted) not in paths
    told = entry(jail, "held")
    assert (told["changes"], told["tiers"], told["letters"]) == (1, {"refused": 1}, {"A": 1})
    assert [thing[1:] for thing in entry(jail, "start")["held"] if thing[2].endswith(".venv")] == [
        ["overlay", f"{jail.workspace}/.venv", "commands"]
    ]
    assert jail.call("verify", "last").returncode == 0
    assert str(planted.relative_to(jail.workspace)) in jail.call("changes", "last").stdout


def test_what_no_word_of_the_policy_delivers_waits(jail: Jail, activated: Mapping[str, str]) -> None:
    done = jail.run("sh", "-euc", "echo x > .venv/bin/tool", env=activated, options=("--policy", "ci"))
    assert done.returncode == 0, done.stderr
    assert not (jail.workspace / ".venv/bin/tool").exists()
    assert "held: 1 change waits; jail changes" in done.stderr
    assert not (newest(jail) / "review.jsonl").exists()


def test_the_exit_code_of_the_command_is_its_own(jail: Jail, activated: Mapping[str, str]) -> None:
    done = jail.run("sh", "-c", "echo x > .venv/bin/tool; exit 7", env=activated)
    assert done.returncode == 7
    assert (jail.workspace / ".venv/bin/tool").read_text() == "x\n"


def test_a_run_that_changed_nothing_held_says_nothing(jail: Jail) -> None:
    done = jail.run("true", options=("--hold",))
    assert (done.returncode, done.stderr) == (0, "")
    assert not [each for each in ledger(jail) if each["kind"] == "held"]


def hold(jail: Jail, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = jail.run("sh", "-euc", program, options=options or ("--hold",))
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def edited(jail: Jail) -> Path:
    """A session that holds an edited, a removed and a new file of the workspace."""
    for name in ("a", "b", "c"):
        (jail.workspace / name).write_text(f"{name}\n")
    time.sleep(0.05)
    hold(jail, "echo one >> a; rm b; mkdir new; echo new > new/n")
    return newest(jail)


def test_a_run_goes_on_from_what_another_holds_and_all_of_it_is_applied_in_the_end(
    jail: Jail, edited: Path
) -> None:
    assert (jail.workspace / "a").read_text() == "a\n"
    (jail.workspace / "c").write_text("of the host\n")
    time.sleep(0.05)
    done = hold(jail, "cat a new/n c; test ! -e b; echo two >> a; echo x > c", "--resume", edited.name)
    assert done.stdout == "a\none\nnew\nof the host\n"
    newer = newest(jail)
    assert newer != edited
    assert entry(jail, "start")["resumed"] == edited.name
    assert not (edited / "held").exists()
    told = jail.call("changes", edited.name)
    assert newer.name in told.stdout + told.stderr
    assert (jail.workspace / "a").read_text() == "a\n"
    done = jail.call("apply", newer.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (jail.workspace / "a").read_text() == "a\none\ntwo\n"
    assert (jail.workspace / "c").read_text() == "x\n"
    assert (jail.workspace / "new/n").read_text() == "new\n"
    assert not (jail.workspace / "b").exists()
    assert all(jail.call("verify", name.name).returncode == 0 for name in (edited, newer))


def test_what_the_host_changed_between_both_runs_is_a_conflict_and_stays(jail: Jail, edited: Path) -> None:
    (jail.workspace / "a").write_text("of the host\n")
    hold(jail, "echo two >> a", "--resume", "last")
    jail.call("apply", "last")
    assert (jail.workspace / "a").read_text() == "of the host\n"
    assert entry(jail, "held")["conflicts"] == 1


def test_a_plan_that_would_go_on_takes_nothing(jail: Jail, edited: Path) -> None:
    done = jail.call("plan", "--resume", edited.name, "--", "true")
    assert done.returncode == 0, done.stderr
    assert "overlay" in done.stdout
    assert (edited / "held").exists()


def test_it_is_found_from_any_folder(jail: Jail, edited: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = jail.run("cat", jail.workspace / "a", options=("--resume", "last"), cwd=elsewhere)
    assert (done.returncode, done.stdout) == (0, "a\none\n"), done.stderr


def test_what_cannot_be_gone_on_from_is_refused_with_the_reason(
    jail: Jail, edited: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert jail.run("true").returncode == 0
    written = newest(jail).name
    with session(jail, options=("--hold",)) as running:
        cases = {
            "still runs": ("--resume", running.folder.name),
            "holds nothing": ("--resume", written),
            "worked on": ("--resume", edited.name, "--workspace", str(other)),
            "no session": ("--resume", "19990101"),
        }
        for told, options in cases.items():
            done = jail.run("true", options=options)
            assert done.returncode == 2, done.stderr
            assert told in done.stderr
            assert "to do:" in done.stderr
    (edited / "held" / "journal").touch()
    assert "was interrupted" in jail.run("true", options=("--resume", edited.name)).stderr
    (edited / "held" / "journal").unlink()
    hold(jail, "true", "--resume", edited.name)
    done = jail.run("true", options=("--resume", edited.name))
    assert (done.returncode, newest(jail).name in done.stderr) == (2, True), done.stderr


def test_kill_9_of_jail_keeps_what_is_held(jail: Jail) -> None:
    (jail.workspace / "a").write_text("a\n")
    time.sleep(0.05)
    running = jail.popen(
        "sh", "-c", "echo one >> a; echo up; sleep 60", options=("--hold",), stdout=subprocess.PIPE
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    supervisor = ledger(jail)[0]["fields"]["pid"]
    os.kill(supervisor, signal.SIGKILL)
    running.wait()
    running.stdout.close()
    assert (jail.workspace / "a").read_text() == "a\n"
    done = jail.call("changes", "last")
    assert done.returncode == 0, done.stderr
    assert "a" in done.stdout
    assert hold(jail, "cat a", "--resume", "last").stdout == "a\none\n"


def test_a_terminal_is_restored_before_a_line_is_said(jail: Jail, edited: Path) -> None:
    import pexpect  # type: ignore[import-untyped]  # it ships no types of its own

    command = [str(jail.installed.command), "run", "--hold", "--", "sh", "-c", "stty raw -echo; echo x > t"]
    with pexpect.spawn(
        command[0], command[1:], cwd=str(jail.workspace), env=dict(jail.environment), timeout=60
    ) as terminal:
        terminal.expect(pexpect.EOF)
        assert b"held: 1 change waits; jail changes" in terminal.before


def test_a_key_that_the_host_set_meanwhile_is_not_taken_for_one_that_the_command_removed(jail: Jail) -> None:
    git(jail.workspace, "init", "-q")
    time.sleep(0.05)
    jail.run("git", "remote", "add", "inside", "https://example.org/inside")
    git(jail.workspace, "remote", "add", "outside", "https://example.org/outside")
    assert jail.call("apply").returncode == 0
    assert jail.call("changes", "--json").stdout == ""
    jail.call("apply")
    assert git(jail.workspace, "remote").split() == ["inside", "outside"]


def test_settings_of_git_are_delivered_where_the_policy_says_so_and_others_wait(jail: Jail) -> None:
    git(jail.workspace, "init", "-q")
    policy = jail.home / ".config/jail/policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text('base = "overnight"\n[hold]\ndeliver = ["commands", "git-config"]\n')
    time.sleep(0.05)
    done = jail.run("sh", "-euc", "git remote add up https://example.org/x; git config core.fsmonitor evil")
    assert done.returncode == 0, done.stderr
    config = (jail.workspace / ".git/config").read_text()
    assert "https://example.org/x" in config
    assert "evil" not in config
    assert "1 change delivered, 1 change waits (1 that cannot be applied)" in done.stderr
    assert [each["kind"] for each in reviewed(jail)] == ["delivered"]
