"""CASES.md section F and agent cases 15–17: sockets and services of the host, and what would run there later."""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, GONE, PRELUDE, lay, warm_jail
from support.installed import Installed
from support.jails import Jail
from support.services import CANARY, abstract, at_path, listening, on_loopback

IN_RUNTIME = {
    "F1: rootless Docker": "docker.sock",
    "F1: rootless Podman": "podman/podman.sock",
    "F1: containerd": "containerd-rootless/api.sock",
    "F2: D-Bus of the session": "bus",
    "F2: systemd of the user": "systemd/private",
    "F2: GVFS": "gvfsd/socket-x",
    "F5: ssh-agent of the keyring": "keyring/ssh",
    "F6: gpg-agent": "gnupg/S.gpg-agent",
    "F6: gpg-agent for ssh": "gnupg/S.gpg-agent.ssh",
    "F6: keyboxd": "gnupg/S.keyboxd",
    "F6: Secret Service": "keyring/control",
    "F7: tmux in the runtime folder": "tmux-1000/default",
    "F8: Wayland": "wayland-0",
    "F8: PipeWire": "pipewire-0",
    "F8: PulseAudio": "pulse/native",
    "agent 17: VS Code": "vscode-ipc-1234.sock",
    "agent 17: Emacs": "emacs/server",
}
IN_HOME = {
    "F1: Docker Desktop": ".docker/run/docker.sock",
    "F1: Colima": ".colima/default/docker.sock",
    "F5: an agent of 1Password": ".1password/agent.sock",
    "F6: gpg-agent of old": ".gnupg/S.gpg-agent",
    "F5: ssh control master": ".ssh/master-host.sock",
    "agent 17: Emacs in the home folder": ".emacs.d/server/server",
}
IN_TEMPORARY = {
    "F5: ssh-agent": "ssh-XXXX/agent.1",
    "F7: tmux": "tmux-1000/default",
    "F7: screen": "uscreens/S-me/1.tty",
    "F8: X11": ".X11-unix/X99",
    "agent 17: a debugger": "clr-debug-pipe.socket",
}
GIVEN = {
    "F1: in the workspace": "workspace/run/docker.sock",
    "F1: in a folder given for writing": "written/service.sock",
    "F1: in a folder given for reading": "given/service.sock",
    "F1: deep in a folder given for reading": "given/a/b/c/service.sock",
    "F1: in a PATH folder": "tools/bin/service.sock",
    "F1: beside a PATH folder": "tools/share/service.sock",
    "F1: beneath a link in the workspace": "behind/service.sock",
    "F1: in a folder beside the workspace": "workspace-other/service.sock",
}
PROBE = r"""
places = json.loads(sys.argv[1])
for name, path in places["paths"].items():
    heard = []
    mets = [outcome(lambda: heard.append(reach(way))) for way in (path, "/proc/self/root" + path, "/proc/1/root" + path)]
    found[name] = heard[0] if heard else mets[0]
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as client:
        client.settimeout(2)
        client.connect(address)
        if kind == socket.SOCK_DGRAM:
            client.send(b"x")
            return client.recv(100).decode()
        return client.recv(100).decode()
for name, port in places["tcp"].items():
    heard = []
    family = socket.AF_INET6 if "6" in name else socket.AF_INET
    met = outcome(lambda: heard.append(connect(family, ("::1" if family == socket.AF_INET6 else "127.0.0.1", port))))
    found[name] = heard[0] if heard else met
for name in places["abstract"]:
    heard = []
    met = outcome(lambda: heard.append(connect(socket.AF_UNIX, "\0" + name)))
    found["abstract " + name.rpartition("/")[2]] = heard[0] if heard else met
found["names"] = sorted(line.split()[-1] for line in content("/proc/net/unix").splitlines() if "@" in line)
found["listening"] = len(content("/proc/net/tcp").splitlines()) - 1
try:
    shm = call("shmget", places["key"], 0, 0o600)
    libc.shmat.restype = ctypes.c_void_p
    found["SysV memory"] = ctypes.string_at(libc.shmat(shm, None, 0o10000), len(places["canary"])).decode()
except OSError as error:
    found["SysV memory"] = errno.errorcode[error.errno]
librt = ctypes.CDLL("librt.so.1", use_errno=True)
queue = librt.mq_open(places["queue"].encode(), os.O_RDONLY | os.O_NONBLOCK)
found["message queue"] = errno.errorcode[ctypes.get_errno()] if queue < 0 else "done"
attempt("/dev/shm", lambda: content("/dev/shm/" + places["shm"]))
keep("/dev/shm/" + places["shm"] + "-inside", "x")
found["environment"] = {name: os.environ[name] for name in places["variables"] if name in os.environ}
with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
    os.chdir("/tmp")
    if not os.path.lexists("own.sock"):
        server.bind("own.sock"); server.listen()
        attempt("own socket", lambda: client.connect("own.sock"))
        os.unlink("own.sock")
with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
    server.bind("\0own-" + places["shm"]); server.listen()
    attempt("own abstract socket", lambda: client.connect("\0own-" + places["shm"]))
with socket.socket() as server, socket.socket() as client:
    server.bind(("127.0.0.1", 0)); server.listen()
    attempt("own TCP socket", lambda: client.connect(server.getsockname()))
say()
"""
ABSTRACT = {
    "F3: X11": "/tmp/.X11-unix/X99",
    "F3: containerd shim": "/containerd-shim/abcdef.sock",
    "F2: D-Bus": "/tmp/dbus-xyz",
    "F3: ibus": "ibus-daemon",
}
VARIABLES = {
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
    "SSH_AGENT_PID": "1",
    "GPG_AGENT_INFO": "/run/user/1000/gnupg/S.gpg-agent:0:1",
    "TMUX": "/tmp/tmux-1000/default,1,0",
    "STY": "1.tty",
    "DISPLAY": ":99",
    "XAUTHORITY": "/home/me/.Xauthority",
    "WAYLAND_DISPLAY": "wayland-0",
    "DOCKER_HOST": "unix:///run/docker.sock",
    "CONTAINER_HOST": "unix:///run/podman.sock",
    "VSCODE_IPC_HOOK_CLI": "/run/user/1000/vscode-ipc-1234.sock",
    "XDG_RUNTIME_DIR": "",
    "KUBECONFIG": "/home/me/.kube/config",
}


