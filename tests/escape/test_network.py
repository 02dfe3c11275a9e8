"""The network inside is loopback and nothing else: any other destination is refused at once (agent 30, G1-G5).

Rule: nothing here is sent to anybody. Inside there is no route to what is tried; outside, the control talks to
listeners of its own on this host's loopback.
"""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.answers import PRELUDE, new_jail, numbers
from support.installed import Installed
from support.jails import Jail

AT_ONCE = 1.0
"""Seconds within which every attempt has its answer: a client that waits for a timeout seems to hang."""

DESTINATIONS = {
    "TEST-NET-1, port 443": (socket.AF_INET, ("192.0.2.1", 443)),
    "TEST-NET-2, port 22": (socket.AF_INET, ("198.51.100.7", 22)),
    "TEST-NET-3, port 25": (socket.AF_INET, ("203.0.113.9", 25)),
    "private 10/8": (socket.AF_INET, ("10.254.254.254", 80)),
    "private 172.16/12": (socket.AF_INET, ("172.31.255.254", 80)),
    "private 192.168/16": (socket.AF_INET, ("192.168.254.254", 80)),
    "cloud metadata": (socket.AF_INET, ("169.254.169.254", 80)),
    "carrier NAT 100.64/10": (socket.AF_INET, ("100.127.255.254", 80)),
    "reserved 240/4": (socket.AF_INET, ("240.0.0.1", 80)),
    "documentation IPv6": (socket.AF_INET6, ("2001:db8::1", 443)),
    "unique local IPv6": (socket.AF_INET6, ("fd00:ec2::254", 80)),
    "link-local IPv6": (socket.AF_INET6, ("fe80::1", 80, 0, 1)),
    "IPv4-mapped IPv6": (socket.AF_INET6, ("::ffff:192.0.2.1", 80)),
    "NAT64": (socket.AF_INET6, ("64:ff9b::c000:201", 80)),
    "6to4": (socket.AF_INET6, ("2002:c000:201::1", 80)),
}
UNREACHABLE = {"ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EACCES"}
"""What the kernel says at once of an address that no route leads to."""

PROGRAM = r"""
given = json.loads(sys.argv[2])
found = {}

def timed(name, action):
    begin = time.monotonic()
    said = answer(action)
    found[name] = [said, round(time.monotonic() - begin, 3)]

def stream(family, address):
    end = socket.socket(family, socket.SOCK_STREAM)
    end.settimeout(5)
    end.connect(tuple(address))
    end.sendall(b"ping")
    return end.recv(99).decode()

def datagram(family, address):
    end = socket.socket(family, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    end.sendto(b"jail-escape", tuple(address))

def fast_open(family, address):
    end = socket.socket(family, socket.SOCK_STREAM)
    end.settimeout(5)
    end.sendto(b"GET /", 0x20000000, tuple(address))  # MSG_FASTOPEN

def echo(family, address):
    server = socket.create_server(address, family=family)
    port = server.getsockname()[1]
    if os.fork() == 0:
        peer, _ = server.accept()
        peer.sendall(b"echo " + peer.recv(99))
        os._exit(0)
    try:
        return stream(family, (address[0], port))
    finally:
        os.wait()

def echo_datagram(family, host):
    server, client = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
    server.bind((host, 0))
    server.settimeout(5)
    client.sendto(b"datagram", server.getsockname()[:2])
    return server.recv(99).decode()

def abstract(kind, name):
    end = socket.socket(socket.AF_UNIX, kind)
    end.connect("\0" + name)
    end.sendall(b"ping")
    return "connected"

def resolved(name):
    try:
        return str(sorted({found[4][0] for found in socket.getaddrinfo(name, 80)}))
    except socket.gaierror as error:
        return "no such name"

def message(kind, body):
    '''One rtnetlink request that asks for an acknowledgement; its result.'''
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    netlink.settimeout(5)
    netlink.send(struct.pack("=IHHII", 16 + len(body), kind, 5 | 0x600, 1, 0) + body)
    (code,) = struct.unpack_from("=i", netlink.recv(8192), 16)
    if code:
        raise OSError(-code, "netlink")

for name, (family, address) in given["destinations"].items():
    timed(f"tcp {name}", lambda: stream(family, address))
    timed(f"udp {name}", lambda: datagram(family, address))
    timed(f"fast open {name}", lambda: fast_open(family, address))
for name, (family, address) in given["services"].items():
    timed(f"service {name}", lambda: stream(family, address))
for name, (family, address) in given["deaf"].items():
    timed(f"deaf {name}", lambda: datagram(family, address))
for name, address in given["abstract"].items():
    timed(f"abstract {name}", lambda: abstract(getattr(socket, name), address))
timed("multicast", lambda: datagram(socket.AF_INET, ("224.0.0.251", 5353)))
timed("broadcast", lambda: datagram(socket.AF_INET, ("255.255.255.255", 67)))
timed("multicast of IPv6", lambda: datagram(socket.AF_INET6, ("ff02::fb", 5353)))
timed("dns datagram", lambda: datagram(socket.AF_INET, ("192.0.2.53", 53)))
timed("a name", lambda: resolved("example.org"))
timed("a long name", lambda: resolved("x" * 60 + ".secret.example.org"))
timed("localhost", lambda: resolved("localhost"))
timed("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) and None)
timed("raw IPv6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58) and None)
timed("packet", lambda: socket.socket(17, socket.SOCK_RAW, 3) and None)
timed("echo 127.0.0.1", lambda: echo(socket.AF_INET, ("127.0.0.1", 0)))
timed("echo 127.9.9.9", lambda: echo(socket.AF_INET, ("127.9.9.9", 0)))
timed("echo ::1", lambda: echo(socket.AF_INET6, ("::1", 0)))
timed("datagrams 127.0.0.1", lambda: echo_datagram(socket.AF_INET, "127.0.0.1"))
timed("datagrams ::1", lambda: echo_datagram(socket.AF_INET6, "::1"))
timed("bind to the address of another", lambda: socket.create_server(("192.0.2.1", 0)) and None)
timed("a port below 1024", lambda: socket.create_server(("127.0.0.1", 53)) and None)
LO = struct.pack("=BxHiII", 0, 0, 1, 1, 1)  # struct ifinfomsg: index 1, IFF_UP
timed("new dummy interface", lambda: message(16, struct.pack("=BxHiII", 0, 0, 0, 0, 0)
    + struct.pack("=HHHH6sxx", 18, 18, 10, 1, b"dummy\0")))
timed("lo up", lambda: message(16, LO))
timed("new address", lambda: message(20, struct.pack("=BBBBi", 2, 8, 0, 0, 1)
    + struct.pack("=HH4sHH4s", 8, 2, bytes((10, 0, 0, 1)), 8, 1, bytes((10, 0, 0, 1)))))
timed("new route", lambda: message(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 4, 253, 1, 0)
    + struct.pack("=HHi", 8, 4, 1)))
found["interfaces"] = [name for _, name in socket.if_nameindex()]
with open("/proc/net/route") as file:
    found["routes"] = file.read().splitlines()[1:]
with open("/proc/net/ipv6_route") as file:
    found["routes of IPv6"] = sorted({line.split()[-1] for line in file})
with open("/proc/net/unix") as file:
    found["sockets"] = [line.split()[7] for line in file.read().splitlines()[1:] if len(line.split()) > 7]
print(json.dumps(found))
"""


