"""stdin, stdout and stderr through the whole command: whatever the caller's shell puts there, `jail run -- CMD` in
its place behaves as CMD would.

Each test is a line that a person would type; with the same line without jail it gives the same.
"""

import hashlib
import os
import socket
import subprocess
from pathlib import Path

import pytest

from support.installed import Installed
from support.jails import PATIENCE
from support.shells import Ended, random_file, typed
from support.work import ROOT_ONCE, Ground, make_ground

BIG = 16 << 20
"""Bytes: many times a pipe's 64 KiB, so that every partial read and write happens."""


@pytest.fixture(scope="module", params=ROOT_ONCE)
def ground(request: pytest.FixtureRequest, installed: Installed, open_folder: Path) -> Ground:
    return make_ground(request.param, installed, open_folder / "stdio")


LINES = {
    "a pipe in and out": ("printf 'a\\nb' | run cat | cat", 0, b"a\nb", b""),
    "a file in and out": ("run tr a-z A-Z < ../words > ../out; cat ../out", 0, b"ONE\nTWO\nTHREE\n", b""),
    "a here-document": ("run cat <<< here", 0, b"here\n", b""),
    "process substitution": ("run cat < <(echo from a process) > >(cat)", 0, b"from a process\n", b""),
    "nothing on stdin": ("run cat < /dev/null; run cat <&-", 0, b"", b""),
    "stdout and stderr apart": ("run sh -c 'echo out; echo err >&2'", 0, b"out\n", b"err\n"),
    "they are swapped": ("run sh -c 'echo out; echo err >&2' 3>&1 1>&2 2>&3", 0, b"err\n", b"out\n"),
    "bytes that are no text": (r"run printf '\0\377\r\n\033[0m'", 0, b"\0\xff\r\n\033[0m", b""),
    "no newline at the end": ("run printf x", 0, b"x", b""),
    "an exit code in a pipeline": ("run sh -c 'echo x; exit 3' | cat", 3, b"x\n", b""),
    "a command in a condition": ("if run false; then echo yes; else echo no; fi", 0, b"no\n", b""),
    "a substitution": ("echo \"<$(run sh -c 'echo a; echo; echo')>\"", 0, b"<a>\n", b""),
    "stdout closed": ("run sh -c 'echo out; echo err >&2' >&-", 0, b"", b"err\n"),
    "stderr closed": ("run sh -c 'echo out; echo err >&2' 2>&-", 0, b"out\n", b""),
    "all three closed": ("run sh -c 'exit 4' <&- >&- 2>&-", 4, b"", b""),
    "output thrown away": ("run sh -c 'echo out; echo err >&2' >/dev/null 2>&1", 0, b"", b""),
    "jail in a background job": ("run sh -c 'echo job; exit 5' & wait $!", 5, b"job\n", b""),
    "two jails in a pipeline": ("run printf 'b\\na\\n' | run sort", 0, b"a\nb\n", b""),
    "streams opened by name": (
        "echo in | run sh -c 'cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr; echo fd > /dev/fd/1'",
        0,
        b"in\nout\nfd\n",
        b"err\n",
    ),
    "tee to a stream": ("run sh -c 'echo x | tee /dev/stderr'", 0, b"x\n", b"x\n"),
    "no other fd comes in": (
        "exec 5</etc/passwd 7>../seven; run sh -c 'ls /proc/self/fd | wc -l; cat <&5 || echo closed' 2>/dev/null",
        0,
        b"4\nclosed\n",
        b"",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_streams_are_as_without_jail(ground: Ground, name: str) -> None:
    (ground.workspace.parent / "words").write_text("one\ntwo\nthree\n")
    line, *expected = LINES[name]
    assert typed(ground, line) == Ended(*expected)


def test_a_loop_that_reads_a_list_sees_each_line(ground: Ground) -> None:
    (ground.workspace.parent / "list").write_text("a\nb\nc\n")
    said = typed(ground, "while read -r l; do echo got $l; run true; done < ../list")
    assert said == Ended(0, b"got a\ngot b\ngot c\n", b"")
    said = typed(ground, "printf 'a\\nb\\nc\\n' | while read -r l; do echo got $l; run true; done")
    assert said == Ended(0, b"got a\ngot b\ngot c\n", b"")


def test_what_the_command_read_of_a_list_is_gone_from_it_and_no_more(ground: Ground) -> None:
    (ground.workspace.parent / "list").write_text("a\nb\nc\nd\n")
    line = "(read -r first; run sh -c 'read -r l; echo inside $l'; read -r l; echo outside $l) < ../list"
    assert typed(ground, line) == Ended(0, b"inside b\noutside c\n", b"")


def test_stdout_and_stderr_in_one_keep_their_order(ground: Ground) -> None:
    both = "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; done"
    expected = "".join(f"out {n}\nerr {n}\n" for n in range(1, 10)).encode()
    assert typed(ground, f"run sh -c '{both}' 2>&1 | cat").out == expected
    typed(ground, f"run sh -c '{both}' > ../both 2>&1")
    assert (ground.workspace.parent / "both").read_bytes() == expected


def test_a_log_is_appended_to_by_both_sides_and_never_cut(ground: Ground) -> None:
    log = ground.workspace.parent / "log"
    log.write_text("before\n")
    line = "{ run sh -c 'echo one; : > /dev/stdout; echo two'; echo between; run echo three; } >> ../log 2>&1"
    said = typed(ground, line)
    assert said.code == 0
    assert log.read_text() == "before\none\ntwo\nbetween\nthree\n"


def test_a_file_on_stdout_goes_on_where_the_shell_left_it(ground: Ground) -> None:
    typed(ground, "{ echo head; run echo body; echo tail; } > ../parts")
    assert (ground.workspace.parent / "parts").read_text() == "head\nbody\ntail\n"


def test_the_file_on_stdin_cannot_be_written_and_that_on_stdout_not_read(ground: Ground) -> None:
    (ground.workspace.parent / "given").write_text("given\n")
    (ground.workspace.parent / "kept").write_text("secret\n")
    line = "run sh -c 'echo evil > /proc/self/fd/0; timeout 1 cat /proc/self/fd/1 >&2' <> ../given >> ../kept"
    said = typed(ground, line)
    assert (ground.workspace.parent / "given").read_text() == "given\n"
    assert b"secret" not in said.err


@pytest.mark.parametrize(
    "line",
    [
        "run cat < ../big > ../copy",
        "cat ../big | run cat | cat > ../copy",
        "run sh -c 'cat >&2' < ../big 2> ../copy",
    ],
    ids=["file to file", "pipe to pipe", "to stderr"],
)
def test_big_binary_data_passes_unchanged(ground: Ground, line: str) -> None:
    content = random_file(ground, "big", BIG)
    assert typed(ground, line).code == 0
    copy = (ground.workspace.parent / "copy").read_bytes()
    assert hashlib.sha256(copy).digest() == hashlib.sha256(content).digest()


def test_a_reader_that_goes_away_ends_the_command_as_it_would_without_jail(ground: Ground) -> None:
    said = typed(ground, "run yes | head -n 2; echo ${PIPESTATUS[0]}")
    assert said == Ended(0, b"y\ny\n141\n", b"")


def test_a_reader_that_goes_away_says_nothing_where_the_command_ignores_it(ground: Ground) -> None:
    said = typed(
        ground,
        "run sh -c 'trap \"\" PIPE; while echo x; do :; done; exit 6' | head -n 1; echo ${PIPESTATUS[0]}",
    )
    assert said.out == b"x\n6\n"
    assert b"jail:" not in said.err


def test_a_command_that_does_not_read_its_stdin_does_not_wait_for_its_end(ground: Ground) -> None:
    said = typed(ground, "mkfifo ../open; exec 8<> ../open; run true <&8; echo ended $?; rm ../open")
    assert said == Ended(0, b"ended 0\n", b"")


def test_a_writer_whose_reader_has_gone_gets_sigpipe(ground: Ground) -> None:
    said = typed(ground, "yes | run head -n 1; echo ${PIPESTATUS[*]}")
    assert said.out == b"y\n141 0\n"


def test_children_that_keep_stdout_open_do_not_hold_up_the_end(ground: Ground) -> None:
    said = typed(ground, "run sh -c 'sleep 600 & echo started' | cat")
    assert said == Ended(0, b"started\n", b"")


def test_what_was_written_last_is_delivered_to_a_slow_reader(ground: Ground) -> None:
    said = typed(ground, "run sh -c 'head -c 300000 /dev/zero; printf end' | { sleep 1; wc -c; }")
    assert said == Ended(0, b"300003\n", b"")


def test_a_full_disk_is_an_error_that_is_told(ground: Ground) -> None:
    said = typed(ground, "run sh -c 'echo lost' > /dev/full")
    assert b"output was lost" in said.err
    assert b"No space left on device" in said.err


def test_a_run_whose_output_was_lost_is_no_success(ground: Ground) -> None:
    """`jail run -- report > file && publish file` must stop on a full disk, as it does without jail."""
    assert typed(ground, "run sh -c 'echo lost' > /dev/full").code == 125


def test_an_endless_device_can_be_read(ground: Ground) -> None:
    assert typed(ground, "run head -c 100000 < /dev/zero | wc -c") == Ended(0, b"100000\n", b"")


def test_sockets_as_streams_work_as_node_and_ssh_give_them(ground: Ground) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        jail = ground.jail
        running = jail.popen(
            "sh", "-c", "read -r l; echo got $l; echo err >&2", stdin=theirs, stdout=theirs, stderr=theirs
        )
        theirs.close()
        ours.sendall(b"line\n")
        said = b""
        ours.settimeout(PATIENCE)
        while part := ours.recv(4096):
            said += part
        assert running.wait(PATIENCE) == 0
    assert said == b"got line\nerr\n"


def test_the_flags_of_the_callers_streams_are_as_they_were(ground: Ground) -> None:
    reading, writing = os.pipe()
    done = subprocess.run(
        [ground.jail.installed.command, "run", "--", "echo", "x"],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        cwd=ground.workspace,
        env=dict(ground.jail.environment),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0
    assert os.get_blocking(writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read() == b"x\n"
