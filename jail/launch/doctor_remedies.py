"""What to do about a host that lacks something: exact commands and texts, as functions of the facts.

Rule: a remedy can be pasted as it stands, says what it costs where it costs something, and names the
narrowest way first. Sources: apparmor.d(5), docker-run(1), podman-run(1), the security context of Kubernetes,
sysctl.d(5), and the default seccomp profiles of moby and containers-common.
"""

import shlex
from typing import Final

from jail.launch.doctor_facts import VERBATIM, Host

CALLS_FOR_A_PROFILE: Final = (
    *("clone", "unshare", "fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr"),
    *("pivot_root", "umount2", "sethostname", "keyctl"),
)
"""What jail calls and moby's profile refuses without CAP_SYS_ADMIN; pivot_root and keyctl with it too."""
CONTAINERS: Final = ("Docker", "Podman", "LXC", "Kubernetes", "a container")
OLDEST_KERNEL: Final = "5.19"
"""What a run needs: openat2 5.6, close_range 5.11, mount_setattr 5.12, the ABI 2 of Landlock 5.19."""
_SYSCTL_FILE: Final = "/etc/sysctl.d/90-jail.conf"
_COST_OF_PROC: Final = (
    "Root in the container then reaches the host's /proc/sys and /proc/sysrq-trigger: have no root there."
)


def typed(*lines: str) -> tuple[str, ...]:
    """Lines to be pasted as they are."""
    return tuple(VERBATIM + line for text in lines for line in text.split("\n"))


WSL: Final = (
    "in a Windows terminal, make this distribution a WSL 2 one:",
    *typed("wsl --set-version DISTRIBUTION 2"),
)
STATE_FOR_OVERLAYS: Final = (
    "let sessions lie on a file system that overlays can use (ext4, xfs, btrfs):",
    *typed("export XDG_STATE_HOME=FOLDER"),
)
OUTSIDE: Final = ("start jail outside; a jail inside another sandbox is not supported",)
LANDLOCK_BUILT: Final = (
    "use a kernel built with CONFIG_SECURITY_LANDLOCK, as those of Debian, Ubuntu, Fedora and Arch are",
)
LIBSECCOMP: Final = (
    "install it:",
    *typed(
        "sudo apt install libseccomp2     # Debian, Ubuntu",
        "sudo dnf install libseccomp      # Fedora, RHEL",
    ),
)
REPORT: Final = (
    "the kernel's log may say more (sudo dmesg | tail); please report it with the output of:",
    *typed("jail doctor --json"),
)


def sysctl(name: str, value: str) -> tuple[str, ...]:
    """Set it now, and at every boot."""
    boot = f"echo '{name} = {value}' | sudo tee -a {_SYSCTL_FILE}"
    return ("set it, now and for every boot:", *typed(f"sudo sysctl -w {name}={value}", boot))


def apparmor_profile(executable: str) -> str:
    """The profile that lets this program make user namespaces, and confines it in nothing (apparmor.d(5))."""
    wild = "*?[]{}^\\"
    path = executable
    if set(path) & set(wild + " \t\n\"',#@()=&"):
        path = '"' + "".join(f"\\{char}" if char in wild + '"' else char for char in path) + '"'
    return (
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n"
        f"profile jail {path} flags=(unconfined) {{\n"
        "  userns,\n"
        "  include if exists <local/jail>\n"
        "}"
    )


