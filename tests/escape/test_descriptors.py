"""CASES.md section B and agent case 51: descriptors, and what /proc tells about the processes around the command."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, lay, offences, state_of, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail

TIMEOUT = 60


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


def command(jail: Jail, program: str, *arguments: str | Path, options: tuple[str, ...] = ()) -> list[str]:
    """`jail run` of a Python program."""
    return [
        str(jail.installed.command),
        "run",
        *options,
        "--",
        PYTHON,
        "-I",
        "-c",
        PRELUDE + program,
        *map(str, arguments),
    ]


def bare(program: str, *arguments: str | Path) -> list[str]:
    """The same program without jail."""
    return [PYTHON, "-I", "-c", PRELUDE + program, *map(str, arguments)]


# ---- B1, B9: what the caller had open ----

OPEN_FDS = """
found["open"] = sorted(int(name) for name in os.listdir("/proc/self/fd"))
found["names"] = []
for fd in found["open"]:
    attempt("read", lambda: found["names"].append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))))
say()
"""


@pytest.fixture
def fifty(tmp_path: Path) -> Iterator[list[int]]:
    """Fifty descriptors without close-on-exec: folders and files of the host, some with high numbers."""
    lay(tmp_path, {"outside/canary": "canary"})
    numbers = []
    for count in range(50):
        fd = os.open(tmp_path / ("outside" if count % 2 else "outside/canary"), os.O_RDONLY)
        if count % 5 == 0:
            high = 300 + count
            os.dup2(fd, high)
            os.close(fd)
            fd = high
        os.set_inheritable(fd, True)  # noqa: FBT003 - the function takes no name
        numbers.append(fd)
    yield numbers
    for fd in numbers:
        os.close(fd)


def test_b1_b9_of_fifty_open_descriptors_of_the_caller_none_is_open_inside(
    warm: Jail, fifty: list[int]
) -> None:
    def told(words: list[str]) -> Any:
        done = subprocess.run(
            words,
            cwd=warm.workspace,
            env=dict(warm.environment),
            close_fds=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])

    assert set(fifty) <= set(told(bare(OPEN_FDS))["open"]), "the control: without jail all are there"
    inside = told(command(warm, OPEN_FDS))
    assert inside["open"] == [0, 1, 2, 3], "three streams, and the listing itself"
    assert not set(inside["names"]) & {"canary", "outside"}


def test_b1_with_all_three_streams_closed_no_other_file_gets_their_numbers(warm: Jail) -> None:
    program = """
lines = [f"{name} {os.readlink(f'/proc/self/fd/{name}')}" for name in ("0", "1", "2") if os.path.exists(f"/proc/self/fd/{name}")]
keep("streams", "\\n".join(lines + [str(len(os.listdir("/proc/self/fd")))]))
"""
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    done = subprocess.run(
        [*shell, *command(warm, program)],
        cwd=warm.workspace,
        env=dict(warm.environment),
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0
    assert (warm.workspace / "streams").read_text().split("\n") == [
        "0 /dev/null",
        "1 /dev/null",
        "2 /dev/null",
        "4",
    ]


# ---- B2: a file as stdin, stdout, stderr ----


def test_b2_a_file_on_stdin_gives_what_follows_its_offset_and_nothing_else(
    warm: Jail, tmp_path: Path
) -> None:
    lay(tmp_path, {"input": "canary before\nrest after\n"})
    program = """
attempt("rewind", lambda: os.lseek(0, 0, 0))
attempt("reopen", lambda: os.set_blocking(os.open("/proc/self/fd/0", os.O_RDONLY | os.O_NONBLOCK), False))
attempt("write", lambda: os.write(0, b"planted"))
attempt("reopen to write", lambda: os.write(os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK), b"planted"))
attempt("truncate", lambda: os.ftruncate(0, 0))
attempt("pread", lambda: os.pread(0, 100, 0))
found["kind"] = "pipe" if stat.S_ISFIFO(os.fstat(0).st_mode) else "file"
found["link"] = os.readlink("/proc/self/fd/0")
data = b""
while part := os.read(0, 4096):
    data += part
    if b"after\\n" in data:
        break
