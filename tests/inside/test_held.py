"""A held workspace: a day's work inside, the host's tree untouched by it, and equal to it after `jail apply`.

Issue 4, Must show 1. Two trees are compared as what somebody finds who walks them: inside at the end of the
run, and on the host before, meanwhile and after. One workspace, one long run; what is small has its own.
"""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jail.hold.change import REFUSED
from support.decided import changes, ok
from support.installed import Installed
from support.work import ROOT_ONCE, SYSTEM_PYTHON, Ground, Said, make_ground, row

Row = Mapping[str, Said]
Tree = dict[str, list[Any]]

LOOK = r"""
import hashlib, json, os, stat
found = {}
def look(folder, below):
    for entry in os.scandir(folder):
        name = f"{below}{os.fsdecode(entry.name)}"
        status = entry.stat(follow_symlinks=False)
        kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode) & 0o775
        if kind == stat.S_IFLNK:
            found[name] = ["link", os.readlink(entry.path)]
        elif kind == stat.S_IFDIR:
            found[name] = ["folder", mode]
            look(entry.path, f"{name}/")
        else:
            digest = hashlib.sha256(open(entry.path, "rb").read()).hexdigest() if kind == stat.S_IFREG else ""
            found[name] = [kind, mode, status.st_size, status.st_mtime_ns, digest]
look(".", "")
print(json.dumps(found))
"""
"""What somebody sees who walks the tree: names, kinds, permission bits, targets, content, times of files."""

BITS = r"""
import hashlib, json, os, stat
found = {}
for folder, folders, files in os.walk("."):
    for name in (".", *folders, *files):
        path = os.path.join(folder, name)
        status = os.lstat(path)
        content = open(path, "rb").read() if stat.S_ISREG(status.st_mode) else b""
        found[path] = [*status[:7], status.st_mtime_ns, status.st_ctime_ns, hashlib.sha256(content).hexdigest()]
print(json.dumps(found))
"""
"""Every bit of a tree but the time of the last reading: inodes, owners, numbers of links, times of folders."""

DAY = row(f"""
commit:
    echo two >> a.txt
    git commit -qam second
    git status --porcelain
clone:
    git clone -q . copy
    git -C copy log -1 --format=%s
rebase:
    git switch -q feature
    git rebase -q main
    git log --format=%s -2
gc:
    git gc -q --prune=now
    git fsck --strict
    git count-objects
pip:
    {SYSTEM_PYTHON} -m venv .venv
    .venv/bin/pip install -q --no-index --no-compile --find-links . greeting
    .venv/bin/greet
npm:
    npm install --offline --no-audit --no-fund --silent ./greeting-1.0.0.tgz
    npx --offline greet
    node -p 'require("greeting").word'
make:
    make -s
    ./program
    touch -d '1 hour ago' program.c
    make -s -q
sqlite:
    {SYSTEM_PYTHON} database.py
files:
    chmod 700 tools/run.sh
    touch -d 2001-02-03T04:05:06.789012345Z tools/old.txt
    ln tools/run.sh tools/linked.sh
    ln -s ../a.txt tools/link
    mv tools/moved.txt moved.txt
    mv folder elsewhere
    rm -r gone
    rm again/one
    rmdir again
    mkdir again
    echo anew > again/two
    rm turned
    mkdir -p turned/into/folders
    rm -r folded
    echo file > folded
    truncate -s 64M sparse
    printf end >> sparse
    printf x > "$(printf 'not \\377 text')"
    printf x > 'a space, an ä'
    mkdir empty
    chmod 750 empty
""")
"""What it did to the files is not in any answer: the tree is looked at as a whole."""

DATABASE = r"""
import os, sqlite3
work = sqlite3.connect("work.db")
print(work.execute("pragma journal_mode").fetchone())
with work:
    work.executemany("insert into t values (?)", [(number,) for number in range(1000)])
other = sqlite3.connect("work.db")
print(other.execute("select count(*) from t").fetchone(), sorted(name for name in os.listdir() if "work.db" in name))
os._exit(0)  # as a program that was killed: the log stays beside the file
"""
TABLE = r"""
import sqlite3
made = sqlite3.connect("work.db")
made.execute("pragma journal_mode=wal")
made.execute("create table t (a)")
made.close()
"""
MAKEFILE = "program: program.o\n\t$(CC) -o $@ $^\nprogram.o: program.c\n\t$(CC) -c $<\n"
PROGRAM_C = '#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n'
METADATA = "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PACKAGE = '{"name": "greeting", "version": "1.0.0", "main": "main.js", "bin": {"greet": "greet.js"}}'


