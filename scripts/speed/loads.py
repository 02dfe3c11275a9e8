"""What is measured: a workspace with files, a repository, C and tests, and the commands that work on it.

Rule: the work is done by programs of the host, in the workspace, and timed inside by work.c; everything is
made once, before the first round, by the account that runs it.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FILES = 5000
FILES_IN_A_FOLDER = 50
TEST_FILES = 20
TESTS_IN_A_FILE = 10

PYTEST = ".venv/bin/python -m pytest -q --basetemp=made".split()
"""With its folders in the workspace: /tmp is in memory inside, and on a disk outside."""

SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) { if (argc > 1) puts(strrchr(argv[0], '/')); return atoi(argv[argc - 1]); }
"""
TEST = """import json
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_{name}(number, tmp_path):
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(list(range(number))))
    assert json.loads(file.read_text()) == list(range(number))
"""


class Load(NamedTuple):
    """One kind of work: `arguments` are those of the program work."""

    name: str
    arguments: list[str]


def loads(workspace: Path) -> list[Load]:
    """All kinds, in the order of the table."""
    names = [str(path.relative_to(workspace)) for path in sorted((workspace / "tree").rglob("*.txt"))[:100]]
    return [
        Load("2,000 fork + exec", ["fork", "2000"]),
        Load("200,000 stat", ["stat", "200000", *names]),
        Load("git status, 5,000 files", ["run", "10", "git", "status"]),
        Load("50 compiles (gcc -c)", ["run", "50", "gcc", "-c", "-O1", "small.c", "-o", "small.o"]),
        Load("pytest, 200 tests", ["run", "1", *PYTEST, "suite"]),
    ]


def make(workspace: Path, python: str) -> None:
    """Fill `workspace`; raises CalledProcessError where git or gcc is missing or fails."""
    for number in range(FILES):
        folder = workspace / "tree" / f"{number // FILES_IN_A_FOLDER:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04}.txt").write_text(f"{number}\n", encoding="ascii")
    (workspace / "small.c").write_text(SOURCE, encoding="ascii")
    (workspace / ".gitignore").write_text(".venv/\n__pycache__/\nsmall.o\nwork\nmade/\n", encoding="ascii")
    suite = workspace / "suite"
    suite.mkdir()
    for number in range(TEST_FILES):
        text = TEST.format(count=TESTS_IN_A_FILE, name=f"{number:02}")
        (suite / f"test_{number:02}.py").write_text(text, encoding="ascii")
    here = Path(__file__).parent
    _run(workspace, "gcc", "-O2", "-o", "work", str(here / "work.c"))
    _give_pytest(workspace / ".venv", python)
    _run(workspace, "git", "init", "-q")
    _run(workspace, "git", "add", ".")
    person = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")
    _run(workspace, "git", *person, "commit", "-q", "-m", "all")


def _run(workspace: Path, *command: str) -> None:
    environment = {"PATH": os.defpath, "HOME": str(workspace), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(command, cwd=workspace, env=environment, check=True)


def _give_pytest(folder: Path, python: str) -> None:
    """A virtual environment with a copy of the pytest that runs jail's own tests: nothing is downloaded."""
    _run(folder.parent, python, "-I", "-m", "venv", "--without-pip", str(folder))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for file in importlib.metadata.files(name) or ():
            if not str(file).startswith("..") and file.suffix != ".pyc":
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