found["read"] = data.decode().replace("planted", "")
say()
"""

    def told(words: list[str]) -> Any:
        with open(tmp_path / "input", "rb+") as file:
            file.seek(len("canary before\n"))
            os.lseek(file.fileno(), file.tell(), os.SEEK_SET)
            done = subprocess.run(
                words,
                stdin=file,
                cwd=warm.workspace,
                env=dict(warm.environment),
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=True,
            )
        return json.loads(done.stdout.splitlines()[-1])

    inside = told(command(warm, program))
    assert inside["kind"] == "pipe"
    assert "input" not in inside["link"]
    assert inside["read"] == "rest after\n"
    assert [inside[name] for name in ("rewind", "write", "truncate", "pread")] == [
        "ESPIPE",
        "EBADF",
        "EINVAL",
        "ESPIPE",
    ]
    assert (tmp_path / "input").read_text() == "canary before\nrest after\n"
    control = told(bare(program))
    assert [control[name] for name in ("rewind", "write", "truncate", "pread")] == [DONE] * 4
    assert (tmp_path / "input").read_text() != "canary before\nrest after\n"


APPEND = """
sys.stdout.write("from inside\\n")
sys.stdout.flush()
for fd in (1, 2):
    attempt(f"truncate {fd}", lambda: os.ftruncate(fd, 0))
    attempt(f"rewind {fd}", lambda: os.lseek(fd, 0, 0))
    attempt(f"read {fd}", lambda: os.pread(fd, 100, 0))
    attempt(f"reopen to truncate {fd}", lambda: stat.S_ISREG(os.fstat(os.open(
        f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK)).st_mode) or os.strerror(0))
    found[f"kind {fd}"] = "pipe" if stat.S_ISFIFO(os.fstat(fd).st_mode) else "file"
    found[f"link {fd}"] = os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
    fcntl = __import__("fcntl")
    found[f"flags {fd}"] = bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)
keep("found", json.dumps(found))
"""


@pytest.mark.parametrize("mode", ["ab", "rb+", "ab+"])
def test_b2_a_log_on_stdout_and_stderr_cannot_be_truncated_rewound_or_read(
    mode: str, warm: Jail, tmp_path: Path
) -> None:
    log, found = tmp_path / "log", warm.workspace / "found"

    def written(words: list[str]) -> tuple[str, dict[str, Any]]:
        log.write_text("earlier canary\n")
        found.unlink(missing_ok=True)
        with open(log, mode) as file:
            file.seek(0, os.SEEK_END)
            subprocess.run(
                words,
                stdout=file,
                stderr=file,
                cwd=warm.workspace,
                env=dict(warm.environment),
                timeout=TIMEOUT,
                check=True,
            )
        return log.read_text(), json.loads(found.read_text())

    text, inside = written(command(warm, APPEND))
    assert text == "earlier canary\nfrom inside\n"
    assert {name: met for name, met in inside.items() if name.startswith(("kind", "link"))} == {
        "kind 1": "pipe",
        "kind 2": "pipe",
        "link 1": True,
        "link 2": True,
    }
    for name in ("truncate 1", "truncate 2", "rewind 1", "rewind 2", "read 1", "read 2"):
        assert inside[name] in {"EINVAL", "ESPIPE", "EBADF"}, name
    text, control = written(bare(APPEND))
    assert "earlier" not in text, "the control: without jail the log is lost"
    assert control["truncate 1"] == DONE


def test_b7_a_socket_on_stdin_brings_bytes_inside_but_no_descriptor(warm: Jail, tmp_path: Path) -> None:
    lay(tmp_path, {"canary": "canary"})
    program = """
import array
try:
    with socket.socket(fileno=os.dup(0)) as peer:
        data, ancillary, *_ = peer.recvmsg(100, 100)
    found["fds"] = len(ancillary)
except OSError as error:
    found["fds"] = errno.errorcode[error.errno]
    data = os.read(0, 100)
found["data"] = data.decode()
say()
"""

    def told(words: list[str]) -> Any:
        ours, theirs = socket.socketpair()
        with ours, theirs, open(tmp_path / "canary", "rb") as secret:
            socket.send_fds(ours, [b"hello"], [secret.fileno()])
            ours.shutdown(socket.SHUT_WR)
            done = subprocess.run(
                words,
                stdin=theirs.fileno(),
                cwd=warm.workspace,
                env=dict(warm.environment),
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=True,
            )
        return json.loads(done.stdout.splitlines()[-1])

    assert told(bare(program)) == {"fds": 1, "data": "hello"}
    assert told(command(warm, program)) == {"fds": "ENOTSOCK", "data": "hello"}


def test_b1_a_folder_on_stdin_is_not_a_way_to_the_host(warm: Jail, tmp_path: Path) -> None:
    lay(tmp_path, {"outside/canary": "canary"})
    script = [
        "sh",
        "-c",
        "cat /proc/self/fd/0/canary; cd /proc/self/fd/0/ && cat canary && cat ../outside/canary; true",
    ]

    def said(words: list[str]) -> tuple[int, str]:
        folder = os.open(tmp_path / "outside", os.O_RDONLY)
        try:
            done = subprocess.run(
                words,
                stdin=folder,
                cwd=warm.workspace,
                env=dict(warm.environment),
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        finally:
            os.close(folder)
        return done.returncode, done.stdout

    assert said(script) == (0, "canary" * 3)
    assert said([str(warm.installed.command), "run", "--", *script]) in {(0, ""), (125, "")}


# ---- B4, B5, B10: the processes around the command ----

AROUND = r"""
libc.prctl(4, 1)
child = os.fork()
if child == 0:
    os.pause() if hasattr(os, "pause") else __import__("signal").pause()
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
FILES = ("mem", "environ", "maps", "auxv", "syscall", "stack", "pagemap", "smaps", "io", "map_files", "fd", "fdinfo")
LINKS = ("root", "cwd", "exe", "fd/0", "ns/mnt", "ns/user")
def peek(pid):
    local = ctypes.create_string_buffer(8)
    here = struct.pack("QQ", ctypes.addressof(local), 8)
    there = struct.pack("QQ", ADDRESS, 8)
    call("process_vm_readv", pid, here, 1, there, 1, 0)
