"""A held run and what a person decides of it, with the installed command."""

import json
import os
from pathlib import Path
from typing import Any

from support.jails import Jail


def ok(jail: Jail, *arguments: str) -> str:
    """What a call that must succeed says."""
    done = jail.call(*arguments)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
    return done.stdout


def changes(jail: Jail) -> dict[str, Any]:
    """Path in the workspace → change, of the last session."""
    found = map(json.loads, ok(jail, "changes", "last", "--json").splitlines())
    return {os.path.relpath(change["path"], jail.workspace): change for change in found}


def held(jail: Jail, text: str, *options: str | Path) -> str:
    """What a shell program prints that runs in the held workspace."""
    done = jail.run("/bin/sh", "-ec", text, options=["--hold", *options])
    assert done.returncode == 0, done.stderr
    return done.stdout
