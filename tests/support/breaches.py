"""jail with one wall taken out, in a process of its own: the product has no switch for that.

Rule: a breach replaces functions or steps before jail is called, and nothing else; the probes before the command's start, which would
refuse such a run, are made to say "held". What the attacks then report is printed as JSON. Without a breach it is the control.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from jail.kernel import bpf, filters, mounts, privileges
from jail.launch import (
    attack,
    attack_lay,
    attack_text,
    command,
    confine,
    init,
    keeper,
    probes,
    restore,
    start,
    steps,
    streams,
    sweep,
)
from jail.plan import build, inside
from jail.plan.steps import Plan, Step
from jail.policy.paths import beneath

ALLOW = bpf.instruction(bpf.RETURN, bpf.ALLOW)


def nothing(*arguments: Any, **more: Any) -> None:
    """In place of what builds a wall."""


def without_steps(*verbs: str) -> Callable[[], None]:
    def breach() -> None:
        for verb in verbs:
            steps.TABLE[verb] = nothing

    return breach


def without_namespace(kind: str) -> None:
    build.NAMESPACES = tuple(name for name in build.NAMESPACES if name != kind)  # type: ignore[misc]


def of_plan(change: Callable[[Plan, str], Sequence[Step]]) -> Callable[[], None]:
    """Other steps in the plan; `change` has the plan and the home folder."""

    def breach() -> None:
        real = start.build

        def built(policy: Any, facts: Any, program: Any) -> Plan:
            plan = real(policy, facts, program)
            return plan._replace(steps=tuple(change(plan, facts.home)))

        start.build = built

    return breach


def open_filter(which: str) -> Callable[[], None]:
    def breach() -> None:
        real = filters.compiled
        filters.compiled = lambda folder: real(folder)._replace(**{which: ALLOW})

    return breach


def no_protection() -> None:
    without_steps("protect", "pin", "held-file")()
    restore.Guard.check = nothing  # type: ignore[method-assign]  # it would put back what is missing


def no_landlock() -> None:
    confine._restrict_files = nothing


def no_new_privileges() -> None:
    # Filters and Landlock need no_new_privs or CAP_SYS_ADMIN, so capabilities stay until the exec takes them.
    left = dict(forget_keys=privileges.forget_keys, drop_bounding_set=privileges.drop_bounding_set)
    confine.privileges = SimpleNamespace(**left, keep_capabilities=nothing, no_new_privileges=nothing)


def capabilities() -> None:
    privileges.drop_bounding_set = nothing


def network() -> None:
    without_namespace("net")
    steps.TABLE["loopback"] = nothing


def processes() -> None:
    without_namespace("pid")
    die, new = privileges.die_with_parent, mounts.new_filesystem
    privileges.die_with_parent = lambda parent: die(parent) if parent != init.OUTER_PARENT else None

    def proc_of_the_host(kind: str, *more: Any) -> int:
        return (
            mounts.clone(os.open("/proc", os.O_PATH | os.O_CLOEXEC), "/proc")
            if kind == "proc"
            else new(kind, *more)
        )

    mounts.new_filesystem = proc_of_the_host


def home_is_shown(plan: Plan, home: str) -> list[Step]:
    """The real home, in which jail cannot make the links and files that it puts into a private one."""
    return [
        Step("bind", home, home, ("ro",)) if (step.verb, step.target) == ("tmpfs", home) else step
        for step in plan.steps
        if not (step.verb in ("link", "file") and beneath(step.target, home))
    ]


def devices_of_the_host(plan: Plan, home: str) -> list[Step]:
    """The host's /dev beneath the devices of the plan: a bind is nodev, and jail itself needs /dev/null."""
    shown = Step("bind", "/dev", "/dev", ("rw",))
    kept = [shown if (step.verb, step.target) == ("tmpfs", "/dev") else step for step in plan.steps]
    return [step for step in kept if step.verb not in ("link", "freeze") or not beneath(step.target, "/dev")]


def environment() -> None:
    real = inside.environment
    inside.environment = lambda *given: tuple({**os.environ, **dict(real(*given))}.items())


def callers_streams() -> None:
    real = streams.Streams.__init__

    def made(self: Any, plan: Plan) -> None:
        real(self, plan)
        self.inner, self._stdin, self._outputs = (0, 1, 2), None, []

    streams.Streams.__init__ = made  # type: ignore[method-assign]


def open_descriptors() -> None:
    real = keeper.files.close_all_but

    def all_but_folders(kept: set[int]) -> None:
        given = {int(name) for name in os.listdir("/proc/self/fd") if os.path.isdir(f"/proc/self/fd/{name}")}
        real(kept | given)

    keeper.files = SimpleNamespace(**{**vars(keeper.files), "close_all_but": all_but_folders})
    command.files = SimpleNamespace(**{**vars(command.files), "close_on_exec_from": nothing})


def writable_trees() -> None:
    steps.READ_ONLY = steps.SAFE


def no_limits() -> None:
    command._limit = nothing


def open_process_1() -> None:
    privileges.set_dumpable = nothing


def no_sweep() -> None:
    sweep.Watch._sweep = nothing


BREACHES: dict[str, Callable[[], None]] = {
    "nothing": nothing,
    "deny filter": open_filter("deny"),
    "guard": open_filter("guard"),
    "Landlock": no_landlock,
    "no_new_privs": no_new_privileges,
    "capabilities": capabilities,
    "network namespace": network,
    "process namespace": processes,
    "ipc namespace": lambda: without_namespace("ipc"),
    "kernel quotas": without_steps("quota"),
    "sealed root": without_steps("freeze"),
    "read-only trees": writable_trees,
    "allow-list root": of_plan(home_is_shown),
    "protected mounts": no_protection,
    "masks of /proc": without_steps("mask"),
    "private /dev": of_plan(devices_of_the_host),
    "environment's allow-list": environment,
    "relayed streams": callers_streams,
    "closed descriptors": open_descriptors,
    "limits": no_limits,
    "closed process 1": open_process_1,
    "sweep": no_sweep,
}


def watch_grounds() -> Callable[[], list[str]]:
    """A function that lists what is left of the canaries of every ground that was laid since."""
    real, grounds = attack_lay.Ground.__init__, []

    def made(self: Any, environ: Any) -> None:
        real(self, environ)
        grounds.append(self)

    def left() -> list[str]:
        (ground,) = grounds
        places = [ground.workspace, ground.streams, *ground.folders, ground.truths["shm_file"]]
        return [path for path in places if os.path.lexists(path)]

    attack_lay.Ground.__init__ = made  # type: ignore[method-assign]
    return left


def main(breach: str, names: Sequence[str]) -> int:
    left = watch_grounds()
    real = probes.run
    probes.run = lambda *given: iter([(name, True, met) for name, _, met in real(*given)])
    BREACHES[breach]()
    found = attack.examine(os.environ, "overnight", names)
    print(json.dumps({**attack_text.values(found), "left": left()}))
    return found.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
