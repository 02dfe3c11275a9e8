"""What the program inside is told of this host and of the plan, so that it knows what to try for.

Rule: names and numbers only, as an attacker would know or guess them; what the plan gives on purpose is no
attack and is left out.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from jail.kernel import privileges, syscalls
from jail.launch import places, start
from jail.launch.attack_lay import Ground
from jail.launch.attacks.seeing import HARDWARE, OWN_DEVICES
from jail.plan.build import FROZEN, MASKED
from jail.plan.steps import Plan
from jail.policy.paths import beneath

MOST_NAMES: Final = 200
"""Names of the home folder that are looked for."""
MOST_ABSENT: Final = 8
"""Protected names that are made."""


def of_jail(ground: Ground, prepared: start.Prepared) -> None:
    """Where jail itself lies, and keeps its sessions."""
    state = [ground.state, prepared.own.state]
    ground.truths.update(
        state=state, own=[path for path in places.own_paths(prepared.own) if path not in state]
    )


def of_plan(ground: Ground, plan: Plan, names: list[str]) -> None:
    """What the program inside has to know of this host and of this plan."""
    arch = syscalls.native()
    column = list(syscalls.ARCHES).index(arch.name)
    shown = [step.target for step in plan.steps]
    ground.truths.update(
        attacks=names,
        calls={name: numbers[column] for name, numbers in syscalls.NUMBERS.items()},
        max_known=arch.max_known,
        holes=[call for hole in arch.holes for call in hole],
        read_only=[path for path in _read_only(plan) if shows(plan, path)],
        masked=[name for name in MASKED if os.path.exists(f"/proc/{name}")],
        settings=[path for name in FROZEN if os.path.exists(path := f"/proc/{name}")],
        absent=_absent(ground, plan),
        devices=_devices(shown),
        limits={
            name: (int(privileges.LIMITS[name]), value)
            for name, value in plan.limits
            if name in privileges.LIMITS and value >= 0
        },
        quotas={
            os.path.basename(step.target): int(step.options[0]) for step in plan.steps if step.verb == "quota"
        },
        services=_services(ground.environ),
        home_names=_home_names(ground.home, shown),
    )


def shows(plan: Plan, path: str) -> bool:
    """Whether a path is given and not hidden again."""
    given = any(step.verb == "bind" and beneath(path, step.target) for step in plan.steps)
    return given and not any(step.verb == "hide" and beneath(path, step.target) for step in plan.steps)


def _home_names(home: str, shown: list[str]) -> list[str]:
    """Names of the real home folder that nothing in the plan leads into."""
    with suppress(OSError):
        names = sorted(os.listdir(home))[:MOST_NAMES]
        return [name for name in names if not any(beneath(target, f"{home}/{name}") for target in shown)]
    return []


def _read_only(plan: Plan) -> list[str]:
    return [step.target for step in plan.steps if step.verb == "bind" and step.options == ("ro",)]


def _devices(shown: list[str]) -> list[str]:
    """Names in /dev that only the host has, as far as the plan does not give them."""
    given = {target.removeprefix("/dev/").partition("/")[0] for target in shown if beneath(target, "/dev")}
    names = dict.fromkeys([*HARDWARE, *os.listdir("/dev")])
    return [name for name in names if name.partition("/")[0] not in OWN_DEVICES | given]


def _absent(ground: Ground, plan: Plan) -> list[str]:
    """Some protected names that are not there and could be made at once."""
    found = [path for path, _ in plan.watched if os.path.dirname(path) == ground.workspace]
    return [path for path in found if not os.path.lexists(path)][:MOST_ABSENT]


SOCKETS: Final = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/socket",
    "/run/cups/cups.sock",
    "/run/pcscd/pcscd.comm",
    "/run/libvirt/libvirt-sock",
    "/run/snapd.socket",
    "/tmp/.X11-unix/X0",  # noqa: S108 - where X has it
)
SOCKETS_OF_THE_PERSON: Final = (
    "bus",
    "systemd/private",
    "docker.sock",
    "podman/podman.sock",
    "gnupg/S.gpg-agent",
    "keyring/control",
    "wayland-0",
    "pipewire-0",
)
"""In XDG_RUNTIME_DIR."""


def _services(environ: Mapping[str, str]) -> list[str]:
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    found = [
        *SOCKETS,
        *(f"{runtime}/{name}" for name in SOCKETS_OF_THE_PERSON),
        f"/tmp/tmux-{os.getuid()}/default",  # noqa: S108 - where tmux has it
    ]
    found.append(environ.get("SSH_AUTH_SOCK", ""))
    found.append(environ.get("DBUS_SESSION_BUS_ADDRESS", "").removeprefix("unix:path=").partition(",")[0])
    found.append(environ.get("TMUX", "").partition(",")[0])
    return [path for path in dict.fromkeys(found) if path.startswith("/")]
