import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jail.hold import base
from jail.launch import bases
from jail.launch.bases import Bases
from jail.plan.held import COPY, FILE, OVERLAY, Held
from support.installed import CHECKOUT


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """A `held` folder, and beside it a tree `tree` with a file and a folder."""
    (tmp_path / "held" / "base").mkdir(parents=True)
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "a").write_text("one")
    time.sleep(0.02)  # a file's change time is as coarse as the kernel's tick
    return tmp_path / "held"


def things(held: Path) -> tuple[Held, ...]:
    return (
        Held("t0", OVERLAY, str(held.parent / "tree"), "the workspace"),
        Held("t1", COPY, str(held.parent / "absent"), "a copy has its base already"),
        Held("f0", FILE, str(held.parent / "absent"), "so has a file"),
    )


def listed(held: Path, name: str = "t0") -> dict[str, str]:
    found = base.read(str(held), name, lambda _: True)
    return {path: entry.kind for path, entry in found.items()}


def test_each_tree_under_an_overlay_is_listed_as_it_was(held: Path) -> None:
    running = Bases.start(str(held), things(held), time.time_ns())
    assert running is not None
    assert running.wait() == ""
    running.end()
    assert listed(held) == {"": "folder", "a": "file", "sub": "folder"}
    assert os.listdir(held / "base") == ["t0"]


def test_where_no_overlay_is_there_is_no_process(held: Path) -> None:
    assert Bases.start(str(held), things(held)[1:], time.time_ns()) is None


def test_what_cannot_be_listed_is_told_and_unknown(held: Path) -> None:
    (held / "base" / "t0.new").mkdir()
    running = Bases.start(str(held), things(held), time.time_ns())
    assert running is not None
    assert "t0.new" in running.wait()
    running.end()
    assert not base.read(str(held), "t0", lambda _: True).complete


def test_ended_early_it_leaves_no_base(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "snapshot", lambda *_: time.sleep(60))
    running = Bases.start(str(held), things(held), time.time_ns())
    assert running is not None
    running.end()
    running.end()
    assert listed(held) == {}


def test_a_signal_ends_the_waiting_and_not_jail(
    held: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(base, "snapshot", lambda *_: time.sleep(60))
    monkeypatch.setattr(bases, "SLOW", 0.0)
    monkeypatch.setattr(bases, "say", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    running = Bases.start(str(held), things(held), time.time_ns())
    assert running is not None
    assert "a signal came" in running.wait()
    assert signal.getsignal(signal.SIGTERM) is before


def test_it_has_nothing_open_but_the_trees_and_dies_with_jail(held: Path) -> None:
    """Its parent is a process of the test's own, which is killed; the child says what it has open."""
    program = f"""
import os, sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from jail.hold import base
from jail.launch.bases import Bases
from jail.plan.held import Held
secret = os.open("/", os.O_RDONLY)
said = os.open({str(held / "said")!r}, os.O_WRONLY | os.O_CREAT)
def snapshot(fd, path, started):
    with open({str(held / "open")!r} + ".new", "w") as file:
        print(os.getpid(), os.getsid(0) == os.getpid(), os.nice(0), file=file)
        print(*sorted(os.readlink(f"/proc/self/fd/{{n}}") for n in os.listdir("/proc/self/fd") if int(n) != file.fileno() and os.path.exists(f"/proc/self/fd/{{n}}")), file=file)
        print([line for line in open("/proc/self/status") if line.startswith("NoNewPrivs")], file=file)
    os.rename({str(held / "open")!r} + ".new", {str(held / "open")!r})
    time.sleep(60)
base.snapshot = snapshot
running = Bases.start({str(held)!r}, [Held("t0", "overlay", {str(held.parent / "tree")!r}, "")], 0)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        while not (held / "open").exists():
            time.sleep(0.01)
        first, opened, no_new = (held / "open").read_text().splitlines()
        pid, own_session, nice = first.split()
        assert (own_session, nice) == ("True", str(bases.NICE + os.nice(0)))
        assert "NoNewPrivs:\\t1" in no_new
        names = [name for name in opened.split() if not name.startswith(("pipe:", "/proc/"))]
        assert names == [str(held.parent / "tree")]
        parent.kill()
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        time.sleep(0.01)
