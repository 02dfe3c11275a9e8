"""System calls that fail: strace around the installed command lets the kernel refuse one call of one run.

Rule: which calls a launch makes is read from a run that nothing disturbs, never written down here, so that a
new call is tested by itself. strace counts the calls of each process apart (`when=N` is the Nth of every
process), so a process can only be made to fail at a number that it reaches before the others; `points` gives
those, and what lies behind them is left to refusing.py. That order differs between runs where two processes
race: what a fault did is therefore judged by the log of the run that had it.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from support.jails import Jail, survivors

STRACE = "/usr/bin/strace"
PATIENCE = 60
"""Seconds until a run counts as hung; the slowest takes one."""
GO = re.compile(r'write\(\d+, "g", 1')
"""The supervisor lets the command's exec happen (jail/launch/supervise.py)."""


class Call(NamedTuple):
    """The Nth call of `name` by a process, as strace printed it, result included."""

    process: int
    name: str
    number: int
    text: str


class Ended(NamedTuple):
    """A run that ended, or that was killed because it hung."""

    code: int
    output: str
    errors: str
    hung: bool


def run(jail: Jail, mark: str, command: Sequence[str]) -> Ended:
    """Run a command whose processes all have `mark` in their command line; one that hangs is killed with all
    of them.
    """
    process = subprocess.Popen(
        command,
        cwd=jail.workspace,
        env=dict(jail.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    hung = False
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        hung = True
        kill_marked(mark)
        output, errors = process.communicate()
    return Ended(process.returncode, output, errors, hung)


def kill_marked(mark: str) -> None:
    """Kill every process of a run of this test."""
    for pid in survivors(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def traced(jail: Jail, mark: str, log: Path, arguments: Sequence[str], *options: str) -> Ended:
    """`jail ARGUMENTS` under strace, which follows every process and ends with the last of them."""
    command = [STRACE, "-f", "-qq", "-s", "64", "-o", str(log), *options]
    return run(jail, mark, [*command, str(jail.installed.command), *arguments])


def injection(name: str, number: int, what: str) -> tuple[str, ...]:
    """The options by which the Nth call of `name` of each process meets `what`: error=ERRNO or signal=NAME.

    For an error, only that call and what `injected` looks for stop a process, which makes a run three times
    as fast; not where the filter that does this, and the no_new_privs that it needs, would do jail's own work
    for it. A signal is not delivered at such a stop.
    """
    few = what.startswith("error") and name not in ("prctl", "seccomp", "socket")
    options = ("-e", f"trace=execve,write,{name}", "--seccomp-bpf") if few else ()
    return *options, "-e", f"inject={name}:{what}:when={number}"


def calls(log: Path) -> list[Call]:
    """What `strace -f -o LOG` wrote, in the order in which the calls began."""
    found: list[Call] = []
    counts: dict[tuple[int, str], int] = {}
    begun: dict[int, int] = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        match = re.match(r"(\d+) +(<\.\.\. )?([a-z_0-9]+)(?:\((.*)| resumed>(.*))", line)
        if match is None:
            continue
        process, name = int(match[1]), match[3]
        if match[2]:
            at = begun.pop(process)
            found[at] = found[at]._replace(text=found[at].text + (match[5] or ""))
            continue
        counts[process, name] = counts.get((process, name), 0) + 1
        begun[process] = len(found)
        found.append(Call(process, name, counts[process, name], f"{name}({match[4]}"))
    return found


def of_the_launch(trace: Sequence[Call]) -> set[Call]:
    """The calls that jail makes from its survey on: not those of the interpreter's start, nor of the command
    after exec.
    """
    first = trace[0].process
    survey = next(at for at, call in enumerate(trace) if call.name == "openat2")
    executed = {call.process: at for at, call in enumerate(trace) if call.name == "execve"}
    return {
        call
        for at, call in enumerate(trace)
        if (at >= survey if call.process == first else at < executed.get(call.process, len(trace)))
    }


def points(trace: Iterable[Call], name: str, wanted: set[Call]) -> list[Call]:
    """First, middle and last call of `name` by each process, of those in `wanted` whose number this process
    is the first to reach.
    """
    reached: set[int] = set()
    own: dict[int, list[Call]] = {}
    for call in trace:
        if call.name == name and call.number not in reached:
            reached.add(call.number)
            if call in wanted:
                own.setdefault(call.process, []).append(call)
    chosen = [(found[0], found[len(found) // 2], found[-1]) for found in own.values()]
    return list(dict.fromkeys(call for three in chosen for call in three))


class Injected(NamedTuple):
    """What a log says of its fault: the calls that failed, whether the first was before the command's exec,
    and whether one was the supervisor's.
    """

    calls: tuple[str, ...]
    before_exec: bool
    of_the_supervisor: bool


def injected(log: Path) -> Injected:
    """The calls of one run that were made to fail."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    failed = [at for at, line in enumerate(lines) if "(INJECTED)" in line]
    go = next((at for at, line in enumerate(lines) if GO.search(line)), len(lines))
    supervisor = lines[0].split(" ", 1)[0]
    mine = any(lines[at].startswith(f"{supervisor} ") for at in failed)
    return Injected(tuple(lines[at] for at in failed), bool(failed) and failed[0] <= go, mine)
