"""Figures of a running session: those of its own processes, and of nobody else's."""

import json
import os
import subprocess
from pathlib import Path

from jail.launch import usage
from support.answers import new_jail
from support.installed import Installed
from support.jails import PYTHON
from support.joining import session
from support.running import Running

EATS = "import sys, time\nheld = b'x' * (200 << 20)\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('ready', flush=True)\nsys.stdin.read()\n"


def test_a_running_session_shows_what_it_uses(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "usage")
    with Running(jail, PYTHON, "-I", "-c", EATS, stdin=subprocess.PIPE) as running:
        running.ready()
        (found,) = json.loads(jail.call("sessions", "--json").stdout)
        assert found["state"] == "running"
        assert found["processes"] >= 4, "supervisor, keeper, process 1, command"
        assert 0.3 <= found["cpu_s"] < 60
        assert 200 << 20 < found["memory_bytes"] < 600 << 20
        line = jail.call("sessions").stdout.splitlines()[1]
        assert "MiB" in line
        assert running.wait() == 0
    (found,) = json.loads(jail.call("sessions", "--json").stdout)
    assert (found["state"], found["processes"]) == ("ended", None)
    assert 0.3 <= found["cpu_s"] < 60, "what the ledger has of the command"
    assert 200 << 20 < found["memory_bytes"] < 600 << 20


def test_a_ledger_that_names_another_process_shows_nothing(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "other")) as found:
        assert usage.of_session(str(found.folder), os.getpid()) is None
        assert usage.of_session(str(found.folder), "1; rm") is None
        assert usage.of_session(str(found.folder), found.running.process.pid) is not None


def test_a_process_that_is_gone_has_no_usage() -> None:
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    assert usage.of_tree(child.pid) is None
