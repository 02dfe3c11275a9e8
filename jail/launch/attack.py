"""`jail doctor --attack`: harmless attacks from inside a real run of the chosen policy; held, or not held.

Rule: what is said to hold was met. An attack that does not answer, hangs, kills its process, or is refused by
something other than the wall of its row counts as not held; what this machine cannot try is said to be
untried, never held. The run is that of `jail run`, and what must not have changed is looked at from outside
when it is over.
"""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, Self

from jail.errors import EXIT_SIGNAL_BASE
from jail.launch import attack_lay, attack_look, attack_run, places, survey
from jail.launch.attacks.table import ATTACKS, CONTROLS
from jail.launch.attacks.words import UNTRIED, Attack
from jail.policy.load import load
from jail.policy.sources import is_file

HELD: Final = "held"
NOT_HELD: Final = "NOT HELD"
NOT_TRIED: Final = "not tried"
EXIT_NOT_HELD: Final = 1
"""Of this command alone: some attack was not held."""
CONTROL: Final = "control"
ATTACK: Final = "attack"
LOOK: Final = "look"
OUTSIDE: Final = "seen from outside, afterwards"
SHOWN: Final = 3
"""Tries of one attack that are named; the rest are counted."""
Met = Sequence[Sequence[str]]
"""What the tries of one attack met: label, what, text."""


class Row(NamedTuple):
    """One attack judged: `state` is one of the three words above, `found` says what was met, `known` where
    this way was open once.
    """

    wall: str
    name: str
    tries: str
    state: str
    found: str
    known: str = ""

    @property
    def kind(self) -> str:
        """ATTACK; or CONTROL, what must work for the rest to prove anything; or LOOK, from outside."""
        return {CONTROLS: CONTROL, OUTSIDE: LOOK}.get(self.wall, ATTACK)


class Report(NamedTuple):
    """Every row; the name of the policy, and the losses that it accepts; the program that attacked."""

    rows: tuple[Row, ...]
    policy: str
    losses: tuple[str, ...] = ()
    interpreter: str = ""

    def kind(self, kind: str) -> Self:
        """The report with the rows of that kind alone."""
        return self._replace(rows=tuple(row for row in self.rows if row.kind == kind))

    def of(self, state: str) -> tuple[Row, ...]:
        """The rows in that state."""
        return tuple(row for row in self.rows if row.state == state)

    @property
    def code(self) -> int:
        """0 when nothing is in the state NOT_HELD."""
        return EXIT_NOT_HELD if self.of(NOT_HELD) else 0


def examine(environ: Mapping[str, str], policy: str | None = None, only: Sequence[str] = ()) -> Report:
    """Attack a run of `policy` in a folder made for it, started by this person; takes some seconds.

    `only`: names of the table's rows, none for all of it. Raises JailError when there can be no such run: 78,
    or 2 for a policy with faults.
    """
    if policy is not None and is_file(policy):
        policy = os.path.abspath(policy)
    home = survey.caller_from(environ, "/").home
    own = places.own(environ, home)
    judged = partial(load, policy, own.cache, home, user=own.user_policy)
    # First where the person has it, so that a fault names their file and not its copy.
    judged(workspace=os.getcwd())

    def named(workspace: str) -> list[str]:
        rules = judged(workspace=workspace)
        return [rule for rule in (*rules.write, *rules.hold, *rules.read) if not rule.startswith(("/", "~"))]

    chosen = tuple(attack for attack in ATTACKS if not only or attack.name in only)
    with _ended_in_order(), attack_lay.laid(environ, named) as ground:
        answer = attack_run.run(ground, policy, [attack.name for attack in chosen])
        looks = attack_look.looks(ground)
        rows = [judge(attack, answer.met.get(attack.name), looks, answer.ended) for attack in chosen]
        rows += [
            Row(
                OUTSIDE,
                look.name,
                look.what,
                NOT_HELD if look.problem else HELD,
                look.problem or look.seen,
            )
            for look in looks.values()
        ]
    return Report(tuple(rows), answer.policy, answer.losses, answer.interpreter)


def judge(attack: Attack, met: Met | None, looks: "Mapping[str, attack_look.Look]", ended: str) -> Row:
    """One row. `met` None: there was no answer, and `ended` says how the program ended."""
    row = Row(attack.wall, attack.name, attack.tries, NOT_HELD, "", attack.known)
    if met is None:
        return row._replace(found=f"no answer: {ended}")
    tried = [each for each in met if each[1] != UNTRIED]
    if not tried:
        return row._replace(state=NOT_TRIED, found=met[0][2] if met else "there is nothing here to try")
    wrong = [_said(*each) for each in tried if each[1] not in attack.held]
    if wrong:
        more = f"; and {len(wrong) - SHOWN} more of {len(tried)}" if len(wrong) > SHOWN else ""
        return row._replace(found="; ".join(wrong[:SHOWN]) + more)
    problem = looks[attack.proof].problem if attack.proof else ""
    if problem:
        return row._replace(found=problem)
    count = "1 try" if len(tried) == 1 else f"{len(tried)} tries"
    return row._replace(state=HELD, found=f"{count}: {', '.join(sorted({each[1] for each in tried}))}")


def _said(label: str, met: str, text: str) -> str:
    head = f"{label}: " if label else ""
    if met == "worked":
        return f"{head}worked{f', {text}' if text else ''}"
    if met.startswith("E") and met.isupper():
        return f"{head}{met}, which is not this wall's answer"
    return f"{head}{text or met}"


@contextmanager
def _ended_in_order() -> "Iterator[None]":
    """The first signal becomes an exception, so that all is taken away; the next ones nothing."""
    before = {number: signal.getsignal(number) for number in attack_lay.ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: Any) -> None:  # noqa: ARG001 - as signal(7) has handlers
    attack_lay.undisturbed()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(EXIT_SIGNAL_BASE + number)
