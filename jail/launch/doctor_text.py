"""The doctor's report as lines for a person, and as plain values for --json.

Rule: the first line is the answer; then one line for each check, grouped by layer; cause and remedy stand
indented beneath what needs them, commands on lines of their own so that they can be pasted. States are told
by words, never by colour alone.
"""

import textwrap
from typing import Any, Final

from jail.launch.doctor import Report
from jail.launch.doctor_facts import INFO, LOST, MISSING, OK, UNTRIED, VERBATIM, Row

WIDTH: Final = 100
"""Columns of wrapped text; commands are never wrapped."""
SHOWN: Final = {OK: "ok", INFO: "info", LOST: "LOST", MISSING: "MISSING", UNTRIED: "untried"}
_STATE: Final = max(map(len, SHOWN.values()))


def lines(report: Report) -> list[tuple[str, str]]:
    """Every line with the word that tells its state, "" for all but the first of a check."""
    name = max(len(row.name) for row in report.rows)
    shown = [("", line) for line in _summary(report)]
    layer = ""
    told: dict[tuple[str, ...], str] = {}
    for row in report.rows:
        if row.layer != layer:
            layer = row.layer
            shown += [("", ""), ("", layer)]
        before = told.get(row.remedy, "") if len(row.remedy) > 1 else ""
        told.setdefault(row.remedy, row.name)
        first, *more = _row(row._replace(remedy=(f"as for {before} above",)) if before else row, name, report)
        shown += [(SHOWN[row.state], first), *(("", line) for line in more)]
    return shown


def _summary(report: Report) -> list[str]:
    refusing = report.refusing()
    accepted = [row.loss for row in report.rows if row.state == LOST and row.loss in report.accepted]
    shown = []
    if not refusing and not accepted:
        shown = ["This host can give every wall: `jail run` works here."]
    elif not refusing:
        shown = ["`jail run` works on this host."]
    else:
        count = len(report.causes())
        walls = "1 wall is missing" if count == 1 else f"{count} walls are missing"
        shown = [
            f"`jail run` is refused on this host: {walls}.",
            f"Mend first: {refusing[0].name} ({refusing[0].layer}), below.",
        ]
    if accepted:
        walls = "One wall is not whole" if len(accepted) == 1 else f"{len(accepted)} walls are not whole"
        shown.append(f"{walls}, which the policy {report.policy} accepts: {', '.join(accepted)}.")
    return [line for text in shown for line in textwrap.wrap(text, WIDTH)]


def _row(row: Row, name: int, report: Report) -> list[str]:
    head = f"  {SHOWN[row.state]:{_STATE}}  {row.name:{name}}  "
    indent = " " * len(head)
    shown = textwrap.wrap(
        row.found, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False
    ) or [head.rstrip()]
    notes = [f"why: {row.why}"] if row.why else []
    if row.loss:
        verb = "accepts" if row.loss in report.accepted else "does not accept"
        notes.append(f"the policy {report.policy} {verb} it (accept.losses, '{row.loss}')")
    for count, line in enumerate(row.remedy):
        label = "" if count else "to do: " if _refuses(row, report) else "better: "
        notes.append(label + line)
    for note in notes:
        if note.startswith(VERBATIM):
            shown.append(f"{indent}{note}")
        else:
            shown += textwrap.wrap(
                note, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
            )
    return shown


def _refuses(row: Row, report: Report) -> bool:
    return row.name in [each.name for each in report.refusing()]


def values(report: Report) -> dict[str, Any]:
    """The report as the object that --json prints."""
    return {
        "runs": not report.refusing(),
        "exit": report.code,
        "policy": report.policy,
        "accepted": list(report.accepted),
        "refusing": [row.name for row in report.refusing()],
        "checks": [{**row._asdict(), "remedy": list(row.remedy)} for row in report.rows],
        "probes": [{"name": name, "held": held, "met": met} for name, held, met in report.probes],
    }
