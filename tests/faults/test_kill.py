"""kill -9 of any process of jail, at any moment: nothing lives on, nothing is mounted, the terminal is sane.

CASES.md E1, E15, C8; DESIGN.md, Processes. The moments are random (seeded), spread over what an undisturbed
run takes from its start to well into the command; and, where a moment matters, exact: strace kills the
supervisor as it enters a call.
"""

import os
import random
import signal
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pexpect  # type: ignore[import-untyped]  # it ships no types of its own
import pytest

from jail.ledger import place
from jail.ledger.reader import verify
from support import faults, refusing
from support.aftermath import left_by, look
from support.installed import Installed
from support.jails import Jail, make_jail
from support.running import until

MOMENTS: Final = 20
WELL_INTO: Final = 0.15
"""Seconds of the command's life in which it may still be hit."""
BOUND: Final = 60.0
"""Seconds after which what lives on counts as a survivor; it takes some milliseconds."""
STUBBORN: Final = (
    "trap '' TERM HUP INT QUIT; setsid sh -c 'while :; do sleep 0.05; done' \"$0\" & echo started;"
    " while :; do sleep 0.05; done"
)
"""A command that ignores what can be ignored, with a child in a session of its own."""
CALLS: Final = "openat renameat flock mkdir clone pipe2 socketpair recvmsg poll inotify_add_watch".split()
WRITES: Final = 8
"""More than a plain run makes to its records: start, index, probes, running, end, head, index."""


