"""H: floods of output, input, arguments and files, and crashes: nothing piles up and nothing is lost."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from jail.launch.kept import CHUNK, HALF, NAME, OLD
from support.answers import PRELUDE, new_jail, numbers
from support.entries import Entries, compile_entries
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, Jail

FLOOD = 200 << 20
"""Bytes of output: enough that a relay which keeps what it cannot deliver shows it."""
STEADY = 16 << 10
"""kB (VmHWM) that a supervisor may grow by while it relays: some chunks of 64 KiB, rounded up by Python."""


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return new_jail(installed, tmp_path_factory.mktemp("floods"))


@pytest.fixture(scope="module")
def entries(folder: Jail) -> Entries:
    return compile_entries(folder.workspace)


# Output and input.


def memory_of(pid: int, field: str) -> int:
    """A figure of /proc/PID/status, in kB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise AssertionError(field)


@pytest.mark.parametrize("stream", [1, 2], ids=["stdout", "stderr"])
def test_h5_a_flood_of_output_through_a_slow_reader_takes_no_memory_and_loses_nothing(
    folder: Jail, stream: int
) -> None:
    piece = bytes(range(256)) * 4096
    program = (
        "import os, sys\n"
        "piece = bytes(range(256)) * 4096\n"
        f"for _ in range({FLOOD} // len(piece)):\n"
        "    rest = memoryview(piece)\n"
        f"    while rest: rest = rest[os.write({stream}, rest):]\n"
    )
    command = [str(folder.installed.command), "run", "--", PYTHON, "-I", "-c", program]
    with subprocess.Popen(
        command,
        cwd=folder.workspace,
        env=dict(folder.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if stream == 1 else None,
        stderr=subprocess.PIPE if stream == 2 else None,
    ) as run:
        reader = run.stdout or run.stderr
        assert reader is not None
        read = reader.read(1)
        before = memory_of(run.pid, "VmHWM")
        time.sleep(0.5)  # the reader pauses: all that can be buffered is
        paused = memory_of(run.pid, "VmHWM")
        digest, size = hashlib.sha256(read), 1
        after = paused
        while data := reader.read(1 << 20):
            digest.update(data)
            size += len(data)
            if size < FLOOD - (4 << 20):
                after = memory_of(run.pid, "VmHWM")
        assert run.wait(timeout=PATIENCE) == 0
    assert size == FLOOD
    wanted = hashlib.sha256()
    for _ in range(FLOOD // len(piece)):
        wanted.update(piece)
    assert digest.digest() == wanted.digest()
    assert paused - before < STEADY
    assert after - before < STEADY
    sizes = {path.name: path.stat().st_size for path in folder.sessions()[-1].rglob("*") if path.is_file()}
    kept = sum(sizes.pop(name, 0) for name in (NAME, OLD))
    assert 0 < kept <= 2 * HALF + CHUNK, "of the output only its end is kept"
    assert sum(sizes.values()) < 1 << 20, "the ledger does not grow with the output"


def test_h5_input_that_nobody_reads_takes_no_memory(folder: Jail, tmp_path: Path) -> None:
    (tmp_path / "input").touch()
    os.truncate(tmp_path / "input", FLOOD)
    command = [str(folder.installed.command), "run", "--", "sh", "-c", "echo ready; exec sleep 1000"]
    with (
        (tmp_path / "input").open("rb") as file,
        subprocess.Popen(
            command, cwd=folder.workspace, env=dict(folder.environment), stdin=file, stdout=subprocess.PIPE
        ) as run,
    ):
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n"
        before = memory_of(run.pid, "VmHWM")
        time.sleep(0.3)
        assert memory_of(run.pid, "VmHWM") - before < STEADY
        run.terminate()
        assert run.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
        assert file.tell() == 0, "what the command did not read is still the caller's"


def test_h5_a_reader_that_goes_away_ends_the_flood(folder: Jail) -> None:
    with subprocess.Popen(
        [str(folder.installed.command), "run", "--", "yes"],
        cwd=folder.workspace,
        env=dict(folder.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"y\n"
        run.stdout.close()
        assert run.wait(timeout=PATIENCE) in (128 + signal.SIGPIPE, 1)


# Core dumps, arguments.

CRASH = r"""
def crash():
    '''Whether the kernel says that it dumped core.'''
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        os.kill(os.getpid(), 11)
    return os.WCOREDUMP(os.waitpid(pid, 0)[1])
os.chdir(sys.argv[2])
print(json.dumps(crash()))
"""


def test_h10_a_crash_leaves_no_core_file(folder: Jail, tmp_path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("core dumps are off for these tests already")
    assert folder.outside(PRELUDE + CRASH, numbers(), str(tmp_path)) is True, "no positive control"
    before = sorted(os.listdir(folder.workspace))
    assert folder.inside(PRELUDE + CRASH, numbers(), str(folder.workspace)) is False
    assert sorted(os.listdir(folder.workspace)) == before


def test_h10_agent_48_a_crash_of_the_command_is_told_as_one(folder: Jail, entries: Entries) -> None:
    done = folder.run(entries.program, "crash")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "killed by" in done.stderr


ARGUMENTS = (
    "import hashlib, os, sys; print(hashlib.sha256(b'\\0'.join(map(os.fsencode, sys.argv[1:]))).hexdigest())"
)


@pytest.mark.parametrize(
    ("sentence", "arguments"),
    [
        ("fifteen of 100 kB", ["x" * 100_000] * 15),
        ("ten thousand short ones", [str(number) for number in range(10_000)]),
        ("the longest that there can be", ["y" * 131_071]),
        ("empty ones", [""] * 100),
        ("bytes that are no UTF-8", [os.fsdecode(bytes(range(1, 256)))]),
        ("lines, escapes and bidirectional marks", ["a\nb\r\x1b]0;title\x07\u202e", "\u2028"]),
    ],
)
def test_huge_and_odd_arguments_arrive_and_the_ledger_stays_whole(
    folder: Jail, sentence: str, arguments: list[str]
) -> None:
    done = folder.run(PYTHON, "-I", "-c", ARGUMENTS, *arguments)
    assert done.returncode == 0, done.stderr[-500:]
    wanted = hashlib.sha256(b"\0".join(map(os.fsencode, arguments))).hexdigest()
    assert done.stdout == f"{wanted}\n"
    newest = max(folder.sessions(), key=lambda path: path.stat().st_ctime_ns)
    shown = folder.call("verify", newest)
    assert shown.returncode == 0, shown.stdout[-500:] + shown.stderr[-500:]
    first = json.loads((newest / "ledger.jsonl").read_text(encoding="ascii").splitlines()[0])
    assert first["kind"] == "start"
    assert "\x1b" not in shown.stdout
    assert "\u202e" not in shown.stdout


def test_h9_a_tree_of_ten_thousand_files_and_a_deep_one_do_not_hold_up_the_end(folder: Jail) -> None:
    """A33: what the sweep and the last look go through; names with newlines and no UTF-8 among them."""
    program = r"""
import os
os.makedirs("many/" + "d/" * 60)
for number in range(10_000):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
os.close(os.open(b"many/\xff\n\x1b[31m", os.O_CREAT | os.O_WRONLY))
here = os.open("many", os.O_RDONLY)
for _ in range(40):  # longer than PATH_MAX
    os.mkdir("deep" * 50, dir_fd=here)
    here, old = os.open("deep" * 50, os.O_RDONLY, dir_fd=here), here
    os.close(old)
"""
    done = folder.run(PYTHON, "-I", "-c", program)
    try:
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert folder.run("true").returncode == 0, "the next launch, which surveys this tree"
    finally:
        subprocess.run(["rm", "-rf", folder.workspace / "many"], check=True, timeout=60)
        shutil.rmtree(folder.workspace / "many", ignore_errors=True)
