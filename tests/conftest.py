"""Fixtures that every room's tests may ask for."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from jail.kernel import cgroups, trees
from support.attempts import warm_jail
from support.installed import CHECKOUT, Installed, build_wheel, environment_in, make_environment
from support.jails import Jail
from support.overlays import in_memory
from support.shared import FOLDER, once, pytest_configure, pytest_configure_node, pytest_unconfigure

__all__ = [
    "pytest_configure",
    "pytest_configure_node",
    "pytest_unconfigure",
]  # hooks count where they are named

# A shell without job control starts what it puts in the background with these ignored, and jail hands that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if (
    signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
):  # nohup: the suite outlives the terminal, what it starts need not
    signal.signal(signal.SIGHUP, lambda *_: None)

# The checkout may be read-only, and a test that is timed fails where the machine is busy.
hypothesis.settings.register_profile("jail", database=None, deadline=None)
hypothesis.settings.load_profile("jail")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is run elsewhere: counted as deselected, since a skip is a test nobody has.

    What needs uid 0 is counted by the second pass of scripts/test. What needs control groups to give away is
    run, where this host has none, by tests/escape/test_delegated.py in a kernel that has them; where the host
    has them, that is what is left out.
    """
    if os.geteuid() != 0:
        _leave_out("root", config, items)
    elif cgroups.delegation().folder:
        _leave_out("kernel", config, items)
    else:
        _leave_out("groups", config, items)


def _leave_out(marker: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker(marker)]
    config.hook.pytest_deselected(items=marked)
    items[:] = [item for item in items if item not in marked]


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder that holds pyproject.toml."""
    return CHECKOUT


@pytest.fixture(scope="session")
def shared_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of all processes of this suite; other uids may enter it."""
    return request.config.stash[FOLDER]


@pytest.fixture(scope="session")
def open_folder(shared_folder: Path) -> Path:
    """A session's folder that other uids may enter (pytest's own are 0700), of this process alone."""
    folder = shared_folder / f"process-{os.getpid()}"
    folder.mkdir(mode=0o755)
    return folder


@pytest.fixture(scope="session")
def wheel(shared_folder: Path) -> Path:
    """The wheel of this checkout."""
    (wheel,) = once(shared_folder / "wheel", build_wheel).glob("jail-*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed(shared_folder: Path, wheel: Path) -> Installed:
    """jail as `pip install .` leaves it in a virtual environment."""
    beside = shared_folder / "installation"  # what tests of its surroundings give to a jail
    beside.mkdir(mode=0o755, exist_ok=True)
    return environment_in(once(beside / "venv", lambda folder: make_environment(folder, wheel)))


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder for trees of thousands of levels (support.overlays.in_memory)."""
    with in_memory() as folder:
        yield folder


@pytest.fixture
def emptied(tmp_path: Path) -> Iterator[None]:
    """`tmp_path` is empty when the test ends, however it ends: trees of more levels than shutil.rmtree can take
    would stay, and end a later run of pytest, which removes what earlier ones left.
    """
    yield
    top = os.open(tmp_path, os.O_RDONLY)
    try:
        for name in os.listdir(top):
            trees.remove_tree(top, name)
    finally:
        os.close(top)


@pytest.fixture
def jail(installed: Installed, tmp_path: Path) -> Jail:
    """The installed command with a home and a workspace of its own, and what earlier ones compiled."""
    return warm_jail(installed, tmp_path)
