from jail.launch import firstentry
from jail.plan.build import build
from jail.plan.held import OVERLAY, Held
from support.hosts import FACTS, POLICY


def test_what_is_held_and_what_it_goes_on_from_are_named_where_there_is_any() -> None:
    plan = build(POLICY, FACTS, ("true",))
    plain = firstentry.fields(plan._replace(held=()), POLICY, "")
    assert not {"held", "resumed"} & plain.keys()
    held = plan._replace(held=(Held("t0", OVERLAY, "/w/.venv", "PATH", "commands"),))
    found = firstentry.fields(held, POLICY, "20261130-141502-k3f9x2ab")
    assert found["held"] == [["t0", "overlay", "/w/.venv", "commands"]]
    assert found["resumed"] == "20261130-141502-k3f9x2ab"
