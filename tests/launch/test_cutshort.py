import os
import signal
import time

import pytest

from jail.launch.cutshort import until_signal
from jail.launch.signals import ENDING


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_the_work_and_nothing_else(number: int) -> None:
    before = signal.getsignal(number)
    done = []

    def work() -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        except Exception:  # noqa: BLE001 - as the work may have it
            done.append("swallowed")

    assert not until_signal(work)
    assert done == []
    assert signal.getsignal(number) is before


def test_without_one_the_work_is_done() -> None:
    done: list[str] = []
    assert until_signal(lambda: done.append("done"))
    assert done == ["done"]


def test_what_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert until_signal(lambda: os.kill(os.getpid(), signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_of_the_work_is_its_own() -> None:
    def failing() -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        until_signal(failing)
