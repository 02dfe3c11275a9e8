"""Started by root: the host's root never runs inside, and what runs there has none of its rights.

Issue 2, Must show 4; DESIGN.md, Processes. A workspace of somebody else is worked on as its owner, one of
root's as a stranger over an idmapped mount. Each case is one run of one program, and rows that look at it.
"""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from support.attempts import DONE, GONE, PRELUDE, warm_jail
from support.installed import Installed
from support.jails import AT_HOME, PYTHON, Jail

pytestmark = pytest.mark.root

OWNER: Final = 1234
STRANGER: Final = 60600
"""Who works for root on root's workspace (jail/launch/survey.py): of the range that no distribution uses."""
OTHER: Final = 1235
FORKS: Final = 300
PROCESSES: Final = 64

PROGRAM: Final = r"""
import resource
def status():
    lines = content("/proc/self/status").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
def make(name, mode):
    os.umask(0)
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
found["ids"] = [*os.getresuid(), *os.getresgid(), *os.getgroups()]
found["maps"] = [content(f"/proc/self/{name}").split() for name in ("uid_map", "gid_map")]
found["caps"] = {name: value for name, value in status().items() if name.startswith("Cap")}
found["no new privileges"] = status()["NoNewPrivs"]
found["home"] = sorted(os.listdir(os.environ["HOME"]))
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root/.bashrc", "/var/log", "/boot", "/proc/kcore"):
    attempt(f"read {path}", lambda: os.close(os.open(path, os.O_RDONLY)))
SETTINGS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches",
    "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/etc/passwd", "/etc/ld.so.preload",
    "/usr/bin/planted", "/sys/kernel/uevent_helper",
)
for path in SETTINGS:
    attempt(f"write {path}", lambda: os.close(os.open(path, os.O_WRONLY)))
attempt("chmod /proc/sys/kernel/core_pattern", lambda: os.chmod("/proc/sys/kernel/core_pattern", 0o666))
attempt("make a setting", lambda: os.mkdir("/etc/cron.d"))
attempt("become uid 0", lambda: os.setuid(0))
attempt("become gid 0", lambda: os.setgid(0))
attempt("take a group", lambda: os.setgroups([0]))
keep("made", "made inside\n")
os.mkdir("folder")
keep("folder/deeper", "made inside\n")
os.symlink("made", "link")
attempt("give a file to root", lambda: os.chown("made", 0, 0))
attempt("chmod u+s", lambda: os.chmod("made", 0o4755))
attempt("chmod g+s", lambda: os.chmod("made", 0o2755))
attempt("fchmodat2 u+s", lambda: call("fchmodat2", AT_FDCWD, b"made", 0o4755, 0))
attempt("create u+s", lambda: make("created", 0o4755))
attempt("mknod u+s", lambda: os.mknod("node", stat.S_IFREG | 0o4755))
attempt("mknod a device", lambda: os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 3)))
attempt("file capabilities", lambda: os.setxattr("made", "security.capability", b"\1\0\0\2" + b"\xff\0\0\0" * 4))
for path in ("roots", "private", "others"):
    attempt(f"read {path}", lambda: content(path))
    attempt(f"write {path}", lambda: os.close(os.open(path, os.O_WRONLY)))
say()
"""
"""What is tried in each workspace; `roots` etc. are files that the test laid there."""

BOMB: Final = r"""
import time
most = int(sys.argv[1])
children = []
met = "done"
while len(children) < most:
    try:
        child = os.fork()
    except OSError as error:
        met = errno.errorcode[error.errno]
        break
    if child == 0:
        time.sleep(60)
        os._exit(0)
    children.append(child)
print("full", flush=True)
sys.stdin.readline()
for child in children:
    os.kill(child, 9)
print(json.dumps({"children": len(children), "met": met}))
"""


class Told(NamedTuple):
    """One workspace after its run: what the program inside found."""

    jail: Jail
    found: dict[str, Any]


def own(path: Path, uid: int, mode: int) -> None:
    """Give a file or folder an owner and a mode."""
    os.chown(path, uid, uid)
    path.chmod(mode)


def lay(jail: Jail, uid: int, mode: int) -> None:
    """A workspace of `uid` with one file of root's, one of the owner's that nobody else may read, one of
    somebody else's.
    """
    for name, owner, bits in (("roots", 0, 0o600), ("private", uid, 0o600), ("others", OTHER, 0o600)):
        (jail.workspace / name).write_text(f"{name}\n")
        own(jail.workspace / name, owner, bits)
    own(jail.workspace, uid, mode)


