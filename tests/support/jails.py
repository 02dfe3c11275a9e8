"""A jail to test from outside: the installed command, a home and a workspace of its own, and what it left
behind.

Rule: tests of walls start the command as a person does and look from outside; what is tried inside is a small
Python program whose findings come back as JSON. Every probe has a positive control: `outside` runs the same
program without the walls.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.installed import Installed

PATIENCE = 120
"""Seconds until a run that hangs fails its test."""
PYTHON = "/usr/bin/python3"
AT_HOME = [".cache", ".config"]
"""What jail itself puts into an empty home: where the workspace's own caches are (jail/plan/caches.py)."""


class Jail(NamedTuple):
    """One installation of jail with a home, a workspace and a clean environment."""

    installed: Installed
    home: Path
    workspace: Path
    environment: Mapping[str, str]

    def run(
        self,
        *command: str | Path,
        options: Sequence[str | Path] = (),
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """`jail run OPTIONS -- COMMAND` in the workspace."""
        arguments = [self.installed.command, "run", *options, "--", *command]
        return self._call([str(argument) for argument in arguments], stdin, env, cwd)

    def call(self, *arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """`jail ARGUMENTS` in the workspace."""
        return self._call([str(self.installed.command), *map(str, arguments)], stdin, None, None)

    def popen(
        self, *command: str | Path, options: Sequence[str | Path] = (), **more: Any
    ) -> subprocess.Popen[str]:
        """The same, still running; the caller waits for it."""
        arguments = [self.installed.command, "run", *options, "--", *command]
        text = [str(argument) for argument in arguments]
        return subprocess.Popen(text, cwd=self.workspace, env=dict(self.environment), text=True, **more)

    def inside(self, program: str, *arguments: str, options: Sequence[str | Path] = ()) -> Any:
        """Run a Python program inside; the last line that it prints is JSON, and is returned."""
        done = self.run(PYTHON, "-I", "-c", program, *arguments, options=options)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    def outside(self, program: str, *arguments: str) -> Any:
        """The same program without walls: the positive control."""
        command = [PYTHON, "-I", "-c", program, *arguments]
        done = self._call(command, None, None, None)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    def sessions(self) -> list[Path]:
        """The folders of all sessions, oldest first."""
        return sorted((self.home / ".local/state/jail/sessions").glob("2*"))

    def ledger(self) -> list[dict[str, Any]]:
        """The entries of the newest session's ledger."""
        text = (self.sessions()[-1] / "ledger.jsonl").read_text(encoding="ascii")
        return [json.loads(line) for line in text.splitlines()]

    def _call(
        self, command: list[str], stdin: str | None, env: Mapping[str, str] | None, cwd: Path | None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=cwd or self.workspace,
            env={**self.environment, **(env or {})},
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=PATIENCE,
            check=False,
        )


def make_jail(installed: Installed, folder: Path) -> Jail:
    """A jail with a fresh home and workspace beneath `folder`."""
    home, workspace = folder / "home", folder / "workspace"
    home.mkdir()
    workspace.mkdir()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
    return Jail(installed, home, workspace, environment)


def survivors(mark: str) -> list[int]:
    """Processes of this host whose command line holds `mark`, this one left out."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return found


def git(folder: Path, *arguments: str) -> str:
    """Run the host's git as a person would, with an identity; returns what it printed."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), "LC_ALL": "C.UTF-8"}
    identity = ["-c", "user.name=Host", "-c", "user.email=host@example.org", "-c", "init.defaultBranch=main"]
    command = ["/usr/bin/git", *identity, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
