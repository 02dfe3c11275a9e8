"""Fixtures that every room's tests may ask for."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from support.installed import CHECKOUT, Installed, build_wheel, make_environment
from support.jails import Jail, make_jail

# The checkout may be read-only, and a test that is timed fails where the machine is busy.
hypothesis.settings.register_profile("jail", database=None, deadline=None)
hypothesis.settings.load_profile("jail")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs uid 0 where the tests have another: scripts/test counts it in its second pass."""
    if os.geteuid() != 0:
        needs_root = [item for item in items if item.get_closest_marker("root")]
        config.hook.pytest_deselected(items=needs_root)
        items[:] = [item for item in items if item not in needs_root]


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder that holds pyproject.toml."""
    return CHECKOUT


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A session's folder that other uids may enter (pytest's own are 0700)."""
    with tempfile.TemporaryDirectory(prefix="jail-tests-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def wheel(open_folder: Path) -> Path:
    """The wheel of this checkout."""
    return build_wheel(open_folder / "wheel")


@pytest.fixture(scope="session")
def installed(open_folder: Path, wheel: Path) -> Installed:
    """jail as `pip install .` leaves it in a virtual environment."""
    return make_environment(open_folder / "venv", wheel)


@pytest.fixture
def jail(installed: Installed, tmp_path: Path) -> Jail:
    """The installed command with a home and a workspace of its own."""
    return make_jail(installed, tmp_path)
