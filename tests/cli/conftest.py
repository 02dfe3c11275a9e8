"""What the commands on held changes have before them."""

from pathlib import Path

import pytest

from support.changed import Kept, held_session
from support.ledgers import state_in


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A session that holds the asking module's `LEFT` over its `HOST`, and has deleted `gone`; we are in its
    workspace.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    module = request.module
    made = held_session(state_in(tmp_path), tmp_path / "ws", module.HOST, module.LEFT, gone=["gone"])
    monkeypatch.chdir(made.workspace)
    return made
