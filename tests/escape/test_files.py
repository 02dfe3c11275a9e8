"""CASES.md section A, and agent cases 4, 5, 11, 12, 16, 49, 51: files, paths and mounts, tried from inside."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, PRELUDE, REFUSED, lay, offences, state_of, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, git
from support.policies import undelivered

VERBS = r"""
given = sys.argv[1]
FILES = [
    "RESEARCH.md", ".agent/notes", "CLAUDE.md", ".git/hooks/pre-commit", ".git/config", ".git/info/exclude", "bin/tool",
    f"{given}/file", "/run/jail/README", "/etc/passwd", "/usr/bin/env",
]
FOLDERS = [".agent", ".git/hooks", "bin", given, f"{given}/sub", "/run/jail", "/etc", "/usr/bin", "/"]
PINNED = [".git", ".git/info", ".agent", ".git/hooks", "bin", f"{given}/sub", "/tmp/" + given.split("/")[2], os.environ["HOME"], "/usr"]
count = 0
def fresh(kind="file"):
    global count
    count += 1
    name = f"fresh-{count}"
    if kind == "file":
        keep(name, "fresh")
    else:
        os.mkdir(name)
    return name
def rename2(one, other, flags):
    call("renameat2", AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), flags)
def with_fd(path, deed, flags=os.O_RDONLY):
    fd = os.open(path, flags)
    try:
        return deed(fd)
    finally:
        os.close(fd)
def bind_in(folder):
    with socket.socket(socket.AF_UNIX) as server:
        with_fd(folder, lambda fd: server.bind(f"/proc/self/fd/{fd}/planted.sock"), os.O_PATH)
OF_FILES = {
    "write": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "append": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_APPEND)),
    "truncate": lambda path: os.truncate(path, 0),
    "open with O_TRUNC": lambda path: os.close(os.open(path, os.O_RDWR | os.O_TRUNC)),
    "rename away": lambda path: os.rename(path, f"{fresh('folder')}/away"),
    "rename over": lambda path: os.rename(fresh(), path),
    "exchange": lambda path: rename2(fresh(), path, 2),
    "second name": lambda path: os.link(path, f"{fresh('folder')}/second"),
    "delete": os.unlink,
    "chmod": lambda path: os.chmod(path, 0o666),
    "fchmod": lambda path: with_fd(path, lambda fd: os.fchmod(fd, 0o666)),
    "chown": lambda path: os.chown(path, os.getuid(), os.getgid()),
    "utime": lambda path: os.utime(path, (1, 1)),
    "futime": lambda path: with_fd(path, lambda fd: os.utime(fd, (1, 1))),
    "attribute": lambda path: os.setxattr(path, "user.planted", b"x"),
    "reopen to write": lambda path: with_fd(path, lambda fd: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))),
    "reopen an O_PATH to write": lambda path: with_fd(
        path, lambda fd: os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)), os.O_PATH),
    "chmod through an O_PATH": lambda path: with_fd(path, lambda fd: os.chmod(f"/proc/self/fd/{fd}", 0o666), os.O_PATH),
    "truncate through /proc": lambda path: with_fd(path, lambda fd: os.truncate(f"/proc/self/fd/{fd}", 0)),
    "second name through /proc": lambda path: with_fd(
        path, lambda fd: link_fd(fd, f"{fresh('folder')}/second")),
}
IN_FOLDERS = {
    "create": lambda folder: keep(f"{folder}/planted", "x"),
    "mkdir": lambda folder: os.mkdir(f"{folder}/planted.d"),
    "symlink": lambda folder: os.symlink("/etc/passwd", f"{folder}/planted.link"),
    "fifo": lambda folder: os.mkfifo(f"{folder}/planted.fifo"),
    "socket": bind_in,
    "link in": lambda folder: os.link(fresh(), f"{folder}/planted.link2"),
    "rename in": lambda folder: os.rename(fresh(), f"{folder}/planted.moved"),
    "rename a folder in": lambda folder: os.rename(fresh("folder"), f"{folder}/planted.moved.d"),
    "nameless file": lambda folder: os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)),
    "create through /proc": lambda folder: with_fd(folder, lambda fd: keep(f"/proc/self/fd/{fd}/planted", "x"), os.O_PATH),
    "folder chmod": lambda folder: os.chmod(folder, 0o777),
    "folder utime": lambda folder: os.utime(folder, (1, 1)),
    "folder attribute": lambda folder: os.setxattr(folder, "user.planted", b"x"),
}
OF_PINNED = {
    "folder rename away": lambda folder: os.rename(folder, f"moved-{os.path.basename(folder)}"),
    "folder exchange": lambda folder: rename2(folder, fresh("folder"), 2),
    "folder delete": os.rmdir,
}
for verbs, targets, kind in ((OF_FILES, FILES, "file"), (IN_FOLDERS, FOLDERS, "folder"), (OF_PINNED, PINNED, "folder")):
    for verb, deed in verbs.items():
        for target in targets:
            attempt(f"{verb}|{target}", lambda: deed(target))
        attempt(f"{verb}|neighbour", lambda: deed(fresh(kind)))
