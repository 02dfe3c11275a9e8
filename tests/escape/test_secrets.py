"""Issue 2, Must show 5, and agent case 46: a canary secret, wherever it lies on the host, is not seen inside nor in jail's own records.

Rule: one search program looks everywhere that it can; without walls it finds the canary on each of the ways, inside on none.
"""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.attempts import PRELUDE, lay, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail
from support.services import CANARY, abstract, at_path, listening, on_loopback

SEARCH = r"""
import mmap, time
places = json.loads(os.environ.pop("PLACES", "") or open("places.json").read())
canary = bytes(reversed(places["yranac"].encode()))
hits = {}
def hit(way, data):
    if canary in data:
        hits[way] = 1
def read_all(path, limit=1 << 20):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        data = b""
        while len(data) < limit and (part := os.read(fd, 1 << 16)):
            data += part
        return data
    finally:
        os.close(fd)
def tried(way, deed):
    try:
        hit(way, deed())
    except (OSError, ValueError):
        pass
tried("own environment", lambda: b"\0".join(k + b"=" + v for k, v in os.environb.items()))
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid():
        tried("environment of another process", lambda: read_all(f"/proc/{pid}/environ"))
        tried("command line of another process", lambda: read_all(f"/proc/{pid}/cmdline"))
for name, path in places["files"].items():
    tried(name, lambda: read_all(path))
    for root in ("/proc/1/root", "/proc/self/root", "/proc/self/cwd/../.."):
        tried(name, lambda: read_all(root + path))
def stack_of(pid):
    # the memory of a process: its stack holds its environment
    for line in read_all(f"/proc/{pid}/maps").decode().splitlines():
        if "[stack]" in line:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
            os.lseek(fd, start, 0)
            return os.read(fd, end - start)
    return b""
for pid in (1, os.getppid()):
    tried("memory of a parent", lambda: stack_of(pid))
    for link in ("cwd", "root"):
        tried("folder of a parent", lambda: read_all(f"/proc/{pid}/{link}/" + places["in_cwd"]))
for fd in sorted(int(name) for name in os.listdir("/proc/self/fd")):
    if fd > 2:
        tried("open file", lambda: os.pread(fd, 4096, 0))
        tried("open folder", lambda: read_all(f"/proc/self/fd/{fd}/{places['in_folder']}"))
tried("stdin before its offset", lambda: os.pread(0, 4096, 0))
tried("stdin opened again", lambda: os.pread(os.open("/proc/self/fd/0", os.O_RDONLY | os.O_NONBLOCK), 4096, 0))
tried("log on stderr", lambda: os.pread(os.open("/proc/self/fd/2", os.O_RDONLY | os.O_NONBLOCK), 4096, 0))
tried("pathname socket", lambda: reach(places["socket"]).encode())
def said(family, address):
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address)
        return client.recv(100)
tried("abstract socket", lambda: said(socket.AF_UNIX, "\0" + places["abstract"]))
tried("loopback", lambda: said(socket.AF_INET, ("127.0.0.1", places["port"])))
seen = 0
kept = {"/usr", "/opt", "/sys", "/proc", "/nix", "/gnu"}
begin = time.monotonic()
for top in places["tops"]:
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in kept]
        for name in names:
            seen += 1
            tried("walk: name", lambda: os.fsencode(name))
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                tried("walk: content", lambda: read_all(path))
print("\n" + json.dumps({"hits": sorted(hits), "seen": seen}))
"""
FILES = {
    "ssh key": "home/.ssh/id_ed25519",
    "aws": "home/.aws/credentials",
    "netrc": "home/.netrc",
    "npm token": "home/.npmrc",
    "pip": "home/.config/pip/pip.conf",
    "git credentials": "home/.git-credentials",
    "gh": "home/.config/gh/hosts.yml",
    "docker": "home/.docker/config.json",
    "kube": "home/.kube/config",
    "gnupg": "home/.gnupg/private-keys-v1.d/key",
    "cargo": "home/.cargo/credentials.toml",
    "claude": "home/.claude.json",
    "agent's settings": "home/.claude/settings.json",
    "shell history": "home/.bash_history",
    "browser": "home/.config/chromium/Default/Cookies",
    "keyring": "home/.local/share/keyrings/login.keyring",
    "password store": "home/.password-store/x.gpg",
    "a dot file that nobody named": "home/.some-tool/token",
    "notes in the home folder": "home/notes.txt",
    "another project": "other/.env",
    "a project with a similar name": "workspace-evil/.env",
    "the folder above": "above.env",
    "jail's own configuration": "home/.config/jail/mine.toml",
    "an old session": "home/.local/state/jail/sessions/20200101-000000-aaaaaaaa/ledger.jsonl",
    "log": "log",
    "stdin": "stdin",
}
WAYS = (
    *(name for name in FILES if name not in {"log", "stdin"}),
    *(
        "temporary file",
        "shared memory file",
        "own environment",
        "environment of another process",
        "command line of another process",
    ),
    *(
        "memory of a parent",
        "folder of a parent",
        "open file",
        "open folder",
        "stdin before its offset",
        "stdin opened again",
    ),
    *("log on stderr", "pathname socket", "abstract socket", "loopback", "walk: name", "walk: content"),
)


