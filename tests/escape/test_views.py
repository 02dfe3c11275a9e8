"""CASES.md A1, A4, A8, A10, A19, A21–A26, A28, A29: the mounts as the command sees them, and what can be made of them."""

import os
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, Row, lay, offences, warm_jail
from support.installed import Installed

MOUNTS = r"""
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE, MNT_DETACH = 1, 32, 4096, 8192, 2
NEWNS, NEWUSER, NEWPID = 0x20000, 0x10000000, 0x20000000
outside = sys.argv[1] == "outside"
os.mkdir("place"); os.mkdir("other")
mine = os.fsencode(os.path.abspath("place"))
other = os.fsencode(os.path.abspath("other"))
if outside:
    uid, gid = os.getuid(), os.getgid()
    call("unshare", NEWUSER | NEWNS | NEWPID)
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        keep(f"/proc/self/{file}", text, os.O_WRONLY)
    attempt("tmpfs", lambda: call("mount", b"none", mine, b"tmpfs", 0, None))
    attempt("remount", lambda: call("mount", None, mine, None, MS_REMOUNT | MS_RDONLY, None))
    attempt("bind", lambda: call("mount", mine, other, None, MS_BIND, None))
    attempt("move", lambda: call("mount", other, mine, None, MS_MOVE, None))
    attempt("umount", lambda: call("umount2", mine, 0))
    attempt("detach", lambda: call("umount2", mine, MNT_DETACH))
else:
    protect = os.fsencode(os.path.abspath("RESEARCH.md"))
    for name, path in (("system", b"/usr"), ("protected file", protect), ("hidden file", os.fsencode(os.path.abspath("secret")))):
        attempt(f"umount {name}", lambda: call("umount2", path, 0))
        attempt(f"detach {name}", lambda: call("umount2", path, MNT_DETACH))
        attempt(f"remount {name}", lambda: call("mount", None, path, None, MS_REMOUNT | MS_BIND, None))
    attempt("tmpfs", lambda: call("mount", b"none", mine, b"tmpfs", 0, None))
    attempt("remount", lambda: call("mount", None, b"/", None, MS_REMOUNT | MS_BIND, None))
    attempt("bind", lambda: call("mount", b"/", mine, None, MS_BIND, None))
    attempt("move", lambda: call("mount", b"/usr", mine, None, MS_MOVE, None))
    attempt("umount", lambda: call("umount2", b"/tmp", 0))
    attempt("detach", lambda: call("umount2", b"/", MNT_DETACH))
    for kind in (b"overlay", b"sysfs", b"cgroup2", b"cgroup", b"devpts", b"mqueue", b"debugfs", b"fuse"):
        attempt(f"mount {kind.decode()}", lambda: call("mount", b"none", mine, kind, 0, None))
    attempt("unshare user", lambda: call("unshare", NEWUSER))
    attempt("unshare mount", lambda: call("unshare", NEWNS))
pid = os.fork()
if pid == 0:
    sys.exit(os.EX_OK if outcome(lambda: call("mount", b"proc", mine, b"proc", 0, None)) == "done" else 1)
found["proc"] = "done" if os.waitpid(pid, 0)[1] == 0 else "EPERM"
attempt("join", lambda: call("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), 0))
for name in ("open_tree", "move_mount", "fsopen", "mount_setattr"):
    found[name] = outcome(lambda: call(name, -1, None, 0, 0, 0))
attempt("chroot", lambda: call("chroot", b"."))
say()
"""
MOUNT_ROWS = [
    Row("A4", "a file system cannot be mounted", "tmpfs"),
    Row("A4", "a mount cannot be made writable", "remount"),
    Row("A4", "nothing can be bound elsewhere", "bind"),
    Row("A4", "no mount can be moved away", "move"),
    Row("A4", "no mount can be taken away", "umount"),
    Row("A4", "no mount can be detached", "detach"),
    Row("A26", "a fresh /proc without masks cannot be mounted", "proc"),
    Row("A28", "chroot is refused", "chroot"),
    Row("A28", "a mount namespace cannot be joined", "join"),
]


