"""Speed, side by side in one run: jail against the bare machine and the other sandboxes that are installed.

start     `true`, in an empty folder and in a repository, against a bare `python3 -I -S -c pass`
work      fork + exec, stat, git status, gcc, pytest: timed inside, against the same outside
parallel  1, 8, 32 starts of `true` at once; memory of a session
hold      a held workspace: starts, the same work, then 50,000 changed files listed, shown, applied
all       the four

Machines are noisy and differ: the ratios are what is to be read. Started by root, the candidates run as an
unprivileged uid (or that of --user: firejail wants an account), and the memory of processes that are
closed to their own user can be seen; anybody else runs them as himself, and gets no memory.
"""

import argparse
import functools
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import held
import loads
import parallel
import table
from candidates import JAIL, OUTSIDE, PLAIN, Account, candidates, interpreter, that_run
from rounds import Row, in_turns, rows

ROUNDS = {"start": 60, "work": 15, "parallel": 15, "hold": 5}
BARE = "bare python3"
HELD = "jail --hold"
FOLDERS = {"an empty folder": "empty", "a repository of 5,000 files": "workspace"}
"""Where starts are measured → the field of Bench."""


class Bench(NamedTuple):
    """What every measure needs: `workspace` is full of files, `empty` is not; in `ground` more are made."""

    account: Account
    workspace: str
    empty: str
    ground: str
    python: str
    found: dict[str, list[str]]


def of_start(bench: Bench, count: int) -> Iterator[Row]:
    """`true` in each candidate."""
    for name, folder in FOLDERS.items():
        trials = _starts(bench, getattr(bench, folder), 1)
        yield from rows(f"start of `true` in {name}", in_turns(trials, count), BARE)


def of_work(bench: Bench, count: int) -> Iterator[Row]:
    """Each load in each candidate, once before the rounds to warm what can be warm."""
    yield from _of_loads(bench, bench.found, count)


def of_parallel(bench: Bench, count: int) -> Iterator[Row]:
    """Starts at once, then memory."""
    for at_once in parallel.AT_ONCE:
        yield from rows(f"{at_once} at once", in_turns(_starts(bench, bench.empty, at_once), count), BARE)
    if os.geteuid() != 0:
        sys.stderr.write("memory: only root can see it; left out\n")
        return
    for at_once in parallel.AT_ONCE:
        sums = {
            name: [parallel.memory(bench.account, prefix, bench.workspace, at_once) for _ in range(3)]
            for name, prefix in bench.found.items()
            if prefix
        }
        for number, kind in enumerate(("proportional", "private")):
            numbers = {name: [each[number] for each in found] for name, found in sums.items()}
            yield from rows(f"{kind} memory of each of {at_once}", numbers, JAIL, "MiB")


def of_hold(bench: Bench, count: int) -> Iterator[Row]:
    """A held workspace beside a written one, then what it holds beside git and cp."""
    written = bench.found[JAIL]
    candidates = {JAIL: written, HELD: [*written[:-1], "--hold", "--"]}
    for name, folder in FOLDERS.items():
        trials = _starts(bench._replace(found=candidates), getattr(bench, folder), 1)
        del trials[BARE]
        yield from rows(f"start of `true` in {name}", in_turns(trials, count), JAIL)
    yield from _of_loads(bench, {OUTSIDE: [], **candidates}, count)
    grounds = [
        held.Ground(bench.account, written[0], bench.python, Path(bench.ground, str(files)), files)
        for files in (held.FEW, held.MANY)
    ]
    yield from held.measured(*grounds, count)


MEASURES: dict[str, Callable[[Bench, int], Iterator[Row]]] = {
    "start": of_start,
    "work": of_work,
    "parallel": of_parallel,
    "hold": of_hold,
}


def _of_loads(bench: Bench, found: dict[str, list[str]], count: int) -> Iterator[Row]:
    for load in loads.loads(Path(bench.workspace)):
        trials = {name: _timed(bench, [*prefix, "./work", *load.arguments]) for name, prefix in found.items()}
        in_turns(trials, 1)
        yield from rows(load.name, in_turns(trials, count), OUTSIDE)


def _starts(bench: Bench, folder: str, at_once: int) -> dict[str, Callable[[], float]]:
    commands = {BARE: [bench.python, "-I", "-S", "-c", "pass"]}
    commands |= {name: [*prefix, "true"] for name, prefix in bench.found.items() if prefix}
    return {
        name: functools.partial(parallel.starts, bench.account, command, folder, at_once)
        for name, command in commands.items()
    }


def _timed(bench: Bench, command: list[str]) -> Callable[[], float]:
    def trial() -> float:
        said = bench.account.output(command, bench.workspace)
        if said is None:
            raise SystemExit(f"{' '.join(command)} failed")
        return int(said.split()[-1]) / 1e6

    return trial


@contextmanager
def _prepared(binaries: str, user: str) -> Iterator[Bench]:
    """Workspaces and a home of their own, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="jail-bench-") as folder:
        names = ("workspace", "empty", "ground", "home")
        workspace, empty, ground, home = (Path(folder, name) for name in names)
        for each in (workspace, empty, ground, home):
            each.mkdir()
        python = interpreter(binaries)
        loads.make(workspace, python)
        account = Account(-1, -1, str(home), "bench")
        if os.geteuid() == 0:
            entry = pwd.getpwnam(user) if user else None
            uid, gid = (entry.pw_uid, entry.pw_gid) if entry else (PLAIN, PLAIN)
            account = Account(uid, gid, str(home), user or "bench")
            subprocess.run(["/bin/chown", "-Rh", f"{uid}:{gid}", folder], check=True)
        found = candidates(binaries, str(workspace))
        running = that_run(found, account, str(workspace))
        sys.stderr.writelines(f"{name}: does not run here, left out\n" for name in {*found} - {*running})
        yield Bench(account, str(workspace), str(empty), str(ground), python, running)


def main(arguments: list[str]) -> int:
    """Measure and print; 2 for a wrong command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="a list of objects instead of a table")
    parser.add_argument("--user", default="", metavar="NAME", help="started by root: who is measured")
    parser.add_argument("what", choices=[*MEASURES, "all"])
    parser.add_argument(
        "rounds", nargs="?", type=int, default=0, help="default: 60 starts, 5 of hold, 15 of the others"
    )
    asked = parser.parse_args(arguments[1:])
    if asked.rounds == 1:
        parser.error("one round has no quartiles: a single time is never shown")
    made: list[Row] = []
    with _prepared(arguments[0], asked.user) as bench:
        for name in MEASURES if asked.what == "all" else [asked.what]:
            made += MEASURES[name](bench, asked.rounds or ROUNDS[name])
    print(table.as_json(made) if asked.json else table.markdown(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
