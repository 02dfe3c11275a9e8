"""CASES.md A5, A6, A14, A33 and agent case 5: links and races at launch, odd names, deep trees."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, lay, offences, state_of, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, git

EXIT_CANNOT_ISOLATE = 78
NOT_STARTED = {EXIT_CANNOT_ISOLATE, 125}


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


def policy_with(folder: Path, **lists: list[str]) -> Path:
    """The shipped policy with other lists under [files]."""
    text = (Path(__file__).resolve().parents[2] / "policies" / "overnight.toml").read_text()
    for name, values in lists.items():
        line = next(line for line in text.splitlines() if line.startswith(f"{name} = []"))
        text = text.replace(line, f"{name} = {json.dumps(values)}")
    path = folder / "mine.toml"
    path.write_text(text)
    return path


# ---- links that the agent made before the launch (A5, A6, A14, agent case 5) ----


@pytest.mark.parametrize("verb", ["write", "read"])
def test_a14_a_folder_of_the_policy_that_became_a_link_out_of_the_workspace_is_refused(
    verb: str, warm: Jail, tmp_path: Path
) -> None:
    lay(tmp_path, {"other/file": "canary"})
    policy = policy_with(tmp_path, **{verb: ["build"]})
    (warm.workspace / "build").mkdir()
    assert warm.run("true", options=["--policy", policy]).returncode == 0
    (warm.workspace / "build").rmdir()
    made = warm.run("ln", "-s", tmp_path / "other", "build")
    assert made.returncode == 0, made.stderr
    before = state_of(tmp_path / "other")
    probe = f"cat build/file {tmp_path}/other/file; echo x > {tmp_path}/other/pwned; echo ran"
    done = warm.run("sh", "-c", probe, options=["--policy", policy])
    assert state_of(tmp_path / "other") == before
    assert "canary" not in done.stdout
    assert done.returncode == EXIT_CANNOT_ISOLATE, done.stdout + done.stderr


def test_a14_a_flag_that_names_a_link_in_the_workspace_does_not_give_what_it_leads_to(
    warm: Jail, tmp_path: Path
) -> None:
    lay(tmp_path, {"other/file": "canary"})
    (warm.workspace / "build").symlink_to(tmp_path / "other")
    before = state_of(tmp_path / "other")
    done = warm.run("sh", "-c", f"echo x > {tmp_path}/other/pwned", options=["--write", "build"])
    assert state_of(tmp_path / "other") == before
    assert done.returncode == EXIT_CANNOT_ISOLATE, done.stdout + done.stderr


@pytest.mark.parametrize("secret", [".ssh/id", ".aws/credentials"])
def test_agent_5_a_committed_link_to_a_credential_leads_nowhere_and_cannot_be_given(
    secret: str, warm: Jail
) -> None:
    lay(warm.home, {secret: "canary"})
    (warm.workspace / "notes").symlink_to(warm.home / secret)
    (warm.workspace / "folder").symlink_to(warm.home / secret.split("/", maxsplit=1)[0])
    (warm.workspace / "plain").write_text("plain")
    (warm.workspace / "good").symlink_to("plain")
    done = warm.run("sh", "-c", "cat good; cat notes; ls folder/")
    assert done.stdout == "plain"
    for verb in ("--read", "--write"):
        assert warm.run("cat", "notes", options=[verb, "folder"]).returncode == EXIT_CANNOT_ISOLATE
    assert (warm.workspace / "notes").read_text() == "canary"


LINKS = {
    "RESEARCH.md": "victim/file",
    "CLAUDE.md": "victim/file",
    **dict.fromkeys((".agent", ".git", ".claude", ".vscode", ".github"), "victim"),
}
THROUGH = """
for name, target in json.loads(sys.argv[1]).items():
    inside = name if name.endswith(".md") else name + "/file"
    attempt(f"{name}|write through", lambda: keep(inside, "x"))
    attempt(f"{name}|make through", lambda: keep(inside + ".planted", "x") if "/" in inside else keep(inside, "x"))
    attempt(f"{name}|read through", lambda: content(inside))
    attempt(f"{name}|target", lambda: os.stat(target))
    attempt(f"{name}|delete", lambda: os.unlink(name))
    attempt(f"{name}|rename", lambda: os.rename(name, "moved"))
    attempt(f"{name}|replace", lambda: (os.symlink("elsewhere", "new" + name), os.rename("new" + name, name)))
