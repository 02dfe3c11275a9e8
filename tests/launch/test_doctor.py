"""The doctor's diagnoses: facts of good and bad hosts → what is said, word for word in the golden files."""

import errno
import os
import signal
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from jail.cli.doctor import COLOURS
from jail.errors import JailError
from jail.kernel import cgroups
from jail.kernel.libc import KernelError
from jail.launch import doctor, doctor_calls, doctor_look, doctor_remedies, doctor_text, doctor_tries
from jail.launch.doctor_causes import finding
from jail.launch.doctor_facts import NO_ERRNO, STATES, VERBATIM, Host, Tried, Whole, version_of
from jail.plan.bounds import unbounded
from support.installed import CHECKOUT

GOLDEN = CHECKOUT / "tests" / "golden"
LIMITS_MEMORY = unbounded(cgroups.NOT_OURS)
NO_GROUP = Tried(NO_ERRNO, "", cgroups.NOT_OURS)
PROBES = (("no capabilities", True, "0 0 0 0 0"), ("new user namespace", True, "EPERM"))
WORKED = {
    "python-prctl": "1.8.1",
    "pyseccomp": "0.1.2",
    "pyroute2": "0.9.7",
    "pydantic": "2.14.4",
    "click": "8.5.1",
    "psutil": "7.2.2",
    "libseccomp": "2.6.0",
    "openat2": "a path is opened that no link can lead elsewhere",
    "close_range": "no open file leaks into the command",
    "mount_setattr": "whole trees are made read-only at once",
    "become": "uid 1000, gid 1000",
    "user": "uid 1000 maps itself, and may drop capabilities",
    "mount": "a folder in memory, and a read-only view of another",
    "pivot": "the host's files are gone from view",
    "pid": "process 1 of its own, and a /proc that shows no other",
    "net": "loopback only, and it is up",
    "ipc": "shared memory and queues of its own",
    "uts": "a host name of its own",
    "cgroup": "the host's group names do not show",
    "filter": "loaded, and it refuses",
    "filter build": "428 instructions, built, checked and loaded",
    "landlock": "7",
    "keyring": "the caller's keys stay outside",
    "inotify": "folders can be watched",
    "terminal": "a terminal that is not the caller's",
    "listener": "execs can be recorded as they happen",
    "exit status": "how a process ended is told by the kernel",
    "overlay": "an overlay in the state folder holds what is written to a held tree",
    "nf_tables": "connections can be led to jail's own listener",
    "delegation": "a control group bounds it as a whole",
}
"""What each try says where it works."""
GOOD = {name: Tried(0, "", text) for name, text in WORKED.items()}
AFTER_USER = {*doctor_tries.WALLS, *doctor_calls.IN_NAMESPACES} - {"user"}
UNSHARE = Tried(errno.EPERM, "unshare(user)")
HEALTHY = Host(
    machine="x86_64",
    python=(3, 13, 5),
    executable="/usr/bin/python3.13",
    release="6.17.0-8-generic",
    tries=GOOD,
    sysctls={
        "user.max_user_namespaces": "62000",
        "fs.inotify.max_user_watches": "65536",
        "fs.inotify.max_user_instances": "128",
    },
    apparmor="unconfined",
    lsm="lockdown,capability,landlock,yama,apparmor",
    root_type="ext4",
    folder="/home/ann/work",
    folder_type="ext4",
    state="/home/ann/.local/state/jail",
    state_type="ext4",
    whole=Whole(PROBES, (), None, 0.04),
)


def failing(tries: Mapping[str, Tried], **facts: Any) -> Host:
    """The healthy host, but for these tries; where no user namespace can be made, nothing in one is tried."""
    found = {**GOOD, **tries}
    if not found["user"].worked:
        found = {name: tried for name, tried in found.items() if name not in AFTER_USER}
    sysctls = {**HEALTHY.sysctls, **facts.pop("sysctls", {})}
    stop = facts.pop("stop", "the walls could not be built: namespaces")
    where = next((tried.words() for tried in tries.values() if not tried.worked), "")
    losses = () if found["delegation"].worked else (LIMITS_MEMORY,)
    whole = Whole((), losses, (stop, where, "run `jail doctor`: it names what this host lacks"), 0.03)
    return HEALTHY._replace(**{"tries": found, "sysctls": sysctls, "whole": whole, **facts})