CASES: Final = {
    "root's": (0, 0o755),
    "somebody's": (OWNER, 0o755),
    "somebody's, closed to all others": (OWNER, 0o700),
}


@pytest.fixture(scope="module")
def told(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Told]:
    """Run the program in the workspace of one case, once."""
    known: dict[str, Told] = {}

    def tell(case: str) -> Told:
        if case not in known:
            jail = warm_jail(installed, tmp_path_factory.mktemp("root"))
            (jail.home / "canary").write_text("root's secret\n")
            lay(jail, *CASES[case])
            known[case] = Told(jail, jail.inside(PRELUDE + PROGRAM))
        return known[case]

    return tell


cases = pytest.mark.parametrize("case", CASES)


def runner(case: str) -> int:
    """The uid that the command has in this case."""
    return CASES[case][0] or STRANGER


@cases
def test_the_command_runs_as_the_owner_or_a_stranger_and_root_is_not_mapped(
    told: Callable[[str], Told], case: str
) -> None:
    found = told(case).found
    uid = str(runner(case))
    assert set(found["ids"]) == {int(uid)}
    assert found["maps"] == [[uid, uid, "1"], [uid, uid, "1"]]
    for deed in ("become uid 0", "become gid 0", "take a group", "give a file to root"):
        assert found[deed] in ("EPERM", "EINVAL"), deed


