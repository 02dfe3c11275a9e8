"""`jail doctor` run for real: on this host, and on hosts that refuse one thing each.

A bad host is made in the child that becomes the doctor: a raw seccomp filter that answers single calls with
an errno, as the seccomp profiles of containers and kernels without a call do; a user namespace in which the
limit is 0; a library that cannot be loaded.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jail.kernel import syscalls
from support.confined import SOURCE, UNPRIVILEGED, workspace
from support.shared import cache_of

DOCTOR = """
import ctypes, errno, json, os, sys
source, refused, spoil, arguments = json.loads(sys.argv[1])
sys.path.insert(0, source)
from jail.kernel import bpf, libc, namespaces, seccomp, syscalls
ids = os.getuid(), os.getgid()
if spoil == "limit":
    namespaces.unshare(("user",))
    namespaces.map_ids(*ids)
    with open("/proc/sys/user/max_user_namespaces", "w") as limit:
        limit.write("0")
elif spoil == "mapped root":
    namespaces.unshare(("user",))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {ids[0]} 1"), ("gid_map", f"0 {ids[1]} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
elif spoil == "libseccomp":
    load = ctypes.CDLL
    def without(name, *rest, **options):
        if name and "seccomp" in name:
            raise OSError(f"{name}: cannot open shared object file: No such file or directory")
        return load(name, *rest, **options)
    ctypes.CDLL = without
elif spoil:
    sys.modules[spoil] = None
if refused:
    libc.syscall("prctl(PR_SET_NO_NEW_PRIVS)", syscalls.number("prctl"), 38, 1, 0, 0, 0)
    program = bpf.instruction(bpf.LOAD, bpf.OFFSET_NUMBER)
    for number, answer in refused:
        program += bpf.instruction(bpf.JUMP_EQUAL, number, 0, 1) + bpf.instruction(bpf.RETURN,
        bpf.fail(answer))
    seccomp.install(program + bpf.instruction(bpf.RETURN, bpf.ALLOW), "a bad host")
