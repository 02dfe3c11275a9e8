"""Policies made of texts, as `jail.policy.load` makes them of files."""

from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE
from jail.policy.check import PolicyFaults
from jail.policy.compose import Composed, compose
from jail.policy.shape import SHAPES
from jail.policy.sources import Given, Text
from support.installed import CHECKOUT

HOME = "/home/ada"
WORKSPACE = "/home/ada/src/engine"
USER_FILE = "/home/ada/.config/jail/policy.toml"
PROJECT_FILE = f"{WORKSPACE}/.jail.toml"
LEVELS = sorted(path.stem for path in (CHECKOUT / "policies").glob("*.toml"))
PARTS = sorted(path.stem for path in (CHECKOUT / "policies" / "parts").glob("*.toml"))
LEAVES = {path for path in SHAPES if not any(other[:-1] == path for other in SHAPES)}
"""The keys of a policy file that hold a value and no further keys."""
SHIPPED: list[Path] = sorted((CHECKOUT / "policies").rglob("*.toml"))


def made(
    level: str = "",
    own: str | None = None,
    user: str | None = None,
    project: str | None = None,
    home: str = HOME,
) -> Composed:
    """What these texts make together; None is a file that is not there."""

    def text(file: str, content: str | None) -> Text | None:
        return None if content is None else Text(file, content.encode("utf-8", "surrogatepass"))

    workspace = WORKSPACE if project is not None else ""
    files = text("own.toml", own), text(USER_FILE, user), text(PROJECT_FILE, project)
    return compose(Given(level, *files, home, workspace))


def refused(**texts: str) -> dict[str, str]:
    """Key → message of each fault that these texts have together."""
    with pytest.raises(PolicyFaults) as error:
        made(**texts)
    assert error.value.code == EXIT_USAGE
    assert all(fault.hint and fault.file for fault in error.value.faults)
    return {fault.key: fault.message for fault in error.value.faults}
