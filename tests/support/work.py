r"""Real work in a jail: shell commands in a row, in one start, each with its exit code and what it said.

Rule: what a person or an agent would type is typed, in the order in which it would be; a test looks at one
command of the row. The same row is worked through for each of `STARTERS`: whoever starts jail, and whoever
owns the workspace, the work is the same.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from support.attempts import warm_jail
from support.installed import Installed
from support.jails import PATIENCE, Jail

PERSON = 61180
"""A uid and gid without an account, of the range that no distribution gives out (60578-61183, UIDS-GIDS of
systemd).
"""
SYSTEM_PYTHON = os.path.realpath(sys.executable)
"""The interpreter that the tests' environment was made of: it has venv, and lies in a system folder."""

STARTERS = (
    pytest.param("owner", id="started by the owner"),
    pytest.param("root-for-owner", id="started by root for another owner", marks=pytest.mark.root),
    pytest.param("root-for-root", id="started by root for root", marks=pytest.mark.root),
)

ROOT_ONCE = (STARTERS[0], STARTERS[2])
"""For what cannot depend on the owner of the workspace: time is spared."""

_RUN = r"""
import json, subprocess, sys
said = {}
for name, text in json.loads(sys.argv[1]).items():
    try:
        done = subprocess.run(["bash", "-ec", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        said[name] = done.returncode, done.stdout.decode("utf-8", "surrogateescape")
    except subprocess.TimeoutExpired as late:
        said[name] = -1, f"not done after 60 s\n{(late.stdout or b'').decode('utf-8', 'replace')}"
print(json.dumps(said))
"""


def row(text: str) -> dict[str, str]:
    """A row as it is written: `name:` at the left edge, its lines of shell indented below it."""
    found: dict[str, str] = {}
    name = ""
    for line in textwrap.dedent(text).strip("\n").splitlines():
        if line[:1].strip():
            name = line.removesuffix(":")
            found[name] = ""
        else:
            found[name] += line.removeprefix("    ") + "\n"
    return found


class Said(NamedTuple):
    """How one command of a row ended, and its stdout and stderr as they came."""

    code: int
    text: str


class Ground(NamedTuple):
    """A jail and who owns its workspace (uid, which is the gid too)."""

    jail: Jail
    owner: int

    @property
    def workspace(self) -> Path:
        return self.jail.workspace

    def hand_over(self) -> None:
        """What the test laid in the workspace becomes its owner's."""
        if os.geteuid() == 0:
            for folder, folders, files in os.walk(self.workspace):
                for name in (".", *folders, *files):
                    os.chown(Path(folder) / name, self.owner, self.owner, follow_symlinks=False)

    def host(self, *command: str, code: int = 0) -> str:
        """Run a command on the host, in the workspace, as its owner would."""
        environment = {**self.jail.environment, "HOME": str(self.workspace.parent)}
        user = {"user": self.owner, "group": self.owner, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(  # type: ignore[call-overload] # options of run()
            command,
            cwd=self.workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            **user,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        return str(done.stdout)

    def git(self, *arguments: str) -> str:
        """The owner's git on the host, with an identity."""
        identity = ("-c", "user.name=Host", "-c", "user.email=host@example.org")
        return self.host("git", *identity, "-c", "init.defaultBranch=main", *arguments)

    def work(self, row: Mapping[str, str], options: Sequence[str | Path] = ()) -> dict[str, Said]:
        """Do a row inside, name → shell text; no command is given more than a minute."""
        found = self.jail.inside(_RUN, json.dumps(row), options=options)
        return {name: Said(*said) for name, said in found.items()}

    def made_by_owner(self, name: str) -> bool:
        """Whether what was made inside belongs to the workspace's owner, as the host sees it."""
        return (self.workspace / name).lstat().st_uid == self.owner


def make_ground(starter: str, installed: Installed, folder: Path) -> Ground:
    """An empty workspace beneath `folder` (which other uids may enter) for one of STARTERS."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{starter}-", dir=folder))  # a module's fixtures may be made again
    folder.chmod(0o755)
    jail = warm_jail(installed, folder)
    owner = {"owner": os.geteuid(), "root-for-owner": PERSON, "root-for-root": 0}[starter]
    ground = Ground(jail, owner)
    ground.hand_over()
    return ground


def host_python(*arguments: str | Path, cwd: Path) -> None:
    """Run the tests' own Python on the host, with this machine's configuration."""
    _host((sys.executable, *arguments), cwd)


def fetched(folder: Path, *requirements: str, options: Sequence[str] = ()) -> None:
    """Fetch distributions into `folder` by pip as this machine has it configured, without what they need."""
    host_python(
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        *options,
        "--dest",
        folder,
        *requirements,
        cwd=folder.parent,
    )


def _host(command: Sequence[str | Path], cwd: Path) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def host_npm(*arguments: str | Path, cwd: Path) -> None:
    """Run npm on the host with this machine's configuration."""
    npm = shutil.which("npm")
    assert npm is not None
    _host((npm, *arguments), cwd)