def enosys(call: str) -> Tried:
    return Tried(errno.ENOSYS, call)


APPARMOR = {"kernel.apparmor_restrict_unprivileged_userns": "1"}
OLD_KERNEL = {
    "openat2": enosys("openat2(../proc)"),
    "close_range": enosys("close_range(100)"),
    "mount_setattr": enosys("mount_setattr(no mount)"),
    "mount": enosys("mount_setattr(/, private)"),
    "pivot": enosys("mount_setattr(/, private)"),
    "overlay": enosys("mount_setattr(/, private)"),
    "landlock": enosys("landlock_create_ruleset(version)"),
    "listener": Tried(errno.EINVAL, "seccomp(listener, WAIT_KILLABLE_RECV)"),
    "exit status": Tried(errno.ENOTTY, "ioctl(PIDFD_GET_INFO)"),
}
NO_LIBRARY = "libseccomp.so.2: cannot open shared object file: No such file or directory"
HOSTS = {
    "healthy": HEALTHY,
    "accepted-loss": HEALTHY._replace(
        tries={**GOOD, "delegation": NO_GROUP}, whole=Whole(PROBES, (LIMITS_MEMORY,), None, 0.04)
    ),
    "ubuntu-24.04-apparmor": failing(
        {"user": Tried(errno.EACCES, "/proc/self/setgroups")},
        sysctls=APPARMOR,
        executable="/usr/bin/python3.12",
        python=(3, 12, 3),
        release="6.8.0-60-generic",
    ),
    "docker": failing(
        {"user": UNSHARE, "keyring": Tried(errno.EPERM, "keyctl(join)"), "delegation": NO_GROUP},
        seccomp=2,
        filters=1,
        around=("Docker", "/.dockerenv"),
        apparmor="docker-default (enforce)",
        over_proc=("/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/kcore", "/proc/sys"),
        folder_type="overlay",
        state_type="overlay",
    ),
    "kernel-5.4": failing(OLD_KERNEL, release="5.4.0-216-generic", stop="the walls could not be built: root"),
    "userns-sysctl-0": failing(
        {"user": Tried(errno.ENOSPC, "unshare(user)")}, sysctls={"user.max_user_namespaces": "0"}
    ),
    "no-libseccomp": failing(
        {"libseccomp": Tried(NO_ERRNO, "", NO_LIBRARY), "filter build": Tried(NO_ERRNO, "", "not built")},
        stop="the system-call filter cannot be built",
    ),
}


@pytest.mark.parametrize("name", HOSTS)
def test_each_host_reads_as_its_golden_file(name: str) -> None:
    report = doctor.report(HOSTS[name], "overnight", ("limits-memory",))
    seen = "".join(f"{line}\n" for _, line in doctor_text.lines(report))
    golden = GOLDEN / f"doctor-{name}.txt"
    if os.environ.get("JAIL_GOLDEN") == "write":
        golden.write_text(seen, encoding="utf-8")
    assert seen == golden.read_text(encoding="utf-8")