say()
"""
VERB_CASES = {
    "A15": (
        *(
            "rename away",
            "rename over",
            "exchange",
            "folder rename away",
            "folder exchange",
            "folder delete",
            "delete",
        ),
        *("write", "append", "open with O_TRUNC"),
    ),
    "agent 5": ("second name", "second name through /proc", "link in", "symlink"),
    "agent 49": (
        *("chmod", "fchmod", "chown", "utime", "futime", "attribute", "truncate", "truncate through /proc"),
        *("folder chmod", "folder utime", "folder attribute", "chmod through an O_PATH"),
    ),
    "agent 51": ("reopen to write", "reopen an O_PATH to write", "create through /proc"),
    "agent 11": ("create", "mkdir", "fifo", "socket", "rename in", "rename a folder in", "nameless file"),
}


class Tried(dict[str, str]):
    """What a program found inside, with the host's protected things as they were before and after."""

    before: dict[str, tuple[object, ...]]
    after: dict[str, tuple[object, ...]]


def repository(jail: Jail) -> None:
    """A git repository in the workspace with things that are protected, and some that are not."""
    git(jail.workspace, "init", "-q", ".")
    lay(
        jail.workspace,
        {
            "RESEARCH.md": "fact",
            "CLAUDE.md": "memory",
            ".agent/notes": "note",
            ".git/hooks/pre-commit": "#!/bin/sh\n",
            ".git/info/exclude": "*.o\n",
            "bin/tool": "#!/bin/sh\n",
            "free.md": "free",
        },
    )
    git(jail.workspace, "add", "free.md")
    git(jail.workspace, "commit", "-qm", "first")


