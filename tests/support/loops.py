"""The supervisor's poll loop in small, for parts under test.

Rule: no wait without a bound, and nothing is measured by the clock: `settle` stops when poll(2) says that
nothing can happen, which is exact while the test alone acts on the fds.
"""

import hashlib
import os
import select
import threading
import time
from collections.abc import Callable, Sequence

from jail.launch.relay import Part

BOUND = 60.0
"""Seconds after which a test has failed; far above what any of them takes."""


def plain_bytes(size: int) -> bytes:
    """Some `size` bytes that a terminal may be shown: ASCII but ENQ, SO, CAN, ESC; characters of two bytes."""
    kept = os.urandom(size).translate(None, bytes((0x05, 0x0E, 0x18, 0x1B, *range(0x80, 0xA0))))
    return kept.decode("latin-1").encode()


def step(parts: Sequence[Part], wait: int) -> bool:
    """One poll of at most `wait` ms; False when nothing happened."""
    owners = {fd: (part, mask) for part in parts for fd, mask in part.interests()}
    poller = select.poll()
    for fd, (_, mask) in owners.items():
        poller.register(fd, mask)
    events = poller.poll(wait)
    for fd, mask in events:
        owners[fd][0].ready(fd, mask)
    return bool(events)


def run(parts: Sequence[Part], done: Callable[[], bool]) -> None:
    """Drive `parts` until `done`."""
    end = time.monotonic() + BOUND
    while not done():
        step(parts, 50)
        assert time.monotonic() < end, "the loop did not come to its end"


def settle(*parts: Part) -> int:
    """Drive `parts` until nothing more can happen; how many polls that took."""
    for count in range(1_000_000):
        if not step(parts, 0):
            return count
    raise AssertionError("the loop spins")


class Writer(threading.Thread):
    """The far end that writes `data` to `fd` and closes it."""

    def __init__(self, fd: int, data: bytes, *, close: bool = True) -> None:
        super().__init__(daemon=True)
        self._fd, self._data, self._close = fd, data, close
        self.start()

    def run(self) -> None:
        rest = memoryview(self._data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        if self._close:
            os.close(self._fd)


class Reader(threading.Thread):
    """The far end that reads `fd` to its end, or `count` bytes: `digest` and `size` of what came."""

    def __init__(self, fd: int, count: int = -1) -> None:
        super().__init__(daemon=True)
        self._fd, self._count, self._hash, self.size = fd, count, hashlib.sha256(), 0
        self.start()

    def run(self) -> None:
        while self.size != self._count:
            data = os.read(self._fd, 65536)
            if not data:
                return
            self._hash.update(data)
            self.size += len(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def digest(data: bytes) -> str:
    """What Reader.digest is of `data`."""
    return hashlib.sha256(data).hexdigest()