REMEDIES: dict[str, tuple[Host, str, list[str]]] = {
    # what is wrong: (the host, the check that says so, what its cause and remedy must say)
    "Debian's switch": (
        failing({"user": UNSHARE}, sysctls={"kernel.unprivileged_userns_clone": "0"}),
        "user",
        ["sudo sysctl -w kernel.unprivileged_userns_clone=1"],
    ),
    "no user namespaces for users": (
        HOSTS["userns-sysctl-0"],
        "user",
        ["sudo sysctl -w user.max_user_namespaces=15000", "sudo tee -a /etc/sysctl.d/90-jail.conf"],
    ),
    "no network namespaces for users": (
        failing({"net": Tried(errno.ENOSPC, "unshare(user net)")}, sysctls={"user.max_net_namespaces": "0"}),
        "network",
        ["sudo sysctl -w user.max_net_namespaces=15000"],
    ),
    "a limit outside": (
        failing({"user": Tried(errno.ENOSPC, "unshare(user)")}),
        "user",
        ["a limit on namespaces is reached", "32 levels"],
    ),
    "Ubuntu's AppArmor, by EPERM": (
        failing({"user": Tried(errno.EPERM, "write(/proc/self/uid_map, '1000 1000 1')")}, sysctls=APPARMOR),
        "user",
        ["profile jail /usr/bin/python3.13 flags=(unconfined) {", "apparmor_parser -r /etc/apparmor.d/jail"],
    ),
    "Ubuntu's AppArmor, capabilities in vain": (
        failing({"user": Tried(errno.EPERM, "prctl(PR_CAPBSET_DROP)")}, sysctls=APPARMOR),
        "user",
        ["  userns,", "--copies", "kernel.apparmor_restrict_unprivileged_userns=0"],
    ),
    "Ubuntu's AppArmor, in a container without its other confinements": (
        failing({"user": Tried(errno.EACCES, "/proc/self/setgroups")}, sysctls=APPARMOR)._replace(
            around=("Docker", "/.dockerenv")
        ),
        "user",
        ["on the host of this container, give the Python"],
    ),
    "Docker's seccomp": (
        HOSTS["docker"],
        "user",
        [
            "--security-opt seccomp=unconfined",
            "--security-opt apparmor=unconfined",
            "--security-opt systempaths=unconfined",
            "unshare, fsopen",
            "Not --cap-add SYS_ADMIN instead: pivot_root and keyctl stay refused",
            "Not --privileged",
        ],
    ),
    "Docker's seccomp, which kills": (
        failing(
            {"keyring": Tried(NO_ERRNO, "", "killed by SIGSYS")},
            seccomp=2,
            around=("a container", "container=x"),
        ),
        "keys",
        ["docker run --security-opt seccomp=unconfined"],
    ),
    "Docker's masked /proc": (
        failing(
            {"pid": Tried(errno.EPERM, "fsmount(proc)")},
            around=("Docker", "/.dockerenv"),
            seccomp=2,
            over_proc=("/proc/kcore", "/proc/keys"),
        ),
        "processes",
        ["/proc/kcore /proc/keys", "docker run --security-opt systempaths=unconfined", "/proc/sysrq-trigger"],
    ),
    "Podman's masked /proc": (
        failing(
            {"pid": Tried(errno.EPERM, "fsmount(proc)")},
            around=("Podman", "/run/.containerenv"),
            over_proc=("/proc/acpi",),
        ),
        "processes",
        ["podman run --security-opt unmask=ALL"],
    ),
    "lxcfs over /proc": (
        failing(
            {"pid": Tried(errno.EPERM, "fsmount(proc)")},
            around=("LXC", "/run/systemd/container"),
            over_proc=("/proc/cpuinfo",),
        ),
        "processes",
        ["lxc config set NAME security.nesting true"],
    ),
    "a mount over /proc on a host": (
        failing({"pid": Tried(errno.EPERM, "fsmount(proc)")}, over_proc=("/proc/uptime",)),
        "processes",
        ["/proc/uptime", "take away what is mounted over /proc"],
    ),
    "Docker's AppArmor profile": (
        failing(
            {"mount": Tried(errno.EACCES, "move_mount(/)")},
            around=("Docker", "/.dockerenv"),
            apparmor="docker-default (enforce)",
            sysctls=APPARMOR,
        ),
        "mounts",
        ["docker-default", "docker run --security-opt apparmor=unconfined"],
    ),
    "Podman's SELinux domain": (
        failing(
            {"mount": Tried(errno.EACCES, "move_mount(/)")},
            around=("Podman", "/run/.containerenv"),
            apparmor="",
            lsm="capability,selinux",
        ),
        "mounts",
        ["podman run --security-opt label=disable"],
    ),
    "a confined program of the host": (
        failing({"mount": Tried(errno.EACCES, "move_mount(/)")}, apparmor="snap.code.code (enforce)"),
        "mounts",
        ["snap.code.code", "journalctl -k"],
    ),
    "a pod": (
        failing({"user": UNSHARE}, seccomp=2, around=("Kubernetes", "KUBERNETES_SERVICE_HOST")),
        "user",
        ["procMount: Unmasked", "seccompProfile: {type: Unconfined}", "hostUsers: false"],
    ),
    "a systemd unit": (failing({"user": UNSHARE}, seccomp=2), "user", ["RestrictNamespaces="]),
    "a jail": (
        failing(
            {
                "user": UNSHARE,
                "mount_setattr": enosys("mount_setattr(no mount)"),
                "openat2": enosys("openat2(../proc)"),
            },
            seccomp=2,
            filters=2,
            no_new_privs=True,
        ),
        "surroundings",
        ["start jail outside"],
    ),
    "Flatpak": (
        failing({"user": UNSHARE}, seccomp=2, around=("Flatpak", "/.flatpak-info")),
        "user",
        ["outside"],
    ),
    "gVisor": (
        failing({"mount": enosys("open_tree(a folder)")}, around=("gVisor", "kernel 4.19.0-gvisor")),
        "mounts",
        ["gVisor", "runc or crun"],
    ),
    "WSL 1": (
        failing(
            {"user": Tried(errno.EINVAL, "unshare(user)")}, around=("WSL 1", "kernel 4.4.0-19041-Microsoft")
        ),
        "Linux",
        ["wsl --set-version DISTRIBUTION 2"],
    ),
    "a chroot": (failing({"user": UNSHARE}, chrooted=True), "user", ["chroot", "systemd-nspawn"]),
    "an initramfs": (
        failing({"pivot": Tried(errno.EINVAL, "pivot_root(., .)")}, root_type="rootfs"),
        "root folder",
        ["rootfs", "switch_root"],
    ),
    "tunnels in each network namespace": (
        failing({"net": Tried(NO_ERRNO, "", "a new network namespace is born with lo, tunl0")}),
        "network",
        ["sudo sysctl -w net.core.fb_tunnels_only_for_init_net=1"],
    ),
    "a kernel without ipc namespaces": (
        failing({"ipc": Tried(errno.EINVAL, "unshare(user ipc)")}),
        "ipc",
        ["built without it", "use Linux 5.19 or later"],
    ),
    "an old kernel": (HOSTS["kernel-5.4"], "openat2", ["it came with Linux 5.6", "linux-generic-hwe-22.04"]),
    "close_range without CLOEXEC": (
        failing({"close_range": Tried(errno.EINVAL, "close_range(100)")}, release="5.10.0-30-amd64"),
        "close_range",
        ["it came with Linux 5.11"],
    ),
    "a new kernel whose filter hides openat2": (
        failing({"openat2": enosys("openat2(../proc)")}, seccomp=2, around=("Docker", "/.dockerenv")),
        "openat2",
        ["seccomp=unconfined"],
    ),
    "Landlock off": (
        failing(
            {"landlock": Tried(errno.EOPNOTSUPP, "landlock_create_ruleset(version)")}, lsm="capability,yama"
        ),
        "Landlock",
        ["    lsm=landlock,capability,yama", "does not start it", "update-grub"],
    ),
    "Landlock off, and the list of modules out of sight": (
        failing({"landlock": Tried(errno.EOPNOTSUPP, "landlock_create_ruleset(version)")}, lsm=""),
        "Landlock",
        ["sudo cat /sys/kernel/security/lsm"],
    ),
    "Landlock not built": (
        failing({"landlock": enosys("landlock_create_ruleset(version)")}),
        "Landlock",
        ["CONFIG_SECURITY_LANDLOCK"],
    ),
    "Landlock's first ABI": (
        failing({"landlock": Tried(0, "", "1")}, release="5.15.0-140-generic"),
        "Landlock",
        ["refuses each rename between folders", "use Linux 5.19 or later"],
    ),
    "Landlock behind a filter": (
        failing(
            {"landlock": Tried(errno.EPERM, "landlock_create_ruleset(version)")},
            seccomp=2,
            around=("Docker", "/.dockerenv"),
        ),
        "Landlock",
        ["seccomp=unconfined"],
    ),
    "no libseccomp": (HOSTS["no-libseccomp"], "libseccomp", ["sudo apt install libseccomp2"]),
    "no pydantic": (
        failing({"pydantic": Tried(NO_ERRNO, "", "ModuleNotFoundError: No module named 'pydantic'")}),
        "pydantic",
        ["it reads policies", "pipx install"],
    ),
    "an old Python": (failing({}, python=(3, 10, 12)), "Python", ["64-bit Python 3.11 or later"]),
    "a 32-bit Python": (failing({}, bits=32), "Python", ["64-bit Python 3.11 or later"]),
    "another machine": (failing({}, machine="riscv64"), "Linux", ["x86_64 and aarch64"]),
    "no instance of inotify left": (
        failing({"inotify": Tried(errno.EMFILE, "inotify_init1")}),
        "watches",
        ["sudo sysctl -w fs.inotify.max_user_instances=1024"],
    ),
    "no watch of inotify left": (
        failing({"inotify": Tried(errno.ENOSPC, "inotify_add_watch(fd 5)")}),
        "watches",
        ["sudo sysctl -w fs.inotify.max_user_watches=524288"],
    ),
    "a state folder of somebody else": (
        failing({}, state="", state_problem="/home/ann/.local/state: Permission denied"),
        "state folder",
        ["XDG_STATE_HOME"],
    ),
    "root's folder without idmapped mounts": (
        failing(
            {"idmap": Tried(errno.EINVAL, "mount_setattr(/srv/x, idmapped)")},
            launcher=0,
            uid=60600,
            folder="/srv/x",
            folder_of_root=True,
            folder_type="nfs4",
        ),
        "root's files",
        ["root's files on nfs4", "sudo chown -R USER /srv/x"],
    ),
    "a root that is none": (
        failing({"become": Tried(errno.EPERM, "setresuid(60600)")}, launcher=0, uid=60600),
        "command's uid",
        ["cannot become uid 60600", "unshare -r"],
    ),
    "what nobody knows": (
        failing({"uts": Tried(errno.EIO, "sethostname(jail)")}),
        "host name",
        ["none of the causes that jail knows", "jail doctor --json"],
    ),
}


