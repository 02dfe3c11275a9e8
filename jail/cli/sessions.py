"""`jail sessions`: what ran and what runs.

Rule: a list to look at, fast however long the ledgers are; it reads the first and the last entry of each and
proves nothing.
"""

import os
import time
from typing import Any, Final

import click

from jail.cli.show import json_option, moment, show, show_json
from jail.errors import JailError, printable
from jail.hold import waiting
from jail.launch import reach, usage
from jail.ledger import place
from jail.ledger.beside import sessions_named
from jail.ledger.reader import glance
from jail.policy.amounts import measured_duration, measured_size
from jail.report.words import command_text

COMMAND_WIDTH: Final = 60
"""Characters of a command in the list; --json has all of it."""
_TITLES: Final = ("SESSION", "STARTED (UTC)", "AGE", "STATE", "CPU", "MEMORY", "HELD", "COMMAND", "WORKSPACE")


@click.command(name="sessions")
@json_option
def command(*, as_json: bool) -> None:
    """List the sessions of this user, newest first.

    STATE is `running`, `ended N` with the exit code N, or `crashed`: neither running nor ended. `jail verify
    SESSION` tells whether the record of one can be believed.

    CPU and MEMORY of a running session are those of all its processes, jail's own among them: processor time
    so far, and the memory that is theirs alone plus their part of what they share (PSS). Those of one that
    has ended are of what ran inside: all its processor time, and the most memory of its largest process, or
    of all together where it had a control group. HELD is `yes` where changes wait in the session.

    \b
    Exit code:
      0    the list is printed, also when it is empty
      2    the command line is wrong
      125  the folder of sessions cannot be used
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    state = reach.state_of(os.environ)
    named = sessions_named(state)  # first: what starts meanwhile is not missing
    names = place.listing(state)
    found = [row(os.path.join(state, place.SESSIONS, name)) for name in names]
    kept = set(names)
    gone = [row_of_gone(*pair) for pair in named.items() if pair[0] not in kept]
    if as_json:
        show_json([*found, *reversed(gone)])
        return
    for line in [*as_lines(found, time.time()), *_about_gone(gone)] or [_NONE]:
        show(line)


_NONE: Final = "no sessions yet: `jail run -- COMMAND` makes one"
_LATEST: Final = 3
"""How many of the sessions that are gone are named, the latest."""


def _about_gone(gone: list[dict[str, Any]]) -> list[str]:
    said = {"removed": "removed by `jail gc`", "missing": "whose folder is missing, and not by `jail gc`"}
    names = {state: [each["session"] for each in gone if each["state"] == state] for state in said}
    return [
        f"{len(names[state])} more ran, {what}: {', '.join(names[state][-_LATEST:])}"
        for state, what in said.items()
        if names[state]
    ]


def row(folder: str) -> dict[str, Any]:
    """One session as the object that --json prints; what cannot be read is None."""
    running = place.running(folder)
    start, end = glance(folder)
    fields = {} if start is None else start.fields
    used = usage.of_session(folder, fields.get("pid")) if running else None
    past = {} if end is None else end.fields
    return {
        "session": os.path.basename(folder),
        "started": None if start is None else start.time,
        "removed": None,
        "state": "running" if running else "crashed" if end is None else "ended",
        "exit": past.get("exit"),
        "reason": past.get("reason"),
        "processes": None if used is None else used.processes,
        "cpu_s": _number(past.get("cpu_s")) if used is None else round(used.cpu, 2),
        "memory_bytes": _number(past.get("peak_bytes")) if used is None else used.memory,
        "held": _held(folder),
        "command": fields.get("command"),
        "workspace": fields.get("workspace"),
    }


def row_of_gone(name: str, removed: float) -> dict[str, Any]:
    """The same for a session that only the index of sessions knows; `removed` as beside.sessions_named."""
    unknown = dict.fromkeys(_FIELDS)
    state = "removed" if removed else "missing"
    return {**unknown, "session": name, "state": state, "removed": removed or None}


_FIELDS: Final = (
    "session started state removed exit reason processes cpu_s memory_bytes held command workspace".split()
)


def _held(folder: str) -> bool | None:
    """Whether it may hold changes that wait; None where that cannot be read."""
    try:
        return waiting.waits(folder)
    except (JailError, OSError):
        return None


def _number(value: object) -> float | None:
    """A figure of a ledger, which may have been edited."""
    return value if isinstance(value, int | float) and 0 <= value < 1 << 63 else None


def as_lines(rows: list[dict[str, Any]], now: float) -> list[str]:
    """The rows as a table; `now` is seconds since the epoch."""
    if not rows:
        return []
    # Escaped before the columns are measured, since an escape is longer than what it stands for.
    table = [_TITLES, *(tuple(map(printable, _cells(found, now))) for found in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_TITLES) - 1)]
    return ["  ".join([*map(str.ljust, line, widths), line[-1]]) for line in table]


def _cells(found: dict[str, Any], now: float) -> tuple[str, ...]:
    started = found["started"]
    state = found["state"] if found["state"] != "ended" else f"ended {found['exit']}"
    text = "?" if found["command"] is None else command_text(found["command"])
    if len(text) > COMMAND_WIDTH:
        text = text[: COMMAND_WIDTH - 1] + "…"
    known = started is not None
    return (
        found["session"],
        moment(started) if known else "?",
        measured_duration(now - started) if known else "?",
        state,
        "" if found["cpu_s"] is None else measured_duration(found["cpu_s"]),
        "" if found["memory_bytes"] is None else measured_size(int(found["memory_bytes"])),
        {True: "yes", None: "?"}.get(found["held"], ""),
        text,
        "?" if found["workspace"] is None else str(found["workspace"]),
    )
