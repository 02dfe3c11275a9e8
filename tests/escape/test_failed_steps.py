"""J9, agent 31 and 39: when a step of the launch fails, or the policy is wrong, nothing is executed."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.kernel import bpf, syscalls
from support.answers import new_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, survivors
from support.running import Running


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return new_jail(installed, tmp_path_factory.mktemp("steps"))


# J9, agent 31: a step that fails.


class Fault(NamedTuple):
    """A system call that the host refuses, with this errno."""

    call: str
    errno: int


EPERM, ENOSYS, EINVAL = 1, 38, 22
FAULTS = (
    *(Fault(call, EPERM) for call in ("unshare", "pivot_root", "mount_setattr", "move_mount", "open_tree")),
    *(Fault(call, EPERM) for call in ("fsopen", "fsconfig", "fsmount", "umount2", "sethostname", "capset")),
    *(Fault(call, EPERM) for call in ("openat2", "landlock_restrict_self", "landlock_add_rule")),
    *(Fault(call, ENOSYS) for call in ("unshare", "mount_setattr", "openat2")),
    Fault("seccomp", EINVAL),
    Fault("keyctl", EPERM),
)
LAUNCHER = """
import ctypes, json, os, struct, sys
rows, command = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(bytes.fromhex(rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows) // 16, ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
    sys.exit(99)
os.execv(command[0], command)
"""


def under_a_fault(
    folder: Jail, fault: Fault, *command: str, options: Sequence[str | Path] = ()
) -> subprocess.CompletedProcess[str]:
    """`jail run` on a host whose kernel refuses one call to every process."""
    rows = b"".join(
        [
            bpf.instruction(bpf.LOAD, bpf.OFFSET_NUMBER),
            bpf.instruction(bpf.JUMP_EQUAL, syscalls.number(fault.call), 0, 1),
            bpf.instruction(bpf.RETURN, bpf.fail(fault.errno)),
            bpf.instruction(bpf.RETURN, bpf.ALLOW),
        ]
    )
    arguments = json.dumps(
        [rows.hex(), [str(folder.installed.command), "run", *map(str, options), "--", *command]]
    )
    return subprocess.run(
        [PYTHON, "-I", "-c", LAUNCHER, arguments],
        cwd=folder.workspace,
        env=dict(folder.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.call}: {os.strerror(fault.errno)}")
def test_j9_agent_31_when_a_step_fails_nothing_is_executed(folder: Jail, fault: Fault) -> None:
    mark = f"fault-{fault.call}-{fault.errno}-{os.getpid()}"
    done = under_a_fault(folder, fault, "touch", "ran", mark)
    ran = (folder.workspace / "ran").exists()
    (folder.workspace / "ran").unlink(missing_ok=True)
    assert not ran, done.stderr
    assert done.returncode in (78, 125), done.stderr
    assert done.stderr.startswith("jail: "), done.stderr
    assert "Traceback" not in done.stderr
    assert survivors(mark) == []


def test_j9_the_control_a_fault_in_a_call_that_is_not_needed_changes_nothing(folder: Jail) -> None:
    done = under_a_fault(folder, Fault("swapoff", EPERM), "touch", "ran")
    assert done.returncode == 0, done.stderr
    (folder.workspace / "ran").unlink()


def test_d34_a_kernel_without_landlock_is_refused_unless_the_policy_accepts_it_and_then_it_is_said(
    folder: Jail, tmp_path: Path
) -> None:
    (tmp_path / "strict.toml").write_text(
        'name = "strict"\n[files]\nsystem = ["/usr", "/bin", "/lib", "/lib64"]\n'
        '[accept]\nlosses = ["limits-memory"]\n'
    )
    fault = Fault("landlock_create_ruleset", ENOSYS)
    strict = under_a_fault(folder, fault, "touch", "ran", options=["--policy", tmp_path / "strict.toml"])
    assert strict.returncode == 78, strict.stderr
    assert "landlock" in strict.stderr
    assert not (folder.workspace / "ran").exists()
    status = tmp_path / "status"
    lenient = under_a_fault(folder, fault, "true", options=["--status-file", status])
    if lenient.returncode != 78:  # the shipped policy accepts it, for kernels before 5.19
        assert "landlock" in lenient.stderr
        session = folder.home / ".local/state/jail/sessions" / json.loads(status.read_text())["session"]
        first = json.loads((session / "ledger.jsonl").read_text(encoding="ascii").splitlines()[0])
        assert "landlock" in first["fields"]["losses"]


@pytest.mark.parametrize("size", [0, 1000, 4096])
def test_j9_without_a_ledger_nothing_is_executed(folder: Jail, size: int) -> None:
    """A disk that is full from some byte on, by RLIMIT_FSIZE: not even the first entry can be written."""
    with Running(
        folder, "touch", "ran", prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    ) as run:
        code = run.wait()
    assert not (folder.workspace / "ran").exists()
    assert code in (78, 125), run.errors
    assert run.errors.startswith("jail: "), run.errors


def test_j9_with_a_state_folder_that_cannot_be_written_nothing_is_executed(
    folder: Jail, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    done = folder.run("touch", "ran", env={"XDG_STATE_HOME": str(closed)})
    assert not (folder.workspace / "ran").exists()
    assert done.returncode in (78, 125), done.stderr
    assert done.stderr.startswith("jail: ")


@pytest.mark.parametrize("limit", [12, 14, 16, 18, 20])
def test_j9_a_launch_that_runs_out_of_fds_says_125_or_78_and_nothing_was_executed(
    folder: Jail, limit: int
) -> None:
    """Each value fails at another place; with enough of them the same command runs."""
    with Running(
        folder,
        "touch",
        "ran",
        prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
    ) as run:
        code = run.wait()
    ran = (folder.workspace / "ran").exists()
    (folder.workspace / "ran").unlink(missing_ok=True)
    assert not ran
    assert code in (125, 78), (code, run.errors)
    if run.status_file.exists():
        assert run.status()["code"] == code
    assert folder.run("true").returncode == 0, "no positive control"


@pytest.mark.parametrize("room", [0, 3])
def test_j9_a_launch_that_cannot_fork_ends_at_once(folder: Jail, room: int) -> None:
    """RLIMIT_NPROC of the launching shell, or a container's pids limit, leaves room for so many processes."""
    most = _processes_of_this_user() + room if room else 1
    with Running(
        folder,
        "touch",
        "ran",
        prepare=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (most, most)),
    ) as run:
        end = time.monotonic() + 60
        while run.process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert run.process.poll() is not None, "it hangs"
        code = run.wait()
    ran = (folder.workspace / "ran").exists()
    (folder.workspace / "ran").unlink(missing_ok=True)
    assert (code == 0) == ran
    assert code in (0, 125, 78), (code, run.errors)
    if run.status_file.exists():
        assert run.status()["code"] == code


