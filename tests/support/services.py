"""Services of a host, small and real: listeners on pathname, abstract and TCP sockets that hand a canary to whoever connects.

Rule: each is one thread of the test's own process, ends with the fixture, and answers a connection at once, so that "was reached" is
seen by what came back and not by a guess.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CANARY = "canary-5ac6d1f0"
"""What must not be seen inside, wherever it lies."""


def _serve(server: socket.socket) -> None:
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer:
            try:
                peer.sendall(CANARY.encode())
            except OSError:
                continue


@contextmanager
def listening(server: socket.socket) -> Iterator[None]:
    """Answer every connection to a bound socket with the canary."""
    server.listen(64)
    thread = threading.Thread(target=_serve, args=(server,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        # shutdown wakes accept(2) on Linux; close alone would not.
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        server.close()


def at_path(path: Path) -> socket.socket:
    """A stream socket bound to a path of any length."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_PATH)
    try:
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    return server


def abstract(name: str) -> socket.socket:
    """A stream socket with a name that lies in no file system (unix(7))."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"\0{name}")
    return server


def on_loopback(family: int) -> socket.socket:
    """A TCP socket on loopback, on a port of the kernel's choice."""
    server = socket.socket(family)
    server.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
    return server