@pytest.fixture(scope="module")
def tried(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    folder = tmp_path_factory.mktemp("verbs")
    jail = warm_jail(installed, folder)
    jail = jail._replace(environment={**jail.environment, "PATH": f"{jail.workspace}/bin:/usr/bin:/bin"})
    repository(jail)
    given = folder / "given"
    lay(given, {"file": "given", "sub/file": "given"})
    names = ("RESEARCH.md", "CLAUDE.md", ".agent", ".git/hooks", ".git/config", ".git/info", "bin")
    protected = [given, *(jail.workspace / name for name in names)]
    before = state_of(*protected)
    options = ["--read", given, "--policy", undelivered(folder)]
    found = Tried(jail.inside(PRELUDE + VERBS, str(given), options=options))
    found.before, found.after = before, state_of(*protected)
    return found


THROUGH_THE_LINK = frozenset(
    "write; append; open with O_TRUNC; truncate; truncate through /proc; reopen to write; reopen an O_PATH to write; "
    "chmod; fchmod; chmod through an O_PATH; chown; utime; futime; attribute".split("; ")
)
"""What follows a link goes, at a held git config, to the session's copy."""
PINNED = frozenset(("folder rename away", "folder exchange", "folder delete"))
HELD = frozenset(("bin", "bin/tool"))
"""A PATH folder in the workspace: what is done to it stays in the session, but none can move it."""


@pytest.mark.parametrize(
    ("case", "verb"),
    [pytest.param(case, verb, id=f"{case}: {verb}") for case, verbs in VERB_CASES.items() for verb in verbs],
)
def test_what_is_protected_or_read_only_refuses_while_its_neighbour_allows(
    case: str, verb: str, tried: Tried
) -> None:
    met = {name.partition("|")[2]: result for name, result in tried.items() if name.partition("|")[0] == verb}
    assert met.pop("neighbour") == DONE
    assert len(met) >= 9
    if verb in THROUGH_THE_LINK:
        assert met.pop(".git/config") == DONE
    if verb not in PINNED:
        for name in (
            HELD & met.keys()
        ):  # what could be done, or was gone by then; the host's is compared below
            del met[name]
    assert not offences(met, REFUSED)


def test_after_all_these_attempts_nothing_protected_has_changed_on_the_host(tried: Tried) -> None:
    assert tried.after == tried.before


APPEAR = r"""
ways = {
    "created": (".mcp.json", lambda name: keep(name, "x")),
    "made as a folder": (".vscode", os.mkdir),
    "renamed in": (".envrc", lambda name: (keep("r", "x"), os.rename("r", name))),
    "a folder renamed in": (".idea", lambda name: (os.mkdir("d"), os.rename("d", name))),
    "linked in": (".cursorrules", lambda name: (keep("l", "x"), os.link("l", name))),
    "a symlink": ("AGENTS.md", lambda name: os.symlink("/etc/passwd", name)),
    "a fifo": ("GEMINI.md", os.mkfifo),
    "a socket": (".windsurfrules", lambda name: socket.socket(socket.AF_UNIX).bind(name)),
    "opened relative to a folder": (".goosehints", lambda name: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=os.open(".", 0)))),
    "a nameless file linked in": (".aiderignore", lambda name: link_fd(
        os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600), name)),
    "exchanged in": ("QWEN.md", lambda name: (keep("e", "x"), keep(name, ""), outcome(
        lambda: call("renameat2", AT_FDCWD, b"e", AT_FDCWD, os.fsencode(name), 2)))),
    "in other letters": (".MCP.JSON", lambda name: keep(name, "x")),
    "a file in a new folder": (".claude", lambda name: (os.mkdir(name), outcome(lambda: keep(f"{name}/settings.json", "x")))),
    "beneath a new folder": (".github/hooks", lambda name: os.makedirs(name)),
    "a hook where there was no hooks folder": (".git/hooks", lambda name: (os.mkdir(name), outcome(lambda: keep(f"{name}/pre-commit", "x")))),
    "an attributes file": (".git/info/attributes", lambda name: keep(name, "x")),
    "other objects": (".git/objects/info/alternates", lambda name: keep(name, "/elsewhere")),
}
for count, (way, (name, deed)) in enumerate(ways.items()):
    attempt(way, lambda: deed(name))
    attempt(f"control {way}", lambda: deed(f"plain-{count}"))
found["names"] = {way: name for way, (name, _) in ways.items()}
say()
"""
APPEARANCES = (
    *(
        "created",
        "made as a folder",
        "renamed in",
        "a folder renamed in",
        "linked in",
        "a symlink",
        "a fifo",
        "a socket",
    ),
    *(
        "opened relative to a folder",
        "a nameless file linked in",
        "exchanged in",
        "in other letters",
        "a file in a new folder",
    ),
    *(
        "beneath a new folder",
        "a hook where there was no hooks folder",
        "an attributes file",
        "other objects",
    ),
)


@pytest.fixture(scope="module")
def appeared(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    jail = warm_jail(installed, tmp_path_factory.mktemp("appeared"))
    git(jail.workspace, "init", "-q", "--template=", ".")
    (jail.workspace / ".git/info").mkdir()
    found: dict[str, Any] = jail.inside(PRELUDE + APPEAR)
    found["left"] = {way: os.path.lexists(jail.workspace / name) for way, name in found["names"].items()}
    found["plain"] = {
        way: os.path.lexists(jail.workspace / f"plain-{count}") for count, way in enumerate(found["names"])
    }
    found["swept"] = [entry["fields"]["path"] for entry in jail.ledger() if entry["kind"] == "swept"]
    found["folder"] = str(jail.workspace)
    return found


@pytest.mark.parametrize("way", APPEARANCES)
def test_a17_agent_4_a_protected_name_that_was_absent_is_gone_from_the_host_however_it_was_made(
    way: str, appeared: dict[str, Any]
) -> None:
    assert appeared["plain"][way], "the same deed makes an unprotected name"
    assert not appeared["left"][way]
    assert f"{appeared['folder']}/{appeared['names'][way]}" in appeared["swept"]


MEANWHILE = r"""
import time
workspace = os.getcwd()
keep("ready", "x")
while not os.path.exists("go"):
    time.sleep(0.01)
for name in (".git/config", ".git/hooks/pre-commit", "RESEARCH.md", "CLAUDE.md"):
    attempt(f"write {name}", lambda: keep(name, "planted", os.O_WRONLY))
    attempt(f"rename over {name}", lambda: (keep("planted", "planted"), os.rename("planted", name)))
attempt("move .git", lambda: os.rename(".git", "moved"))
found["config"] = content(".git/config")
attempt("write free.md", lambda: keep("free.md", "x", os.O_WRONLY))
say()
"""


class Meanwhile(dict[str, Any]):
    """What was met inside after the host had worked in the same tree, and what was seen on the host meanwhile."""

    mounts: tuple[str, str, str]
    names: tuple[list[str], list[str]]
    kinds: list[str]


@pytest.fixture(scope="module")
def meanwhile(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Meanwhile:
    jail = warm_jail(installed, tmp_path_factory.mktemp("meanwhile"))
    repository(jail)
    before, names = mountinfo(), sorted(os.listdir(jail.workspace))
    running = jail.popen(
        PYTHON, "-I", "-c", PRELUDE + MEANWHILE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_for((jail.workspace / "ready").exists)
        during, seen = mountinfo(), sorted(os.listdir(jail.workspace))
        git(jail.workspace, "config", "user.name", "changed by the host")
        replacement = jail.workspace / "RESEARCH.new"
        replacement.write_text("from the host")
        replacement.rename(jail.workspace / "RESEARCH.md")
        wait_for(lambda: [entry["kind"] for entry in jail.ledger()].count("restored") == 2)
        (jail.workspace / "go").write_text("")
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, err
    found = Meanwhile(json.loads(out.splitlines()[-1]))
    found.mounts, found.names = (before, during, mountinfo()), (names, seen)
    found.kinds = [entry["kind"] for entry in jail.ledger()]
    found["host"] = (jail.workspace / "RESEARCH.md").read_text()
    found["host's config"] = (jail.workspace / ".git/config").read_text()
    return found


def mountinfo() -> str:
    return Path("/proc/self/mountinfo").read_text()


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a3_no_mount_of_the_jail_is_seen_on_the_host(meanwhile: Meanwhile) -> None:
    before, during, after = meanwhile.mounts
    assert before == during == after
    assert before.count("\n") > 3


def test_a17_no_stub_is_seen_on_the_host_while_the_jail_runs(meanwhile: Meanwhile) -> None:
    names, seen = meanwhile.names
    assert set(seen) == {*names, "ready"}


def test_a16_a_mount_that_the_host_detached_is_back_and_holds(meanwhile: Meanwhile) -> None:
    assert meanwhile.kinds.count("lost") == meanwhile.kinds.count("restored") == 2
    met = {
        name: result
        for name, result in meanwhile.items()
        if name.startswith(("write .", "write R", "write C", "rename", "move"))
    }
    assert len(met) == 9
    assert met.pop("write .git/config") == DONE
    assert not offences(met, REFUSED)
    assert meanwhile["write free.md"] == DONE
    assert meanwhile["config"].startswith("planted")
    assert "changed by the host" in meanwhile["host's config"]
    assert "planted" not in meanwhile["host's config"]
    assert meanwhile["host"] == "from the host"