@pytest.mark.parametrize("wrong", REMEDIES)
def test_each_gap_has_its_exact_remedy_and_refuses_the_run(wrong: str) -> None:
    host, name, wanted = REMEDIES[wrong]
    report = doctor.report(host, "overnight", ("limits-memory",))
    (row,) = [row for row in report.rows if row.name == name]
    said = "\n".join([row.found, row.why, *row.remedy])
    assert [text for text in wanted if text not in said] == []
    assert row in report.refusing()
    assert report.code == 78


@pytest.mark.parametrize(
    ("tries", "facts", "name"),
    [
        ({"overlay": Tried(errno.EINVAL, "fsconfig(overlay, create)")}, {}, "held trees"),
        ({"nf_tables": Tried(errno.EPROTONOSUPPORT, "")}, {}, "egress"),
        ({"listener": Tried(errno.EINVAL, "seccomp(listener)")}, {}, "recorder"),
        ({"exit status": Tried(errno.ENOTTY, "ioctl(PIDFD_GET_INFO)")}, {}, "exit status"),
        ({"psutil": Tried(NO_ERRNO, "", "ModuleNotFoundError: No module named 'psutil'")}, {}, "psutil"),
        ({}, {"around": ("WSL 2", "kernel 6.6-microsoft-standard-WSL2")}, "surroundings"),
        ({}, {"one_file_system": False}, "current folder"),
        ({}, {"folder_type": "9p"}, "current folder"),
        ({}, {"sysctls": {"fs.inotify.max_user_watches": "8192"}}, "watches"),
    ],
)
def test_what_no_run_needs_is_told_and_refuses_nothing(
    tries: dict[str, Tried], facts: dict[str, Any], name: str
) -> None:
    report = doctor.report(failing(tries, **facts)._replace(whole=HEALTHY.whole), "overnight", ())
    (row,) = [row for row in report.rows if row.name == name]
    assert (row.state, report.code) == ("info", 0)


