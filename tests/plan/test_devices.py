"""/dev in a plan: six devices without state, and GPUs only where the policy gives them."""

from jail.plan.build import build
from jail.plan.facts import Gpu, Place
from jail.plan.steps import Plan
from support.hosts import FACTS, POLICY, folder

NVIDIA = Place("/dev/nvidia0", "/dev/nvidia0", "special", "/dev/nvidia0", "special", 5, 7, 0)
RENDER = Place(
    "/dev/dri/renderD128", "/dev/dri/renderD128", "special", "/dev/dri/renderD128", "special", 5, 8, 0
)
CARD = folder("/sys/devices/pci0000:00/0000:01:00.0")
HOST = FACTS._replace(gpu=Gpu((NVIDIA, RENDER), (CARD,), (RENDER.real,)), proc=(*FACTS.proc, "driver"))


def plan(gpu: bool, facts: object = HOST) -> Plan:
    return build(POLICY._replace(gpu=gpu), facts, ("true",))  # type: ignore[arg-type] # facts of this test


def devices(found: Plan) -> list[str]:
    return [step.target for step in found.steps if step.verb == "device"]


def test_no_gpu_is_given_that_nobody_asked_for() -> None:
    found = plan(gpu=False)
    assert len(devices(found)) == 6
    assert not [step for step in found.steps if step.target.startswith("/sys/devices/pci")]
    assert [step.verb for step in found.steps if step.target == "/proc/driver"] == ["mask"]


def test_each_gpu_is_bound_alone_with_what_its_driver_reads() -> None:
    found = plan(gpu=True)
    assert devices(found)[6:] == [NVIDIA.real, RENDER.real]
    assert [step.options for step in found.steps if step.target == CARD.real] == [("ro",)]
    assert not [step for step in found.steps if step.target == "/proc/driver"]
    (note,) = [note for note in found.notes if note.startswith("gpu: ")]
    assert note == f"gpu: {NVIDIA.real}, {RENDER.real}; closed to the command: {RENDER.real}"


def test_a_host_without_one_is_told() -> None:
    found = plan(gpu=True, facts=FACTS)
    assert len(devices(found)) == 6
    assert any("this host shows no GPU device" in note for note in found.notes)