def _wheel(folder: Path) -> None:
    """A package of Python with one command."""
    info = "greeting-1.0.dist-info"
    files = {
        "greeting.py": "def main() -> None:\n    print('hello from pip')\n",
        f"{info}/METADATA": METADATA,
        f"{info}/WHEEL": WHEEL,
        f"{info}/entry_points.txt": "[console_scripts]\ngreet = greeting:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def _tarball(folder: Path) -> None:
    """A package of node with one command."""
    files = {
        "package.json": PACKAGE,
        "main.js": "exports.word = 'required'\n",
        "greet.js": "#!/usr/bin/env node\nconsole.log('hello from npm')\n",
    }
    with tarfile.open(folder / "greeting-1.0.0.tgz", "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))


COUNT = "import sqlite3; print(*sqlite3.connect('work.db').execute('select count(*) from t').fetchone())"

LAID = {
    "a.txt": "one\n",
    "tools/run.sh": "#!/bin/sh\n",
    "tools/old.txt": "old\n",
    "tools/moved.txt": "moved\n",
    "folder/deep/er/file": "deep\n",
    "gone/one": "gone\n",
    "gone/more/two": "gone too\n",
    "again/one": "first\n",
    "turned": "a file\n",
    "folded/into": "a folder\n",
    "Makefile": MAKEFILE,
    "program.c": PROGRAM_C,
    "database.py": DATABASE,
    ".gitignore": "*\n!a.txt\n!f.txt\n",
}


def _lay(ground: Ground) -> None:
    """A repository with two branches, and all that the day works on."""
    for name, text in LAID.items():
        (ground.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (ground.workspace / name).write_text(text)
    _wheel(ground.workspace)
    _tarball(ground.workspace)
    ground.hand_over()
    ground.host(SYSTEM_PYTHON, "-c", TABLE)
    ground.git("init", "-q")
    ground.git("add", "a.txt")
    ground.git("commit", "-qm", "first")
    ground.git("switch", "-qc", "feature")
    (ground.workspace / "f.txt").write_text("feature\n")
    ground.hand_over()
    ground.git("add", "f.txt")
    ground.git("commit", "-qm", "feature")
    ground.git("switch", "-q", "main")


def _seen(ground: Ground, program: str = LOOK) -> Tree:
    found: Tree = json.loads(ground.host(SYSTEM_PYTHON, "-I", "-c", program))
    return found


class Day(NamedTuple):
    """The day in one held workspace: what was said, and what the tree was on each side at each time."""

    ground: Ground
    said: Row
    before: Tree
    meanwhile: Tree
    inside: Tree


@pytest.fixture(scope="module", params=ROOT_ONCE)
def day(request: pytest.FixtureRequest, installed: Installed, open_folder: Path) -> Day:
    ground = make_ground(request.param, installed, open_folder / "held")
    _lay(ground)
    before = _seen(ground, BITS)
    said = ground.work({**DAY, "look": f"{SYSTEM_PYTHON} -I - <<'END'\n{LOOK}END\n"}, options=["--hold"])
    return Day(ground, said, before, _seen(ground, BITS), json.loads(said["look"].text))


@pytest.mark.parametrize("name", DAY)
def test_a_days_work_succeeds_in_a_held_workspace(day: Day, name: str) -> None:
    assert day.said[name].code == 0, day.said[name].text


def test_the_hosts_tree_is_bit_for_bit_what_it_was_until_apply(day: Day) -> None:
    assert day.meanwhile == day.before
    assert len(day.inside) > len(day.before), "what was made inside was seen there"


class Applied(NamedTuple):
    """`left` after the first apply: path → change; `after`: the host's tree after the second one."""

    left: dict[str, Any]
    after: Tree


@pytest.fixture(scope="module")
def applied(day: Day) -> Applied:
    """All of it: first what needs no name, then what was refused, by name."""
    jail = day.ground.jail
    done = jail.call("apply", "last")
    assert done.returncode == 1, done.stdout + done.stderr
    left = changes(jail)
    ok(jail, "apply", "last", *left)
    return Applied(left, _seen(day.ground))


def test_what_runs_by_itself_waits_for_its_name(applied: Applied) -> None:
    assert {change["tier"] for change in applied.left.values()} == {REFUSED}
    assert ".venv/pyvenv.cfg" in applied.left
    assert ".venv/bin/activate" in applied.left


def test_after_apply_the_hosts_tree_is_what_was_seen_inside(day: Day, applied: Applied) -> None:
    different = {
        name: (day.inside.get(name), applied.after.get(name))
        for name in {*day.inside, *applied.after}
        if day.inside.get(name) != applied.after.get(name)
    }
    assert different == {}


def test_nothing_is_left_to_apply(day: Day, applied: Applied) -> None:
    assert changes(day.ground.jail) == {}


def test_what_was_made_inside_works_on_the_host(day: Day, applied: Applied) -> None:
    ground = day.ground
    assert ground.git("fsck", "--strict") == ""
    assert ground.git("status", "--porcelain") == ""
    assert ground.git("log", "-1", "--format=%s by %an") == "feature by Host\n"
    assert ground.host(".venv/bin/greet") == "hello from pip\n"
    assert ground.host("node_modules/.bin/greet") == "hello from npm\n"
    assert ground.host("./program") == "made\n"
    assert ground.host(SYSTEM_PYTHON, "-c", COUNT) == "1000\n"


def test_holes_stay_holes_and_everything_is_the_owners(day: Day, applied: Applied) -> None:
    sparse = (day.ground.workspace / "sparse").stat()
    assert (sparse.st_size, sparse.st_blocks * 512 < 1 << 20) == ((64 << 20) + 3, True)
    assert all(
        map(day.ground.made_by_owner, ("sparse", "a.txt", ".git/HEAD", ".venv", "moved.txt", "tools/link"))
    )