@pytest.fixture(scope="module")
def mounting(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    jail = warm_jail(installed, tmp_path_factory.mktemp("mounting"))
    lay(jail.workspace, {"RESEARCH.md": "fact", "secret": "canary"})
    inside = jail.inside(PRELUDE + MOUNTS, "inside", options=["--hide", "secret"])
    control = warm_jail(installed, tmp_path_factory.mktemp("mounting-control"))
    return {"inside": inside, "outside": control.outside(PRELUDE + MOUNTS, "outside")}


@pytest.mark.parametrize("row", MOUNT_ROWS, ids=str)
def test_mounts_cannot_be_changed_from_inside(row: Row, mounting: dict[str, dict[str, str]]) -> None:
    assert mounting["outside"][row.probe] == DONE
    assert mounting["inside"][row.probe] == "EPERM"


def test_a4_a24_no_wall_is_lifted_and_no_kind_of_file_system_is_mounted(
    mounting: dict[str, dict[str, str]],
) -> None:
    met = {name: result for name, result in mounting["inside"].items() if " " in name}
    assert len(met) == 19
    assert not offences(met, frozenset(("EPERM",)))


def test_a4_the_new_mount_calls_do_not_exist_inside(mounting: dict[str, dict[str, str]]) -> None:
    calls = ("open_tree", "move_mount", "fsopen", "mount_setattr")
    assert [mounting["inside"][name] for name in calls] == ["ENOSYS"] * 4
    assert "ENOSYS" not in [mounting["outside"][name] for name in calls]


LOOK = r"""
given, home, secret = sys.argv[1:4]
workspace = os.getcwd()
rows = [line.split() for line in content("/proc/self/mountinfo").splitlines()]
found["mounts"] = [[row[3], row[4], row[5], row[row.index("-") + 1]] for row in rows]
os.chdir("/")
os.chdir("../../..")
found["above the root"] = [os.getcwd(), sorted(os.listdir("..")), os.path.samestat(os.stat(".."), os.stat("/"))]
found["root"] = sorted(os.listdir("/"))
os.chdir(workspace)
found["cwd"] = os.readlink("/proc/self/cwd")
buffer = ctypes.create_string_buffer(256)
libc.statfs(b"/proc", buffer)
found["proc magic"] = int.from_bytes(buffer.raw[:8], "little")
found["devices"] = sorted(os.listdir("/dev"))
found["numbers"] = {
    name: [os.major(os.stat(f"/dev/{name}").st_rdev), os.minor(os.stat(f"/dev/{name}").st_rdev)]
    for name in ("null", "zero", "full", "random", "urandom", "tty")}
attempt("null works", lambda: keep("/dev/null", "x", os.O_WRONLY))
for name in ("kcore", "kmsg", "keys", "key-users", "kallsyms", "timer_list", "interrupts", "vmallocinfo", "sysrq-trigger"):
    try:
        found[f"mask {name}"] = str(len(content(f"/proc/{name}")))
    except OSError as error:
        found[f"mask {name}"] = errno.errorcode[error.errno]
found["unmasked"] = str(len(content("/proc/cpuinfo")) > 0)
writable = []
for folder, folders, names in os.walk("/proc"):
    if folder == "/proc":
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
    for name in names:
        try:
            os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NONBLOCK))
            writable.append(f"{folder}/{name}")
        except OSError:
            pass
found["writable in /proc"] = writable
attempt("own process", lambda: keep("/proc/self/comm", "x", os.O_WRONLY))
for name in ("kernel/core_pattern", "kernel/hostname", "vm/drop_caches", "kernel/modprobe", "net/ipv4/ip_forward"):
    attempt(f"chmod sys {name}", lambda: os.chmod(f"/proc/sys/{name}", 0o666))
found["sys"] = [name for folder, _, names in os.walk("/sys") for name in names if os.access(f"{folder}/{name}", os.W_OK)]
attempt("cgroups", lambda: os.listdir("/sys/fs/cgroup"))
for name, path in (("mem", "/dev/mem"), ("kvm", "/dev/kvm"), ("fuse", "/dev/fuse"), ("tun", "/dev/net/tun"), ("disk", "/dev/vda"),
                   ("vsock", "/dev/vsock"), ("kmsg", "/dev/kmsg"), ("userfaultfd", "/dev/userfaultfd"), ("console", "/dev/console")):
    attempt(f"device {name}", lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)))
for name, kind, major, minor in (("zero", stat.S_IFCHR, 1, 5), ("disk", stat.S_IFBLK, 254, 0), ("whiteout", stat.S_IFCHR, 0, 0)):
    for folder in (workspace, "/tmp"):
        attempt(f"mknod {name} in {folder}", lambda: os.mknod(f"{folder}/node-{name}", kind | 0o666, os.makedev(major, minor)))
attempt("mknod fifo", lambda: os.mknod("fifo", stat.S_IFIFO | 0o600))
keep("before-whiteout", "x")
attempt("whiteout by rename", lambda: call("renameat2", AT_FDCWD, b"before-whiteout", AT_FDCWD, b"after-whiteout", 4))
attempt("rename", lambda: os.rename("after-whiteout" if os.path.lexists("after-whiteout") else "before-whiteout", "renamed"))
say()
"""
MASKS = (
    "kcore",
    "kmsg",
    "keys",
    "key-users",
    "kallsyms",
    "timer_list",
    "interrupts",
    "vmallocinfo",
    "sysrq-trigger",
)


@pytest.fixture(scope="module")
def looked(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("looked")
    jail = warm_jail(installed, folder)
    lay(folder, {"given/file": "given"})
    found: dict[str, Any] = jail.inside(
        PRELUDE + LOOK, str(folder / "given"), str(jail.home), "secret", options=["--read", folder / "given"]
    )
    found["workspace"] = str(jail.workspace)
    found["given"] = str(folder / "given")
    found["left"] = {
        name: oct(os.lstat(jail.workspace / name).st_mode) for name in os.listdir(jail.workspace)
    }
    return found


def test_a28_the_hosts_root_is_not_among_the_mounts_and_there_is_nothing_above_the_root(
    looked: dict[str, Any],
) -> None:
    (root,) = [row for row in looked["mounts"] if row[1] == "/"]
    assert root[3] == "tmpfs"
    assert not [
        row for row in looked["mounts"] if row[0] == "/" and row[3] not in {"tmpfs", "proc", "devpts"}
    ]
    assert looked["above the root"] == ["/", looked["root"], True]
    assert looked["cwd"] == looked["workspace"]


def test_a1_a23_each_mount_is_nosuid_and_nodev_and_all_but_the_named_ones_are_read_only(
    looked: dict[str, Any],
) -> None:
    assert len(looked["mounts"]) > 20
    assert [row for row in looked["mounts"] if "nosuid" not in row[2].split(",")] == []
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "pts")}
    assert {row[1] for row in looked["mounts"] if "nodev" not in row[2].split(",")} == devices
    writable = {
        row[1] for row in looked["mounts"] if "rw" in row[2].split(",") and row[3] not in {"tmpfs", "proc"}
    }
    assert writable == {looked["workspace"], "/run/jail/cache"} | devices