attempt("neighbour", lambda: (os.symlink("nowhere", "link"), os.rename("link", "other"), os.unlink("other")))
say()
"""


@pytest.fixture(scope="module")
def linked(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("linked")
    jail = warm_jail(installed, folder)
    lay(
        folder,
        {
            "victim/file": "canary",
            "victim/hooks/pre-commit": "canary",
            "victim/HEAD": "ref: refs/heads/main\n",
        },
    )
    for name, target in LINKS.items():
        (jail.workspace / name).symlink_to(folder / target)
    before = state_of(folder / "victim")
    links = {name: state_of(jail.workspace / name) for name in LINKS}
    targets = {name: str(folder / target) for name, target in LINKS.items()}
    met = jail.inside(PRELUDE + THROUGH, json.dumps(targets))
    unchanged = {
        name: os.path.lexists(jail.workspace / name) and state_of(jail.workspace / name) == old
        for name, old in links.items()
    }
    return {"met": met, "unchanged": {**unchanged, "victim": state_of(folder / "victim") == before}}


@pytest.mark.parametrize("name", LINKS)
def test_a5_a_link_at_a_protected_place_is_not_followed_by_the_walls_and_stays_where_it_is(
    name: str, linked: dict[str, dict[str, object]]
) -> None:
    met = {key: str(result) for key, result in linked["met"].items() if key.startswith(f"{name}|")}
    assert len(met) == 7
    assert linked["met"]["neighbour"] == DONE
    assert linked["unchanged"][name], "the link is on the host as it was"
    assert not offences(met, REFUSED | GONE)


def test_a5_what_such_links_lead_to_is_as_it_was(linked: dict[str, dict[str, object]]) -> None:
    assert linked["unchanged"]["victim"] is True


def test_a6_a_link_in_the_path_to_the_workspace_is_resolved_once_and_the_walls_are_the_same(
    warm: Jail, tmp_path: Path
) -> None:
    lay(warm.workspace, {"RESEARCH.md": "fact", "below/plain": "plain"})
    (tmp_path / "link").symlink_to(tmp_path)
    program = """
found["where"] = os.getcwd()
attempt("protected", lambda: keep("../RESEARCH.md", "x", os.O_WRONLY))
attempt("free", lambda: keep("made", "x"))
say()
"""
    command = [
        str(warm.installed.command),
        "run",
        "--workspace",
        str(tmp_path / "link/workspace"),
        "--",
        PYTHON,
        "-I",
        "-c",
    ]
    folder = tmp_path / "link" / "workspace" / "below"
    environment = {**warm.environment, "PWD": str(folder)}
    done = subprocess.run(
        [*command, PRELUDE + program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = {"where": str(warm.workspace / "below"), "protected": "EROFS", "free": DONE}
    assert json.loads(done.stdout.splitlines()[-1]) == expected


# ---- somebody swaps names while jail starts (A6, agent case 5) ----

SWAP = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
number = 316 if os.uname().machine == "x86_64" else 276
one, other = (os.fsencode(path) for path in sys.argv[1:])
while True:
    libc.syscall(number, -100, one, -100, other, 2)
    time.sleep(0.0004)
"""


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Exchange two names some thousand times a second (renameat2(2), RENAME_EXCHANGE)."""
    loop = subprocess.Popen([sys.executable, "-I", "-c", SWAP, str(one), str(other)])
    try:
        seen: set[bool] = set()
        end = time.monotonic() + 60
        while len(seen) < 2:  # the control: both states are met
            assert time.monotonic() < end, "the loop swaps nothing"
            seen.add(one.is_symlink())
        yield
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize("name", [".agent", ".github", ".git"])
def test_a6_a_protected_folder_swapped_with_a_link_during_launch_never_reaches_what_the_link_leads_to(
    name: str, warm: Jail, tmp_path: Path
) -> None:
    lay(
        tmp_path, {"victim/notes": "canary", "victim/hooks/pre-commit": "canary", "victim/config": "[core]\n"}
    )
    if name == ".git":
        git(warm.workspace, "init", "-q", ".")
    lay(warm.workspace, {f"{name}/notes": "note", ".github/hooks/x": "x"})
    (warm.workspace / "link").symlink_to(tmp_path / "victim")
    before = state_of(tmp_path / "victim")
    seen = set()
    with swapping(warm.workspace / name, warm.workspace / "link"):
        for _ in range(3):
            done = warm.run(
                "sh",
                "-c",
                f"for i in 1 2 3 4 5 6 7 8; do cat {name}/notes; echo x > {name}/pwned; done; true",
            )
            assert "canary" not in done.stdout
            seen.add(done.returncode)
    assert seen <= {0, *NOT_STARTED}
    assert state_of(tmp_path / "victim") == before


def test_a6_a_workspace_swapped_with_a_link_to_credentials_during_launch_never_gives_them(
    warm: Jail, tmp_path: Path
) -> None:
    lay(warm.home, {".ssh/id": "canary"})
    lay(warm.workspace, {"id": "plain"})
    (tmp_path / "link").symlink_to(warm.home / ".ssh")
    before = state_of(warm.home / ".ssh")
    probe = ["sh", "-c", "cat id; echo x > pwned"]

    def started() -> subprocess.CompletedProcess[str]:
        command = [str(warm.installed.command), "run", "--workspace", str(warm.workspace), "--", *probe]
        environment = dict(warm.environment)
        return subprocess.run(
            command, cwd="/", env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    assert started().stdout == "plain"
    with swapping(warm.workspace, tmp_path / "link"):
        for _ in range(4):
            done = started()
            assert "canary" not in done.stdout
            assert done.returncode in {0, *NOT_STARTED}, done.stderr
    assert state_of(warm.home / ".ssh") == before


# ---- names and depths (A33) ----

ODD = (
    b"new\nline",
    b"-rf",
    b"\xff\xfe",
    b"esc\x1b]0;x\x07",
    b"tab\t",
    b" lead",
    b"\xe2\x80\xae.txt",
    b"'quote\"",
    b"*",
    b"a" * 255,
)


def test_a33_names_with_newlines_options_and_bytes_that_are_no_text_pass_and_are_told_safely(
    warm: Jail, tmp_path: Path
) -> None:
    workspace = os.fsencode(warm.workspace)
    for name in ODD:
        os.mkdir(workspace + b"/" + name)
        Path(os.fsdecode(workspace + b"/" + name + b"/Makefile")).write_bytes(b"all:\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.link(workspace + b"/\xff\xfe/Makefile", bytes(elsewhere) + b"/second")
    program = """
