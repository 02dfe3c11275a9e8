"""H: what a command uses up is its own: processes, fds, memory, output, arguments; the host goes on."""

import os
import signal
import subprocess
from typing import Any

import pytest

from support.answers import PRELUDE, new_jail, numbers
from support.installed import Installed
from support.jails import PATIENCE, PYTHON, Jail
from support.running import Running, until

PROCESSES, OPEN_FILES, TMP_MIB = 60, 200, 16
POLICY = f"""
name = "narrow"
[files]
system = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"]
[limits]
processes = {PROCESSES}
open_files = {OPEN_FILES}
tmp = "{TMP_MIB} MiB"
[accept]
losses = ["limits-memory"]
"""


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return new_jail(installed, tmp_path_factory.mktemp("resources"))


@pytest.fixture(scope="module")
def narrow(folder: Jail) -> list[str]:
    """Options that name a policy with small limits."""
    path = folder.home.parent / "narrow.toml"
    path.write_text(POLICY)
    return ["--policy", str(path)]


LIMITS = r"""
names = ("NPROC", "NOFILE", "CORE")
found = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names}

def raised(name):
    limit = getattr(resource, "RLIMIT_" + name)
    hard = resource.getrlimit(limit)[1]
    try:
        resource.setrlimit(limit, (hard + 1, hard + 1))
    except ValueError:
        raise PermissionError(errno.EPERM, "")  # what the module makes of EPERM

def children(most):
    '''How many processes can be had at once.'''
    pids = []
    try:
        while len(pids) < most:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            pids.append(pid)
    except BlockingIOError:
        pass
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return len(pids)

def threads(most):
    barrier, count = threading.Event(), 0
    try:
        while count < most:
            threading.Thread(target=barrier.wait, daemon=True).start()
            count += 1
    except RuntimeError:
        pass
    barrier.set()
    return count

def files(most):
    fds = []
    try:
        while len(fds) < most:
            fds.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        found["files end with"] = errno.errorcode[error.errno]
    for fd in fds:
        os.close(fd)
    return len(fds)

def filled(folder, most):
    '''Bytes that go into one file of `folder`, at most.'''
    path, size = os.path.join(folder, "filling"), 0
    try:
        with open(path, "wb", buffering=0) as file:
            while size < most:
                size += file.write(bytes(1 << 20))
    except OSError as error:
        found[f"{folder} ends with"] = errno.errorcode[error.errno]
    os.unlink(path)
    return size

for name in names:
    found[f"raise {name}"] = answer(lambda: raised(name))
found["children"] = children(300)
found["threads"] = threads(300)
found["files"] = files(2000)
for folder in sys.argv[2].split(":"):
    found[folder] = filled(folder, 64 << 20)
    found[f"inodes of {folder}"] = os.statvfs(folder).f_files
print(json.dumps(found))
"""
PRIVATE = ["/tmp", "/var/tmp", "/run", "/dev/shm"]


@pytest.fixture(scope="module")
def limits(folder: Jail, narrow: list[str]) -> dict[str, Any]:
    """What one command met at its limits."""
    places = ":".join([*PRIVATE, str(folder.home)])
    found: dict[str, Any] = folder.inside(PRELUDE + LIMITS, numbers(), places, options=narrow)
    return found


@pytest.fixture(scope="module")
def control(folder: Jail) -> dict[str, Any]:
    found: dict[str, Any] = folder.outside(PRELUDE + LIMITS, numbers(), str(folder.workspace))
    return found


def test_h1_the_number_of_processes_is_bounded(limits: dict[str, Any], control: dict[str, Any]) -> None:
    assert control["children"] == 300, "no positive control"
    assert PROCESSES - 10 < limits["children"] < PROCESSES


def test_h1_threads_count_as_processes(limits: dict[str, Any], control: dict[str, Any]) -> None:
    assert control["threads"] == 300, "no positive control"
    assert PROCESSES - 10 < limits["threads"] < PROCESSES


def test_h4_the_number_of_open_files_is_bounded(limits: dict[str, Any], control: dict[str, Any]) -> None:
    assert limits["files end with"] == "EMFILE"
    assert OPEN_FILES - 10 < limits["files"] < OPEN_FILES
    assert control["files"] > limits["files"], "no positive control"


@pytest.mark.parametrize("place", [*PRIVATE, "home"])
def test_h2_a_private_folder_takes_so_many_bytes_and_no_more(
    limits: dict[str, Any], control: dict[str, Any], folder: Jail, place: str
) -> None:
    path = str(folder.home) if place == "home" else place
    assert limits[f"{path} ends with"] == "ENOSPC"
    assert (TMP_MIB - 1) << 20 <= limits[path] <= TMP_MIB << 20
    assert control[str(folder.workspace)] == 64 << 20, "no positive control"


@pytest.mark.parametrize("place", [*PRIVATE, "home"])
def test_h2_a_private_folder_takes_so_many_files_and_no_more(
    limits: dict[str, Any], folder: Jail, place: str
) -> None:
    """An empty file takes no byte of the limit, but a kilobyte of the kernel's memory, which is not swapped."""
    path = str(folder.home) if place == "home" else place
    assert limits[f"inodes of {path}"] <= (TMP_MIB << 20) // 1024


@pytest.mark.parametrize("name", ["NPROC", "NOFILE", "CORE"])
def test_h1_h4_h10_a_limit_cannot_be_raised(limits: dict[str, Any], name: str) -> None:
    soft, hard = limits[name]
    assert soft == hard == {"NPROC": PROCESSES, "NOFILE": OPEN_FILES, "CORE": 1}[name]
    assert limits[f"raise {name}"] == "EPERM"


BOMB = r"""
import os, sys, time
os.write(1, b"ready\n")
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""


def test_h1_under_a_fork_bomb_the_host_forks_another_jail_runs_and_the_end_comes(
    folder: Jail, narrow: list[str]
) -> None:
    mark = f"bomb-{os.getpid()}"
    with Running(folder, PYTHON, "-I", "-c", BOMB, mark, options=narrow) as run:
        family = run.ready().family()
        assert until(lambda: len(run.family().inside) > PROCESSES // 2, PATIENCE), (
            "no positive control: it does not explode"
        )
        assert len(run.family().inside) <= PROCESSES
        for _ in range(20):
            assert subprocess.run(["true"], check=False, timeout=PATIENCE).returncode == 0
        assert folder.run("sh", "-c", "true | true", options=narrow).returncode == 0
        run.signal(signal.SIGTERM)
        assert run.wait() == 128 + signal.SIGTERM, run.errors
    assert not family.left()


@pytest.mark.root
def test_h1_started_by_root_the_number_of_processes_is_bounded_too(jail: Jail) -> None:
    """Root's own processes know no RLIMIT_NPROC; what runs inside is not root."""
    (jail.workspace / "narrow").mkdir()
    policy = jail.home / "narrow.toml"
    policy.write_text(POLICY)
    program = PRELUDE + LIMITS
    found = jail.inside(program, numbers(), "/tmp", options=["--policy", policy])
    assert PROCESSES - 10 < found["children"] < PROCESSES
    assert jail.outside(program, numbers(), str(jail.workspace))["children"] == 300, "no positive control"
