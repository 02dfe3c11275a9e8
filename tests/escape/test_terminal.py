"""CASES.md section C and agent case 18: the caller's terminal never enters, and is sane afterwards; nothing shown can steer it."""

import json
import os
import re
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pexpect
import pytest

from support.attempts import DONE, GONE, PRELUDE, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail

PATIENCE = 30
TYPED = "typed-by-the-terminal"


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path, TERM="xterm")


class Screen:
    """A shell of a person: bash on a pty of its own, with the jail command in $JAIL."""

    def __init__(self, jail: Jail) -> None:
        environment = {
            **jail.environment,
            "JAIL": str(jail.installed.command),
            "PS1": "ready> ",
            "HISTFILE": "",
        }
        self.bash: pexpect.spawn[str] = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noprofile", "--noediting"],
            cwd=str(jail.workspace),
            env=environment,
            encoding="utf-8",
            codec_errors="surrogateescape",
            timeout=PATIENCE,
            dimensions=(30, 100),
        )
        self.bash.expect("ready> ")

    def type(self, line: str) -> str:
        """Type a line and return what was shown until the next prompt."""
        self.bash.sendline(line)
        self.bash.expect("ready> ")
        return str(self.bash.before)

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.bash.child_fd)


@pytest.fixture
def screen(warm: Jail) -> Iterator[Screen]:
    shown = Screen(warm)
    yield shown
    shown.bash.close(force=True)


LOOK = r"""
import fcntl, termios
outer = sys.argv[1] if len(sys.argv) > 1 else ""
def typed(request):
    fcntl.ioctl(0, request, b"#")
found["tty"] = [os.isatty(fd) for fd in (0, 1, 2)]
found["device"] = os.fstat(0).st_rdev
found["name"] = os.ttyname(0)
found["link"] = os.readlink("/proc/self/fd/0")
found["session"] = os.getsid(0)
found["leads its group"] = os.getpgid(0) == os.getpid()
found["foreground"] = os.tcgetpgrp(0) == os.getpgid(0)
found["number"] = int(content("/proc/self/stat").rpartition(")")[2].split()[4])
control = os.open("/dev/tty", os.O_RDWR)
TIOCGDEV = 0x80045432
found["same"] = struct.unpack("I", fcntl.ioctl(control, TIOCGDEV, bytes(4))) == struct.unpack("I", fcntl.ioctl(0, TIOCGDEV, bytes(4)))
found["ptys"] = sorted(name for name in os.listdir("/dev/pts") if name.isdigit())
attempt("TIOCSTI", lambda: typed(0x5412))
for bit in (32, 33, 63):
    attempt(f"TIOCSTI {bit}", lambda: call("ioctl", 0, 0x5412 | 1 << bit, b"#"))
attempt("TIOCLINUX", lambda: fcntl.ioctl(0, 0x541C, b"\x02" + bytes(8)))
attempt("TIOCSETD", lambda: fcntl.ioctl(0, 0x5423, struct.pack("i", 2)))
attempt("TIOCSTI on /dev/tty", lambda: fcntl.ioctl(control, 0x5412, b"#"))
attempt("size", lambda: fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
attempt("outer", lambda: os.close(os.open(outer, os.O_RDWR | os.O_NOCTTY)))
for fd in (0, 1, 2):
    attempt(f"reopen {fd}", lambda: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR)))
keep("found", json.dumps(found))
"""
NUMBERED = PRELUDE.replace('"mount": (165, 40)', '"ioctl": (16, 29), "mount": (165, 40)')