def apparmor(host: Host) -> tuple[str, ...]:
    """For Ubuntu from 23.10 on: a profile for the interpreter, or the restriction off."""
    where = "on the host of this container, " if host.around[0] in CONTAINERS else ""
    file = "/etc/apparmor.d/jail"
    cost = (
        f"This allows it to all that {host.executable} runs. Narrower: make jail's environment with "
        "python3 -m venv --copies: then it has a Python of its own, and jail doctor names that one here."
    )
    return (
        f"{where}give the Python that jail runs with a profile that allows it, then start jail again:",
        *typed(
            f"echo {shlex.quote(apparmor_profile(host.executable))} | sudo tee {file}",
            f"sudo apparmor_parser -r {file}",
        ),
        cost,
        "Wider, and for every program of this host:",
        *typed("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
    )


def seccomp(host: Host) -> tuple[str, ...]:
    """For whatever filters the system calls of this process from outside."""
    kind = host.around[0]
    if kind in CONTAINERS:
        return container(kind)
    text = (
        "find who set the filter (a sandbox, or systemd by SystemCallFilter= or RestrictNamespaces=), "
        f"and start jail outside of it, or let it pass {', '.join(CALLS_FOR_A_PROFILE)}"
    )
    return (text,)


def container(kind: str) -> tuple[str, ...]:
    """What lets walls be built inside such a container; none of it gives the container a capability."""
    if kind == "Kubernetes":
        return _POD
    if kind == "LXC":
        return _LXC
    podman = kind == "Podman"
    program = "podman" if podman else "docker"
    module, fresh_proc = ("label=disable", "unmask=ALL") if podman else _DOCKER_OPTIONS
    return (
        "start the container with these options, and jail in it as a user that is not root:",
        *typed(
            f"{program} run --security-opt seccomp=unconfined \\",
            f"    --security-opt {module} --security-opt {fresh_proc} …",
        ),
        f"The first: or a seccomp profile of your own that also allows {', '.join(CALLS_FOR_A_PROFILE)}.",
        f"The second: only where {'SELinux' if podman else 'AppArmor'} confines containers.",
        f"The third: for a /proc of the jail's own. {_COST_OF_PROC}",
        _NOT_SO,
    )


_NOT_SO: Final = (
    "Not --cap-add SYS_ADMIN instead: pivot_root and keyctl stay refused, and root in it gets much of the "
    "host. Not --privileged: then the container is no wall."
)
_DOCKER_OPTIONS: Final = ("apparmor=unconfined", "systempaths=unconfined")
_LXC: Final = (
    "on the host, let this container hold others, and start it again:",
    *typed("lxc config set NAME security.nesting true && lxc restart NAME"),
)
_POD: Final = (
    "in the pod's specification (procMount needs hostUsers: false, and a cluster that allows both):",
    *typed(
        "hostUsers: false",
        "containers:",
        "- securityContext:",
        "    runAsNonRoot: true",
        "    procMount: Unmasked",
        "    seccompProfile: {type: Unconfined}",
        "    appArmorProfile: {type: Unconfined}",
    ),
)


def proc(host: Host) -> tuple[str, ...]:
    """For a /proc with mounts over it, which may not be had fresh (mount_too_revealing in fs/namespace.c)."""
    kind = host.around[0]
    if kind in ("Kubernetes", "LXC"):
        return container(kind)
    if kind in CONTAINERS:
        option = "podman run --security-opt unmask=ALL" if kind == "Podman" else _DOCKER_PROC
        return ("start the container with:", *typed(f"{option} …"), _COST_OF_PROC)
    return (
        "take away what is mounted over /proc, or start jail where it is whole: a login shell of the host",
    )


_DOCKER_PROC: Final = "docker run --security-opt systempaths=unconfined"


def confined(host: Host) -> tuple[str, ...]:
    """For an AppArmor label or an SELinux domain that refuses mounts or namespaces."""
    kind = host.around[0]
    if kind in ("Kubernetes", "LXC"):
        return container(kind)
    if kind in CONTAINERS:
        option = (
            "podman run --security-opt label=disable"
            if "selinux" in host.lsm
            else "docker run --security-opt apparmor=unconfined"
        )
        return ("start the container with:", *typed(f"{option} …"))
    return (
        "start jail from a program that is not confined so, or allow it userns and mount; what was refused:",
        *typed("sudo journalctl -k --grep 'DENIED|avc' | tail"),
    )


def kernel(host: Host) -> tuple[str, ...]:
    """For a kernel that is too old: one answer for all that it lacks."""
    return (
        f"use Linux {OLDEST_KERNEL} or later, not {host.release}: Debian 12, Ubuntu 24.04; on Ubuntu 22.04:",
        *typed("sudo apt install linux-generic-hwe-22.04 && sudo reboot"),
    )


def newer_landlock(host: Host, needed: str) -> tuple[str, ...]:
    """For a kernel that would do, and judges less than `needed`, the version that has every right."""
    return (
        f"use Linux {needed} or later, not {host.release}: Debian 13; on Debian 12, with backports:",
        *typed("sudo apt install -t bookworm-backports linux-image-amd64 && sudo reboot"),
    )


def reinstall(package: str) -> tuple[str, ...]:
    """For a library that jail's own environment lacks."""
    return (
        f"install jail again, so that its environment has {package} (from a checkout scripts/jail does it):",
        *typed("pipx install --force FOLDER-OF-JAIL"),
    )


def landlock_off(host: Host) -> tuple[str, ...]:
    """For a kernel that has Landlock and does not start it: the boot parameter lsm= is a list of all."""
    others = ",".join(name for name in host.lsm.split(",") if name not in ("", "landlock"))
    grub = "add to GRUB_CMDLINE_LINUX in /etc/default/grub, then sudo update-grub && sudo reboot:"
    if not others:
        read = "the parameter is lsm=landlock, followed by a comma and the list that this prints; "
        return (read + grub, *typed("sudo cat /sys/kernel/security/lsm"))
    return (grub, *typed(f"lsm=landlock,{others}"))
