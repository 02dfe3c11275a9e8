"""/dev inside: the devices that hold no state, terminals of its own, and GPUs where the policy gives them.

Rule: each device is named and bound alone; a folder of devices is never given.
"""

from jail.light import Final
from jail.plan.facts import Facts, Place
from jail.plan.steps import Step
from jail.policy.value import Policy

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
LINKS: Final = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)


def steps(policy: Policy, facts: Facts, memory: tuple[str, ...]) -> list[Step]:
    """The steps that make /dev; `memory` are the options of the private /dev/shm."""
    return [
        Step("tmpfs", "/dev", "", ("size=65536", "mode=0755"), "only what follows"),
        *(Step("device", f"/dev/{name}", f"/dev/{name}") for name in DEVICES if name in facts.devices),
        *(
            Step("device", place.real, place.real, ("gpu",), "a GPU, as asked for")
            for place in _gpus(policy, facts)
        ),
        *(Step("link", f"/dev/{name}", target) for name, target in LINKS),
        Step("devpts", "/dev/pts", options=("newinstance", "ptmxmode=0666", "mode=0620")),
        Step("tmpfs", "/dev/shm", "", memory, "private"),  # noqa: S108 - a name inside
    ]


def _gpus(policy: Policy, facts: Facts) -> tuple[Place, ...]:
    return facts.gpu.devices if policy.gpu else ()


def notes(policy: Policy, facts: Facts) -> list[str]:
    """What a person who asked for a GPU should know."""
    if not policy.gpu:
        return []
    if not facts.gpu.devices:
        return ["gpu: this host shows no GPU device (/dev/nvidia*, /dev/dri/renderD*, /dev/kfd)"]
    closed = f"; closed to the command: {', '.join(facts.gpu.closed)}" if facts.gpu.closed else ""
    return [f"gpu: {', '.join(place.real for place in facts.gpu.devices)}{closed}"]