@pytest.fixture(scope="module")
def seen(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    jail = warm_jail(installed, tmp_path_factory.mktemp("seen"), TERM="xterm")
    (jail.workspace / "probe").write_text(NUMBERED + LOOK)
    screen = Screen(jail)
    try:
        result = {}
        # The control comes last: what it pushes into the terminal is typed into the shell.
        for who, start in (("inside", "$JAIL run -- "), ("outside", "")):
            screen.type(f"{start}{PYTHON} -I probe $(tty)")
            result[who] = json.loads((jail.workspace / "found").read_text())
            (jail.workspace / "found").unlink()
    finally:
        screen.bash.close(force=True)
    return result


IOCTLS = ("TIOCSTI", "TIOCSTI 32", "TIOCSTI 33", "TIOCSTI 63", "TIOCLINUX", "TIOCSETD", "TIOCSTI on /dev/tty")


@pytest.mark.parametrize("request_name", IOCTLS)
def test_c1_c3_agent_18_keys_cannot_be_pushed_nor_line_disciplines_changed(
    request_name: str, seen: dict[str, Any]
) -> None:
    assert seen["inside"][request_name] == "EPERM"
    assert seen["inside"]["size"] == DONE
    if (
        request_name.startswith("TIOCSTI")
        and Path("/proc/sys/dev/tty/legacy_tiocsti").read_text().strip() == "1"
    ):
        assert seen["outside"][request_name] == DONE, "the control"


def test_c5_the_command_has_a_terminal_of_its_own_and_not_the_callers(seen: dict[str, Any]) -> None:
    inside, outside = seen["inside"], seen["outside"]
    assert inside["tty"] == outside["tty"] == [True] * 3
    assert inside["name"] == inside["link"] == "/dev/pts/0"
    assert inside["ptys"] == ["0"]
    assert inside["session"] > 1, "0 is what a session looks like that was made outside (pid_namespaces(7))"
    assert [inside[name] for name in ("leads its group", "foreground", "same")] == [True] * 3
    assert (inside["device"], inside["number"]) != (outside["device"], outside["number"]) or outside[
        "name"
    ] == "/dev/pts/0"
    assert inside["reopen 0"] == inside["reopen 2"] == DONE


def test_c5_the_callers_terminal_is_not_among_the_devices(seen: dict[str, Any]) -> None:
    assert seen["outside"]["outer"] == DONE
    if seen["outside"]["name"] != "/dev/pts/0":
        assert seen["inside"]["outer"] in GONE


NO_TERMINAL = """
attempt("tty", lambda: os.close(os.open("/dev/tty", os.O_RDWR)))
found["streams"] = [os.isatty(fd) for fd in (0, 1, 2)]
found["number"] = int(content("/proc/self/stat").rpartition(")")[2].split()[4])
keep("found", json.dumps(found))
"""


def test_c5_with_pipes_the_callers_controlling_terminal_is_out_of_reach(warm: Jail, screen: Screen) -> None:
    (warm.workspace / "probe").write_text(PRELUDE + NO_TERMINAL)
    results = {}
    for who, start in (("outside", ""), ("inside", "$JAIL run -- ")):
        screen.type(f"{start}{PYTHON} -I probe </dev/null 2>&1 | cat")
        results[who] = json.loads((warm.workspace / "found").read_text())
        (warm.workspace / "found").unlink()
    assert results["outside"]["tty"] == DONE, "the control: without jail /dev/tty is the shell's terminal"
    assert results["inside"]["tty"] == "ENXIO"
    assert results["inside"]["number"] == 0
    assert results["inside"]["streams"] == [False] * 3


# ---- C6: nothing that jail shows can steer a terminal ----


class Hostile(NamedTuple):
    """A text that steers a terminal or deceives a reader, the characters that must not be shown, and how they are shown instead."""

    text: str
    dangerous: str
    escaped: str


HOSTILE = {
    "CSI": Hostile("\x1b[2J\x1b[31m", "\x1b", "\\x1b[2J"),
    "OSC 52": Hostile("\x1b]52;c;aGFoYQ==\x07", "\x07", "aGFoYQ==\\x07"),
    "OSC 8": Hostile("\x1b]8;;http:evil\x1b\\", "\x1b", "\\x1b]8;;http:evil"),
    "DCS": Hostile("\x1bP1$r\x1b\\", "\x1b", "\\x1bP1$r"),
    "C1 in UTF-8": Hostile("\x9b31m\x9d0;x\x9c", "\x9b\x9c\x9d", "\\x9b31m\\x9d0;x\\x9c"),
    "C1 as bytes": Hostile("\udc9b32m", "\udc9b", "\\x9b32m"),
    "bidi": Hostile(
        "\u202egpj.exe\u2066x\u2069",
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
        "\\u202egpj.exe\\u2066x",
    ),
    "carriage return": Hostile("safe\rover", "\r", "safe\\x0dover"),
    "newline": Hostile("one\ntwo", "", "one\\x0atwo"),
    "zero width": Hostile("a\u200bb\ufeff", "\u200b\u200c\u200d\ufeff", "a\\u200bb\\ufeff"),
    "backspace": Hostile("rm\x08\x08ls", "\x08", "rm\\x08\\x08ls"),
    "delete": Hostile("ab\x7f", "\x7f", "ab\\x7f"),
}
TEXT = "".join(hostile.text for hostile in HOSTILE.values())


def raw(jail: Jail, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """`jail ARGUMENTS`, bytes in and out."""
    words = [os.fsencode(str(jail.installed.command)), *map(os.fsencode, arguments)]
    return subprocess.run(
        words,
        cwd=jail.workspace,
        env=dict(jail.environment),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


class Shown(NamedTuple):
    """All that the commands of jail printed about hostile text, the ledgers, and what the command itself had printed."""

    printed: str
    ledgers: str
    live: bytes


@pytest.fixture(scope="module")
def shown(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    jail = warm_jail(installed, tmp_path_factory.mktemp("shown"))
    jail = jail._replace(environment={**jail.environment, "PATH": f"/usr/bin:/bin:/absent/{TEXT}"})
    odd = Path(f"{jail.workspace}/{TEXT}")
    os.mkdir(os.fsencode(odd))
    (odd / "Makefile").write_text("x")
    script = 'printf "%s" "$1" > said; for d in */; do echo x > "$d/conftest.py"; done; mkdir .vscode; mv .vscode "$1x"; mkdir .idea'
    runs = [
        raw(jail, "plan", "--", "true", TEXT),
        raw(jail, "plan", f"--hide={odd}", "--", "true"),
        raw(jail, "run", "--", "sh", "-c", script, "sh", TEXT),
        raw(jail, "run", "--", f"no-such-{TEXT}"),
        raw(jail, "run", "--policy", f"/absent/{TEXT}", "--", "true"),
        raw(jail, "run", f"--write=/absent/{TEXT}", "--", "true"),
        raw(jail, "run", f"--workspace=/absent/{TEXT}", "--", "true"),
        raw(jail, "run", f"--{TEXT}", "--", "true"),
        raw(jail, "run", f"--timeout={TEXT}", "--", "true"),
        raw(jail, "run", f"--env={TEXT}", "--", "true"),
        raw(jail, f"run{TEXT}"),
        raw(jail, "sessions"),
        raw(jail, "verify", "last"),
        raw(jail, "verify", f"/absent/{TEXT}"),
    ]
    live = raw(jail, "run", "--", "cat", "said").stdout
    printed = b"\n".join(part for done in runs for part in (done.stdout, done.stderr))
    ledgers = b"".join((session / "ledger.jsonl").read_bytes() for session in jail.sessions())
    return Shown(printed.decode("utf-8", "surrogateescape"), ledgers.decode("utf-8", "surrogateescape"), live)


@pytest.mark.parametrize("kind", HOSTILE)
def test_c6_what_jail_prints_and_records_holds_no_character_that_steers_or_deceives(
    kind: str, shown: Shown
) -> None:
    hostile = HOSTILE[kind]
    assert not set(hostile.dangerous) & set(shown.printed)
    assert hostile.escaped in shown.printed, "it is shown, but escaped"
    assert shown.ledgers.isascii()
    assert not set(hostile.dangerous) & set(shown.ledgers)


def test_c6_no_control_character_of_any_kind_is_printed(shown: Shown) -> None:
    control = re.compile(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\udc80-\udcff]"
    )
    assert control.findall(shown.printed) == []
    assert control.findall(TEXT)


def test_c6_live_output_of_the_command_is_its_own_and_not_changed(shown: Shown) -> None:
    assert shown.live == os.fsencode(TEXT)


# ---- C8–C10: the terminal afterwards, jobs, size ----

UNDER_RAW = "import tty, sys; tty.setraw(0); open('raw', 'w').close(); "


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("sys.exit(0)", "0"),
        ("sys.exit(3)", "3"),
        ("import os; os.kill(os.getpid(), 9)", "137"),
        ("import os; os.kill(os.getpid(), 11)", "139"),
    ],
)
def test_c8_a_command_that_leaves_raw_mode_behind_leaves_the_callers_terminal_as_it_was(
    how: str, code: str, warm: Jail, screen: Screen
) -> None:
    before = screen.modes()
    (warm.workspace / "probe").write_text(UNDER_RAW + how)
    shown = screen.type(f"$JAIL run -- {PYTHON} -I probe; echo code=$?")
    assert f"code={code}" in shown
    assert (warm.workspace / "raw").exists()
    assert screen.modes() == before
    assert TYPED in screen.type(f"echo {TYPED}")


def test_c8_after_a_sigkill_of_the_supervisor_the_terminal_is_sane_and_nothing_runs(
    warm: Jail, screen: Screen
) -> None:
    before = screen.modes()
    (warm.workspace / "probe").write_text(UNDER_RAW + "import time; time.sleep(600)")
    screen.bash.sendline(f"$JAIL run -- {PYTHON} -I probe {TYPED}; echo code=$?")
    end = time.monotonic() + PATIENCE
    while not (warm.workspace / "raw").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.2)
    assert screen.modes() != before, "the control: it is raw while the command runs"
    ran = list(processes_with(TYPED))
    shell = screen.bash.pid
    (supervisor,) = [pid for pid in ran if parent_of(pid) == shell]
    os.kill(supervisor, signal.SIGKILL)
    screen.bash.expect("code=137")
    screen.bash.expect("ready> ")
    end = time.monotonic() + PATIENCE
    while screen.modes() != before and time.monotonic() < end:
        time.sleep(0.02)
    assert screen.modes() == before
    while processes_with(TYPED) and time.monotonic() < end:
        time.sleep(0.02)
    assert processes_with(TYPED) == []


