"""The lock of a session: one at a time, and none beside a run."""

import os
from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.hold.lock import Lock
from jail.ledger import place
from support.ledgers import state_in


def test_nobody_else_gets_it_meanwhile(tmp_path: Path) -> None:
    running = place.new_session(state_in(tmp_path))
    with pytest.raises(JailError, match="still runs") as refused, Lock(running.folder):
        pass
    assert refused.value.code == EXIT_USAGE
    os.close(running.lock_fd)
    with Lock(running.folder), pytest.raises(JailError), Lock(running.folder):
        pass
    with Lock(running.folder):
        assert place.running(running.folder)
    assert not place.running(running.folder)


def test_where_the_file_is_gone_the_folder_serves(tmp_path: Path) -> None:
    with Lock(str(tmp_path)), pytest.raises(JailError), Lock(str(tmp_path)):
        pass
