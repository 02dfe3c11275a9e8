"""Who is measured: the machine itself, jail, and the other sandboxes that are installed here.

Rule: a candidate is a prefix of a command line. The workspace is writable, the system read-only (not in
firejail without a profile), and there is no network; what is not installed, or does not run here, is left
out and said.
"""

import os
import subprocess
import sys
from typing import NamedTuple

OUTSIDE = "outside"
JAIL = "jail"
ROOT_LINKS = ("bin", "sbin", "lib", "lib64")
PLAIN = 65533
"""The uid of a run that root started, as in scripts/test: nobody's."""


class Account(NamedTuple):
    """Who runs the candidates: `uid` -1 for the caller as he is; `home` holds jail's cache and sessions."""

    uid: int
    gid: int
    home: str
    name: str

    def start(self, command: list[str], workspace: str, **streams: int) -> "subprocess.Popen[str]":
        """`command` in `workspace`, as this account, with an environment that is the same for all."""
        environment = {"PATH": os.defpath, "HOME": self.home, "LANG": "C.UTF-8", "USER": self.name}
        ids = {"user": self.uid, "group": self.gid, "extra_groups": []} if self.uid >= 0 else {}
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # `ids` are Popen's own
            command, cwd=workspace, env=environment, text=True, **streams, **ids
        )

    def output(self, command: list[str], workspace: str) -> str | None:
        """What `command` printed, or None where it failed; its last words then go to our stderr."""
        process = self.start(
            command, workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        said, complaint = process.communicate()
        if process.returncode == 0:
            return said
        last = (complaint.strip().splitlines() or ["no word"])[-1]
        sys.stderr.write(f"{command[0]}: exit {process.returncode}: {last}\n")
        return None


def interpreter(binaries: str) -> str:
    """The Python of the environment `binaries`, without the environment."""
    return os.path.realpath(f"{binaries}/python")


def candidates(binaries: str, workspace: str) -> dict[str, list[str]]:
    """Name → prefix of a command; what is not installed is left out."""
    found = {
        OUTSIDE: [],
        JAIL: [f"{binaries}/jail", "run", "--"],
        "bwrap": ["/usr/bin/bwrap", *_bubblewrap(workspace)],
        "firejail": [
            "/usr/bin/firejail",
            *"--quiet --noprofile --net=none --private-dev --caps.drop=all --seccomp".split(),
        ],
    }
    return {name: prefix for name, prefix in found.items() if not prefix or os.access(prefix[0], os.X_OK)}


def _bubblewrap(workspace: str) -> list[str]:
    """What jail gives by default, in its words; it has no filter of system calls of its own."""
    root = "--ro-bind /usr /usr --ro-bind /etc /etc --proc /proc --dev /dev --tmpfs /tmp".split()
    for name in ROOT_LINKS:
        if os.path.islink(f"/{name}"):
            root += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            root += ["--ro-bind", f"/{name}", f"/{name}"]
    return [*root, *f"--bind {workspace} {workspace} --unshare-all --die-with-parent".split()]


def that_run(found: dict[str, list[str]], account: Account, workspace: str) -> dict[str, list[str]]:
    """Those of `found` in which `true` runs here; jail's caches are filled by it."""
    return {
        name: prefix
        for name, prefix in found.items()
        if account.output([*prefix, "true"], workspace) is not None
    }