@cases
def test_no_capability_is_left_and_none_can_be_gained(told: Callable[[str], Told], case: str) -> None:
    found = told(case).found
    assert set(found["caps"]) == {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    assert {int(value, 16) for value in found["caps"].values()} == {0}
    assert found["no new privileges"] == "1"


@cases
def test_what_only_root_may_read_cannot_be_read(told: Callable[[str], Told], case: str) -> None:
    found = told(case).found
    paths = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root/.bashrc", "/var/log", "/boot")
    assert {path: found[f"read {path}"] for path in paths if found[f"read {path}"] not in GONE} == {}
    assert sorted(found["home"]) == AT_HOME


@cases
def test_no_setting_of_the_host_can_be_written(told: Callable[[str], Told], case: str) -> None:
    found = told(case).found
    tried = {name: met for name, met in found.items() if name.startswith(("write /", "make a setting"))}
    assert len(tried) == 10
    assert {name: met for name, met in tried.items() if met not in ("EROFS", "EACCES", *GONE)} == {}
    assert found["chmod /proc/sys/kernel/core_pattern"] == "EROFS"


@cases
def test_what_is_made_inside_belongs_to_the_workspaces_owner(told: Callable[[str], Told], case: str) -> None:
    workspace, owner = told(case).jail.workspace, CASES[case][0]
    for name in ("made", "folder", "folder/deeper", "link"):
        facts = (workspace / name).lstat()
        assert (facts.st_uid, facts.st_gid) == (owner, owner), name
    assert (workspace / "made").read_text() == "made inside\n"


@cases
def test_nothing_made_inside_has_a_bit_or_attribute_that_gives_rights(
    told: Callable[[str], Told], case: str
) -> None:
    jail, found = told(case)
    for deed in ("chmod u+s", "chmod g+s", "fchmodat2 u+s", "mknod a device", "file capabilities"):
        assert found[deed] in ("EPERM", "EACCES", "ENOSYS"), deed
    everything = list(jail.workspace.rglob("*"))
    assert len(everything) > 5
    for path in everything:
        mode = path.lstat().st_mode
        assert not mode & (stat.S_ISUID | stat.S_ISGID), path
        assert stat.S_IFMT(mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), path
        assert "security.capability" not in os.listxattr(path, follow_symlinks=False), path


@cases
def test_files_of_others_stay_closed(told: Callable[[str], Told], case: str) -> None:
    found = told(case).found
    expected = dict.fromkeys(("others", "roots"), "EACCES") | {"private": DONE}
    if CASES[case][0] == 0:
        expected["roots"] = DONE
    assert {name: found[f"read {name}"] for name in expected} == expected
    assert {name: found[f"write {name}"] for name in expected} == expected


def test_without_walls_root_can_do_what_is_refused_inside(told: Callable[[str], Told]) -> None:
    jail = told("root's").jail
    probes = ("/etc/shadow", "/proc/sys/kernel/core_pattern", "/etc/passwd")
    program = (
        PRELUDE
        + "for path in json.loads(sys.argv[1]):\n    attempt(path, lambda: os.close(os.open(path, os.O_RDWR)))\nsay()"
    )
    assert jail.outside(program, json.dumps(probes)) == dict.fromkeys(probes, DONE)
    other = jail.home / "bits"
    other.write_text("")
    other.chmod(0o4755)
    assert other.stat().st_mode & stat.S_ISUID


@pytest.mark.parametrize("uid", [0, OWNER])
def test_home_of_root_is_private_also_when_it_is_the_real_one(
    installed: Installed, tmp_path: Path, uid: int
) -> None:
    jail = warm_jail(installed, tmp_path)
    own(jail.workspace, uid, 0o755)
    environment = {"HOME": "/root", "XDG_STATE_HOME": str(tmp_path / "state")}
    before = sorted(os.listdir("/root"))
    program = PRELUDE + (
        'found["home"] = sorted(os.listdir("/root"))\nkeep("/root/planted", "x")\n'
        'found["mode"] = oct(os.stat("/root").st_mode & 0o7777)\nsay()'
    )
    done = jail.run(PYTHON, "-I", "-c", program, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"home": AT_HOME, "mode": "0o700"}
    assert sorted(os.listdir("/root")) == before


@pytest.fixture
def small(installed: Installed, tmp_path: Path) -> Path:
    """The shipped policy with a low limit of processes."""
    text = (installed.packages / "jail/policies/overnight.toml").read_text()
    assert text.count("processes = 4096") == 1
    policy = tmp_path / "small.toml"
    policy.write_text(text.replace("processes = 4096", f"processes = {PROCESSES}"))
    return policy


@pytest.mark.parametrize("uid", [0, OWNER])
def test_a_fork_bomb_ends_at_the_limit_and_the_host_goes_on(
    installed: Installed, tmp_path: Path, small: Path, uid: int
) -> None:
    jail = warm_jail(installed, tmp_path)
    own(jail.workspace, uid, 0o755)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = (PYTHON, "-I", "-c", PRELUDE + BOMB, str(FORKS))
    with jail.popen(*command, options=("--policy", small), **pipes) as process:
        assert process.stdout is not None
        met = process.stdout.readline()
        # The uid that has its fill of processes inside forks outside as before.
        outside = subprocess.run(
            ["/bin/true"], user=uid or STRANGER, group=uid or STRANGER, check=False, timeout=60
        )
        rest, errors = process.communicate("\n", timeout=60)
    assert met == "full\n", errors
    assert outside.returncode == 0
    found = json.loads(rest)
    assert found["met"] == "EAGAIN"
    assert PROCESSES - 10 < found["children"] < PROCESSES
    assert process.returncode == 0


def test_without_the_limit_the_same_bomb_goes_on(told: Callable[[str], Told]) -> None:
    command = [PYTHON, "-I", "-c", PRELUDE + BOMB, str(FORKS)]
    done = subprocess.run(
        command, input="\n", capture_output=True, text=True, timeout=60, user=OWNER, check=False
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {"children": FORKS, "met": DONE}


@pytest.mark.parametrize("uid", [0, OWNER])
def test_a_repository_can_be_made_and_protected_paths_hold(
    installed: Installed, tmp_path: Path, uid: int
) -> None:
    jail = warm_jail(installed, tmp_path)
    (jail.workspace / "RESEARCH.md").write_text("a finding\n")
    own(jail.workspace / "RESEARCH.md", uid, 0o644)
    own(jail.workspace, uid, 0o755)
    script = (
        "git init -q . && git add . && git commit -qm made; echo evil >> RESEARCH.md; echo obey > CLAUDE.md;"
        " chmod 666 RESEARCH.md; mv RESEARCH.md x; while [ -e CLAUDE.md ]; do sleep 0.02; done; git log --format=%s"
    )
    done = jail.run("sh", "-c", script)
    assert done.stdout == "made\n", done.stderr
    assert done.stderr.count("Read-only file system") >= 2
    assert (jail.workspace / "RESEARCH.md").read_text() == "a finding\n"
    assert not (jail.workspace / "CLAUDE.md").exists()
    assert (jail.workspace / ".git/HEAD").stat().st_uid == uid
    swept = [entry["fields"] for entry in jail.ledger() if entry["kind"] == "swept"]
    (moved,) = [fields for fields in swept if fields["digest"]]
    assert moved["path"] == f"{jail.workspace}/CLAUDE.md"
    assert (jail.sessions()[-1] / moved["moved_to"]).read_text() == "obey\n"
