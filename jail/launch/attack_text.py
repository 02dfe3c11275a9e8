"""The report of the attacks as lines for a person, and as plain values for --json.

Rule: the first line is the answer; then a line for each attack, grouped by wall; what is not held, or was not
tried, says why. The state is told by a word, never by colour alone.
"""

import textwrap
from typing import Any, Final

from jail.launch.attack import ATTACK, CONTROL, HELD, LOOK, NOT_HELD, NOT_TRIED, Report, Row

WIDTH: Final = 100
WORKS: Final = "works"
FAILS: Final = "FAILS"
"""The words for a control, in place of held and not held."""
_STATE: Final = max(map(len, (HELD, NOT_HELD, NOT_TRIED)))


def lines(report: Report) -> list[tuple[str, str]]:
    """Every line with the word that tells its state, "" for headings."""
    shown = [("", line) for line in textwrap.wrap(_answer(report), WIDTH)]
    name = max(len(row.name) for row in report.rows)
    wall = ""
    for row in report.rows:
        if row.wall != wall:
            wall = row.wall
            shown += [("", ""), ("", wall)]
        shown += _row(row, name)
    return shown


def _answer(report: Report) -> str:
    attacks = report.kind(ATTACK)
    count, held, not_tried = len(attacks.rows), len(attacks.of(HELD)), len(attacks.of(NOT_TRIED))
    not_held = [row.name for row in attacks.of(NOT_HELD)]
    failed = [row.name for row in report.kind(CONTROL).rows if row.state != HELD]
    changed = [row.name for row in report.kind(LOOK).of(NOT_HELD)]
    under = f"under the policy {report.policy}{f', {not_tried} not tried' if not_tried else ''}"
    answer = (
        f"NOT HELD: {len(not_held)} of {count} attacks {under}: {', '.join(not_held)}."
        if not_held
        else f"Held: {held} of {count} attacks {under}."
    )
    if changed:
        answer = f"NOT HELD, as seen from outside: {', '.join(changed)}. {answer}"
    return (
        f"A control fails, so that the rest proves nothing: {', '.join(failed)}. {answer}"
        if failed
        else answer
    )


def _word(row: Row) -> str:
    return {HELD: WORKS, NOT_HELD: FAILS}.get(row.state, row.state) if row.kind == CONTROL else row.state


def _row(row: Row, name: int) -> list[tuple[str, str]]:
    word = _word(row)
    head = f"  {word:{_STATE}}  {row.name:{name}}  "
    tries = f"{row.tries} ({row.known})" if row.known else row.tries
    indent = " " * len(head)
    text = tries if row.state == HELD else f"{tries}: {row.found}"
    said = textwrap.wrap(text, max(WIDTH, len(head) + 40), initial_indent=head, subsequent_indent=indent)
    return [(word, said[0]), *(("", line) for line in said[1:])]


def values(report: Report) -> dict[str, Any]:
    """The report as the object that --json prints."""
    return {
        "policy": report.policy,
        "losses": list(report.losses),
        "interpreter": report.interpreter,
        "exit": report.code,
        **{
            word.lower().replace(" ", "_"): len(report.kind(ATTACK).of(word))
            for word in (HELD, NOT_HELD, NOT_TRIED)
        },
        "attacks": [{"kind": row.kind, **row._asdict()} for row in report.rows],
    }