def test_a8_proc_is_a_procfs(looked: dict[str, Any]) -> None:
    assert looked["proc magic"] == 0x9FA0


def test_a10_the_devices_are_the_harmless_ones_and_are_what_they_are_called(looked: dict[str, Any]) -> None:
    links = ["fd", "ptmx", "pts", "shm", "stderr", "stdin", "stdout"]
    assert looked["devices"] == sorted([*links, "full", "null", "random", "tty", "urandom", "zero"])
    numbers = {
        "null": [1, 3],
        "zero": [1, 5],
        "full": [1, 7],
        "random": [1, 8],
        "urandom": [1, 9],
        "tty": [5, 0],
    }
    assert looked["numbers"] == numbers
    assert looked["null works"] == DONE


@pytest.mark.parametrize("name", MASKS)
def test_a25_what_proc_tells_of_the_host_is_empty_or_absent(name: str, looked: dict[str, Any]) -> None:
    assert looked[f"mask {name}"] in {"0", "ENOENT"}
    assert looked["unmasked"] == "True"


def test_a25_nothing_in_proc_but_the_processes_own_files_can_be_opened_for_writing(
    looked: dict[str, Any],
) -> None:
    assert looked["writable in /proc"] == []
    assert looked["own process"] == DONE
    settings = {name: met for name, met in looked.items() if name.startswith("chmod sys")}
    assert len(settings) == 5
    assert not offences(settings, frozenset(("EROFS", "ENOENT")))


def test_a24_sys_has_no_control_groups_and_nothing_writable(looked: dict[str, Any]) -> None:
    assert looked["sys"] == []
    assert looked["cgroups"] == "ENOENT"


