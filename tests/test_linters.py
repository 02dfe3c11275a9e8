"""ruff and mypy --strict are tests: what they refuse is refused like any other failure."""

import subprocess
import sys
from pathlib import Path

import pytest

LINTERS = {
    "ruff check": ["ruff", "check", "--no-cache", "."],
    "ruff format": ["ruff", "format", "--no-cache", "--check", "."],
    "mypy jail": ["mypy", "--strict", "jail"],
}


@pytest.mark.parametrize("name", LINTERS)
def test_linter_has_no_complaint(name: str, checkout: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", *LINTERS[name]]
    if command[2] == "mypy":
        command.append(f"--cache-dir={tmp_path}")
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{name}:\n{done.stdout}{done.stderr}"
