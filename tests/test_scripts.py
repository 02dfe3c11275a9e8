"""What scripts/jail and scripts/test decide before Python starts, and the sum that scripts/test ends with."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CLOCK_TICK = 0.02
"""Seconds after which the kernel's clock for files has moved (HZ is 100 at least)."""
JUNIT = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'

SUMS: dict[str, tuple[list[tuple[int, str | None]], str, int]] = {
    "both runs pass": (
        [(0, JUNIT.format(5, 0, 0, 0)), (0, JUNIT.format(2, 0, 0, 0))],
        "7 passed, 0 failed, 0 skipped",
        0,
    ),
    "a failure and an error": ([(1, JUNIT.format(5, 1, 1, 0))], "3 passed, 2 failed, 0 skipped", 1),
    "a skip is told": ([(0, JUNIT.format(5, 0, 0, 1))], "4 passed, 0 failed, 1 skipped", 0),
    "one selection is empty": (
        [(0, JUNIT.format(5, 0, 0, 0)), (5, JUNIT.format(0, 0, 0, 0))],
        "5 passed, 0 failed, 0 skipped",
        0,
    ),
    "nothing was selected": ([(5, JUNIT.format(0, 0, 0, 0))], "0 passed, 0 failed, 0 skipped", 1),
    "pytest was killed": ([(137, None)], "0 passed, 1 failed, 0 skipped", 1),
    "pytest ended halfway": ([(3, JUNIT.format(5, 0, 0, 0))], "5 passed, 1 failed, 0 skipped", 1),
    "the report is cut": ([(0, "<testsuites><testsuite")], "0 passed, 1 failed, 0 skipped", 1),
}


def summed(runs: list[tuple[int, str | None]], checkout: Path, folder: Path, ci: str) -> tuple[str, int]:
    for number, (status, report) in enumerate(runs):
        (folder / f"run{number}").mkdir()
        (folder / f"run{number}.status").write_text(f"{status}\n", encoding="ascii")
        if report is not None:
            (folder / f"run{number}" / "report.xml").write_text(report, encoding="ascii")
    command = [sys.executable, "-I", str(checkout / "scripts" / "sum_of_runs.py"), str(folder)]
    done = subprocess.run(command, env={"CI": ci}, check=False, capture_output=True, text=True, timeout=60)
    return done.stdout.strip(), done.returncode


@pytest.mark.parametrize("case", SUMS)
def test_last_line_sums_the_runs(case: str, checkout: Path, tmp_path: Path) -> None:
    runs, line, code = SUMS[case]
    assert summed(runs, checkout, tmp_path, ci="") == (line, code)


def test_in_ci_a_skip_fails(checkout: Path, tmp_path: Path) -> None:
    runs, line, _ = SUMS["a skip is told"]
    assert summed(runs, checkout, tmp_path, ci="true") == (line, 1)


def sourced(code: str, checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`code` run by sh after scripts/setup.sh."""
    command = ["/bin/sh", "-c", f'set -eu; . "$1/scripts/setup.sh"; {code}', "sh", str(checkout)]
    environment = {"PATH": os.defpath, "HOME": "/home/somebody"} | variables
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=60)


def test_places_differ_by_checkout_and_use_and_lie_outside_the_checkout(checkout: Path) -> None:
    asked = [("/a/checkout", "venv"), ("/a/checkout", "test"), ("/another", "venv"), ("/a/check out", "venv")]
    places = [sourced(f"name_places '{root}' {use}; echo $venv", checkout).stdout for root, use in asked]
    assert len(set(places)) == len(asked)
    state = "/var/lib/jail/" if os.geteuid() == 0 else "/home/somebody/.local/share/jail/"
    assert [place for place in places if not place.startswith(state)] == []


def test_a_relative_data_folder_is_not_taken_from_the_environment(checkout: Path) -> None:
    for value, place in (("/data", "/data/jail"), ("data", "/home/somebody/.local/share/jail")):
        done = sourced("name_places / venv; echo $state", checkout, XDG_DATA_HOME=value)
        assert done.stdout.strip() == (place if os.geteuid() else "/var/lib/jail")


def test_a_change_of_any_kind_makes_the_environment_old(checkout: Path, tmp_path: Path) -> None:
    """Edit, deletion, and a copied file that brings an old mtime; __pycache__ alone does not count."""
    root, venv = tmp_path / "root", tmp_path / "venv"
    for path in (root / "jail" / "kernel", root / "policies", root / "scripts" / "installed", venv / "bin"):
        path.mkdir(parents=True)
    for path in (root / "pyproject.toml", root / "jail" / "a.py", root / "jail" / "b.py"):
        path.write_text("", encoding="ascii")
    for name in ("python", "jail"):
        (venv / "bin" / name).touch(mode=0o755)
    stamp = venv / "stamp"

    def is_current() -> bool:
        names = f"root='{root}' venv='{venv}' stamp='{stamp}'"
        return sourced(f"{names}; is_current", checkout).returncode == 0

    def stamp_later() -> None:
        stamp.touch()
        newest = max(path.lstat().st_ctime_ns for path in root.rglob("*")) + 1
        os.utime(stamp, ns=(newest, newest))
        time.sleep(CLOCK_TICK)

    def copy_in() -> None:
        (root / "jail" / "a.py").write_text("old", encoding="ascii")
        os.utime(root / "jail" / "a.py", (1, 1))

    assert not is_current(), "without a stamp"
    changes: dict[str, Callable[[], object]] = {
        "edit": lambda: (root / "pyproject.toml").write_text("x", encoding="ascii"),
        "deletion": (root / "jail" / "b.py").unlink,
        "copy": copy_in,
        "new file": (root / "policies" / "new.toml").touch,
    }
    for name, change in changes.items():
        stamp_later()
        assert is_current(), f"before: {name}"
        change()
        assert not is_current(), name
    (root / "jail" / "kernel" / "__pycache__").mkdir()
    stamp_later()
    (root / "jail" / "kernel" / "__pycache__" / "a.pyc").touch()
    assert is_current(), "__pycache__"


@pytest.mark.root
def test_root_takes_only_a_python_that_every_uid_may_run(checkout: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed" / "python3.12"
    closed.parent.mkdir(mode=0o700)
    closed.touch(mode=0o755)
    link = tmp_path / "link"
    link.symlink_to(closed)
    for path, code in (("/bin/sh", 0), (closed, 1), (link, 1)):
        assert sourced(f"is_open_to_all '{path}'", checkout).returncode == code
