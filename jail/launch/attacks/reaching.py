"""Attacks that reach out: processes, sockets, the network, shared memory; and what must work of the same.

Rule: what is sent goes to addresses that are nobody's (TEST-NET of RFC 5737, documentation of RFC 3849) or to
listeners that were put up for it, whose silence is looked at from outside. Signals go to a process that was
started to be their target.
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from .seeing import canary_pid
from .words import AbsentError, Truths, Try, absent_if, calls, content, number, opened, raw

SECONDS: Final = 0.4
"""Until a connection counts as one that was let out and merely not answered."""
NOWHERE: Final = "192.0.2.1"
NOWHERE_6: Final = "2001:db8::1"


def host_tcp(truths: Truths) -> Iterator[Try]:
    """TCP servers on the host's loopback."""
    for family, address, port in truths["tcp"]:
        yield f"connect {address}", partial(_connect, family, socket.SOCK_STREAM, (address, port))


def abstract_sockets(truths: Truths) -> Iterator[Try]:
    """A unix socket with a name in no file system."""
    yield "connect", partial(_connect, socket.AF_UNIX, socket.SOCK_STREAM, "\0" + truths["abstract"])


def pathname_sockets(truths: Truths) -> Iterator[Try]:
    """Unix sockets in the home folder, beside the workspace and in it."""
    for path in truths["sockets"]:
        yield f"connect {os.path.basename(path)}", partial(_connect_by_folder, path)


def services(truths: Truths) -> Iterator[Try]:
    """Sockets of docker, D-Bus, ssh-agent and their like."""
    for path in truths["services"]:
        yield f"connect {path}", partial(_connect_by_folder, path)


def _connect(family: int, kind: int, address: object) -> str:
    with socket.socket(family, kind) as client:
        client.settimeout(SECONDS)
        client.connect(address)  # type: ignore[arg-type]  # one of the families' forms
        return f"connected to {address!r}"


@contextmanager
def _by_folder(path: str) -> Iterator[str]:
    """`path` by its folder's descriptor, as it may be longer than an address (unix(7): 107 bytes)."""
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def _connect_by_folder(path: str) -> str:
    with _by_folder(path) as name:
        os.stat(name)
        return _connect(socket.AF_UNIX, socket.SOCK_STREAM, name)


def outwards(truths: Truths) -> Iterator[Try]:
    """TCP, UDP, DNS and ICMP to addresses that are nobody's."""
    del truths
    inet, inet6 = socket.AF_INET, socket.AF_INET6
    for port in (80, 443):
        yield f"TCP {port}", partial(_connect, inet, socket.SOCK_STREAM, (NOWHERE, port))
    yield "TCP 443, IPv6", partial(_connect, inet6, socket.SOCK_STREAM, (NOWHERE_6, 443))
    for label, port in (("UDP 9", 9), ("DNS", 53), ("QUIC", 443)):
        yield label, partial(_send, inet, 0, (NOWHERE, port))
    yield "DNS, IPv6", partial(_send, inet6, 0, (NOWHERE_6, 53))
    yield "broadcast", partial(_send, inet, 0, ("255.255.255.255", 9))
    yield "multicast", partial(_send, inet, 0, ("224.0.0.251", 5353))
    yield "ICMP", partial(_send, inet, socket.IPPROTO_ICMP, (NOWHERE, 0))


def _send(family: int, protocol: int, address: tuple[str, int]) -> str:
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as sender:
        if address[0].endswith(".255"):
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FE, 0, 1), address)  # an echo request
        return f"sent to {address[0]}"


def interfaces(truths: Truths) -> Iterator[Try]:
    """Network interfaces that are up, other than loopback."""
    del truths

    def up() -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            found = [name for _, name in socket.if_nameindex() if name != "lo" and _is_up(asker, name)]
        return absent_if(not found, " ".join(found))

    yield "list them", up


def _is_up(asker: socket.socket, name: str) -> bool:
    answer = fcntl.ioctl(asker, 0x8913, struct.pack("16sH22x", name.encode(), 0))  # SIOCGIFFLAGS
    return bool(struct.unpack_from("H", answer, 16)[0] & 1)


def signals(truths: Truths) -> Iterator[Try]:
    """Signals to a process of the host."""
    pid = canary_pid(truths)
    yield "kill", partial(os.kill, pid, signal.SIGUSR1)
    yield "kill its group", partial(os.killpg, pid, signal.SIGUSR1)
    yield from calls(truths, ("pidfd_open", pid, 0))
    yield "SIGIO by F_SETOWN", partial(_own_by, pid)


