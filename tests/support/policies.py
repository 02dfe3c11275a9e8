"""Policies that tests write, and runs that must not have happened."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.jails import Jail

EXIT_USAGE = 2
EXIT_CANNOT_ISOLATE = 78
NOTHING_RAN = {EXIT_USAGE, EXIT_CANNOT_ISOLATE}
RUN = ("sh", "-c", "echo ran; echo ran > ran")


def policy(folder: Path, **lists: list[str]) -> Path:
    """The smallest useful policy, with these lists under [files]."""
    system = ["/usr", "/bin", "/lib", "/lib64"]
    values = {"system": system, "write": [], "read": [], "hide": [], **lists}
    lines = [
        'name = "mine"',
        'description = "mine"',
        "[files]",
        *(f"{key} = {json.dumps(value)}" for key, value in values.items()),
    ]
    lines += [
        "[environment]",
        'pass = ["LANG"]',
        "[limits]",
        "processes = 512",
        "open_files = 1024",
        'tmp = "64 MiB"',
        'timeout = "1h"',
    ]
    lines += ["[accept]", 'losses = ["limits-memory"]']
    path = folder / "policy.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def undelivered(folder: Path) -> Path:
    """The usual policy, by which nothing that is held comes to the host without a person's word."""
    path = folder / "undelivered.toml"
    path.write_text('name = "undelivered"\nbase = "overnight"\n[without]\ndeliver = ["commands"]\n')
    return path


def started(
    jail: Jail, *options: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return jail.run(*RUN, options=options, env=env, cwd=cwd)


def nothing_ran(jail: Jail, done: subprocess.CompletedProcess[str]) -> bool:
    return (
        done.returncode in NOTHING_RAN and "ran" not in done.stdout and not (jail.workspace / "ran").exists()
    )