def test_an_older_landlock_is_told_with_the_rights_that_it_lacks() -> None:
    report = doctor.report(
        failing({"landlock": Tried(0, "", "3")})._replace(whole=HEALTHY.whole), "overnight", ()
    )
    (row,) = [row for row in report.rows if row.name == "Landlock"]
    lacks = "ioctl on devices (Linux 6.10); scopes of signals and abstract sockets (Linux 6.12)"
    assert (row.state, row.found, row.loss) == ("lost", "ABI 3", "landlock-rights")
    assert lacks in row.why
    assert row.remedy[0].startswith("use Linux 6.12 or later")


@pytest.mark.parametrize(("accepted", "code"), [((), 78), (("landlock",), 0)])
def test_a_loss_refuses_unless_the_policy_accepts_it_by_name(accepted: tuple[str, ...], code: int) -> None:
    tries = {"landlock": Tried(errno.EOPNOTSUPP, "landlock_create_ruleset(version)")}
    assert doctor.report(failing(tries)._replace(whole=HEALTHY.whole), "mine", accepted).code == code


@pytest.mark.parametrize(("accepted", "code"), [((), 78), (("limits-memory",), 0)])
def test_memory_that_no_control_group_bounds_is_one_loss_said_once(
    accepted: tuple[str, ...], code: int
) -> None:
    host = failing({"delegation": NO_GROUP})._replace(whole=Whole(PROBES, (LIMITS_MEMORY,)))
    report = doctor.report(host, "mine", accepted)
    (row,) = [row for row in report.rows if row.state == "lost"]
    assert (row.name, row.found, row.loss) == ("memory", cgroups.NOT_OURS, "limits-memory")
    assert row.remedy == (LIMITS_MEMORY.remedy,)
    assert report.code == code