def get_fd(pid):
    call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0)
def see(pid, name):
    path = f"/proc/{pid}/{name}"
    if name in ("map_files", "fd", "fdinfo"):
        os.listdir(path)
    else:
        os.close(os.open(path, os.O_RDONLY))
ADDRESS = ctypes.addressof(ctypes.create_string_buffer(8))
for who, pid in (("init", 1), ("child", child)):
    for name in FILES:
        attempt(f"{who} {name}", lambda: see(pid, name))
    for name in LINKS:
        attempt(f"{who} {name}", lambda: os.readlink(f"/proc/{pid}/{name}"))
    attempt(f"{who} mem to write", lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))
    attempt(f"{who} below root", lambda: os.listdir(f"/proc/{pid}/root/usr"))
    attempt(f"{who} below cwd", lambda: os.listdir(f"/proc/{pid}/cwd/"))
    attempt(f"{who} oom", lambda: keep(f"/proc/{pid}/oom_score_adj", "1000", os.O_WRONLY))
    attempt(f"{who} peek", lambda: peek(pid))
    attempt(f"{who} getfd", lambda: get_fd(pid))
    attempt(f"{who} seize", lambda: call("ptrace", PTRACE_SEIZE, pid, 0, 0))
os.kill(child, 9)
import signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSTOP, signal.SIGKILL, signal.SIGTRAP):
    outcome(lambda: os.kill(1, number))
time.sleep(0.05)
found["init state"] = content("/proc/1/status").split("State:\t")[1][0]
found["init name"] = content("/proc/1/cmdline")
found["pids"] = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
found["me"] = [os.getpid(), os.getppid()]
found["seen in environ"] = [
    pid for pid in os.listdir("/proc") if pid.isdigit() and outcome(lambda: os.close(os.open(f"/proc/{pid}/environ", 0))) == "done"
    and "canary" in content(f"/proc/{pid}/environ")]
attempt("own exe to write", lambda: os.close(os.open("/proc/self/exe", os.O_WRONLY)))
attempt("own exe to truncate", lambda: os.truncate("/proc/self/exe", 0))
attempt("libc to write", lambda: os.close(os.open(next(
    line.split()[-1] for line in content("/proc/self/maps").splitlines() if "libc" in line), os.O_RDWR)))
copy = "copy-of-exe"
with open("/proc/self/exe", "rb") as source, open(copy, "wb") as target:
    target.write(source.read())
