"""One folder for all processes that run one suite: what is expensive is made in it once.

Rule: the process that was started by a person or by scripts/test makes the folder and deletes it at its end;
processes that pytest-xdist starts are told its name. Without pytest-xdist there is only the first one. Other
uids may enter it (pytest's own folders are 0700), since jail started by root lets an unprivileged one run the
walls.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_TOLD = "jail_shared_folder"
VARIABLE = "JAIL_TESTS_SHARED_FOLDER"
"""Names the folder to a suite that another suite runs (support.uml); the other one deletes it."""
FOLDER = pytest.StashKey[Path]()
_configured: list[pytest.Config] = []


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Make the folder, or take the one that this worker was told of."""
    _configured.append(config)
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    if told is not None or VARIABLE in os.environ:
        config.stash[FOLDER] = Path(told[_TOLD] if told is not None else os.environ[VARIABLE])
        return
    folder = Path(tempfile.mkdtemp(prefix="jail-tests-"))
    folder.chmod(0o755)
    config.stash[FOLDER] = folder


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist (its hook) where the folder is."""
    node.workerinput[_TOLD] = str(node.config.stash[FOLDER])


@pytest.hookimpl
def pytest_unconfigure(config: pytest.Config) -> None:
    """Delete the folder, at the end of the process that made it."""
    if getattr(config, "workerinput", None) is None and VARIABLE not in os.environ:
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


def cache_of(uid: int) -> Path:
    """A folder for what jail compiles, of the user `uid`; a start in an empty one takes a second."""

    def make(folder: Path) -> None:
        folder.mkdir(mode=0o700)
        os.chown(folder, uid, -1)

    return once(_configured[0].stash[FOLDER] / f"cache-{uid}", make)


def once(folder: Path, make: Callable[[Path], object]) -> Path:
    """`folder`, filled by `make(folder)` in the first process that asks; others wait until that is done.

    What `make` left halfway, because it failed, is deleted, and the next process that asks tries again.
    """
    done = folder.with_name(folder.name + ".done")
    with open(folder.with_name(folder.name + ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return folder