def test_a23_a29_devices_of_the_host_are_absent(looked: dict[str, Any]) -> None:
    met = {name: result for name, result in looked.items() if name.startswith("device ")}
    assert len(met) == 9
    assert not offences(met, GONE)


def test_a21_a23_no_device_node_can_be_made(looked: dict[str, Any]) -> None:
    met = {
        name: result for name, result in looked.items() if name.startswith("mknod ") and name != "mknod fifo"
    }
    assert len(met) == 6
    assert not offences(met, REFUSED)
    assert looked["mknod fifo"] == DONE


def test_a21_a_rename_leaves_no_whiteout_device_on_the_host(looked: dict[str, Any]) -> None:
    assert looked["rename"] == DONE
    assert [name for name, mode in looked["left"].items() if mode.startswith("0o2")] == []
    assert looked["whiteout by rename"] in REFUSED | {"EINVAL"}


SETUID = r"""
def path(name):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)
    os.close(fd)
    return name
def opened(name):
    return os.open(path(name), os.O_RDWR)
BITS = {"setuid": 0o4755, "setgid": 0o2755}
for bit, mode in BITS.items():
    attempt(f"chmod {bit}", lambda: os.chmod(path(f"chmod-{bit}"), mode))
    attempt(f"fchmod {bit}", lambda: os.fchmod(opened(f"fchmod-{bit}"), mode))
    attempt(f"chmod through /proc {bit}", lambda: os.chmod(f"/proc/self/fd/{opened(f'proc-{bit}')}", mode))
    attempt(f"fchmodat2 {bit}", lambda: call("fchmodat2", AT_FDCWD, os.fsencode(path(f"fchmodat2-{bit}")), mode, 0x100))
    attempt(f"creat {bit}", lambda: os.close(os.open(f"creat-{bit}", os.O_CREAT | os.O_WRONLY, mode)))
    attempt(f"tmpfile {bit}", lambda: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY, mode)))
    attempt(f"mknod {bit}", lambda: os.mknod(f"mknod-{bit}", stat.S_IFREG | mode))
    attempt(f"mkdir {bit}", lambda: os.mkdir(f"mkdir-{bit}", mode))
    class How(ctypes.Structure):
        _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]
    how = How(os.O_CREAT | os.O_WRONLY, mode, 0)
    attempt(f"openat2 {bit}", lambda: call("openat2", AT_FDCWD, f"openat2-{bit}".encode(), ctypes.byref(how), ctypes.sizeof(how)))
capability = struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0)
attempt("file capability", lambda: os.setxattr(path("capability"), "security.capability", capability))
attempt("plain chmod", lambda: os.chmod(path("plain"), 0o755))
found["left"] = [f"{name} {oct(os.lstat(name).st_mode)}" for name in os.listdir(".") if os.lstat(name).st_mode & 0o6000]
say()
"""
CALLS = ("chmod", "fchmod", "chmod through /proc", "fchmodat2", "creat", "tmpfile", "mknod", "openat2")