names = os.listdir(b".")
found["seen"] = len(names)
for name in names:
    keep(name + b"/Makefile.new", "all:")
    os.replace(name + b"/Makefile.new", name + b"/conftest.py")
attempt("shared file", lambda: keep(b"\\xff\\xfe/Makefile", "x", os.O_WRONLY))
attempt("free file", lambda: keep(b"-rf/Makefile", "x", os.O_WRONLY))
say()
"""
    found = warm.inside(PRELUDE + program)
    assert found == {"seen": len(ODD), "shared file": "EROFS", "free file": DONE}
    changed = [entry["fields"]["path"] for entry in warm.ledger() if entry["kind"] == "changed"]
    assert {os.fsencode(path) for path in changed} >= {name + b"/conftest.py" for name in ODD}
    assert warm.call("verify", "last").returncode == 0


def test_a33_a_workspace_whose_own_name_is_odd_works(warm: Jail, tmp_path: Path) -> None:
    folder = os.fsdecode(bytes(tmp_path) + b"/-rf\nnew \xff\xfe\x1b[31m")
    os.mkdir(folder)
    command = [str(warm.installed.command), "run", "--", "sh", "-c", "echo made > made"]
    done = subprocess.run(
        command, cwd=folder, env=dict(warm.environment), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(folder, "made").read_text() == "made\n"
    listed = warm.call("sessions").stdout
    assert "\x1b" not in listed
    assert "-rf\\x0anew \\xff\\xfe\\x1b[31m" in listed


DEEP = """
os.mkdir(sys.argv[1])
os.chdir(sys.argv[1])
for _ in range(10_000):
    os.mkdir("d")
    os.chdir("d")
keep("conftest.py", "x")
say()
"""
BEARABLE = 120
"""Seconds for a start and an end beside a tree of 10,000 levels: listing it takes half a second."""


def test_a33_a_tree_of_ten_thousand_levels_delays_neither_start_nor_end(
    installed: Installed, memory: Path
) -> None:
    warm = warm_jail(installed, memory)
    warm.outside(PRELUDE + DEEP, "deep")
    begin = time.monotonic()
    running = warm.popen("true")
    try:
        assert running.wait(timeout=BEARABLE) == 0
    except subprocess.TimeoutExpired:
        pytest.fail(f"jail is still busy with the tree after {time.monotonic() - begin:.0f} s")
    finally:
        running.kill()
        running.wait()
    names = [entry["kind"] for entry in warm.ledger()]
    assert names[-1] == "end"
