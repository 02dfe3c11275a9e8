"""Full-screen programs, shells and job control through jail's pty, as a person at a terminal has them."""

import hashlib
import os
import re
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect
import pytest

from jail.launch.answers import OPEN_LIMIT
from support.attempts import warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, survivors
from support.loops import plain_bytes

PATIENCE = 40
INSIDE = r"\(jail\) \S+\$ "
OUTSIDE = "outside> "
"""Prompts: of the shell that `jail shell` opens, and of the person's own."""


@pytest.fixture(scope="module")
def jail(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return warm_jail(installed, tmp_path_factory.mktemp("tui"), TERM="xterm-256color", SHELL="/bin/bash")


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


class Person:
    """Somebody at a terminal. Waits are for what is shown, never for time."""

    def __init__(self, command: list[str], jail: Jail, **variables: str) -> None:
        environment = {**jail.environment, "JAIL": str(jail.installed.command), "PS1": OUTSIDE, **variables}
        self.screen: pexpect.spawn[bytes] = pexpect.spawn(
            command[0],
            command[1:],
            cwd=str(jail.workspace),
            env=environment,
            timeout=PATIENCE,
            dimensions=(24, 80),
        )

    def type(self, keys: str) -> None:
        self.screen.send(keys)

    def see(self, pattern: str) -> bytes:
        """Wait until it is shown; what was shown up to there."""
        self.screen.expect(pattern)
        return bytes(self.screen.before or b"")

    def do(self, line: str, *patterns: str) -> None:
        self.type(line + "\r")
        for pattern in patterns:
            self.see(pattern)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.screen.child_fd)

    def ended(self) -> int | None:
        self.screen.expect(pexpect.EOF)
        self.screen.close()
        return self.screen.exitstatus


def in_jail(jail: Jail, *command: str, options: tuple[str, ...] = ()) -> Person:
    return Person([str(jail.installed.command), "run", *options, "--", *command], jail)


def of_command(said: bytes) -> bytes:
    """Without the line in which jail names what this host lacks, before anything is executed."""
    return re.sub(rb"^jail: without [^\r\n]*, which policy [^\r\n]*\r\n", b"", said)


@pytest.fixture
def shell(jail: Jail) -> Iterator[Person]:
    """`jail shell`, at its first prompt."""
    person = Person([str(jail.installed.command), "shell"], jail)
    person.see(INSIDE)
    yield person
    person.screen.close(force=True)


@pytest.fixture
def outer(jail: Jail) -> Iterator[Person]:
    """The person's own bash, with job control, at its prompt."""
    person = Person(["/bin/bash", "--norc", "--noprofile", "--noediting"], jail)
    person.see(OUTSIDE)
    yield person
    person.screen.close(force=True)


