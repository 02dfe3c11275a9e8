"""The leader of a terminal's session: what it holds, and that nothing runs where it could not be made."""

import errno
import os
import termios
from pathlib import Path

import pexpect
import pytest

from support.aftermath import left_by, look
from support.installed import Installed
from support.jails import PATIENCE, Jail, make_jail, survivors
from support.refusing import Refusal, command_of, what_of


@pytest.fixture(scope="module")
def jail(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    found = make_jail(installed, tmp_path_factory.mktemp("leader"))
    assert found.run("true").returncode == 0
    return found


REFUSALS = {
    "nothing": None,
    "no session": Refusal("leader", "setsid", errno.EPERM),
    "no terminal": Refusal("leader", "ioctl", errno.EPERM, {1: termios.TIOCSCTTY}),
    "no process for the command": Refusal("leader", "clone", errno.EAGAIN),
    "no word to process 1": Refusal("leader", "sendmsg", errno.ENOBUFS),
    "no file": Refusal("leader", "openat", errno.EMFILE),
    "no closing of what is not its own": Refusal("leader", "close_range", errno.ENOMEM),
    "no group for the command": Refusal("command", "setpgid", errno.EPERM),
    "no foreground for the command": Refusal("command", "ioctl", errno.ENOTTY, {1: termios.TIOCSPGRP}),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_where_a_call_is_refused_on_a_terminal_nothing_runs_and_nothing_is_left(
    what: str, jail: Jail
) -> None:
    mark = f"leader-{os.getpid()}-{len(what)}"
    before = look(jail)
    driver = command_of(jail, what_of(REFUSALS[what]), ["run", "--", "sh", "-c", "echo exe''cuted", mark])
    child: pexpect.spawn[str] = pexpect.spawn(
        "/bin/sh",
        ["-c", '"$@"; echo "over $?"; read line', "sh", *driver],
        cwd=str(jail.workspace),
        env=dict(jail.environment),
        timeout=PATIENCE,
        encoding="utf-8",
    )
    modes = termios.tcgetattr(child.child_fd)
    child.expect(r"over (\d+)")
    shown, code = str(child.before), int(child.match.group(1))
    assert termios.tcgetattr(child.child_fd) == modes
    child.sendline("")
    child.expect(pexpect.EOF)
    child.close()
    assert ("executed" in shown) is (what == "nothing"), shown
    assert code in ((0,) if what == "nothing" else (78, 125)), shown
    said = [line for line in shown.splitlines() if line.startswith("jail: ") and "accepts: see" not in line]
    assert bool(said) is (what != "nothing"), "beside a loss that the policy accepts"
    assert "Traceback" not in shown
    assert left_by(jail, mark, before) == []


@pytest.mark.root
def test_it_holds_a_channel_and_nothing_of_the_terminal(installed: Installed, tmp_path: Path) -> None:
    jail = make_jail(installed, tmp_path)
    mark = f"holds-{os.getpid()}"
    child: pexpect.spawn[str] = pexpect.spawn(
        str(jail.installed.command),
        ["run", "--", "sh", "-c", "echo up; sleep 600", mark],
        cwd=str(jail.workspace),
        env=dict(jail.environment),
        timeout=PATIENCE,
        encoding="utf-8",
    )
    child.expect("up")
    command = max(
        pid for pid in survivors(mark) if b"sh\0-c\0echo" in Path(f"/proc/{pid}/cmdline").read_bytes()[:11]
    )
    (leader,) = [
        line.split()[1]
        for line in Path(f"/proc/{command}/status").read_text().splitlines()
        if line.startswith("PPid:")
    ]
    held = {int(name): os.readlink(f"/proc/{leader}/fd/{name}") for name in os.listdir(f"/proc/{leader}/fd")}
    assert {held.pop(fd) for fd in (0, 1, 2)} == {"/dev/null"}
    assert [target.partition(":")[0] for target in held.values()] == ["socket"]
    child.close(force=True)