class Shell:
    """A shell on a pty that runs jail and lives on after it, as a person's does."""

    def __init__(self, jail: Jail, mark: str, *command: str) -> None:
        self.jail, self.mark = jail, mark
        script = '"$@"; echo "over $?"; read line'
        arguments = ["-c", script, "sh", str(jail.installed.command), "run", "--", *command]
        environment = dict(jail.environment)
        self.child = pexpect.spawn("/bin/sh", arguments, cwd=str(jail.workspace), env=environment, timeout=60)
        self.child.delaybeforesend = (
            None  # pexpect's waits are for people's passwords: what is sent here ends a `read`
        )
        self.child.ptyproc.delayafterclose = 0
        self.before = termios.tcgetattr(self.child.child_fd)

    def settings(self) -> list[Any]:
        """The terminal's, as the shell would find them."""
        return termios.tcgetattr(self.child.child_fd)

    def process(self, which: str) -> int:
        """The pid of one of jail's processes, 0 while there is none: the shell's child is the supervisor, its
        first child guards the terminal, the second is the keeper, whose child is process 1.
        """
        chain = {"supervisor": (0,), "guard": (0, 0), "keeper": (0, 1), "init": (0, 1, 0)}[which]
        pid = self.child.pid
        for index in chain:
            children = _children(pid)
            if len(children) <= index:
                return 0
            pid = children[index]
        return int(pid)

    def over(self) -> int:
        """The exit code that the shell sees."""
        self.child.expect(rb"over (\d+)")
        return int(self.child.match.group(1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self.child.sendline("")
            self.child.expect(pexpect.EOF)
        self.child.close(force=True)


def _children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Scene(NamedTuple):
    """A jail, the mark of its processes, and seconds from its start to its command's first word."""

    jail: Jail
    mark: str
    length: float


@pytest.fixture(scope="module")
def scene(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Undisturbed runs first: they warm the caches, and are the positive control of the looks at what is
    left.
    """
    folder = tmp_path_factory.mktemp("kill")
    jail = make_jail(installed, folder)
    mark = f"jail-kill-{os.getpid()}-{folder.name}"
    assert jail.run("true").returncode == 0
    before = look(jail)
    began = time.monotonic()
    with Shell(jail, mark, "sh", "-c", STUBBORN, mark) as shell:
        shell.child.expect(b"started")
        length = time.monotonic() - began
        assert shell.settings() != shell.before, "the terminal is not raw while the command runs"
        assert any("lives on" in found for found in left_by(jail, mark, before)), (
            "survivors would not be seen"
        )
        os.kill(shell.process("init"), signal.SIGKILL)
        shell.over()
    yield Scene(jail, mark, length)
    faults.kill_marked(mark)


@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("victim", ["supervisor", "keeper", "init"])
def test_kill_9_at_a_random_moment_leaves_nothing(scene: Scene, victim: str, moment: int) -> None:
    chance = random.Random(f"{victim} {moment}")
    before = look(scene.jail)
    with Shell(scene.jail, scene.mark, "sh", "-c", STUBBORN, scene.mark) as shell:
        assert until(lambda: shell.process(victim), BOUND), f"there was no {victim}"
        time.sleep(chance.uniform(0, scene.length + WELL_INTO))
        os.kill(shell.process(victim), signal.SIGKILL)
        code = shell.over()
        assert code in ((137,) if victim == "supervisor" else (125, 78)), shell.child.before
        assert until(lambda: shell.settings() == shell.before, BOUND), "the terminal is not as it was"
    assert left_by(scene.jail, scene.mark, before, BOUND) == []


@pytest.mark.parametrize(
    ("victim", "state"), [("supervisor", "crashed"), ("keeper", "ended 125"), ("init", "ended 125")]
)
def test_sessions_tell_what_was_killed_from_what_ended(scene: Scene, victim: str, state: str) -> None:
    before = look(scene.jail)
    with Shell(scene.jail, scene.mark, "sh", "-c", STUBBORN, scene.mark) as shell:
        shell.child.expect(b"started")
        os.kill(shell.process(victim), signal.SIGKILL)
        shell.over()
    (session,) = look(scene.jail).sessions - before.sessions
    assert until(lambda: not place.running(session), BOUND)
    listing = scene.jail.call("sessions").stdout.splitlines()
    (row,) = [line for line in listing if line.startswith(Path(session).name)]
    assert f" {state} " in row


def test_the_guard_of_the_terminal_may_be_killed_and_the_run_goes_on(scene: Scene) -> None:
    before = look(scene.jail)
    with Shell(scene.jail, scene.mark, "sh", "-c", "echo started; exec sleep 60", scene.mark) as shell:
        shell.child.expect(b"started")
        os.kill(shell.process("guard"), signal.SIGKILL)
        shell.child.sendintr()
        assert shell.over() == 130
        assert shell.settings() == shell.before
    assert left_by(scene.jail, scene.mark, before) == []


@pytest.fixture(scope="module")
def trace(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> list[faults.Call]:
    """The calls of an undisturbed run."""
    log = tmp_path_factory.mktemp("trace") / "strace.log"
    ended = faults.traced(scene.jail, scene.mark, log, _short(scene))
    assert ended.code == 0, ended.errors
    return faults.calls(log)


def _short(scene: Scene) -> list[str]:
    return ["run", "--", "sh", "-c", "sleep 0.05", scene.mark]


@pytest.mark.parametrize("name", CALLS)
def test_a_supervisor_killed_as_it_enters_a_call_leaves_nothing(
    scene: Scene, trace: list[faults.Call], name: str, tmp_path: Path
) -> None:
    wanted = {call for call in faults.of_the_launch(trace) if call.process == trace[0].process}
    points = faults.points(trace, name, wanted)
    assert points, f"the supervisor makes no call of {name} that can be singled out"
    wrong, codes = [], []
    for point in points:
        before = look(scene.jail)
        options = faults.injection(name, point.number, "signal=SIGKILL")
        ended = faults.traced(scene.jail, scene.mark, tmp_path / "log", _short(scene), *options)
        found = ["it hung"] if ended.hung else left_by(scene.jail, scene.mark, before)
        wrong += [f"killed at {point.text[:100]}: {complaint}" for complaint in found]
        codes.append(ended.code)
    # Where processes race, a run may end before it makes its last call.
    assert any(codes), "nothing was killed"
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("share", [0, 0.5, 1], ids=["before", "within", "after"])
def test_a_supervisor_killed_as_it_writes_its_records_leaves_no_broken_ledger(
    scene: Scene, share: float
) -> None:
    wrong: list[str] = []
    codes: list[int] = []
    while codes[-1:] != [0] and len(codes) < WRITES:
        before = look(scene.jail)
        ended = refusing.killed_writing(scene.jail, scene.mark, len(codes) + 1, share, _short(scene))
        codes.append(ended.code)
        found = ["it hung"] if ended.hung else left_by(scene.jail, scene.mark, before, BOUND)
        wrong += [f"write {len(codes)}: {complaint}" for complaint in found]
    assert codes == [-signal.SIGKILL] * (len(codes) - 1) + [0]
    assert len(codes) > 5, "the supervisor does not write as it did: little was tested"
    assert wrong == [], "\n".join(wrong)


def test_after_all_of_that_the_next_run_works_and_verifies(scene: Scene) -> None:
    before = look(scene.jail)
    done = scene.jail.run("true")
    assert (done.returncode, done.stderr) == (0, "")
    (session,) = look(scene.jail).sessions - before.sessions
    assert verify(session).state == "intact"