attempt("copied exe to write", lambda: os.close(os.open(copy, os.O_WRONLY)))
say()
"""
ABOUT_INIT = (
    *("mem", "environ", "maps", "auxv", "syscall", "pagemap", "smaps", "io", "map_files", "fd", "fdinfo"),
    *(
        "root",
        "cwd",
        "exe",
        "fd/0",
        "ns/mnt",
        "ns/user",
        "mem to write",
        "below root",
        "below cwd",
        "peek",
        "seize",
    ),
)


@pytest.fixture(scope="module")
def around(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    jail = warm_jail(installed, tmp_path_factory.mktemp("around"), SECRET="canary")
    found: dict[str, Any] = jail.inside(PRELUDE + AROUND)
    return found


@pytest.mark.parametrize("name", ABOUT_INIT)
def test_b5_b10_process_1_cannot_be_looked_into_as_an_own_child_can(
    name: str, around: dict[str, Any]
) -> None:
    assert around[f"child {name}"] == DONE
    assert around[f"init {name}"] in {"EACCES", "EPERM", "ENOENT"}


def test_b5_no_descriptor_can_be_taken_from_another_process(around: dict[str, Any]) -> None:
    assert [around["init getfd"], around["child getfd"]] == ["EPERM", "EPERM"]


def test_b5_signals_to_process_1_do_nothing(around: dict[str, Any]) -> None:
    assert around["init state"] == "S"


def test_b10_only_the_jails_own_processes_are_listed_and_none_shows_the_callers_environment(
    around: dict[str, Any],
) -> None:
    assert around["pids"][0] == 1
    assert set(around["me"]) <= {*around["pids"]}
    assert len(around["pids"]) <= 3
    assert around["seen in environ"] == []


def test_b10_the_command_line_of_process_1_says_nothing_of_the_host(
    around: dict[str, Any], installed: Installed
) -> None:
    assert str(installed.root) not in around["init name"]


def test_b4_no_executable_or_library_in_use_can_be_overwritten(around: dict[str, Any]) -> None:
    met = {name: around[name] for name in ("own exe to write", "own exe to truncate", "libc to write")}
    assert not offences(met, REFUSED | {"ETXTBSY"})
    assert around["copied exe to write"] == DONE


# ---- agent 51: a descriptor of something read-only, opened again ----

REOPEN = r"""
import fcntl, mmap
given = sys.argv[1]
keep("neighbour", "plain")
def deeds(path, folder):
    read = os.open(path, os.O_RDONLY)
    held = os.open(path, os.O_PATH)
    inside = os.open(folder, os.O_PATH)
    name = os.path.basename(path)
    class How(ctypes.Structure):
        _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]
    how = How(os.O_RDWR, 0, 0)
    return {
        "read fd": lambda: os.open(f"/proc/self/fd/{read}", os.O_RDWR),
        "path fd": lambda: os.open(f"/proc/self/fd/{held}", os.O_RDWR),
        "thread": lambda: os.open(f"/proc/thread-self/fd/{read}", os.O_WRONLY),
        "dev fd": lambda: os.open(f"/dev/fd/{read}", os.O_WRONLY),
        "task": lambda: os.open(f"/proc/self/task/{os.getpid()}/fd/{read}", os.O_WRONLY),
        "truncating": lambda: os.open(f"/proc/self/fd/{read}", os.O_RDWR | os.O_TRUNC),
        "beneath a folder": lambda: os.open(name, os.O_RDWR, dir_fd=inside),
        "through root": lambda: os.open(f"/proc/self/root{path}", os.O_RDWR),
        "through cwd": lambda: os.open(f"/proc/self/cwd/{os.path.relpath(path)}", os.O_RDWR),
        "create beneath": lambda: os.open(f"planted-{len(found)}", os.O_CREAT | os.O_WRONLY, dir_fd=inside),
        "fchmod": lambda: os.fchmod(read, 0o777),
        "futimens": lambda: os.utime(read, (1, 1)),
        "fsetxattr": lambda: os.setxattr(read, "user.x", b"x"),
        "link": lambda: link_fd(held, f"linked-{len(found)}"),
        "openat2": lambda: call("openat2", AT_FDCWD, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)),
    }
for who, path in (("given", f"{given}/file"), ("protected", os.path.abspath("RESEARCH.md")), ("neighbour", os.path.abspath("neighbour"))):
    for name, deed in deeds(path, os.path.dirname(path) if who != "protected" else os.path.abspath(".agent")).items():
        if who == "protected" and name in ("beneath a folder",):
            continue
        attempt(f"{who} {name}", deed)
say()
"""
REOPENINGS = (
    *(
        "read fd",
        "path fd",
        "thread",
        "dev fd",
        "task",
        "truncating",
        "through root",
        "through cwd",
        "create beneath",
    ),
    *("fchmod", "futimens", "fsetxattr", "link"),
)


@pytest.fixture(scope="module")
def reopened(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("reopened")
    jail = warm_jail(installed, folder)
    lay(folder, {"given/file": "given"})
    lay(jail.workspace, {"RESEARCH.md": "fact", ".agent/x": "x"})
    places = (folder / "given", jail.workspace / "RESEARCH.md", jail.workspace / ".agent")
    before = state_of(*places)
    found: dict[str, Any] = jail.inside(
        PRELUDE + REOPEN, str(folder / "given"), options=["--read", folder / "given"]
    )
    found["unchanged"] = state_of(*places) == before
    return found


@pytest.mark.parametrize("way", REOPENINGS)
def test_agent_51_what_is_read_only_stays_so_however_it_is_opened_again(
    way: str, reopened: dict[str, Any]
) -> None:
    assert reopened[f"neighbour {way}"] == DONE
    assert reopened[f"given {way}"] in REFUSED
    assert reopened[f"protected {way}"] in REFUSED


def test_agent_51_the_host_sees_no_change_and_openat2_does_not_exist_inside(reopened: dict[str, Any]) -> None:
    assert reopened["unchanged"] is True
    assert {reopened[f"{who} openat2"] for who in ("given", "protected", "neighbour")} == {"ENOSYS"}
    assert reopened["given beneath a folder"] in REFUSED | GONE
