"""Held changes: how long a list, a summary and an apply of many of them take, beside git and cp on the same.

Rule: one change is the same everywhere: of the files of a repository nineteen in twenty are written to, and
one is deleted and another one added. A number is for each 1,000 files, so that many can be compared with few:
a ratio of 1.0 is linear. An apply uses its session up, so each round makes its own from a copy of the same
repository, and neither the copy nor the run is timed.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from candidates import Account
from rounds import Row, rows

FEW, MANY = 5_000, 50_000
PER = 1_000
UNIT = f"ms/{PER:,}"
MAKE = """
import os, sys
for number in range(int(sys.argv[1])):
    folder = f"files/{number // 50:04}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{number:05}.txt", "w") as file:
        file.write(f"{number}\\n" + "a line of this file, as long as a line of a program\\n" * 20)
"""
CHANGE = """
import os, sys
changed = 0
for folder, folders, names in os.walk("files"):
    for name in names:
        number = int(name[:-4])
        path = os.path.join(folder, name)
        if number % 20 == 19:
            os.unlink(path)
            path += ".new"
        with open(path, "a") as file:
            file.write("one more line\\n")
        changed += 1
assert changed == int(sys.argv[1]), changed
"""
GIT = "git -c gc.auto=0 -c user.name=bench -c user.email=bench@localhost"


class Ground(NamedTuple):
    """Where `count` files are changed: `folder` is laid anew from the repository `origin` each time, both in
    `place`, which is not there yet.
    """

    account: Account
    jail: str
    python: str
    place: Path
    count: int

    @property
    def origin(self) -> Path:
        """The repository before the change."""
        return self.place / "origin"

    @property
    def folder(self) -> Path:
        """The copy of it that is changed."""
        return self.place / "work"

    def make(self) -> None:
        """The repository, packed, so that its copies are of the files and little else."""
        self._call(["/bin/mkdir", "-p", str(self.origin)], self.place.parent)
        self._call([self.python, "-I", "-S", "-c", MAKE, str(self.count)], self.origin)
        self._do(f"git init -q && git add . && {GIT} commit -q -m all && git gc -q", self.origin)

    def lay(self) -> None:
        """`folder` as the repository is."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._do(f"exec cp -a {self.origin} {self.folder}", self.origin)

    def change(self, *prefix: str) -> None:
        """Change the files, by `prefix` in a jail."""
        self._call([*prefix, self.python, "-I", "-S", "-c", CHANGE, str(self.count)], self.folder)

    def timed(self, *command: str) -> float:
        """Milliseconds of a command for each PER files."""
        start = time.perf_counter()
        self._call([*command], self.folder)
        return (time.perf_counter() - start) * 1e3 * PER / self.count

    def _do(self, text: str, folder: Path) -> None:
        self._call(["/bin/sh", "-ec", text], folder)

    def _call(self, command: list[str], folder: Path) -> None:
        if self.account.output(command, str(folder)) is None:
            raise SystemExit(f"{' '.join(command[:4])} failed")


LIST, DIFF, APPLY = "list of changes", "diff of changes", "apply of changes"
ASKED = {LIST: ("changes", "last"), DIFF: ("changes", "last", "--diff"), APPLY: ("apply", "last")}
OTHERS = {LIST: "git add -A && git diff --stat", DIFF: "git diff", APPLY: "cp -a"}


def of_jail(ground: Ground) -> dict[str, float]:
    """Measure → number of one round; the apply is the last of them."""
    ground.lay()
    ground.change(ground.jail, "run", "--hold", "--")
    return {measure: ground.timed(ground.jail, *words) for measure, words in ASKED.items()}


def of_others(ground: Ground) -> dict[str, float]:
    """The same change made outside: a copy of the files, then git's list and diff of them."""
    ground.lay()
    ground.change()
    copy = f"{ground.folder}-copied"
    found = {
        APPLY: ground.timed("/bin/cp", "-a", "files", copy),
        LIST: ground.timed("/bin/sh", "-ec", "git add -A && git diff --cached --stat"),
        DIFF: ground.timed("git", "diff", "--cached"),
    }
    shutil.rmtree(copy)
    return found


def measured(few: Ground, many: Ground, count: int) -> Iterator[Row]:
    """Every measure of `count` rounds: the many beside the few, then beside git and cp."""
    names = [f"jail, {ground.count:,} files" for ground in (few, many)]
    for ground in (few, many):
        ground.make()
    trials = {names[0]: (of_jail, few), names[1]: (of_jail, many), "others": (of_others, many)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in trials}
    for number in range(count):
        turn = number % len(trials)
        order = [*trials][turn:] + [*trials][:turn]
        for name in order:
            trial, ground = trials[name]
            found[name].append(trial(ground))
    for measure, other in OTHERS.items():
        numbers = {name: [each[measure] for each in each_round] for name, each_round in found.items()}
        numbers[other] = numbers.pop("others")
        yield from rows(f"{measure}, for a file", {name: numbers[name] for name in names}, names[0], UNIT)
        yield from rows(
            f"{measure}, {many.count:,} files", {n: numbers[n] for n in (other, names[1])}, other, UNIT
        )