def _own_by(pid: int) -> None:
    ours, theirs = os.pipe()
    try:
        fcntl.fcntl(ours, fcntl.F_SETOWN, pid)
    finally:
        os.close(ours)
        os.close(theirs)


def signal_to_all(truths: Truths) -> Iterator[Try]:
    """A signal to every process that may be sent one."""
    del truths
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    yield "kill(-1)", partial(os.kill, -1, signal.SIGUSR1)


def into_process_1(truths: Truths) -> Iterator[Try]:
    """Process 1 of the jail: traced, read, limited, ended."""
    # Seized, it is not stopped; the limits are not named, so that none is changed.
    yield from calls(
        truths, ("ptrace", 0x4206, 1, 0, 0), ("prlimit64", 1, resource.RLIMIT_NOFILE, None, None)
    )
    yield "process_vm_readv", partial(_read_memory, truths, 1)
    yield "kill", _end_process_1


def _read_memory(truths: Truths, pid: int) -> None:
    target = ctypes.create_string_buffer(8)
    ours = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(target), 8))
    theirs = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(target) & ~0xFFF, 8))
    raw(number(truths, "process_vm_readv"), pid, ours, 1, theirs, 1, 0)


def _end_process_1() -> None:
    """Process 1 takes no signal from inside (pid_namespaces(7)): the call succeeds and does nothing."""
    for number_ in (signal.SIGTERM, signal.SIGKILL):
        os.kill(1, number_)
    time.sleep(0.05)
    os.kill(1, 0)
    raise AbsentError("it lives on")


def shared_memory(truths: Truths) -> Iterator[Try]:
    """The host's SysV shared memory, a message queue, a file in memory."""
    if truths["shm"]:
        yield from calls(truths, ("shmget", int(truths["shm"]), 0, 0))
    if truths["mq"]:
        yield from calls(truths, ("mq_open", truths["mq"].encode(), os.O_RDONLY | os.O_NONBLOCK, 0, None))
    if truths["shm_file"]:
        yield "a file in memory", partial(content, truths["shm_file"])


def survivor(truths: Truths) -> Iterator[Try]:
    """A process that leaves its session, ignores every signal, and wants to outlive the run."""
    del truths
    yield "start it", _daemon


SURVIVES: Final = 20.0
"""Seconds after which the survivor ends by itself, should no wall end it."""


def _daemon() -> None:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
            signal.signal(each, signal.SIG_IGN)
        time.sleep(SURVIVES)
    os._exit(0)


def caller_terminal(truths: Truths) -> Iterator[Try]:
    """The terminal that jail was started from."""
    del truths
    yield "open /dev/tty", partial(opened, "/dev/tty", os.O_RDWR)
    for fd in (0, 1, 2):
        yield f"descriptor {fd} is a terminal", partial(lambda fd: absent_if(not os.isatty(fd), "it is"), fd)


def own_things(truths: Truths) -> Iterator[Try]:
    """What must work: a program, a signal, sockets and shared memory of one's own."""
    yield "run a program", _run_one
    yield "signal a child", _signal_one
    yield "TCP on loopback", partial(_own_server, socket.AF_INET, ("127.0.0.1", 0))
    yield "an abstract socket", partial(_own_server, socket.AF_UNIX, "\0jail-attack-own")
    yield "a pathname socket", partial(_own_pathname, truths["home"])
    yield "shared memory", partial(_own_memory, truths)


def _own_memory(truths: Truths) -> None:
    segment = raw(number(truths, "shmget"), 0, 4096, 0o1600)  # IPC_PRIVATE, IPC_CREAT
    raw(number(truths, "shmctl"), segment, 0, None)  # IPC_RMID


def _run_one() -> None:
    pid = os.posix_spawn("/proc/self/exe", ["python", "-I", "-S", "-c", "raise SystemExit(7)"], os.environ)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 7:
        raise OSError(None, "a program that was started did not end as it should")


def _signal_one() -> None:
    pid = os.fork()
    if pid == 0:
        time.sleep(SURVIVES)
        os._exit(0)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _own_pathname(home: str) -> None:
    with _by_folder(f"{home}/own.sock") as name:
        _own_server(socket.AF_UNIX, name)


def _own_server(family: int, address: object) -> None:
    with socket.socket(family) as server:
        server.bind(address)  # type: ignore[arg-type]  # one of the families' forms
        server.listen(1)
        _connect(family, socket.SOCK_STREAM, server.getsockname())
