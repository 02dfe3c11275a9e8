"""What the launch path imports, by name: `jail run -- true` must feel like nothing (DESIGN.md, Launch path).

Measured with `-X importtime`, which names every import of every process that is forked from the first, on the
second run: the first fills the caches of policy and filter, as every user's first does.
"""

import os
import subprocess
from pathlib import Path

import pytest

from support.installed import Installed

LISTED = {
    "os": "files, processes; frozen into the interpreter, as are stat and posixpath that it brings",
    "ctypes": "system calls that neither os nor prctl has",
    "_prctl": "prctl(2); python-prctl's module in C, without the Python around it",
    "_json": "the encoder in C for the ledger's lines",
    "_socket": "netlink and SCM_RIGHTS; socket itself builds enums of all its constants",
    "_sha2": "digests, from Python 3.12 on; hashlib would load OpenSSL",
    "_sha256": "digests, before Python 3.12",
    "array": "file descriptors in SCM_RIGHTS",
    "errno": "names of what the kernel answers",
    "fcntl": "locks",
    "gc": "off while nothing can be garbage; part of the interpreter",
    "marshal": "the caches of policy and filter",
    "pwd": "the account's name and home",
    "resource": "limits",
    "select": "the relay",
    "_signal": "signals; signal itself builds enums of them",
    "struct": "kernel structures",
    "termios": "the terminal",
    "time": "the ledger's clock",
    "unicodedata": "protected names as a file system that folds case sees them",
    "encodings.ascii": "lines of the ledger are ASCII",
}
"""What the launch path may import from outside jail, beside what each of them imports itself, and why."""
FOR_A_MISS_OR_ANOTHER_COMMAND = frozenset(
    "jail.policy.parse jail.kernel.filters_build jail.hold.hostgit jail.ledger.reader jail.cli.group".split()
)
FOR_A_COPY = frozenset(["jail.kernel.sparse"])
FOR_A_GIT_DIR_MADE_INSIDE = frozenset(["jail.hold.gitlinks", "jail.hold.gitpointers"])
FOR_ANY_GIT_DIR = frozenset(["jail.hold.gitconfig"])
FOR_A_HELD_THING = frozenset(["jail.hold.store", "jail.plan.held_files"])
FOR_A_HELD_TREE = frozenset(
    "jail.hold.base jail.hold.waiting jail.launch.bases jail.launch.cutshort jail.plan.heldtrees".split()
)


def imported(python: Path, arguments: list[str], folder: Path, environment: dict[str, str]) -> frozenset[str]:
    """The modules that `python -I -S -X importtime ARGUMENTS` imports, its children until they exec too."""
    command = [str(python), "-I", "-S", "-X", "importtime", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return frozenset(line.rpartition("|")[2].strip() for line in lines[1:])


@pytest.fixture
def quiet(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A workspace and an environment whose caches and state are the test's own."""
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = somebody\n")
    return workspace, {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8"}


def test_the_launch_path_imports_only_what_is_listed(
    installed: Installed, quiet: tuple[Path, dict[str, str]]
) -> None:
    main = str(installed.packages / "jail" / "__main__.py")
    each = "import sys\nfor name in sys.argv[1:]:\n try: __import__(name)\n except ImportError: pass\n"
    allowed = imported(installed.python, ["-c", each, *LISTED], *quiet) | frozenset(LISTED)
    imported(installed.python, [main, "run", "--", "true"], *quiet)
    launch = imported(installed.python, [main, "run", "--", "true"], *quiet)
    surplus = {name for name in launch - allowed if name != "jail" and not name.startswith("jail.")}
    assert not surplus, f"not listed: {sorted(surplus)}"
    missed = launch & FOR_A_MISS_OR_ANOTHER_COMMAND
    assert not missed, f"loaded by a launch whose caches are filled: {sorted(missed)}"
    git = FOR_A_GIT_DIR_MADE_INSIDE | FOR_ANY_GIT_DIR
    unused = launch & (FOR_A_COPY | FOR_A_HELD_THING | FOR_A_HELD_TREE | git)
    assert not unused, f"loaded by a launch in a plain folder: {sorted(unused)}"


def test_a_launch_in_a_repository_imports_no_more_than_a_held_file_asks_for(
    installed: Installed, quiet: tuple[Path, dict[str, str]]
) -> None:
    subprocess.run(["git", "init", "-q", str(quiet[0])], env=quiet[1], check=True, stdin=subprocess.DEVNULL)
    main = str(installed.packages / "jail" / "__main__.py")
    imported(installed.python, [main, "run", "--", "true"], *quiet)
    launch = imported(installed.python, [main, "run", "--", "true"], *quiet)
    assert launch >= FOR_A_HELD_THING | FOR_ANY_GIT_DIR, "git's config is held, else this says nothing"
    of_others = FOR_A_COPY | FOR_A_HELD_TREE | FOR_A_GIT_DIR_MADE_INSIDE | FOR_A_MISS_OR_ANOTHER_COMMAND
    surplus = launch & of_others
    assert not surplus, f"loaded by a launch that holds a file: {sorted(surplus)}"


def test_control_a_heavy_import_would_be_seen(
    installed: Installed, quiet: tuple[Path, dict[str, str]]
) -> None:
    bare = imported(installed.python, ["-c", "pass"], *quiet)
    assert {"tomllib", "re"} <= imported(installed.python, ["-c", "import tomllib"], *quiet) - bare
