"""The messages that configure the network namespace, compiled by pyroute2 once and cached as bytes.

pyroute2 costs twenty bare interpreters to import, so a launch sends the cached bytes through a plain netlink
socket and reads the kernel's acknowledgement (netlink(7), rtnetlink(7)). What is cached is no more than what
this module asks for: a cached file that differs in length or header from what the kernel would take is
refused by the kernel, and the launch with it.
"""

import _socket
import errno
import struct

from jail.kernel import libc
from jail.light import Final

_HEADER: Final = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port."""
_NLMSG_ERROR: Final = 2
_ACK_SIZE: Final = 4096


def loopback_up() -> bytes:
    """RTM_NEWLINK that sets IFF_UP on `lo`, which has index 1 in every network namespace."""
    from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST
    from pyroute2.netlink.rtnl import RTM_NEWLINK
    from pyroute2.netlink.rtnl.ifinfmsg import IFF_UP, ifinfmsg

    message = ifinfmsg()
    message["index"] = 1
    message["flags"] = IFF_UP
    message["change"] = IFF_UP
    message["header"]["type"] = RTM_NEWLINK
    message["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK
    message["header"]["sequence_number"] = 1
    message.encode()
    return bytes(message.data)


def send(message: bytes, what: str) -> None:
    """Send one request to rtnetlink and wait for its acknowledgement; KernelError with the kernel's errno."""
    netlink = _socket.socket(
        _socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _socket.NETLINK_ROUTE
    )
    try:
        netlink.bind((0, 0))
        netlink.send(message)
        answer = netlink.recv(_ACK_SIZE)
    except OSError as error:
        raise libc.KernelError(error.errno or errno.EIO, f"netlink({what})") from error
    finally:
        netlink.close()
    kind = _HEADER.unpack_from(answer)[1] if len(answer) >= _HEADER.size + 4 else 0
    (result,) = struct.unpack_from("=i", answer, _HEADER.size) if kind == _NLMSG_ERROR else (-errno.EIO,)
    if result != 0:
        raise libc.KernelError(-result, f"netlink({what})")


def interfaces() -> list[str]:
    """Names of the interfaces of the calling process's network namespace."""
    return [name for _, name in _socket.if_nameindex()]


def set_hostname(name: str) -> None:
    """Name the uts namespace (sethostname(2))."""
    try:
        _socket.sethostname(name)
    except OSError as error:
        raise libc.KernelError(error.errno or errno.EPERM, f"sethostname({name})") from error
