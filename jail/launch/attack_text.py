"""The report of the attacks as lines for a person, and as plain values for --json.

Rule: the first line is the answer; then a line for each attack, grouped by wall; what is not held, or was not
tried, says why. The state is told by a word, never by colour alone.
"""

import textwrap
from typing import Any, Final

from jail.launch.attack import HELD, NOT_HELD, NOT_TRIED, Report, Row

WIDTH: Final = 100
_STATE: Final = max(map(len, (HELD, NOT_HELD, NOT_TRIED)))


def lines(report: Report) -> list[tuple[str, str]]:
    """Every line with the state that it tells, "" for headings."""
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
    count, held, not_held = len(report.rows), len(report.of(HELD)), report.of(NOT_HELD)
    not_tried = len(report.of(NOT_TRIED))
    untried = f", {not_tried} not tried" if not_tried else ""
    under = f"under the policy {report.policy}"
    if not not_held:
        return f"Held: {held} of {count} attacks {under}{untried}."
    names = ", ".join(row.name for row in not_held)
    return f"NOT HELD: {len(not_held)} of {count} attacks {under}{untried}: {names}."


def _row(row: Row, name: int, case: int) -> list[tuple[str, str]]:
    head = f"  {row.state:{_STATE}}  {row.name:{name}}  {row.case:{case}}  "
    if row.state == HELD:
        return [(row.state, f"{head}{row.tries}")]
    indent = " " * len(head)
    said = textwrap.wrap(
        f"{row.tries}: {row.found}", max(WIDTH, len(head) + 40), initial_indent=head, subsequent_indent=indent
    )
    return [(row.state, said[0]), *(("", line) for line in said[1:])]


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