class Host(NamedTuple):
    """Listeners of the host: what a program inside is told of, and the datagrams that arrived."""

    told: dict[str, Any]
    arrived: list[socket.socket]


def _answer(server: socket.socket) -> None:
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer:
            peer.recv(99)
            peer.sendall(b"host")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """TCP and UDP on 127.0.0.1 and ::1, abstract sockets of two kinds: what services of a desktop have."""
    with ExitStack() as stack:
        told: dict[str, Any] = {"destinations": DESTINATIONS, "services": {}, "deaf": {}, "abstract": {}}
        arrived = []
        for name, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
            server = stack.enter_context(socket.create_server((name, 0), family=family))
            threading.Thread(target=_answer, args=(server,), daemon=True).start()
            told["services"][name] = (family, server.getsockname()[:2])
            deaf = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            deaf.bind((name, 0))
            deaf.settimeout(0)
            told["deaf"][name] = (family, deaf.getsockname()[:2])
            arrived.append(deaf)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            end = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            address = f"jail-escape-{os.getpid()}-{kind.value}"
            end.bind("\0" + address)
            if kind == socket.SOCK_STREAM:
                end.listen()
            told["abstract"][kind.name] = address
        yield Host(told, arrived)


@pytest.fixture(scope="module")
def inside(installed: Installed, tmp_path_factory: pytest.TempPathFactory, host: Host) -> dict[str, Any]:
    """What one program met inside."""
    made: Jail = new_jail(installed, tmp_path_factory.mktemp("network"))
    found: dict[str, Any] = made.inside(PRELUDE + PROGRAM, numbers(), json.dumps(host.told))
    return found


@pytest.fixture(scope="module")
def outside(installed: Installed, tmp_path_factory: pytest.TempPathFactory, host: Host, inside: Any) -> Any:
    """What the same program met outside, where it tries the host's own listeners and nothing else."""
    made: Jail = new_jail(installed, tmp_path_factory.mktemp("control"))
    silent = "\n".join(
        line
        for line in PROGRAM.splitlines()
        if not line.startswith(('timed("multicast', 'timed("broadcast', 'timed("dns', 'timed("a '))
    )
    return made.outside(PRELUDE + silent, numbers(), json.dumps({**host.told, "destinations": {}}))


