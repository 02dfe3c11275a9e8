"""Reading what the command has closed: files and folders of ours whose permission bits it took away.

Rule: the bits of what is held are part of the work, so nothing here gives them back, not even for a moment.
Instead a child enters a user namespace of its own in which our uid and gid are mapped; there the kernel lets
it read what is ours whatever the bits say (capabilities(7), CAP_DAC_READ_SEARCH; user_namespaces(7)), and it
hands over what it read, or an open fd. A kill at any time leaves nothing changed.
"""

import marshal
import os
import socket
from array import array

from jail.errors import JailError, bug
from jail.kernel import namespaces
from jail.light import Any, Callable, Final

_PIECE: Final = 1 << 20
_NO_FD: Final = -1


def answer(work: Callable[[], Any]) -> Any:
    """What `work` returns, done where closed things of ours can be read; a value that marshal knows.

    Raises what it raised, as JailError or OSError.
    """
    return _asked(lambda: (work(), _NO_FD))[0]


def opened(work: Callable[[], int]) -> int:
    """The fd that `work` opens, close-on-exec, opened where closed things of ours can be. Raises as
    `answer`.
    """
    return _asked(lambda: (None, work()))[1]


def _asked(work: Callable[[], tuple[Any, int]]) -> tuple[Any, int]:
    ours, its = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            _work(work, its)
        finally:
            os._exit(0)
    its.close()
    try:
        content, fd = _received(ours)
    finally:
        ours.close()
        os.waitpid(pid, 0)
    if not content:
        raise bug("a process that reads closed files ended without an answer")
    value, error = marshal.loads(content)  # noqa: S302 - written by our own child
    if error is None:
        return value, fd
    number, *texts = error
    if number:
        raise OSError(number, *texts)
    message, where, hint = texts
    raise JailError(message, where=where, hint=hint)


def _work(work: Callable[[], tuple[Any, int]], out: socket.socket) -> None:
    value: Any = None
    error: tuple[Any, ...] | None = None
    fd = _NO_FD
    try:
        uid, gid = os.geteuid(), os.getegid()
        namespaces.unshare(("user",))
        namespaces.map_ids(uid, gid)
        value, fd = work()
    except JailError as raised:
        error = (0, raised.message, raised.where, raised.hint)
    except OSError as raised:
        error = (raised.errno or 0, raised.strerror or str(raised), str(raised.filename or ""))
        error = error if error[0] else (0, error[1], error[2], "")
    socket.send_fds(out, [b"."], [fd] if fd >= 0 else [])
    out.sendall(marshal.dumps((value, error)))


def _received(ours: socket.socket) -> tuple[bytes, int]:
    # Not recv_fds: it forgot its flags in some versions of Python 3.
    fds = array("i")
    _, control, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    for _, _, content in control:
        fds.frombytes(content[: fds.itemsize])
    pieces = []
    while piece := ours.recv(_PIECE):
        pieces.append(piece)
    return b"".join(pieces), fds[0] if fds else _NO_FD
