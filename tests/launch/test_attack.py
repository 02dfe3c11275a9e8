"""How attacks are judged and told, and that what an attack does to its own process is never taken for a wall."""

import ast
import ctypes
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from jail.cli.doctor import command
from jail.launch import attack_run, attack_text
from jail.launch.attack import HELD, NOT_HELD, NOT_TRIED, OUTSIDE, Report, Row, judge
from jail.launch.attack_look import Look
from jail.launch.attacks import runner, seeing, words
from jail.launch.attacks.table import ATTACKS, CONTROLS
from jail.launch.attacks.words import AbsentError, Attack, Truths, Try, UntriedError
from support.installed import CHECKOUT

FOLDER = CHECKOUT / "jail/launch/attacks"


def attack(deed: Callable[[], object], *held: str, proof: str = "") -> Attack:
    def tries(truths: Truths) -> Iterator[Try]:
        yield "a try", deed

    return Attack("a wall", "an attack", "tries", tries, frozenset(held), proof)


EPERM = attack(lambda: None, "EPERM")
LOOKS = {
    "files": Look("files", "what", "as they were", "changed"),
    "calm": Look("calm", "what", "good", ""),
}


@pytest.mark.parametrize(
    ("row", "met", "state", "found"),
    [
        (EPERM, [["one", "EPERM", ""], ["two", "EPERM", ""]], HELD, "2 tries: EPERM"),
        (EPERM, [["one", "EPERM", ""]], HELD, "1 try: EPERM"),
        (EPERM, [["one", "EPERM", ""], ["two", "worked", "7"]], NOT_HELD, "two: worked, 7"),
        (EPERM, [["one", "worked", ""]], NOT_HELD, "one: worked"),
        (EPERM, [["one", "EACCES", ""]], NOT_HELD, "one: EACCES, which is not this wall's answer"),
        (EPERM, [["", "hung", "no answer within 3 s"]], NOT_HELD, "no answer within 3 s"),
        (EPERM, [["", "SIGSEGV", "killed by SIGSEGV"]], NOT_HELD, "killed by SIGSEGV"),
        (EPERM, [["one", "EPERM", ""], ["", "failed", "KeyError: 1"]], NOT_HELD, "KeyError: 1"),
        (EPERM, [["n", "worked", ""]] * 5, NOT_HELD, "n: worked; n: worked; n: worked; and 2 more of 5"),
        (EPERM, None, NOT_HELD, "no answer: it ended with 137"),
        (EPERM, [], NOT_TRIED, "there is nothing here to try"),
        (EPERM, [["", "untried", "no such machine"]], NOT_TRIED, "no such machine"),
        (EPERM, [["one", "EPERM", ""], ["", "untried", "no more"]], HELD, "1 try: EPERM"),
        (EPERM, [["one", "worked", ""], ["", "untried", "no more"]], NOT_HELD, "one: worked"),
        (attack(lambda: None, "worked", proof="files"), [["one", "worked", ""]], NOT_HELD, "changed"),
        (attack(lambda: None, "worked", proof="calm"), [["one", "worked", ""]], HELD, "1 try: worked"),
        (
            attack(lambda: None, "worked", proof="calm"),
            [["one", "EROFS", ""]],
            NOT_HELD,
            "one: EROFS, which is not this wall's answer",
        ),
    ],
)
def test_only_what_met_its_wall_is_held(
    row: Attack, met: list[list[str]] | None, state: str, found: str
) -> None:
    judged = judge(row, met, LOOKS, "it ended with 137")
    assert (judged.state, judged.found) == (state, found)


def _raise(error: BaseException) -> Callable[[], object]:
    def deed() -> object:
        raise error

    return deed