@pytest.mark.parametrize("way", ["tcp", "udp", "fast open"])
@pytest.mark.parametrize("destination", DESTINATIONS)
def test_agent_30_g1_a_literal_address_is_unreachable_at_once(
    inside: dict[str, Any], way: str, destination: str
) -> None:
    met, seconds = inside[f"{way} {destination}"]
    assert met in UNREACHABLE, met
    assert seconds < AT_ONCE
    assert inside["echo 127.0.0.1"][0] == "echo ping", "no positive control: no connection works"


@pytest.mark.parametrize("name", ["multicast", "broadcast", "multicast of IPv6", "dns datagram"])
def test_g4_g5_datagrams_that_need_no_peer_are_unreachable_at_once(inside: dict[str, Any], name: str) -> None:
    met, seconds = inside[name]
    assert met in UNREACHABLE, met
    assert seconds < AT_ONCE
    assert inside["datagrams 127.0.0.1"][0] == "datagram", "no positive control"


@pytest.mark.parametrize("name", ["a name", "a long name"])
def test_agent_26_g5_a_name_is_not_resolved_and_asks_nobody(inside: dict[str, Any], name: str) -> None:
    assert inside[name][0] == "no such name"
    assert inside[name][1] < AT_ONCE
    assert "127.0.0.1" in inside["localhost"][0], "no positive control"


@pytest.mark.parametrize("name", ["127.0.0.1", "::1"])
def test_f13_a_service_on_the_hosts_loopback_is_not_there(
    inside: dict[str, Any], outside: dict[str, Any], name: str
) -> None:
    assert outside[f"service {name}"][0] == "host", "no positive control"
    assert inside[f"service {name}"][0] == "ECONNREFUSED"


@pytest.mark.parametrize("number", [0, 1], ids=["127.0.0.1", "::1"])
def test_f13_no_datagram_reaches_the_hosts_loopback(
    host: Host, inside: Any, outside: Any, number: int
) -> None:
    """The control's datagram is the only one that came."""
    assert outside[f"deaf {('127.0.0.1', '::1')[number]}"][0] == "ok"
    assert host.arrived[number].recv(99) == b"jail-escape", "no positive control"
    with pytest.raises(BlockingIOError):
        host.arrived[number].recv(99)


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_f3_an_abstract_socket_of_the_host_is_not_there(inside: Any, outside: Any, kind: str) -> None:
    assert outside[f"abstract {kind}"][0] == "connected", "no positive control"
    assert inside[f"abstract {kind}"][0] == "ECONNREFUSED"


def test_f3_no_socket_of_the_host_is_listed(inside: dict[str, Any], outside: dict[str, Any]) -> None:
    assert any("jail-escape" in name for name in outside["sockets"]), "no positive control"
    assert inside["sockets"] == []


@pytest.mark.parametrize("name", ["raw", "raw IPv6", "packet"])
def test_d26_there_are_no_raw_sockets(inside: dict[str, Any], name: str) -> None:
    assert inside[name][0] in ("EPERM", "EAFNOSUPPORT")


@pytest.mark.parametrize("name", ["new dummy interface", "lo up", "new address", "new route"])
def test_agent_22_interfaces_addresses_and_routes_cannot_be_made(inside: dict[str, Any], name: str) -> None:
    assert inside[name][0] == "EPERM"


def test_g3_the_only_interface_is_lo_and_no_route_leads_out(inside: Any, outside: Any) -> None:
    assert inside["interfaces"] == ["lo"]
    assert inside["routes"] == []
    assert inside["routes of IPv6"] == ["lo"]
    assert "lo" in outside["interfaces"]


def test_an_address_that_is_nobodys_cannot_be_taken(inside: dict[str, Any]) -> None:
    """Until egress gives every address to the jail itself, a server inside cannot pose as one."""
    assert inside["bind to the address of another"][0] == "EADDRNOTAVAIL"
    assert inside["a port below 1024"][0] == "EACCES", "where resolvers ask: nobody inside may answer them"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("echo 127.0.0.1", "echo ping"),
        ("echo 127.9.9.9", "echo ping"),
        ("echo ::1", "echo ping"),
        ("datagrams 127.0.0.1", "datagram"),
        ("datagrams ::1", "datagram"),
    ],
)
def test_servers_and_clients_on_loopback_work(inside: Any, outside: Any, name: str, said: str) -> None:
    assert inside[name][0] == outside[name][0] == said


def test_two_jails_do_not_share_their_loopback(jail: Jail, tmp_path: Path) -> None:
    """F13 between jails: what one serves, the other cannot reach, although both run at once."""
    server = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
        "sys.stdin.read()"
    )
    running = jail.popen("/usr/bin/python3", "-I", "-c", server, stdin=-1, stdout=-1)
    assert running.stdout is not None
    try:
        port = int(running.stdout.readline())
        client = (
            "import json, socket, sys\n"
            "print(json.dumps(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1])))))"
        )
        assert jail.inside(client, str(port)) == 111
    finally:
        running.communicate("")
    assert running.returncode == 0