class Met(dict[str, Any]):
    """What the same probe met inside and outside."""

    outside: dict[str, Any]
    left: list[str]


@contextmanager
def shared_memory(key: int) -> Iterator[None]:
    """A SysV segment that holds the canary (shmget(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(key, 4096, 0o1600)
    assert number >= 0, os.strerror(ctypes.get_errno())
    try:
        ctypes.memmove(libc.shmat(number, None, 0), CANARY.encode(), len(CANARY))
        yield
    finally:
        libc.shmctl(number, 0, None)


@contextmanager
def message_queue(name: str) -> Iterator[None]:
    """A POSIX message queue (mq_overview(7))."""
    librt = ctypes.CDLL("librt.so.1", use_errno=True)
    queue = librt.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    assert queue >= 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        os.close(queue)
        librt.mq_unlink(name.encode())


@pytest.fixture(scope="module")
def met(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Met]:
    folder = tmp_path_factory.mktemp("services")
    unique = f"{os.getpid()}-{time.time_ns()}"
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jail-tmp-")))
        variables = {**VARIABLES, "XDG_RUNTIME_DIR": str(folder / "runtime")}
        jail = warm_jail(installed, folder, **variables)
        jail = jail._replace(environment={**jail.environment, "PATH": f"/usr/bin:/bin:{folder}/tools/bin"})
        paths = {name: folder / "runtime" / path for name, path in IN_RUNTIME.items()}
        paths |= {name: jail.home / path for name, path in IN_HOME.items()}
        paths |= {name: temporary / path for name, path in IN_TEMPORARY.items()}
        paths |= {name: folder / path for name, path in GIVEN.items()}
        for path in paths.values():
            stack.enter_context(listening(at_path(path)))
        (jail.workspace / "link").symlink_to(folder / "behind")
        names = {name: f"{unique}/{text}" for name, text in ABSTRACT.items()}
        for text in names.values():
            stack.enter_context(listening(abstract(text)))
        tcp = {"IPv4": on_loopback(socket.AF_INET)}
        if socket.has_dualstack_ipv6():
            tcp["IPv6"] = on_loopback(socket.AF_INET6)
        for server in tcp.values():
            stack.enter_context(listening(server))
        key = 0x6A610000 + os.getpid() % 0xFFFF
        stack.enter_context(shared_memory(key))
        stack.enter_context(message_queue(f"/jail-{unique}"))
        shm = Path(f"/dev/shm/jail-{unique}")
        stack.callback(shm.unlink)
        shm.write_text(CANARY)
        places = {
            "paths": {name: str(path) for name, path in paths.items()},
            "tcp": {name: server.getsockname()[1] for name, server in tcp.items()},
            "abstract": list(names.values()),
            "key": key,
            "queue": f"/jail-{unique}",
            "shm": shm.name,
            "canary": CANARY,
            "variables": list(VARIABLES),
        }
        options: list[str | Path] = ["--read", folder / "given", "--write", folder / "written"]
        found = Met(jail.inside(PRELUDE + PROBE, json.dumps(places), options=options))
        found.left = [
            name for name in os.listdir("/dev/shm") if name.endswith("-inside") and shm.name in name
        ]
        found.outside = jail.outside(PRELUDE + PROBE, json.dumps(places))
        (shm.parent / f"{shm.name}-inside").unlink()
        yield found


@pytest.mark.parametrize("name", [*IN_RUNTIME, *IN_HOME, *IN_TEMPORARY])
def test_a_socket_of_a_service_is_absent(name: str, met: Met) -> None:
    assert met.outside[name] == CANARY
    assert met[name] in GONE
    assert met["own socket"] == DONE


@pytest.mark.parametrize("name", GIVEN)
def test_a_socket_in_what_is_given_takes_no_connection(name: str, met: Met) -> None:
    assert met.outside[name] == CANARY
    assert met[name] in GONE | {"EACCES", "ECONNREFUSED"}


@pytest.mark.parametrize("name", ABSTRACT.values(), ids=list(ABSTRACT))
def test_an_abstract_socket_is_out_of_reach(name: str, met: Met) -> None:
    last = name.rpartition("/")[2]
    assert met.outside[f"abstract {last}"] == CANARY
    assert met[f"abstract {last}"] in {"ECONNREFUSED", "EPERM"}
    assert met["own abstract socket"] == DONE


def test_f3_g31_no_name_of_an_abstract_socket_is_seen(met: Met) -> None:
    assert len(met.outside["names"]) >= len(ABSTRACT)
    assert met["names"] == []


def test_f13_no_service_on_the_hosts_loopback_is_reached_or_listed(met: Met) -> None:
    for name in ("IPv4", "IPv6"):
        if name in met.outside:
            assert met.outside[name] == CANARY
            assert met[name] == "ECONNREFUSED"
    assert met.outside["listening"] >= 1
    assert met["listening"] == 0
    assert met["own TCP socket"] == DONE


@pytest.mark.parametrize("name", ["SysV memory", "message queue", "/dev/shm"])
def test_f11_memory_and_queues_are_not_shared_with_the_host(name: str, met: Met) -> None:
    assert met.outside[name] in {CANARY, DONE}
    assert met[name] == "ENOENT"


def test_f11_what_is_put_into_dev_shm_inside_is_not_on_the_host(met: Met) -> None:
    assert met.left == []


def test_no_variable_leads_to_a_service(met: Met) -> None:
    assert set(met.outside["environment"]) == set(VARIABLES)
    assert met["environment"] == {}


# ---- programs that speak to services ----


def runs(jail: Jail, *command: str | Path, inside: bool) -> subprocess.CompletedProcess[str]:
    if inside:
        return jail.run(*command)
    words = [str(word) for word in command]
    return subprocess.run(
        words,
        cwd=jail.workspace,
        env=dict(jail.environment),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose sockets have short names (108 bytes, unix(7))."""
    with tempfile.TemporaryDirectory(prefix="j-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_f7_agent_17_the_hosts_tmux_takes_no_keys_from_inside(warm: Jail, short: Path) -> None:
    path = short / "tmux"
    tmux = ("/usr/bin/tmux", "-S", path)
    started = runs(warm, *tmux, "-f", "/dev/null", "new-session", "-d", "sh", inside=False)
    assert started.returncode == 0, started.stderr
    try:
        marker = warm.workspace / "typed"
        keys = ("send-keys", f"touch {marker}", "Enter")
        assert runs(warm, *tmux, *keys, inside=True).returncode != 0
        assert (
            runs(
                warm, "sh", "-c", f"TMUX={path},1,0 tmux send-keys 'touch {marker}' Enter", inside=True
            ).returncode
            != 0
        )
        time.sleep(0.3)
        assert not marker.exists()
        assert runs(warm, *tmux, *keys, inside=False).returncode == 0, "the control"
        end = time.monotonic() + 60
        while not marker.exists() and time.monotonic() < end:
            time.sleep(0.02)
        assert marker.exists()
    finally:
        runs(warm, *tmux, "kill-server", inside=False)


@pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed")
@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_f2_agent_15_a_d_bus_of_the_host_takes_no_call(kind: str, warm: Jail, short: Path) -> None:
    address = f"unix:{kind}={short}/bus"
    # dbus-daemon wants its uid in /etc/passwd, and the tests' has none: for it and its client, in a namespace, it is root's.
    named = ("/usr/bin/unshare", "--map-root-user")
    daemon = subprocess.Popen(
        [
            *named,
            "/usr/bin/dbus-daemon",
            "--session",
            "--nofork",
            "--nopidfile",
            f"--address={address}",
            "--print-address=1",
        ],
        env=dict(warm.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert daemon.stdout is not None
    try:
        assert daemon.stdout.readline().startswith("unix:")
        call = ("--print-reply", "--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.GetId")
        command = ("/usr/bin/dbus-send", f"--bus={address}", *call)
        assert runs(warm, *named, *command, inside=False).returncode == 0, "the control"
        assert runs(warm, *command, inside=True).returncode != 0
        shell = f"DBUS_SESSION_BUS_ADDRESS={address} {{}}"
        for program in (
            "systemd-run --user true",
            "gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.GetId",
            "busctl --user list",
        ):
            assert runs(warm, "sh", "-c", shell.format(program), inside=True).returncode != 0
    finally:
        daemon.terminate()
        daemon.communicate(timeout=60)


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="ssh-agent is not installed")
def test_f5_an_ssh_agent_of_the_host_neither_lists_nor_takes_keys(warm: Jail, short: Path) -> None:
    path = short / "agent"
    agent = subprocess.Popen(
        ["/usr/bin/ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)
        command = ("sh", "-c", f"SSH_AUTH_SOCK={path} ssh-add -l")
        assert runs(warm, *command, inside=False).returncode == 1, (
            "the control: the agent answers that it has no keys"
        )
        assert runs(warm, *command, inside=True).returncode == 2
    finally:
        agent.terminate()
        agent.wait()


LATER = (
    *(
        ".config/systemd/user/evil.service",
        ".config/autostart/evil.desktop",
        ".bashrc",
        ".profile",
        ".ssh/authorized_keys",
    ),
    *(
        ".local/bin/git",
        ".gitconfig",
        ".local/share/dbus-1/services/evil.service",
        ".config/environment.d/evil.conf",
        ".forward",
    ),
)


def test_f10_what_would_run_on_the_host_later_is_not_reached(warm: Jail) -> None:
    lay(warm.home, {".bashrc": "# mine\n"})
    program = """
for name in sys.argv[1:]:
    path = os.path.join(os.environ["HOME"], name)
    attempt(name, lambda: (os.makedirs(os.path.dirname(path), exist_ok=True), keep(path, "evil")))
for path in ("/var/spool/cron", "/var/spool/at", "/etc/cron.d", "/etc/profile.d", "/etc/systemd", "/usr/lib/systemd/user", "/etc/ld.so.preload"):
    attempt(path, lambda: os.makedirs(path + "/evil"))
keep("work", "kept")
found["seen"] = outcome(lambda: content(os.environ["HOME"] + "/.bashrc"))
say()
"""
    found = warm.inside(PRELUDE + program, *LATER)
    assert {name: found[name] for name in LATER} == dict.fromkeys(LATER, DONE), (
        "the home folder inside is private, and writable"
    )
    left = sorted(str(path.relative_to(warm.home)) for path in warm.home.rglob("*") if path.is_file())
    assert [name for name in left if not name.startswith(".local/state/jail/")] == [".bashrc"]
    assert (warm.home / ".bashrc").read_text() == "# mine\n"
    assert not [name for name, met in found.items() if name.startswith("/") and met == DONE]
    assert (warm.workspace / "work").read_text() == "kept"


def test_f14_a_socket_made_inside_has_no_listener_on_the_host_afterwards(warm: Jail) -> None:
    program = """
server = socket.socket(socket.AF_UNIX)
server.bind("made.sock")
server.listen()
with socket.socket(socket.AF_UNIX) as client:
    attempt("inside", lambda: client.connect("made.sock"))
if os.fork() == 0:
    os.setsid()
    __import__("time").sleep(600)
say()
"""
    assert warm.inside(PRELUDE + program) == {"inside": DONE}
    control = 'attempt("after", lambda: reach(os.path.abspath("made.sock")))\nsay()\n'
    assert warm.outside(PRELUDE + control)["after"] in {"ECONNREFUSED", "ENOENT"}


def test_f14_a_fifo_of_the_host_in_a_folder_given_for_reading_takes_no_bytes(
    warm: Jail, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    os.mkfifo(given / "control")
    program = """
def order():
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b"order")
attempt("order", order)
say()
"""
    listener = os.open(given / "control", os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = warm.inside(PRELUDE + program, str(given / "control"), options=["--read", given])
        assert found["order"] in {"EACCES", "EROFS", "ENOENT"}
        assert os.read(listener, 100) == b""
        assert warm.outside(PRELUDE + program, str(given / "control"))["order"] == DONE
        assert os.read(listener, 100) == b"order"
    finally:
        os.close(listener)