@pytest.mark.parametrize("path", ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/sh"])
def test_jail_shell_opens_the_persons_shell_with_a_mark_and_leaves_no_file(path: str, jail: Jail) -> None:
    before = sorted(os.listdir(jail.workspace))
    person = Person([str(jail.installed.command), "shell"], jail, SHELL=path)
    person.see(r"\(jail\) ")
    person.do("echo in''side $JAIL; exit 9", "inside 1\r\n")
    assert person.ended() == 9
    assert sorted(os.listdir(jail.workspace)) == before
    done = jail.call("shell", "--", "-c", "echo $0 $1", "given", "argument", stdin="")
    assert done.stdout == "given argument\n"


def test_bash_has_job_control_and_the_shells_exit_code_is_jails(shell: Person) -> None:
    shell.do("echo $JAIL $-", "1 .*m.*\r\n", INSIDE)
    shell.do("sleep 600")
    shell.type("\x03")
    shell.see(INSIDE)
    shell.do("echo code=$?", "code=130", INSIDE)
    shell.do("cat")
    shell.do("one", "one\r\none")
    shell.type("\x1a")
    shell.see(r"Stopped +cat")
    shell.see(INSIDE)
    shell.do("sleep 600 & jobs", r"Stopped +cat", r"Running +sleep", INSIDE)
    shell.do("fg %1", "cat\r\n")
    shell.do("two", "two\r\ntwo")
    shell.type("\x04")
    shell.see(INSIDE)
    shell.do("kill %2; wait; jobs", "Terminated", INSIDE)
    shell.do("exit 7")
    assert shell.ended() == 7


def test_vim_edits_pastes_resizes_stops_and_comes_back(shell: Person, jail: Jail) -> None:
    shell.do("vim -N -u NONE -i NONE --cmd 'set ruler' made", "made")
    shell.do(":echo 'co'.'lours' &t_Co", "colours 256")
    shell.type("i\x1b[200~pasted\rtext\x1b[201~\x1b")
    shell.see("2,4")
    shell.screen.setwinsize(31, 97)
    shell.do(":echo 'si'.'ze' &lines &columns", "size 31 97")
    shell.type("\x1a")
    shell.see("Stopped")
    shell.see(INSIDE)
    shell.do("stty size; fg", "31 97", "pasted")
    shell.type(":wq\r")
    shell.see(INSIDE)
    assert (jail.workspace / "made").read_text() == "pasted\ntext\n"
    shell.do("exit")
    assert shell.ended() == 0


def test_less_shows_searches_and_leaves_the_screen_as_it_was(jail: Jail) -> None:
    (jail.workspace / "long").write_text("".join(f"line {number} of it\n" for number in range(500)))
    person = in_jail(jail, "less", "long")
    person.see(r"\x1b\[\?1049h")
    person.see("line 22 of it")
    person.type("/line 300\r")
    person.see("300")
    person.screen.setwinsize(10, 60)
    person.see(r"308 of it\r\n:")  # drawn anew: keys that come with the signal are dropped by less
    person.type("G")
    person.see("line 499 of it")
    person.type("q")
    person.see(r"\x1b\[\?1049l")
    assert person.ended() == 0


def test_the_python_repl_edits_is_interrupted_and_ends(jail: Jail) -> None:
    person = in_jail(jail, PYTHON, "-I")
    person.see(">>> ")
    person.type("print('o' 'k')X\x7f\r")
    person.see("\nok\r\n")
    person.do("while True: pass\r")
    person.type("\x03")
    person.see("KeyboardInterrupt")
    person.do("import sys; sys.exit(4)")
    assert person.ended() == 4


def test_top_draws_redraws_on_resize_and_sees_the_jail_alone(jail: Jail) -> None:
    person = in_jail(jail, "top", "-d", "60")
    shown = person.see("jail-in")
    assert b"Tasks:" in shown
    person.screen.setwinsize(15, 120)
    person.see("Tasks:")
    person.type("q")
    assert person.ended() == 0


def test_tmux_runs_inside_with_its_own_windows(shell: Person) -> None:
    shell.do("tmux -f /dev/null new-session -s inner", r"\[inner\]")
    shell.do("echo fi''rst", "first")
    shell.type('\x02"')
    shell.do("echo sec''ond; tput lines", "second")
    shell.type("\x02d")
    shell.see(r"detached")
    shell.see(INSIDE)
    shell.do("tmux list-panes -t inner | wc -l; tmux kill-server", "2\r\n", INSIDE)
    shell.do("exit")
    assert shell.ended() == 0


def test_in_tmux_the_colours_are_exact_and_the_title_stays(jail: Jail, tmp_path: Path) -> None:
    program = r"printf '\033[38;2;1;2;3mtrue\033[0m\033]2;stolen\007\033kstolen\033\\ done\n'; sleep 600"
    command = [str(jail.installed.command), "run", "--", "sh", "-c", program]
    base = ["/usr/bin/tmux", "-S", str(tmp_path / "s"), "-f", "/dev/null"]

    def tmux(*words: str) -> str:
        environment = {**jail.environment, "TMUX_TMPDIR": str(tmp_path)}
        done = subprocess.run(
            [*base, *words],
            cwd=jail.workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout

    tmux("new-session", "-d", "-x", "80", "-y", "24", "-n", "mine", *command)
    try:
        end = time.monotonic() + PATIENCE
        while "done" not in (seen := tmux("capture-pane", "-p", "-e")):
            assert time.monotonic() < end, seen
            time.sleep(0.05)
        assert "\x1b[38;2;1;2;3mtrue" in seen
        assert "stolen" not in tmux("display-message", "-p", "#{pane_title} #{window_name}")
        tmux("resize-window", "-x", "60", "-y", "20")
        tmux("send-keys", "C-c")
    finally:  # with its last command the server may have ended by itself
        subprocess.run([*base, "kill-server"], capture_output=True, check=False, timeout=PATIENCE)


ECHO = r"""
import os, sys, termios, tty
tty.setraw(0)
os.write(1, bytes.fromhex(sys.argv[1]) + b"READY")
while (data := os.read(0, 1000)) != b"q":
    os.write(1, data.hex().encode() + b";")
"""
OUT = (
    b"\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[>1u\x1b[?2026h\x1b[38;2;255;128;0m24 bit"
    b"\x1b[48;5;17m\x1b[58:2::1:2:3m\x1b[4:3m\xe2\x9c\x9c\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\x1b[?2026l"
    b"\x1b[<u\x1b[?1004l\x1b[?1006l\x1b[?1003l\x1b[?1000l\x1b[?2004l\x1b[0m\x1b[?1049l"
)
IN = {
    "paste": b"\x1b[200~a\rb\tc\x03\x1b[201~",
    "mouse": b"\x1b[<0;12;7M\x1b[<0;12;7m\x1b[M !!",
    "focus": b"\x1b[I\x1b[O",
    "kitty's keyboard": b"\x1b[97;5u\x1b[57441;1:3u\x1b[?1u",
    "control keys": bytes(range(32)) + b"\x7f",
    "eight bits": bytes(range(128, 256)),
    "answers": b"\x1b[24;80R\x1b]11;rgb:0000/0000/0000\x1b\\\x1bP1$r0m\x1b\\",
}


def test_what_modern_terminals_speak_passes_untouched_both_ways(jail: Jail) -> None:
    person = in_jail(jail, PYTHON, "-I", "-c", ECHO, OUT.hex())
    assert of_command(person.see("READY")) == OUT
    for what, data in IN.items():
        os.write(person.screen.child_fd, data)
        heard = ""
        while len(heard) < 2 * len(data):
            heard += person.see(";").decode()
        assert heard == data.hex(), what
    person.type("q")
    assert person.ended() == 0


def test_64_mb_reach_the_terminal_byte_for_byte(jail: Jail) -> None:
    piece = plain_bytes(1 << 20)
    (jail.workspace / "piece").write_bytes(piece)
    program = "stty raw; printf BEGIN; for n in 1 2 3 4 5 6 7 8; do cat " + "piece " * 8 + "; done"
    person = in_jail(jail, "sh", "-c", program)
    rest, wanted = person.screen, hashlib.sha256(piece * 64).hexdigest()
    person.see("BEGIN")
    found, size = hashlib.sha256(rest.buffer), len(rest.buffer)
    while size < 64 * len(piece):
        data = os.read(rest.child_fd, 65536)
        found.update(data)
        size += len(data)
    assert found.hexdigest() == wanted
    rest.buffer = b""
    assert person.ended() == 0


def test_what_was_dropped_is_said_once_and_recorded_and_allowed_by_the_policy(
    jail: Jail, tmp_path: Path
) -> None:
    program = r"printf 'a\033]0;t\007b\033]52;c;eA==\007c\033[5id\n'"
    person = in_jail(jail, "sh", "-c", program)
    assert of_command(person.see("abcd\r\n")) == b""
    said = person.see("in a policy")
    assert b"1 for the window's title, 1 for the clipboard, 1 " in said
    assert person.ended() == 0
    assert any(
        "1 for the clipboard" in entry["fields"]["text"] for entry in jail.ledger() if entry["kind"] == "note"
    )
    shipped = jail.call("plan", "--", "true").stdout
    assert "neither title nor clipboard" in shipped


def test_a_pipe_gets_the_bytes_as_they_are_and_a_terminal_for_stderr_alone_does_not(
    jail: Jail, outer: Person
) -> None:
    program = r"printf '\033]0;out\007'; printf '\033]0;err\007E' >&2"
    outer.do(f'$JAIL run -- sh -c "{program}" </dev/null >out; od -An -c out | tr -d " "; echo en""d', "end")
    assert b"\x1b]0;" not in (outer.screen.before or b"")
    assert b"033]0;out" in (outer.screen.before or b"")
    outer.see(OUTSIDE)
    assert (jail.workspace / "out").read_bytes() == b"\x1b]0;out\x07"


LATE = {
    "where the cursor is": (r"\033[6n", "\x1b[7;7R"),
    "the background": (r"\033]11;?\007", "\x1b]11;rgb:1/2/3\x07"),
}


@pytest.mark.parametrize("what", LATE)
def test_an_answer_that_comes_after_the_end_does_not_become_typed_text(what: str, outer: Person) -> None:
    question, answer = LATE[what]
    outer.do(f"$JAIL run -- printf '{question}Z'; echo code=$?", "\x1b.*Z")
    time.sleep(0.05)  # a slow connection
    outer.type(answer)
    outer.see("code=0")
    outer.see(OUTSIDE)
    outer.do("echo cle''an", "clean")
    shown = outer.screen.before or b""
    assert b"7R" not in shown
    assert b"rgb" not in shown


MODES_LEFT = r"\033[?1003h\033[?2048h\033[?9h\033[>1u\033[?25l\033[8m"


@pytest.mark.parametrize("code", [0, 3])
def test_modes_that_are_left_set_at_a_normal_end_are_undone(code: int, outer: Person) -> None:
    outer.do(f"$JAIL run -- sh -c 'printf \"{MODES_LEFT}Z\"; exit {code}'; echo code=$?", "\x1b.*Z")
    undone = outer.see(f"code={code}")
    for mode in (b"\x1b[?1003l", b"\x1b[?2048l", b"\x1b[?9l", b"\x1b[<1u", b"\x1b[?25h", b"\x1b[0m"):
        assert undone.count(mode) == 1


def test_no_more_answers_are_left_than_are_waited_for(outer: Person) -> None:
    outer.do(
        '$JAIL run -- sh -c \'for n in $(seq 1500); do printf "\\033[c"; done; echo al""l\'; echo code=$?'
    )
    asked = outer.see("all").count(b"\x1b[c")
    assert 64 < asked <= OPEN_LIMIT
    outer.type("\x1b[?62c" * asked)
    outer.see("code=0")
    outer.see(OUTSIDE)
    outer.do("echo cle''an", "clean")
    assert b"62c" not in (outer.screen.before or b"")


def test_a_job_in_the_background_asks_nothing_and_turns_no_mouse_on_till_it_is_in_front(
    outer: Person,
) -> None:
    program = 'printf "\\033[6n\\033[?1003h\\033[?25h%s" seen; read line; printf "\\033[6n"'
    outer.do(f"$JAIL run -- sh -c '{program}' &")
    before = outer.see(r"\?25hseen")
    assert b"\x1b[6n" not in before
    assert b"\x1b[?1003h" not in before
    outer.do("fg", r"\x1b\[\?1003h")
    outer.do("line", r"\x1b\[6n")
    outer.type("\x1b[1;1R")
    outer.see(r"\x1b\[\?1003l")
    outer.see(OUTSIDE)


def children(parent: int) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(name))
    return found


def processes(outer: Person) -> dict[str, int]:
    """Of the one run in the person's shell: the supervisor, the keeper and process 1."""
    (supervisor,) = children(outer.screen.pid)
    # The guard of the terminal is a child of the supervisor's too, and has none itself.
    keeper = next(pid for pid in children(supervisor) if children(pid))
    return {"supervisor": supervisor, "keeper": keeper, "init": children(keeper)[0]}


RAW = r'stty raw -echo; printf "\033[?1049h\033[?25l\165p"; exec sleep 600'
ENDS = {
    "its exit": ("exit 3", "code=3"),
    "a signal": ("kill -9 $$", "code=137"),
    "its time": ("stty raw; exec sleep 600", "code=124"),
    "jail's failure before the start": ("", "code=78|code=2|code=12[567]"),
    "SIGKILL of the supervisor": (RAW, "code=137"),
    "SIGKILL of the keeper": (RAW, "code=125"),
    "SIGKILL of init": (RAW, "code=125"),
    "SIGTERM of the supervisor": (RAW, "code=143"),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_terminal_is_as_it_was_after(how: str, outer: Person) -> None:
    before = outer.settings()
    program, code = ENDS[how]
    options = "--timeout 1s" if how == "its time" else "--workspace /absent" if "failure" in how else ""
    mark = f"mark-{os.getpid()}-{len(how)}"
    outer.type(f"$JAIL run {options} -- sh -c '{program}' {mark}; echo co''de=$?\r")
    if program == RAW:
        outer.see("up")
        name, victim = how.removesuffix("visor").replace("the ", "").split(" of ")
        os.kill(
            next(pid for role, pid in processes(outer).items() if role.startswith(victim)),
            signal.Signals[name],
        )
    outer.see(code)
    outer.see(OUTSIDE)
    end = time.monotonic() + PATIENCE
    while (
        outer.settings() != before and time.monotonic() < end
    ):  # the guard's work, after the supervisor's SIGKILL
        time.sleep(0.01)
    assert outer.settings() == before
    outer.do("echo wor''ks", "works", OUTSIDE)


def stopped(outer: Person) -> None:
    outer.see("Stopped")
    outer.see(OUTSIDE)


def test_stopped_by_the_callers_shell_it_freezes_and_with_fg_it_goes_on_raw(
    outer: Person, jail: Jail
) -> None:
    before = outer.settings()
    program = (
        "(while :; do echo >> ticks; sleep 0.01; done) & stty raw -echo; printf u%s p; head -c 3 | od -An -c"
    )
    mark = f"stopped-{os.getpid()}"
    outer.type(f'$JAIL run -- sh -c "{program}" {mark}\r')
    outer.see("up")
    os.kill(processes(outer)["supervisor"], signal.SIGTSTP)
    stopped(outer)
    assert outer.settings() == before
    ticks = jail.workspace / "ticks"
    settled = -1
    while settled != (settled := ticks.stat().st_size):
        time.sleep(0.15)
    outer.do("jobs; bg", "Stopped", OUTSIDE)
    wait_for(lambda: ticks.stat().st_size > settled)
    assert outer.settings() == before, "in the background the terminal is the shell's"
    outer.do("fg", "sh -c")
    wait_for(lambda: outer.settings() != before)
    outer.type("a\x03b")
    outer.see(r"a 003 +b")
    outer.see(OUTSIDE)
    assert outer.settings() == before


def test_a_pipeline_stops_as_a_whole_while_the_command_runs_and_when_only_its_output_is_left(
    outer: Person,
) -> None:
    for program in ("echo; sleep 600", "head -c 100000 /dev/zero"):
        outer.type(f"$JAIL run -- sh -c '{program}' | (head -c 1; echo rea''dy; exec sleep 600)\r")
        outer.see("ready")
        supervisor = min(children(outer.screen.pid))
        if "zero" in program:
            wait_for(lambda supervisor=supervisor: not any(map(children, children(supervisor))))
        outer.type("\x1a")
        stopped(outer)
        outer.do("kill -9 %1", OUTSIDE)
        wait_for(lambda: children(outer.screen.pid) == [])
        outer.do("echo wor''ks", "works", OUTSIDE)


def test_stopped_and_then_killed_it_leaves_a_terminal_that_works_and_nothing_running(outer: Person) -> None:
    before = outer.settings()
    for name in ("TERM", "KILL"):
        mark = f"killed-{os.getpid()}-{name}"
        outer.type(f"$JAIL run -- sh -c '{RAW}' {mark}\r")
        outer.see("up")
        ran = processes(outer)
        os.kill(ran["supervisor"], signal.SIGTSTP)
        stopped(outer)
        outer.do(f"kill -{name} %1", OUTSIDE)
        wait_for(lambda ran=ran: not any(Path(f"/proc/{pid}").exists() for pid in ran.values()))
        outer.do("echo wor''ks", "works", OUTSIDE)
        assert outer.settings() == before


def test_the_window_that_closes_hangs_up_the_command_and_ends_all(jail: Jail) -> None:
    mark = f"hung-up-{os.getpid()}"
    person = in_jail(
        jail, "sh", "-c", "trap 'echo hup > hup; exit' HUP; echo up; while :; do sleep 0.05; done", mark
    )
    person.see("up")
    person.screen.close(force=False)
    wait_for(lambda: not survivors(mark))
    assert (jail.workspace / "hup").exists()