def processes_with(word: str) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if word.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def test_c9_an_interrupt_reaches_the_command_and_the_shell_goes_on(screen: Screen) -> None:
    screen.bash.sendline("$JAIL run -- sh -c 'echo go; exec sleep 600'; echo code=$?")
    screen.bash.expect("\ngo")
    screen.bash.send("\x03")
    screen.bash.expect("code=130")
    screen.bash.expect("ready> ")
    assert TYPED in screen.type(f"echo {TYPED}")


def test_c9_a_jail_in_the_background_ends_and_does_not_take_the_terminal(screen: Screen) -> None:
    before = screen.modes()
    screen.type("$JAIL run -- sh -c 'sleep 0.3; echo inside > made' </dev/null & sleep 0")
    assert TYPED in screen.type(f"echo {TYPED}")
    assert "code=0" in screen.type("wait $!; echo code=$?")
    assert screen.modes() == before


def test_c10_a_resize_reaches_the_command(screen: Screen) -> None:
    program = "trap 'stty size; exit 0' WINCH; stty size; echo go; while :; do sleep 0.05; done"
    screen.bash.sendline(f'$JAIL run -- bash -c "{program}"')
    screen.bash.expect("30 100")
    screen.bash.expect("\ngo")
    screen.bash.setwinsize(41, 123)
    screen.bash.expect("41 123")
    screen.bash.expect("ready> ")
