"""The report of the attacks as lines for a person, and as plain values for --json.

Rule: the first line is the answer; then a line for each attack, grouped by wall; what is not held, or was not
tried, says why. The state is told by a word, never by colour alone.
"""

import textwrap
from typing import Any, Final

from jail.launch.attack import HELD, NOT_HELD, NOT_TRIED, Report, Row
from jail.launch.attacks.table import CONTROLS

WIDTH: Final = 100
WORKS: Final = "works"
FAILS: Final = "FAILS"
"""The words for a control, in place of held and not held."""
_STATE: Final = max(map(len, (HELD, NOT_HELD, NOT_TRIED)))


def lines(report: Report) -> list[tuple[str, str]]:
    """Every line with the word that tells its state, "" for headings."""
    shown = [("", line) for line in textwrap.wrap(_answer(report), WIDTH)]
    name = max(len(row.name) for row in report.rows)
    case = max(len(row.case) for row in report.rows)
    wall = ""
    for row in report.rows:
        if row.wall != wall:
            wall = row.wall
            shown += [("", ""), ("", wall)]
        shown += _row(row, name, case)
    return shown


def _answer(report: Report) -> str:
    attacks = report._replace(rows=tuple(row for row in report.rows if row.wall != CONTROLS))
    count, held, not_tried = len(attacks.rows), len(attacks.of(HELD)), len(attacks.of(NOT_TRIED))
    not_held = [row.name for row in attacks.of(NOT_HELD)]
    failed = [row.name for row in report.rows if row.wall == CONTROLS and row.state != HELD]
    under = f"under the policy {report.policy}{f', {not_tried} not tried' if not_tried else ''}"
    answer = (
        f"NOT HELD: {len(not_held)} of {count} attacks {under}: {', '.join(not_held)}."
        if not_held
        else f"Held: {held} of {count} attacks {under}."
    )
    return (
        f"A control fails, so that the rest proves nothing: {', '.join(failed)}. {answer}"
        if failed
        else answer
    )


def _word(row: Row) -> str:
    return {HELD: WORKS, NOT_HELD: FAILS}.get(row.state, row.state) if row.wall == CONTROLS else row.state


def _row(row: Row, name: int, case: int) -> list[tuple[str, str]]:
    word = _word(row)
    head = f"  {word:{_STATE}}  {row.name:{name}}  {row.case:{case}}  "
    if row.state == HELD:
        return [(word, f"{head}{row.tries}")]
    indent = " " * len(head)
    text = f"{row.tries}: {row.found}"
    said = textwrap.wrap(text, max(WIDTH, len(head) + 40), initial_indent=head, subsequent_indent=indent)
    return [(word, said[0]), *(("", line) for line in said[1:])]


def values(report: Report) -> dict[str, Any]:
    """The report as the object that --json prints."""
    return {
        "policy": report.policy,
        "losses": list(report.losses),
        "interpreter": report.interpreter,
        "exit": report.code,
        "held": len(report.of(HELD)),
        "not_held": len(report.of(NOT_HELD)),
        "not_tried": len(report.of(NOT_TRIED)),
        "attacks": [row._asdict() for row in report.rows],
    }