def _end_itself(number: int) -> Callable[[], object]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("deed", "met"),
    [
        (lambda: 7, ["a try", "worked", "7"]),
        (lambda: None, ["a try", "worked", ""]),
        (_raise(PermissionError(1, "no")), ["a try", "EPERM", "no"]),
        (_raise(OSError(9999, "odd")), ["a try", "9999", "odd"]),
        (_raise(TimeoutError("timed out")), ["a try", "TimeoutError", "timed out"]),
        (_raise(AbsentError("nothing")), ["a try", "absent", "nothing"]),
        (_raise(UntriedError("not here")), ["", "untried", "not here"]),
        (_raise(KeyError(1)), ["", "failed", "KeyError: 1"]),
        (_raise(SystemExit(0)), ["", "failed", "SystemExit: 0"]),
        (lambda: os._exit(0), ["", "no answer", "the attack's process ended with 0"]),
        (_end_itself(signal.SIGKILL), ["", "SIGKILL", "the attack's process was killed by SIGKILL"]),
        (_end_itself(signal.SIGSYS), ["", "SIGSYS", "the attack's process was killed by SIGSYS"]),
        (lambda: time.sleep(60), ["", "hung", "no answer within 0.3 s"]),
    ],
)
def test_what_became_of_an_attack_is_told(
    deed: Callable[[], object], met: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SECONDS", 0.3)
    assert runner.apart(attack(deed), {}) == [met]


def test_a_descriptor_that_leaked_is_named() -> None:
    fd = os.open("/usr", os.O_RDONLY)
    try:
        assert f"{fd} -> /usr" in runner.leaked()
        (label, call), *_ = seeing.descriptors({"leaked": [f"{fd} -> /usr"]})
        assert (label, "/usr" in str(call())) == ("any above 2", True)
    finally:
        os.close(fd)


def test_a_call_that_this_machine_does_not_have_is_not_made() -> None:
    truths = {"calls": {"open": None, "getcwd": 79}}
    assert [label for label, _ in words.calls(truths, ("open", 1), ("getcwd: label", 0), ("nosuch", 0))] == [
        "getcwd: label"
    ]
    with pytest.raises(UntriedError):
        words.number(truths, "open")


@pytest.mark.parametrize(("arch", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_the_numbers_that_attacks_add_are_those_of_libseccomp(arch: str, column: int) -> None:
    library = ctypes.CDLL("libseccomp.so.2")
    token = library.seccomp_arch_resolve_name(arch.encode())
    assert token
    theirs = {
        name: library.seccomp_syscall_resolve_name_arch(token, name.encode()) for name in words.MORE_CALLS
    }
    assert theirs == {name: numbers[column] for name, numbers in words.MORE_CALLS.items()}


def test_the_modules_that_are_sent_are_all_and_stand_alone() -> None:
    files = {path.stem: path for path in FOLDER.glob("*.py") if path.stem != "__init__"}
    assert set(attack_run.MODULES) == set(files)
    for index, name in enumerate(attack_run.MODULES):
        tree = ast.parse(files[name].read_text(encoding="utf-8"), feature_version=(3, 10))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= sys.stdlib_module_names
            elif isinstance(node, ast.ImportFrom) and node.level:
                siblings = [node.module] if node.module else [alias.name for alias in node.names]
                assert set(siblings) <= set(attack_run.MODULES[:index]), f"{name} needs what is sent after it"
            elif isinstance(node, ast.ImportFrom):
                assert str(node.module).partition(".")[0] in sys.stdlib_module_names


def test_every_row_is_whole_and_its_name_its_own() -> None:
    assert len({row.name for row in ATTACKS}) == len(ATTACKS) > 40
    for row in ATTACKS:
        assert row.wall
        assert row.tries
        assert re.fullmatch(r"|shocker|CVE-\d{4}-\d{4,7}(, CVE-\d{4}-\d{4,7})*", row.known)
        assert row.held
        assert (words.WORKED not in row.held) or row.proof or row.wall == CONTROLS, row.name


def test_help_says_how_many_attacks_there_are() -> None:
    assert 50 < sum(row.wall != CONTROLS for row in ATTACKS) < 60
    assert command.help is not None
    assert "more than fifty" in " ".join(command.help.split())


def test_a_row_that_counts_its_names_tries_as_many() -> None:
    for deed in (seeing.secret_in_home, seeing.secret_beside):
        truths = {"workspace": "/w", "secret_in_home": "/h/s", "secret_beside": "/s"}
        with patch.object(os, "makedirs"), patch.object(os, "symlink"):
            labels = [label for label, _ in deed(truths)]
        assert (len(labels), labels[-1]) == (9 + 1, "the folder's names")
        (tries,) = [row.tries for row in ATTACKS if row.deed is deed]
        assert tries.endswith("by nine names, list the folder")


def test_the_program_tells_of_jail_in_no_word(tmp_path: Path) -> None:
    program = attack_run._program({"attacks": []}).decode()
    compile(program, "program", "exec")
    assert "/jail/" not in program.replace("/run/jail/", "")
    assert "import jail" not in program
    assert str(CHECKOUT) not in program


def test_interpreters_are_tried_from_the_likeliest_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "versions/3.12/bin/python3"
    own.parent.mkdir(parents=True)
    own.touch()
    monkeypatch.setattr(sys, "executable", str(own))
    system = os.path.realpath(attack_run.SYSTEM_PYTHON)
    assert [*attack_run._interpreters()] == [
        (str(own), ()),
        (str(own), (str(tmp_path / "versions/3.12"),)),
        (system, ()),
    ]
    monkeypatch.setattr(sys, "executable", system)
    assert [*attack_run._interpreters()] == [(system, ()), (system, ())]


def row(wall: str, name: str, state: str, found: str = "1 try: EPERM") -> Row:
    return Row(wall, name, f"tries {name}", state, found)


def test_the_first_line_is_the_answer() -> None:
    control, good = row(CONTROLS, "own files", HELD), row("filter", "mounts", HELD)
    bad, untried = row("filter", "keys", NOT_HELD, "one: worked"), row("guard", "x32", NOT_TRIED, "not here")

    def first(*rows: Row) -> str:
        return attack_text.lines(Report(rows, "night"))[0][1]

    assert first(control, good) == "Held: 1 of 1 attacks under the policy night."
    assert first(control, good, untried) == "Held: 1 of 2 attacks under the policy night, 1 not tried."
    assert first(control, good, bad) == "NOT HELD: 1 of 2 attacks under the policy night: keys."
    look = row(OUTSIDE, "canary files", HELD, "as they were")
    assert first(control, good, look) == "Held: 1 of 1 attacks under the policy night.", "a look is no attack"
    changed = first(control, good, look._replace(state=NOT_HELD))
    assert changed.startswith("NOT HELD, as seen from outside: canary files. Held: 1 of 1")
    failed = first(control._replace(state=NOT_HELD), good)
    assert failed.startswith("A control fails, so that the rest proves nothing: own files. Held: 1 of 1")


def test_what_is_not_held_or_not_tried_says_why() -> None:
    report = Report(
        (
            row(CONTROLS, "own files", NOT_HELD, "write: EROFS"),
            row("filter", "mounts", HELD),
            row("filter", "keys", NOT_HELD, "one: worked")._replace(known="CVE-2016-0728"),
            row("guard", "x32", NOT_TRIED, "this machine has no such numbers"),
        ),
        "night",
    )
    lines = attack_text.lines(report)
    assert [word for word, _ in lines if word] == ["FAILS", "held", "NOT HELD", "not tried"]
    told = [line for _, line in lines]
    assert "  held       mounts     tries mounts" in told
    assert "  NOT HELD   keys       tries keys (CVE-2016-0728): one: worked" in told
    assert "  not tried  x32        tries x32: this machine has no such numbers" in told
    assert [line for line in told if line and not line.startswith(" ")][-3:] == [CONTROLS, "filter", "guard"]
    values = attack_text.values(report)
    assert (values["exit"], values["held"], values["not_held"], values["not_tried"]) == (1, 1, 1, 1)
    assert [each["kind"] for each in values["attacks"]] == ["control", "attack", "attack", "attack"]


@pytest.mark.parametrize(
    ("states", "code"),
    [([HELD], 0), ([HELD, NOT_TRIED], 0), ([HELD, NOT_HELD], 1), ([NOT_HELD, NOT_TRIED], 1)],
)
def test_the_exit_code_is_1_when_something_is_not_held(states: list[str], code: int) -> None:
    assert Report(tuple(row("wall", f"{at}", state) for at, state in enumerate(states)), "night").code == code
