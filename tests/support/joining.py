"""A session that runs, to be joined: by the installed `jail exec`, or by hand on its socket.

Rule: one session serves many tests of a file, since a start costs more than a join; what a test leaves inside
ends with its own command.
"""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jail.ledger import place
from support.jails import PATIENCE, PYTHON, Jail
from support.running import Running, until

WAITS = ("sh", "-c", "echo ready; cat; exit 0")
"""A first command that runs until its stdin ends."""


class Session:
    """A running session and those who join it."""

    def __init__(self, jail: Jail, running: Running) -> None:
        self.jail, self.running = jail, running
        (self.folder,) = [folder for folder in jail.sessions() if _pid_of(folder) == running.process.pid]
        self.id = self.folder.name
        self.path = self.folder / place.SOCKET

    def exec(
        self, *command: str | Path, stdin: str | None = None, name: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """`jail exec SESSION -- COMMAND`, to its end."""
        return self.jail.call("exec", name or self.id, "--", *command, stdin=stdin)

    def popen(self, *command: str | Path, **more: Any) -> subprocess.Popen[str]:
        """The same, still running."""
        arguments = [str(self.jail.installed.command), "exec", self.id, "--", *map(str, command)]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(
            arguments, cwd=self.jail.workspace, env=dict(self.jail.environment), text=True, **streams
        )

    def inside(self, program: str) -> dict[str, Any]:
        """Run a Python program as a joined command; the last line that it prints is JSON, and is returned."""
        done = self.exec(PYTHON, "-I", "-c", program)
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def connect(self) -> socket.socket:
        """A connection with the supervisor."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(PATIENCE)
        folder = os.open(self.folder, os.O_PATH)
        try:
            until(lambda: _connected(client, f"/proc/self/fd/{folder}/{place.SOCKET}"), PATIENCE)
        finally:
            os.close(folder)
        return client

    def entries(self, *kinds: str) -> list[dict[str, Any]]:
        """The fields of the ledger's entries of these kinds."""
        text = (self.folder / "ledger.jsonl").read_text(encoding="ascii")
        entries = [json.loads(line) for line in text.splitlines()]
        return [entry["fields"] for entry in entries if entry["kind"] in kinds]

    def lives(self) -> bool:
        """Whether it still takes a command, which is what matters after an attack."""
        done = self.exec("echo", "still here")
        return (done.returncode, done.stdout) == (0, "still here\n") and self.running.process.poll() is None


def _pid_of(folder: Path) -> int:
    """The supervisor, by the ledger's first entry."""
    with (folder / "ledger.jsonl").open(encoding="ascii") as ledger:
        return int(json.loads(ledger.readline())["fields"]["pid"])


def _connected(client: socket.socket, path: str) -> bool:
    try:
        client.connect(path)
    except BlockingIOError:
        return False
    return True


@contextmanager
def session(jail: Jail, *command: str, options: Sequence[str | Path] = ()) -> Iterator[Session]:
    """A session whose first command is `command` (WAITS); it is ended by the end of its stdin, or killed."""
    with Running(jail, *(command or WAITS), options=options, stdin=subprocess.PIPE) as running:
        running.ready()
        found = Session(jail, running)
        assert until(found.path.exists, PATIENCE)
        yield found


def kill_and_reap(process: "subprocess.Popen[str]", number: int = signal.SIGKILL) -> None:
    """End a process that this test started, and read what it said."""
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
