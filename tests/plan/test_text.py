"""A plan as a person reads it: golden files; JAIL_GOLDEN=write makes them anew, for a person to read."""

import json
import os

import pytest

from jail.plan import text
from jail.plan.build import build
from jail.plan.facts import Facts, Searched
from support.composed import LEVELS, made
from support.hosts import FACTS, POLICY, WORKSPACE, absent, folder
from support.installed import CHECKOUT

GOLDEN = CHECKOUT / "tests" / "golden"
HOSTS: dict[str, Facts] = {
    "plan-plain": FACTS,
    "plan-losses": FACTS._replace(
        landlock=0,
        uid=60600,
        gid=60600,
        launcher=0,
        idmap_from=0,
        path=(*FACTS.path, absent("/opt/none"), folder(f"{WORKSPACE}/.venv/bin")),
        searched=(Searched(f"{WORKSPACE}/.venv/bin", (f"{WORKSPACE}/.venv/bin",), "folder"),),
        sockets=(f"{WORKSPACE}/run.sock",),
    ),
    "plan-held": FACTS._replace(
        hold=(folder(WORKSPACE)._replace(given="."), folder("/srv/notes")),
        path=(*FACTS.path, folder(f"{WORKSPACE}/.venv/bin")),
        command_trees=((f"{WORKSPACE}/.venv/bin", f"{WORKSPACE}/.venv"),),
        guarded=(
            *FACTS.guarded[:1],
            *(guarded._replace(git=True) for guarded in FACTS.guarded[1:]),
        ),
        no_overlay=(("/srv/notes", "there are mounts in it: /srv/notes/a"),),
        sizes=(("/srv/notes", 1 << 20, 100),),
        submounts=(("/srv/notes/a", "folder"),),
        strange=(WORKSPACE,),
        sockets=(f"{WORKSPACE}/run.sock",),
    ),
}

LEVEL_FACTS = FACTS._replace(
    landlock=4,
    environment=tuple(
        (name, "x")
        for name in "CI COLORTERM GITHUB_SHA GITHUB_TOKEN LANG LS_COLORS SSH_AUTH_SOCK TERM TERM_PROGRAM TZ".split()
    ),
)
"""A host that lacks a little, and a caller with a name for each level to judge."""


@pytest.mark.parametrize("level", LEVELS)
def test_the_plan_of_each_level_reads_as_its_golden_file(level: str) -> None:
    """Without `sources`, so that a comment in a policy changes no plan."""
    policy = made(level).policy._replace(sources=())
    compare(f"plan-{level}", text.lines(build(policy, LEVEL_FACTS, ("pytest",)), policy.accept))


@pytest.mark.parametrize("name", HOSTS)
def test_a_plan_reads_as_the_golden_file(name: str) -> None:
    plan = build(POLICY, HOSTS[name], ("pytest", "-k", "it's \x1b[31mred\u202e"))
    compare(name, text.lines(plan, POLICY.accept))


def compare(name: str, lines: list[str]) -> None:
    """Hold lines against a golden file, or write it."""
    shown = "\n".join(lines) + "\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("JAIL_GOLDEN") == "write":
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_every_step_is_printed_and_counted() -> None:
    plan = build(POLICY, FACTS, ("true",))
    shown = " ".join(text.lines(plan, ()))
    for item in plan.steps:
        assert item.verb in shown
        assert item.target in shown
    assert f" {len(plan.steps)} " in shown


def test_no_step_stands_without_what_it_is_done_to() -> None:
    """However long a path is: a line that ends behind the verb reads like a step of nothing."""
    long = f"/srv/{'long' * 40}"
    plan = build(made("overnight").policy, FACTS._replace(cache=f"{long}/files"), ("true",))
    shown = text.lines(plan, ())
    verbs = {item.verb for item in plan.steps if item.target}
    assert "cache" in verbs
    assert [line for line in shown if line[:7].strip()[:1].isdigit() and line[9:].strip() in verbs] == []
    (at,) = [count for count, line in enumerate(shown) if line.split()[1:2] == ["cache"]]
    assert shown[at].endswith("/run/jail/cache <-")
    assert shown[at + 1].split()[0].startswith(long)


def test_no_value_of_a_variable_is_printed() -> None:
    plan = build(POLICY._replace(set_values=(("TOKEN", "canary"),)), FACTS, ("true",))
    assert "canary" not in " ".join(text.lines(plan, ()))
    assert "canary" not in json.dumps(text.values(plan, ()))
    assert "TOKEN" in " ".join(text.lines(plan, ()))


def test_the_json_form_has_every_step_and_says_which_losses_are_accepted() -> None:
    plan = build(POLICY, FACTS._replace(landlock=0), ("true",))
    values = json.loads(json.dumps(text.values(plan, POLICY.accept)))
    assert len(values["steps"]) == len(plan.steps)
    assert {loss["name"]: loss["accepted"] for loss in values["losses"]} == {
        "limits-memory": True,
        "landlock": False,
    }


def test_no_line_steers_a_terminal() -> None:
    plan = build(POLICY, FACTS._replace(workspace=folder("/srv/\x1b]0;x\x07")), ("true",))
    assert all(line.isprintable() or not line for line in text.lines(plan, ()))
