"""The slave of a pseudo-terminal, by its master."""

import os

from jail.kernel import pty


def test_the_slave_is_unlocked_and_named() -> None:
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    try:
        slave = os.open(f"/dev/pts/{pty.slave_number(master)}", os.O_RDWR | os.O_NOCTTY)
        os.write(slave, b"x")
        assert os.read(master, 1) == b"x"
        os.close(slave)
    finally:
        os.close(master)
