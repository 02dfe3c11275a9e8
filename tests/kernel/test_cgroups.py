"""Where a control group can be made, and how one is made and removed.

The rules of the kernel are tried on a tree of plain files, laid out as the hosts that we know lay theirs out;
what a kernel does with a group is in tests/escape/test_bombs.py.
"""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.kernel import cgroups
from jail.kernel.libc import KernelError

BOTH = "cpu memory pids"
MINE = 0o755
THEIRS = 0o555


class Group(NamedTuple):
    """One group of a tree: who may write it, its controllers, what it hands down, its processes."""

    mode: int = MINE
    controllers: str = BOTH
    down: str = BOTH
    processes: str = ""


class Host:
    """A tree of groups in a folder, and the files of /proc that lead to it."""

    def __init__(self, folder: Path, groups: dict[str, Group], own: str, *, root: str = "/", extra: str = ""):
        self.point = folder / "cgroup"
        self.proc = folder / "proc"
        self.proc.mkdir()
        line = f"30 23 0:26 {root} {self.point} rw,nosuid,nodev - cgroup2 cgroup2 rw,nsdelegate\n"
        (self.proc / "mountinfo").write_text(f"22 1 8:1 / / rw - ext4 /dev/sda rw\n{line}{extra}")
        (self.proc / "cgroup").write_text(f"9:name=systemd:/other\n0::{own}\n")
        for path in sorted(groups):
            self.make(self.point / path.strip("/"), groups[path], real_root=path == "/")
        for path in sorted(groups, reverse=True):
            if groups[path].mode == THEIRS:
                for file in (self.point / path.strip("/")).iterdir():
                    if file.is_file():
                        file.chmod(0o444)
                (self.point / path.strip("/")).chmod(THEIRS)

    def make(self, folder: Path, group: Group, *, real_root: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.controllers").write_text(group.controllers + "\n")
        (folder / "cgroup.subtree_control").write_text(group.down + "\n")
        (folder / "cgroup.procs").write_text(group.processes)
        if not real_root:
            (folder / "cgroup.type").write_text("domain\n")
            (folder / "memory.max").write_text("max\n")

    def delegation(self) -> cgroups.Delegation:
        return cgroups.delegation(str(self.proc))

    def at(self, path: str) -> str:
        return f"{self.point}{path}".rstrip("/")


USER = "/user.slice/user-1000.slice/user@1000.service"
SESSION = {
    "/": Group(THEIRS),
    "/user.slice": Group(THEIRS),
    "/user.slice/user-1000.slice": Group(THEIRS),
    "/user.slice/user-1000.slice/session-3.scope": Group(THEIRS, processes="100\n"),
    USER: Group(),
    f"{USER}/app.slice": Group(),
    f"{USER}/app.slice/terminal.scope": Group(down="", processes="200\n201\n"),
}

WHERE = {
    "a terminal of a systemd user session: beside its scope": (
        SESSION,
        f"{USER}/app.slice/terminal.scope",
        f"{USER}/app.slice",
    ),
    "a slice that hands nothing down yet, and holds no process": (
        {**SESSION, f"{USER}/app.slice": Group(down="cpu")},
        f"{USER}/app.slice/terminal.scope",
        f"{USER}/app.slice",
    ),
    "a slice without the controllers, below one that has them": (
        {**SESSION, f"{USER}/app.slice": Group(controllers="cpu", down="cpu")},
        f"{USER}/app.slice/terminal.scope",
        USER,
    ),
    "a unit with a delegated group, whose only process we are": (
        {"/": Group(THEIRS), "/x.service": Group(down="", processes=f"{os.getpid()}\n")},
        "/x.service",
        "/x.service",
    ),
    "beside a group in which we are alone, where that can be": (
        {**SESSION, f"{USER}/app.slice/jail.scope": Group(down="", processes=f"{os.getpid()}\n")},
        f"{USER}/app.slice/jail.scope",
        f"{USER}/app.slice",
    ),
    "the real root, which may hold processes": ({"/": Group(processes="1\n", down="")}, "/", "/"),
}
NOWHERE = {
    "a login over ssh: no group above it is the user's": (
        SESSION,
        "/user.slice/user-1000.slice/session-3.scope",
        cgroups.NOT_OURS,
    ),
    "a container whose root group holds its processes": (
        {"/": Group(THEIRS), "/box": Group(down="", processes="1\n7\n")},
        "/box",
        cgroups.IN_USE,
    ),
    "a hybrid host: memory and pids are bound to version 1": (
        {"/": Group(controllers="hugetlb", down="")},
        "/",
        cgroups.NOT_THERE,
    ),
    "a group outside of our namespace": ({"/": Group()}, "/../other", "the control group of this process"),
    "no group at all": ({"/": Group()}, "", "the control group of this process"),
}


@pytest.fixture(autouse=True)
def _as_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the permission bits alone, as they judge a user: to root every group is its own."""
    monkeypatch.setattr(os, "access", lambda path, _mode: bool(Path(path).stat().st_mode & 0o200))


@pytest.mark.parametrize("name", WHERE)
def test_a_group_can_be_made_in(name: str, tmp_path: Path) -> None:
    groups, own, wanted = WHERE[name]
    host = Host(tmp_path, groups, own)
    assert host.delegation()[:2] == (host.at(wanted), "")


@pytest.mark.parametrize("name", NOWHERE)
def test_no_group_can_be_made_in(name: str, tmp_path: Path) -> None:
    groups, own, why = NOWHERE[name]
    found = Host(tmp_path, groups, own).delegation()
    assert found.folder == ""
    assert found.why.startswith(why)


def test_a_host_without_version_2_says_so(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text("31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n")
    (tmp_path / "cgroup").write_text("4:memory:/\n")
    for proc in (tmp_path, tmp_path / "none"):
        assert cgroups.delegation(str(proc)) == ("", "control groups v2 are not mounted", 0)


def test_a_mount_that_begins_below_the_root_is_followed_from_there(tmp_path: Path) -> None:
    host = Host(
        tmp_path,
        {"/": Group(), "/shell": Group(down="", processes="9\n")},
        "/docker/7f/shell",
        root="/docker/7f",
    )
    assert host.delegation().folder == host.at("/")


def test_of_two_mounts_the_one_that_shows_more_is_taken(tmp_path: Path) -> None:
    other = "31 23 0:26 /elsewhere /mnt/part rw - cgroup2 cgroup2 rw\n"
    host = Host(tmp_path, {"/": Group(down="")}, "/", extra=other)
    assert host.delegation().folder == host.at("/")


def test_what_the_groups_above_leave_is_the_least_of_them(tmp_path: Path) -> None:
    host = Host(tmp_path, SESSION, f"{USER}/app.slice/terminal.scope")
    assert host.delegation().memory_most == 0, "none of them says"
    (Path(host.at(USER)) / "memory.max").write_text("4294967296\n")
    (Path(host.at(f"{USER}/app.slice")) / "memory.max").write_text("8589934592\n")
    assert host.delegation().memory_most == 4 << 30


def test_leftovers_are_our_groups_without_a_process(tmp_path: Path) -> None:
    host = Host(tmp_path, SESSION, f"{USER}/app.slice/terminal.scope")
    for name, populated in (("jail-gone", 0), ("jail-running", 1), ("other.scope", 0)):
        folder = Path(host.at(f"{USER}/app.slice")) / name
        folder.mkdir()
        (folder / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    assert cgroups.leftovers(str(host.proc)) == [host.at(f"{USER}/app.slice/jail-gone")]


def test_an_empty_group_is_removed_and_one_that_is_gone_counts_as_removed(tmp_path: Path) -> None:
    (tmp_path / "jail-x").mkdir()
    assert cgroups.remove(str(tmp_path / "jail-x"))
    assert not (tmp_path / "jail-x").exists()
    assert cgroups.remove(str(tmp_path / "jail-x"))


def test_where_no_group_can_be_made_the_error_names_the_call_and_nothing_is_left(tmp_path: Path) -> None:
    host = Host(tmp_path, {"/": Group()}, "/")
    # Plain folders make no files of their own in a new folder: opening memory.max fails there.
    with pytest.raises(KernelError, match=r"open\(.*/jail-x/memory\.max\)"):
        cgroups.create(host.at("/"), "jail-x", 256 << 20, 64)
    assert not (host.point / "jail-x").exists()
    (host.point / "jail-x").mkdir()
    with pytest.raises(KernelError, match=r"mkdir\(.*/jail-x\)"):
        cgroups.create(host.at("/"), "jail-x", 256 << 20, 64)


def test_the_only_process_of_a_group_steps_aside_and_back_again(tmp_path: Path) -> None:
    host = Host(tmp_path, {"/": Group(THEIRS), "/x.service": Group(down="")}, "/x.service")
    unit = host.point / "x.service"
    (unit / "cgroup.procs").write_text(f"{os.getpid()}\n")
    aside = unit / f"jail-supervisor-{os.getpid()}"
    made: list[str] = []
    written: list[str] = []
    real, real_write = os.mkdir, cgroups._write

    def mkdir(path: str, _mode: int) -> None:
        made.append(Path(path).name)
        real(path)
        if Path(path) == aside:
            (aside / "cgroup.procs").touch()
            (unit / "cgroup.procs").write_text("")

    def rmdir(path: str) -> None:
        made.append(f"-{Path(path).name}")
        (unit / "cgroup.subtree_control").write_text(
            "memory pids\n"
        )  # as the kernel shows what is handed down

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "mkdir", mkdir)
        patch.setattr(os, "rmdir", rmdir)
        patch.setattr(cgroups, "_write", lambda path, text: (written.append(text), real_write(path, text)))
        with pytest.raises(KernelError, match=r"memory\.max"):
            cgroups.create(str(unit), "jail-x", 256 << 20, 64)
    assert written[-2:] == ["-memory -pids", "0"]
    assert made == [aside.name, "jail-x", "-jail-x", f"-{aside.name}"]
    assert (aside / "cgroup.procs").read_text() == "0"
    assert (unit / "cgroup.procs").read_text() == "0", "back again"


def test_controllers_that_are_not_handed_down_yet_are_asked_for(tmp_path: Path) -> None:
    host = Host(tmp_path, {"/": Group(down="cpu memory")}, "/")
    with pytest.raises(KernelError):
        cgroups.create(host.at("/"), "jail-x", 256 << 20, 64)
    assert (host.point / "cgroup.subtree_control").read_text().startswith("+pids")


def test_what_the_kernel_counted_is_read_and_what_it_does_not_tell_is_zero(tmp_path: Path) -> None:
    assert cgroups.counts(str(tmp_path)) == (0, 0, 0)
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n")
    (tmp_path / "pids.events").write_text("max 40\n")
    (tmp_path / "memory.peak").write_text("268435456\n")
    assert cgroups.counts(str(tmp_path)) == (3, 40, 268435456)


def test_a_process_enters_through_the_door_and_every_process_can_be_killed(tmp_path: Path) -> None:
    for name in ("cgroup.procs", "cgroup.kill"):
        (tmp_path / name).touch()
    fd = cgroups.door(str(tmp_path))
    cgroups.enter(fd)
    os.close(fd)
    cgroups.kill(str(tmp_path))
    assert (tmp_path / "cgroup.procs").read_text() == "0"
    assert (tmp_path / "cgroup.kill").read_text() == "1"
    cgroups.kill(str(tmp_path / "none"))
    with pytest.raises(KernelError, match=r"cgroup\.procs"):
        cgroups.door(str(tmp_path / "none"))
