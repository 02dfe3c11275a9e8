"""`jail exec` from the caller's side: streams, terminal, signals, and each way in which it ends."""

import os
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # it ships no types of its own
import pytest

from support.answers import new_jail
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, survivors
from support.joining import Session, kill_and_reap, session
from support.running import until


@pytest.fixture(scope="module")
def running(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session(new_jail(installed, tmp_path_factory.mktemp("join"))) as found:
        yield found


ENDINGS = {
    "success": (("true",), 0, ""),
    "its own code": (("sh", "-c", "exit 41"), 41, ""),
    "a signal": (("sh", "-c", "kill -TERM $$"), 143, "killed by signal 15"),
    "no such program": (
        ("no-such-program",),
        127,
        "no-such-program: No such file or directory\njail:   where: inside the jail",
    ),
    "a folder": (("/usr",), 126, "/usr: Permission denied"),
    "an empty name": (("",), 127, "No such file"),
    "options that look like ours": (
        ("sh", "-c", 'test "$*" = "--help -- -f"', "sh", "--help", "--", "-f"),
        0,
        "",
    ),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_the_exit_code_is_the_commands_own(running: Session, case: str) -> None:
    command, code, said = ENDINGS[case]
    done = running.exec(*command)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_the_three_streams_are_apart_and_stdin_is_read(running: Session) -> None:
    done = running.exec("sh", "-c", "cat; echo said >&2", stdin="given\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "given\n", "said\n")


def test_a_large_output_arrives_whole(running: Session) -> None:
    done = running.exec(PYTHON, "-c", "print('x' * 3_000_000)")
    assert (done.returncode, len(done.stdout)) == (0, 3_000_001)


def test_the_callers_files_do_not_enter(running: Session, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with target.open("w") as out:
        process = running.popen(
            "sh", "-c", "readlink /proc/self/fd/1; echo more > /proc/self/fd/1", stdout=out
        )
        process.communicate(timeout=PATIENCE)
    assert target.read_text().startswith("pipe:[")
    assert target.read_text().endswith("more\n")


def test_it_sees_the_processes_the_files_and_the_home_of_the_session(running: Session) -> None:
    assert running.exec("sh", "-c", "echo kept > $HOME/kept; echo made > made").returncode == 0
    assert running.exec("sh", "-c", "cat $HOME/kept made; ls /proc | grep -cx 1").stdout == "kept\nmade\n1\n"
    assert (running.jail.workspace / "made").read_text() == "made\n"
    assert not (running.jail.home / "kept").exists()


@pytest.mark.parametrize("name", ["id", "beginning", "last", "-"])
def test_the_session_is_named_by(running: Session, name: str) -> None:
    text = {"id": running.id, "beginning": running.id[:-3]}.get(name, name)
    assert running.exec("echo", "here", name=text).stdout == "here\n"


def test_who_names_no_running_session_is_told_so(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "ended")
    assert jail.run("true").returncode == 0
    for name, said in {
        "last": "has ended",
        "-": "no session is running",
        "nonsense": "no session 'nonsense'",
    }.items():
        done = jail.call("exec", name, "--", "true")
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "to do:" in done.stderr
    assert jail.call("exec", "last", "--").returncode == 2


def test_signals_of_the_client_reach_the_command(running: Session) -> None:
    script = "trap 'echo int' INT; trap 'echo term; exit 3' TERM; echo up; while :; do sleep 0.05; done"
    process = running.popen("sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "int\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE)[0] == "term\n"
    assert process.returncode == 3


STUBBORN = "trap '' HUP INT TERM; echo up; sleep 987.{0} & sleep 987.{0}"


def test_a_client_that_is_killed_takes_its_command_with_it(running: Session) -> None:
    for number, script in enumerate(("echo up; sleep 987.{0} & sleep 987.{0}", STUBBORN)):
        mark = f"987.{os.getpid()}{number}"
        process = running.popen("sh", "-c", script.format(mark[4:]))
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert until(lambda mark=mark: len(survivors(f"sleep\0{mark}")) == 2, PATIENCE)
        kill_and_reap(process)
        assert until(lambda mark=mark: not survivors(mark), PATIENCE), "it lives on"
    codes = [129, 137]
    assert until(lambda: [left["exit"] for left in running.entries("left")][-2:] == codes, PATIENCE)
    assert running.lives()


def test_a_stopped_command_hears_the_hang_up(running: Session) -> None:
    mark = f"986.{os.getpid()}"
    process = running.popen("sh", "-c", f"echo up; kill -STOP $$; sleep {mark}")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    kill_and_reap(process)
    assert until(lambda: not survivors(mark), PATIENCE)


def test_when_the_session_ends_the_client_says_so(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "ends")) as found:
        process = found.popen("sh", "-c", "echo up; sleep 100")
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert found.running.wait() == 0
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 125
    assert "the session ended" in errors
    assert found.entries("left") == [{"join": 1, "exit": None, "signal": 0, "reason": "the session ended"}]
    assert not found.path.exists()


def test_when_the_supervisor_is_killed_the_client_says_so(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "killed")) as found:
        process = found.popen("sh", "-c", "echo up; sleep 100")
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        found.running.signal(signal.SIGKILL).wait()
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 125
    assert "its supervisor was killed" in errors
    done = found.exec("true")
    assert done.returncode == 2
    assert "has ended" in done.stderr


def test_a_client_that_waits_for_a_stopped_supervisor_can_be_interrupted(
    installed: Installed, tmp_path: Path
) -> None:
    with session(new_jail(installed, tmp_path / "waits")) as found:
        found.running.signal(signal.SIGSTOP)
        process = found.popen("sh", "-c", "echo ran > ran")
        assert until(lambda: _waits(process.pid), PATIENCE)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        found.running.signal(signal.SIGCONT)
        assert found.lives()
        assert not (found.jail.workspace / "ran").exists()


def _waits(pid: int) -> bool:
    """Whether it has its own handlers, and so has connected and asked (SigCgt, proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGWINCH - 1) & 1)


def test_what_cannot_be_recorded_does_not_run(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "recorded")) as found:
        assert found.exec("sh", "-c", "echo ran > control").returncode == 0
        with (found.folder / "ledger.jsonl").open("a") as ledger:
            ledger.write("somebody else\n")
        done = found.exec("sh", "-c", "echo ran > ran")
        assert done.returncode == 125
        assert found.running.wait() == 125
        assert "changed by somebody else" in found.running.errors
        assert (found.jail.workspace / "control").exists()
        assert not (found.jail.workspace / "ran").exists()


# On a terminal.


def on_terminal(running: Session, *command: str) -> "pexpect.spawn[str]":
    arguments = [str(running.jail.installed.command), "exec", running.id, "--", *command]
    script = '"$@"; echo "over $?"; read line'
    return pexpect.spawn(
        "/bin/sh",
        ["-c", script, "sh", *arguments],
        cwd=str(running.jail.workspace),
        env={**running.jail.environment, "TERM": "xterm-256color"},
        timeout=PATIENCE,
        dimensions=(33, 101),
        encoding="utf-8",
    )


def test_a_shell_on_a_terminal_has_job_control_size_and_name(running: Session) -> None:
    child = on_terminal(running, "bash", "--norc", "--noprofile", "-i")
    before = termios.tcgetattr(child.child_fd)
    child.sendline("PS1='ready> '; bind 'set enable-bracketed-paste off'")
    child.expect("(?<!')ready> $")
    child.sendline('echo "$(stty size) $TERM $(tty)"')
    child.expect(r"33 101 xterm-256color /dev/pts/\d+")
    child.setwinsize(40, 90)
    child.sendline("stty size")
    child.expect("40 90")
    child.sendline("sleep 100")
    child.expect("sleep 100\r\n")
    for _ in range(PATIENCE):
        child.send("\x1a")  # before the shell has started it, nothing is there to stop
        if child.expect(["Stopped", pexpect.TIMEOUT], timeout=1) == 0:
            break
    child.sendline("fg")
    child.expect("\nsleep 100\r\n")
    child.send("\x03")
    child.expect("ready> ")
    child.sendline("echo code $?")
    child.expect("code 130")
    child.sendline("exit 7")
    child.expect("over 7")
    assert termios.tcgetattr(child.child_fd) == before
    child.close(force=True)


def test_a_client_killed_on_a_terminal_leaves_it_sane(running: Session) -> None:
    child = on_terminal(running, "sh", "-c", "stty raw -echo; echo up; sleep 985")
    before = termios.tcgetattr(child.child_fd)
    child.expect("up")
    (client,) = [
        pid for pid in survivors(f"exec\0{running.id}") if pid != child.pid and _parent(pid) == child.pid
    ]
    os.kill(client, signal.SIGKILL)
    child.expect("over 137")
    assert until(lambda: termios.tcgetattr(child.child_fd) == before, PATIENCE)
    child.close(force=True)
    assert until(lambda: not survivors("sleep\x00985"), PATIENCE)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_output_to_a_pipe_with_the_keys_of_a_terminal(running: Session) -> None:
    script = "import os; print(os.isatty(0), os.isatty(1), os.isatty(2))"
    command = f"{running.jail.installed.command} exec {running.id} -- {PYTHON} -c '{script}' | cat; echo over"
    child = pexpect.spawn(
        "/bin/sh",
        ["-c", command],
        cwd=str(running.jail.workspace),
        env=dict(running.jail.environment),
        timeout=PATIENCE,
        encoding="utf-8",
    )
    child.expect("False False True")
    child.expect("over")
    child.close(force=True)


def test_escape_sequences_of_a_joined_command_are_kept_from_the_terminal_and_told(running: Session) -> None:
    child = on_terminal(running, "printf", r"a\033]0;title\007b \033[1mbold\033[0m\n")
    child.expect("over 0")
    assert "ab \x1b[1mbold\x1b[0m" in child.before
    assert "\x1b]" not in child.before
    assert "escape sequences were kept from the terminal: 1" in child.before
    child.sendline("")
    child.close(force=True)