class Searched(dict[str, Any]):
    """Where the search found the canary: `inside` and `outside`; `records`: what jail itself wrote of the run."""

    inside: dict[str, Any]
    outside: dict[str, Any]
    records: str


def search(jail: Jail, folder: Path, fds: list[int], *, inside: bool) -> tuple[dict[str, Any], str]:
    """Run the search with an open file and folder, stdin past the canary, stderr a log, and a secret environment."""
    words = [PYTHON, "-I", "-c", PRELUDE + SEARCH]
    if inside:
        words = [str(jail.installed.command), "run", "--", *words]
    # A parent whose command line and environment hold the canary: it starts the program and waits.
    parent = ["/bin/sh", "-c", '"$@"; exit $?', CANARY, *words]
    environment = {
        **jail.environment,
        "API_TOKEN": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "LC_CANARY": CANARY,
        f"X_{CANARY[:6]}": CANARY,
    }
    with open(folder / "stdin", "rb") as stdin, open(folder / "log", "ab+") as log:
        os.lseek(stdin.fileno(), 64, os.SEEK_SET)
        done = subprocess.run(
            parent,
            cwd=jail.workspace,
            env=environment,
            stdin=stdin,
            stderr=log,
            stdout=subprocess.PIPE,
            pass_fds=fds,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, (folder / "log").read_text()
    return json.loads(done.stdout.splitlines()[-1]), done.stdout.decode()


@pytest.fixture(scope="module")
def searched(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    folder = tmp_path_factory.mktemp("secrets")
    jail = warm_jail(installed, folder)
    lay(folder, dict.fromkeys(FILES.values(), f"secret = {CANARY}\n"))
    lay(folder, {f"other/{CANARY}.txt": "x", "stdin": f"{CANARY:<64}what follows\n"})
    unique = f"jail-{os.getpid()}-{time.time_ns()}"
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jail-secret-")))
        (temporary / "token").write_text(CANARY)
        shared = Path("/dev/shm") / unique
        shared.write_text(CANARY)
        stack.callback(shared.unlink)
        stack.enter_context(listening(at_path(folder / "run/service.sock")))
        stack.enter_context(listening(abstract(unique)))
        server = on_loopback(socket.AF_INET)
        port = server.getsockname()[1]
        stack.enter_context(listening(server))
        fds = [os.open(folder / "other/.env", os.O_RDONLY), os.open(folder / "other", os.O_RDONLY)]
        for fd in fds:
            stack.callback(os.close, fd)
        files = {name: str(folder / path) for name, path in FILES.items()}
        files |= {"temporary file": str(temporary / "token"), "shared memory file": str(shared)}
        places = {
            "yranac": CANARY[::-1],
            "files": files,
            "in_cwd": "../other/.env",
            "in_folder": ".env",
            "socket": str(folder / "run/service.sock"),
            "abstract": unique,
            "port": port,
        }
        found = Searched()
        (jail.workspace / "places.json").write_text(json.dumps({**places, "tops": ["/"]}))
        found.inside, live = search(jail, folder, fds, inside=True)
        plan = jail.call("plan", "--env", f"API_TOKEN={CANARY}", "--env", "LC_ALL", "--", "true")
        given = jail.run("sh", "-c", "echo $API_TOKEN", options=["--env", f"API_TOKEN={CANARY}"])
        assert given.stdout == f"{CANARY}\n", "the control: a value that is named is there"
        listed = jail.call("sessions", "--json").stdout + jail.call("verify", "last", "--json").stdout
        records = "".join(
            (session / "ledger.jsonl").read_text()
            for session in jail.sessions()
            if "2020" not in session.name
        )
        found.records = live + plan.stdout + plan.stderr + given.stderr + listed + records
        (jail.workspace / "places.json").write_text(json.dumps({**places, "tops": [str(folder / "other")]}))
        found.outside, _ = search(jail, folder, fds, inside=False)
        yield found


@pytest.mark.parametrize("way", WAYS)
def test_agent_46_a_canary_secret_is_found_outside_and_not_inside(way: str, searched: Searched) -> None:
    assert way in searched.outside["hits"]
    assert way not in searched.inside["hits"]


def test_agent_46_the_search_inside_found_it_nowhere_at_all_and_did_look(searched: Searched) -> None:
    assert searched.inside["hits"] == []
    assert searched.inside["seen"] > 200


def test_agent_46_neither_plan_nor_ledger_nor_list_repeats_a_secret_of_the_environment(
    searched: Searched,
) -> None:
    assert "API_TOKEN" in searched.records, "the control: the name of what is handed on is told"
    found = [match.start() for match in re.finditer(re.escape(CANARY), searched.records)]
    assert [searched.records[max(0, at - 80) : at + 40] for at in found] == []
