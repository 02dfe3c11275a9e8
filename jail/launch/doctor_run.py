"""The real thing for the doctor: `true` behind every wall, by the same function as `jail run`.

Rule: it runs in a child of the doctor, on /dev/null, with a session that is thrown away; what it found is
returned as plain values, whether the run was good or not. The probes are read from the ledger, as anybody
would. Imported apart from the rest of the doctor, since it needs every library.
"""

import os
from collections.abc import Mapping
from typing import Final

from jail.errors import JailError
from jail.launch import start
from jail.ledger import reader
from jail.ledger.writer import LEDGER

COMMAND: Final = ("true",)
Probes = tuple[tuple[str, bool, str], ...]
Found = tuple[Probes, tuple[tuple[str, str, str], ...], tuple[str, str, str] | None]
"""Probes, losses of the plan, and what went wrong, as in doctor_facts.Whole."""


def run(environ: Mapping[str, str], policy: str | None, workspace: str) -> Found:
    """Be one run in `workspace`; the calling process must have no other purpose and be about to end."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.chdir(workspace)
    os.environ.clear()
    os.environ.update(environ)
    options = start.Options(policy=policy)
    losses: tuple[tuple[str, str, str], ...] = ()
    state = ""
    problem: tuple[str, str, str] | None = None
    try:
        prepared = start.prepare(options, COMMAND, os.environ)
        state = prepared.own.state
        losses = tuple((loss.name, loss.what, loss.remedy) for loss in prepared.plan.losses)
        code = start.run(options, COMMAND)
        if code:
            problem = f"`true` ended with {code}", "", ""
    except JailError as error:
        problem = error.message, error.where, error.hint
    return _probes(state), losses, problem


def _probes(state: str) -> Probes:
    """The probes that the one session in `state` has in its ledger; none when it was not opened."""
    found: list[tuple[str, bool, str]] = []
    for folder, _, names in os.walk(state):
        if LEDGER in names:
            for entry in reader.read(folder):
                if entry.kind == "probes":
                    results = entry.fields["results"]
                    found += [(str(name), bool(held), str(met)) for name, (held, met) in results.items()]
    return tuple(found)