def test_what_this_version_does_not_use_stands_under_a_heading_that_says_so() -> None:
    report = doctor.report(HEALTHY, "overnight", ())
    later = [row.name for row in report.rows if "no run of this one needs" in row.layer]
    assert later == ["recorder", "exit status", "egress"]


def test_the_first_line_of_each_check_has_the_word_of_its_state_and_every_word_but_info_a_colour() -> None:
    for host in HOSTS.values():
        report = doctor.report(host, "overnight", ("limits-memory",))
        told = [(word, line) for word, line in doctor_text.lines(report) if word]
        assert [word for word, _ in told] == [doctor_text.SHOWN[row.state] for row in report.rows]
        assert [line for word, line in told if not line.startswith(f"  {word} ")] == []
    assert set(doctor_text.SHOWN.values()) - set(COLOURS) == {"info"}


def test_a_loss_of_the_plan_is_a_row_unless_a_check_has_told_it() -> None:
    losses = (("landlock", "absent", "newer kernel"), LIMITS_MEMORY)
    tries = {"landlock": Tried(errno.EOPNOTSUPP, "landlock_create_ruleset(version)")}
    report = doctor.report(failing(tries)._replace(whole=Whole(PROBES, losses)), "overnight", ())
    assert [row.name for row in report.rows if row.state == "lost"] == ["Landlock", "limits-memory"]


def test_the_real_run_refuses_even_where_every_check_was_content() -> None:
    whole = Whole(
        (("umount", False, "it worked"),), (), ("a wall does not hold", "probes", "run `jail doctor`")
    )
    report = doctor.report(HEALTHY._replace(whole=whole), "overnight", ())
    (row,) = report.refusing()
    assert (row.name, row.why, report.code) == ("a real run", "not held: umount (it worked)", 78)
    assert "report this" in row.remedy[0]


def test_the_filters_of_containers_are_not_taken_for_a_jail() -> None:
    report = doctor.report(HOSTS["docker"]._replace(no_new_privs=True), "overnight", ())
    (row,) = [row for row in report.rows if row.name == "surroundings"]
    assert row.found == "Docker, by /.dockerenv, its system calls filtered"


def test_every_check_has_a_state_of_the_list_on_every_host() -> None:
    hosts = [*HOSTS.values(), *(host for host, _, _ in REMEDIES.values())]
    states = {row.state for host in hosts for row in doctor.report(host, "overnight", ()).rows}
    assert states == set(STATES)


def test_commands_are_never_wrapped_and_text_fits_the_width() -> None:
    for host in (*HOSTS.values(), *(host for host, _, _ in REMEDIES.values())):
        report = doctor.report(host, "overnight", ())
        lines = [line for _, line in doctor_text.lines(report)]
        commands = [line for row in report.rows for line in row.remedy if line.startswith(VERBATIM)]
        assert [command for command in commands if not any(line.endswith(command) for line in lines)] == []
        prose = [line for line in lines if not any(line.endswith(command) for command in commands)]
        assert [line for line in prose if len(line) > doctor_text.WIDTH and " " in line.strip()[11:]] == []


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/usr/bin/python3.12", "/usr/bin/python3.12"),
        ("/home/ann b/py", '"/home/ann b/py"'),
        ("/opt/{a}/py*", r'"/opt/\{a\}/py\*"'),
        ('/opt/"q"/py', r'"/opt/\"q\"/py"'),
    ],
)
def test_the_apparmor_profile_names_exactly_this_interpreter(path: str, shown: str) -> None:
    profile = doctor_remedies.apparmor_profile(path)
    assert f"profile jail {shown} flags=(unconfined) {{" in profile.splitlines()


