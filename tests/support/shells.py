"""Shell lines on the host in which `jail run` stands where a person would put it: in pipelines, loops, redirections."""

import os
import subprocess
from typing import NamedTuple

from support.jails import PATIENCE
from support.work import Ground


class Ended(NamedTuple):
    """How a shell line ended, and the bytes of its stdout and stderr."""

    code: int
    out: bytes
    err: bytes


def typed(ground: Ground, line: str, **variables: str) -> Ended:
    """Run `line` by bash, with pipefail, in the workspace; in it `run CMD` is `jail run -- CMD`."""
    command = f'set -o pipefail; run() {{ "$JAIL" run -- "$@"; }}\n{line}\n'
    done = subprocess.run(
        ["/bin/bash", "--norc", "--noprofile", "-c", command],
        cwd=ground.workspace,
        env={**ground.jail.environment, "JAIL": str(ground.jail.installed.command), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def random_file(ground: Ground, name: str, size: int) -> bytes:
    """A file of random bytes beside the workspace; returns what it holds."""
    content = os.urandom(size)
    (ground.workspace.parent / name).write_bytes(content)
    return content