def _processes_of_this_user() -> int:
    done = subprocess.run(
        ["ps", "-L", "-u", str(os.getuid()), "-o", "lwp="], capture_output=True, text=True, check=True
    )
    return len(done.stdout.split()) - 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        'name = "x"\n[filez]\nwrite = []\n',
        'name = "x"\n[files]\nwrite = ["/"]\n',
        "\0\xff",
        'name = "x"\n[accept]\nroot = "no"\n',
    ],
    ids=["empty", "cut off", "a misspelt table", "the root for writing", "bytes", "a word for a truth value"],
)
def test_agent_39_a_policy_that_is_empty_or_wrong_runs_nothing(
    folder: Jail, tmp_path: Path, text: str
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(text, encoding="latin-1")
    done = folder.run("touch", "ran", options=["--policy", policy])
    assert done.returncode in (2, 78), done.stderr
    assert not (folder.workspace / "ran").exists()
    assert done.stderr.startswith("jail: ")
    assert "Traceback" not in done.stderr


def test_agent_39_a_policy_that_is_not_there_runs_nothing(folder: Jail, tmp_path: Path) -> None:
    for name in (str(tmp_path / "absent.toml"), "absent", "", str(tmp_path), "/dev/null"):
        done = folder.run("touch", "ran", options=["--policy", name])
        assert done.returncode in (2, 78), (name, done.stderr)
        assert not (folder.workspace / "ran").exists()