@pytest.fixture(scope="module")
def setuid(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    jail = warm_jail(installed, tmp_path_factory.mktemp("setuid"))
    inside = jail.inside(PRELUDE + SETUID)
    inside["left"] += [
        name for name in os.listdir(jail.workspace) if (jail.workspace / name).lstat().st_mode & 0o6000
    ]
    control = warm_jail(installed, tmp_path_factory.mktemp("setuid-control"))
    return {"inside": inside, "outside": control.outside(PRELUDE + SETUID)}


@pytest.mark.parametrize("bit", ["setuid", "setgid"])
@pytest.mark.parametrize("name", CALLS)
def test_a22_no_call_leaves_a_setuid_or_setgid_file(
    name: str, bit: str, setuid: dict[str, dict[str, Any]]
) -> None:
    assert setuid["outside"][f"{name} {bit}"] == DONE
    assert setuid["inside"][f"{name} {bit}"] == ("ENOSYS" if name == "openat2" else "EPERM")


def test_a22_nothing_with_such_a_bit_or_a_file_capability_is_on_the_host_after(
    setuid: dict[str, dict[str, Any]],
) -> None:
    assert setuid["inside"]["left"] == []
    assert len(setuid["outside"]["left"]) >= 12
    assert setuid["inside"]["plain chmod"] == DONE
    assert setuid["inside"]["file capability"] == "EPERM"


HIDDEN = r"""
workspace, folder = os.getcwd(), sys.argv[1]
def read_by(path):
    try:
        return content(path)
    except OSError as error:
        return errno.errorcode[error.errno]
for root in ("", "/proc/self/root", "/proc/1/root", "/proc/thread-self/root", f"/proc/{os.getppid()}/root"):
    found[f"{root}/… secret"] = read_by(f"{root}{workspace}/secret")
    found[f"{root}/… folder"] = read_by(f"{root}{workspace}/private/key")
for start in ("/proc/self/cwd", "."):
    found[f"{start} secret"] = read_by(f"{start}/secret")
    found[f"{start} folder"] = read_by(f"{start}/private/key")
found["symlink"] = read_by("symlink")
found["symlink to folder"] = read_by("to-private/key")
found["hard link"] = read_by("second-name")
found["second tree"] = read_by(f"{folder}/sub/secret")
found["second tree by link"] = read_by(f"{folder}/to-sub/secret")
try:
    os.symlink(f"{workspace}/secret", "made-inside")
    found["new symlink"] = read_by("made-inside")
    os.link("secret", "linked")
    found["new hard link"] = read_by("linked")
except OSError as error:
    found["new hard link"] = errno.errorcode[error.errno]
buffer = ctypes.create_string_buffer(8 + 128)
struct.pack_into("I", buffer, 0, 128)
number = ctypes.c_int()
try:
    call("name_to_handle_at", AT_FDCWD, os.fsencode(f"{workspace}/neighbour"), buffer, ctypes.byref(number), 0)
    fd = call("open_by_handle_at", os.open(".", os.O_RDONLY), buffer, 0)
    found["handle"] = os.read(fd, 99).decode()
except OSError as error:
    found["handle"] = errno.errorcode[error.errno]
found["control"] = [read_by("neighbour"), read_by(f"{folder}/sub/neighbour"), read_by("/proc/self/root" + workspace + "/neighbour")]
attempt("make in the hidden folder", lambda: keep("private/new", "x"))
attempt("make the hidden file", lambda: keep("secret", "x"))
say()
"""


@pytest.fixture(scope="module")
def hidden(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hidden")
    jail = warm_jail(installed, folder)
    lay(jail.workspace, {"secret": "canary", "private/key": "canary", "neighbour": "plain"})
    (jail.workspace / "symlink").symlink_to("secret")
    (jail.workspace / "to-private").symlink_to("private")
    (jail.workspace / "second-name").hardlink_to(jail.workspace / "secret")
    lay(folder, {"given/sub/secret": "canary", "given/sub/neighbour": "plain"})
    (folder / "given/to-sub").symlink_to("sub")
    options: list[str | Path] = [
        "--read",
        folder / "given",
        "--hide",
        "secret",
        "--hide",
        "private",
        "--hide",
        folder / "given/sub/secret",
    ]
    found: dict[str, Any] = jail.inside(PRELUDE + HIDDEN, str(folder / "given"), options=options)
    found["host"] = [(jail.workspace / "secret").read_text(), sorted(os.listdir(jail.workspace / "private"))]
    return found


@pytest.mark.parametrize(
    "way",
    [
        *(
            f"{root}/… {what}"
            for root in ("", "/proc/self/root", "/proc/1/root")
            for what in ("secret", "folder")
        ),
        *("/proc/self/cwd secret", "/proc/self/cwd folder", ". secret", ". folder"),
        *(
            "symlink",
            "symlink to folder",
            "hard link",
            "second tree",
            "second tree by link",
            "new symlink",
            "new hard link",
            "handle",
        ),
    ],
)
def test_a19_what_is_hidden_is_hidden_by_each_way_to_it(way: str, hidden: dict[str, Any]) -> None:
    assert hidden["control"] == ["plain"] * 3
    assert hidden[way] in REFUSED | GONE


def test_a19_a_hidden_folder_answers_as_one_that_is_not_there(hidden: dict[str, Any]) -> None:
    assert hidden["/… folder"] == hidden["make in the hidden folder"] == "ENOENT"


def test_a19_nothing_is_made_where_something_is_hidden(hidden: dict[str, Any]) -> None:
    assert hidden["make in the hidden folder"] in REFUSED | GONE
    assert hidden["make the hidden file"] in REFUSED | GONE
    assert hidden["host"] == ["canary", ["key"]]