from jail.cli.main import main
sys.exit(main(["doctor", *arguments]))
"""
NEW_MOUNT_API = ("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "mount_setattr")


class Answer(NamedTuple):
    """What one doctor said, and its exit code."""

    code: int
    out: str
    err: str

    def check(self, name: str) -> dict[str, Any]:
        """The check `name` of the JSON form."""
        (found,) = [check for check in json.loads(self.out)["checks"] if check["name"] == name]
        return dict(found)

    def states(self, *names: str) -> set[str]:
        return {self.check(name)["state"] for name in names}


@pytest.fixture
def folder() -> Iterator[Path]:
    with workspace() as found:
        yield found


def doctor(
    folder: Path,
    *arguments: str,
    refused: dict[str, int] | None = None,
    spoil: str = "",
    **variables: str,
) -> Answer:
    """`jail doctor ARGUMENTS` in `folder`, as an unprivileged uid, on a host that is bad in these ways."""
    numbers = [(syscalls.number(name), answer) for name, answer in (refused or {}).items()]
    identity = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "XDG_CACHE_HOME": str(cache_of(folder.stat().st_uid)),
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-c", DOCTOR, json.dumps([str(SOURCE), numbers, spoil, list(arguments)])],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **identity,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def test_this_host_is_good_and_nothing_is_left_of_the_tries(folder: Path) -> None:
    for made in (folder / "home", folder / "tmp"):
        made.mkdir()
        os.chown(made, folder.stat().st_uid, folder.stat().st_gid)
    answer = doctor(folder, "--json", XDG_CACHE_HOME="", TMPDIR=str(folder / "tmp"))
    assert answer.code == 0, answer.out + answer.err
    found = json.loads(answer.out)
    assert [check for check in found["checks"] if check["state"] in ("missing", "untried")] == []
    assert len(found["probes"]) > 10
    assert all(probe["held"] for probe in found["probes"])
    assert os.listdir(folder / "home" / ".local" / "state" / "jail") == []
    assert os.listdir(folder / "tmp") == []
    assert sorted(os.listdir(folder)) == ["home", "tmp"]


def test_the_text_starts_with_the_answer(folder: Path) -> None:
    answer = doctor(folder)
    assert answer.out.splitlines()[0] == "`jail run` works on this host."
    assert answer.err == ""


def test_a_host_that_makes_no_user_namespaces(folder: Path) -> None:
    answer = doctor(folder, "--json", spoil="limit")
    assert answer.out, answer.err
    user = answer.check("user")
    assert (answer.code, user["state"]) == (78, "missing")
    assert "user.max_user_namespaces is 0" in user["why"]
    assert "    sudo sysctl -w user.max_user_namespaces=15000" in user["remedy"]
    assert answer.states("mounts", "root folder", "processes", "network", "terminal") == {"untried"}
    assert "unshare" in answer.check("a real run")["found"]


def test_a_root_who_is_none_outside(folder: Path) -> None:
    answer = doctor(folder, "--json", spoil="mapped root")
    assert answer.out, answer.err
    assert (answer.code, answer.check("command's uid")["state"]) == (78, "missing")
    assert "cannot become uid" in answer.check("command's uid")["why"]
    assert answer.states("user", "mounts", "root's files") == {"untried"}
    assert answer.states("state folder", "openat2", "Landlock") == {"ok"}


def test_a_filter_that_refuses_namespaces_and_mounts_as_docker_does(folder: Path) -> None:
    refused = dict.fromkeys(("unshare", *NEW_MOUNT_API, "keyctl", "pivot_root"), errno.EPERM)
    answer = doctor(folder, "--json", refused=refused)
    assert answer.code == 78
    assert answer.states("user", "keys", "a real run") == {"missing"}
    assert "a system-call filter from outside refuses it" in answer.check("user")["why"]
    assert answer.check("surroundings")["found"].endswith("its system calls filtered")


def test_a_filter_that_refuses_the_change_of_root_alone(folder: Path) -> None:
    answer = doctor(folder, "--json", refused={"pivot_root": errno.EPERM})
    assert (answer.code, answer.check("mounts")["state"]) == (78, "ok")
    assert answer.check("root folder")["found"] == "pivot_root(., .): Operation not permitted (EPERM)"


def test_inside_a_jail_it_says_so_first(folder: Path) -> None:
    rules = "import sys; sys.path.insert(0, sys.argv[1])\n" + IN_A_JAIL
    identity = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [sys.executable, "-I", "-c", rules, str(SOURCE), str(cache_of(folder.stat().st_uid))],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **identity,
    )
    assert done.returncode == 78, done.stderr
    assert done.stdout.splitlines()[1].startswith("Mend first: surroundings (system)")
    assert "MISSING  surroundings    inside a jail" in done.stdout


IN_A_JAIL = """
from jail.kernel import libc, seccomp, syscalls
from jail.kernel.filters import compiled
libc.syscall("prctl(PR_SET_NO_NEW_PRIVS)", syscalls.number("prctl"), 38, 1, 0, 0, 0)
programs = compiled(sys.argv[2])
seccomp.install(programs.guard, "guard")
seccomp.install(programs.deny, "deny")
from jail.cli.main import main
sys.exit(main(["doctor"]))
"""


@pytest.mark.parametrize(
    ("number", "told"), [(errno.EOPNOTSUPP, "lsm=landlock"), (errno.ENOSYS, "a system-call filter")]
)
def test_a_kernel_without_landlock(folder: Path, number: int, told: str) -> None:
    policy = folder / "strict.toml"
    policy.write_text('name = "strict"\n[files]\nsystem = ["/usr"]\n[accept]\nlosses = ["limits-memory"]\n')
    answer = doctor(folder, "--json", "--policy", str(policy), refused={"landlock_create_ruleset": number})
    found = answer.check("Landlock")
    assert answer.code == 78
    assert any(told in line for line in (found["why"], *found["remedy"]))
    assert "the second wall for files" in found["why"]


def test_a_policy_that_accepts_the_loss_of_landlock(folder: Path) -> None:
    policy = folder / "mine.toml"
    policy.write_text(
        'name = "mine"\n[files]\nsystem = ["/usr", "/bin", "/lib", "/lib64"]\n[accept]\n'
        'losses = ["landlock", "limits-memory"]\n'
    )
    answer = doctor(
        folder, "--json", "--policy", str(policy), refused={"landlock_create_ruleset": errno.EOPNOTSUPP}
    )
    assert (answer.code, answer.check("Landlock")["state"]) == (0, "lost"), answer.out
    assert answer.check("a real run")["state"] == "ok"


def test_a_kernel_without_openat2_and_without_the_mount_interface(folder: Path) -> None:
    answer = doctor(folder, "--json", refused=dict.fromkeys(("openat2", *NEW_MOUNT_API), errno.ENOSYS))
    assert answer.code == 78
    assert answer.states("openat2", "mount_setattr", "mounts", "root folder") == {"missing"}
    assert answer.check("user")["state"] == "ok"


def test_a_system_without_libseccomp(folder: Path) -> None:
    answer = doctor(folder, "--json", spoil="libseccomp")
    assert answer.code == 78
    assert "    sudo apt install libseccomp2     # Debian, Ubuntu" in answer.check("libseccomp")["remedy"]
    assert answer.states("deny rules") == {"untried"}
    assert answer.check("filter")["state"] == "ok"


@pytest.mark.parametrize("module", ["_prctl", "pyroute2.netlink.rtnl.ifinfmsg"])
def test_an_environment_without_one_of_the_libraries(folder: Path, module: str) -> None:
    answer = doctor(folder, "--json", spoil=module)
    name = {"_prctl": "python-prctl"}.get(module, "pyroute2")
    assert (answer.code, answer.check(name)["state"]) == (78, "missing")
    assert answer.check("user")["state"] == "ok"


def test_a_home_in_which_no_session_can_be_kept(folder: Path) -> None:
    (folder / "home").write_text("a file")
    answer = doctor(folder, "--json")
    assert (answer.code, answer.check("state folder")["state"]) == (78, "missing")
    assert answer.check("a real run")["state"] == "untried"


def test_a_policy_with_faults_is_told_as_run_tells_it(folder: Path) -> None:
    answer = doctor(folder, "--policy", "nowhere")
    assert (answer.code, answer.out) == (2, "")
    assert "there is no shipped policy `nowhere`" in answer.err


@pytest.mark.root
def test_asked_by_root_the_walls_are_tried_as_the_uid_of_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", DOCTOR, json.dumps([str(SOURCE), [], "", ["--json"]])],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    answer = Answer(done.returncode, done.stdout, done.stderr)
    assert answer.code == 0, answer.out + answer.err
    assert answer.check("user")["found"].startswith("uid 60600")
    assert answer.check("root's files")["state"] == "ok"