def test_a_pasted_remedy_means_the_profile_whatever_the_path_holds() -> None:
    host = HEALTHY._replace(executable="/opt/ann's/python")
    assert doctor_remedies.apparmor(host)[1].startswith("    echo 'abi <abi/4.0>,")
    assert any("ann'\"'\"'s" in line for line in doctor_remedies.apparmor(host))


def _refused() -> str:
    raise KernelError(errno.EPERM, "unshare(user)")


def _jail_error() -> str:
    raise JailError("no filter", where="import pyseccomp")


def _odd() -> str:
    raise RuntimeError("odd")


def _defect() -> str:
    raise KeyError("ours")


def _killed() -> str:
    os.kill(os.getpid(), signal.SIGSYS)
    return "alive"


@pytest.mark.parametrize(
    ("work", "expected", "words"),
    [
        (lambda: "fine", Tried(0, "", "fine"), "fine"),
        (_odd, Tried(NO_ERRNO, "", "odd"), "odd"),
        (_defect, Tried(NO_ERRNO, "", "KeyError: 'ours'"), "KeyError: 'ours'"),
        (_jail_error, Tried(NO_ERRNO, "", "no filter; import pyseccomp"), "no filter; import pyseccomp"),
        (_killed, Tried(NO_ERRNO, "", "killed by SIGSYS"), "killed by SIGSYS"),
    ],
)
def test_a_try_tells_how_its_process_ended(work: Any, expected: Tried, words: str) -> None:
    tried = doctor_tries.attempt(work)
    assert (tried, tried.words()) == (expected, words)


def test_a_refused_call_is_told_with_its_errno() -> None:
    tried = doctor_tries.attempt(_refused)
    assert (tried.number, tried.words()) == (errno.EPERM, "unshare(user): Operation not permitted (EPERM)")


def test_a_try_that_does_not_answer_is_killed_and_leaves_no_process() -> None:
    tried, value = doctor_tries.apart(partial(time.sleep, 60), seconds=0.05)
    assert (tried.text, value) == ("no answer within 0.05 s", None)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_finding_of_what_was_not_tried_says_what_it_needs() -> None:
    assert finding("mount", HEALTHY._replace(tries={})) == (
        "untried",
        "not tried: it needs a user namespace",
        "",
        (),
        "",
    )


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.8.0-60-generic", (6, 8)), ("5.4.0", (5, 4)), ("6.18-rc1", (6, 18)), ("odd", (0, 0)), ("6", (0, 0))],
)
def test_the_version_of_a_release(release: str, version: tuple[int, int]) -> None:
    assert version_of(release) == version


MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
24 23 0:30 / /proc/sys/fs/binfmt_misc rw - binfmt_misc none rw
25 22 0:31 / /mnt/a\\040b rw - fuse.sshfs x rw
broken line
"""


def test_mountinfo_is_read_with_its_escapes() -> None:
    found = doctor_look.parse_mounts(MOUNTINFO)
    assert [each.point for each in found] == ["/", "/proc", "/proc/sys/fs/binfmt_misc", "/mnt/a b"]
    assert doctor_look._type_of("/mnt/a b/c", found) == "fuse.sshfs"
    assert doctor_look._type_of("/mnt/a", found) == "ext4"
    assert [each.point for each in found if doctor_look._covers_proc(each.point)] == []


@pytest.mark.parametrize(
    ("environ", "release", "version", "kind"),
    [
        ({}, "5.15.153.1-microsoft-standard-WSL2", "", "WSL 2"),
        ({}, "4.4.0-19041-Microsoft", "", "WSL 1"),
        ({}, "4.4.0", doctor_look.GVISOR_VERSION, "gVisor"),
        ({}, "4.19.0-gvisor", "", "gVisor"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "6.1.0", "", "Kubernetes"),
    ],
)
def test_what_a_system_runs_in_is_known_by_its_signs(
    environ: dict[str, str], release: str, version: str, kind: str
) -> None:
    assert doctor_look._around(environ, release, version)[0] == kind


def test_a_container_that_only_its_variable_tells_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_look, "SIGNS", ())
    assert doctor_look._around({"container": "oci"}, "6.1.0", "")[0] == "a container"
    assert doctor_look._around({}, "6.1.0", "") == ("", "")
