"""A jail whose state folder lies on an overlay, which can be no upper layer: what it holds, it holds by copies.

Rule: the overlay is mounted in a namespace of the run alone; its own upper layer is the state folder that tests
look into from outside.
"""

import os

from support.jails import Jail

WRAPPER = """#!/bin/sh
exec unshare {options} sh -c '
mount -t overlay none -o lowerdir="$0/lower",upperdir="$0/state",workdir="$0/work"{more} "$0/seen" || exit 32
exec {back} "$@"
' {local} {command} "$@"
"""


def by_copies(jail: Jail) -> Jail:
    """The same jail, which no overlay can serve."""
    local = jail.home / ".local"
    for name in ("lower", "state", "work", "seen"):
        (local / name).mkdir(parents=True)
    wrapper = jail.home.parent / "jail-by-copies"
    root = os.geteuid() == 0
    text = WRAPPER.format(
        options="-m" if root else "--map-root-user -m",
        back="env" if root else f"unshare --map-user={os.geteuid()} --map-group={os.getegid()}",
        more="" if root else ",userxattr",
        local=local,
        command=jail.installed.command,
    )
    wrapper.write_text(text)
    wrapper.chmod(0o755)
    environment = {**jail.environment, "XDG_STATE_HOME": str(local / "seen")}
    return jail._replace(installed=jail.installed._replace(command=wrapper), environment=environment)
