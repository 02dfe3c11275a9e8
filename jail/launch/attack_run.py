"""The run that is attacked: survey, plan and supervisor as for `jail run`, on files instead of a terminal.

Rule: it runs in a child of the doctor that ends with it. The program goes in as standard input, for an
interpreter that the jail shows: that which jail runs on, given read-only for this run where the policy does
not show it, else the system's. What it says comes back by standard output, line by line, and is only data
here.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib import resources
from typing import Any, Final, NamedTuple

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.kernel.digest import sha256_hex
from jail.launch import attack_tell, doctor_tries, start
from jail.launch.attack_lay import Ground
from jail.launch.attack_look import FIRST_LINE
from jail.plan.steps import Plan
from jail.policy.sources import DEFAULT

SECONDS: Final = 60.0
"""Until the run is given up: the attacks take a second or two, and each has its own limit."""
MODULES: Final = ("words", "seeing", "writing", "asking", "gaining", "reaching", "table", "runner")
"""What is sent, in an order in which each finds what it imports."""
SYSTEM_PYTHON: Final = "/usr/bin/python3"
OPENED: Final = 5
"""Descriptors left open on purpose, which a leak would hand on."""
MOST_OUTPUT: Final = 1 << 22


class Answer(NamedTuple):
    """What came back: tries by name of the attack, how the program ended, the policy and its losses."""

    met: Mapping[str, list[list[str]]]
    ended: str
    policy: str
    losses: tuple[str, ...]
    interpreter: str


def run(ground: Ground, policy: str | None, names: list[str]) -> Answer:
    """Attack one run. Raises JailError: 78 when it was refused or no interpreter could be shown, 2 for a
    policy with faults.
    """
    for name in ("stdin", "stdout", "stderr"):
        with open(f"{ground.streams}/{name}", "wb") as file:
            file.write(b"" if name == "stdin" else FIRST_LINE)
    tried, value = doctor_tries.apart(partial(_run, ground, policy, names), None, SECONDS)
    lines = list(_lines(_said(ground, "stdout")))
    if not isinstance(value, dict):
        if not lines:
            raise JailError(
                "the run of the attacks failed",
                where=tried.words(),
                hint="run `jail doctor`",
                code=EXIT_CANNOT_ISOLATE,
            )
        value = {**_NOTHING, "policy": policy or DEFAULT, "code": tried.words()}
    if value["problem"]:
        message, where, hint, code = value["problem"]
        raise JailError(message, where=where, hint=hint, code=int(code))
    ground.truths["absent"] = value["absent"]
    ground.truths["program"] = value["digest"]
    if not lines:
        raise JailError(
            "the attacks could not start inside",
            where=f"{value['interpreter']}, exit {value['code']}: {_said(ground, 'stderr')[-300:].strip()}",
            hint=f"give its folder with `read` in the policy, or install {SYSTEM_PYTHON}",
            code=EXIT_CANNOT_ISOLATE,
        )
    met = {str(line["attack"]): line["met"] for line in lines if "attack" in line}
    ended = (
        "" if any("end" in line for line in lines) else f"the program ended before it (exit {value['code']})"
    )
    return Answer(met, ended, value["policy"], tuple(value["losses"]), value["interpreter"])


def _said(ground: Ground, name: str) -> str:
    with open(f"{ground.streams}/{name}", "rb") as file:
        return file.read(MOST_OUTPUT).decode("utf-8", "replace")


def _lines(said: str) -> Iterator[dict[str, Any]]:
    """The lines that are objects of JSON; an attack may have written others."""
    for line in said.splitlines():
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


_NOTHING: Final[dict[str, Any]] = {
    "problem": None,
    "losses": [],
    "absent": [],
    "digest": "",
    "policy": "",
    "interpreter": "",
    "code": -1,
}


def _run(ground: Ground, policy: str | None, names: list[str]) -> dict[str, Any]:
    """Be the run, in a child of the doctor that has no other purpose."""
    answer: dict[str, Any] = {**_NOTHING, "policy": policy or DEFAULT}
    os.chdir(ground.workspace)
    os.environ.clear()
    os.environ.update(ground.environ, XDG_STATE_HOME=ground.session)
    for _ in range(OPENED):
        os.set_inheritable(os.open(ground.folders[-1], os.O_RDONLY | os.O_DIRECTORY), True)  # noqa: FBT003 - as os has it
    try:
        options, command, plan = _prepared(ground, policy)
        answer.update(policy=plan.policy, losses=[loss.name for loss in plan.losses], interpreter=command[0])
        attack_tell.of_plan(ground, plan, names)
        program = _program(ground.truths)
        with open(f"{ground.streams}/stdin", "wb") as file:
            file.write(program)
        answer.update(digest=sha256_hex(program), absent=ground.truths["absent"])
        for fd, (name, flags) in enumerate(_STREAMS):
            opened = os.open(f"{ground.streams}/{name}", flags | os.O_CLOEXEC)
            os.dup2(opened, fd)
            os.close(opened)
        answer["code"] = start.run(options, command)
    except JailError as error:
        answer["problem"] = error.message, error.where, error.hint, error.code
    return answer


_STREAMS: Final = (
    ("stdin", os.O_RDONLY),
    ("stdout", os.O_WRONLY | os.O_APPEND),
    ("stderr", os.O_WRONLY | os.O_APPEND),
)
"""As of a job whose output goes to a log."""


def _prepared(ground: Ground, policy: str | None) -> tuple[start.Options, tuple[str, ...], Plan]:
    """Options, command and plan with the first interpreter that the jail shows. Raises JailError."""
    first: JailError | None = None
    for interpreter, read in _interpreters():
        options = start.Options(policy=policy, read=read)
        command = (interpreter, "-I", "-S", "-", ground.mark)
        try:
            prepared = start.prepare(options, command, os.environ)
        except JailError as error:
            first = first or error
            continue
        problem = start.refused(prepared)
        if problem is not None:
            raise problem
        if attack_tell.shows(prepared.plan, interpreter):
            attack_tell.of_jail(ground, prepared)
            return options, command, prepared.plan
    if first is not None:
        raise first
    raise JailError(
        "no Python interpreter is visible inside, so nothing can be attacked from there",
        where=f"policy {policy or DEFAULT}",
        hint=f"give {SYSTEM_PYTHON} or the prefix of another one with `read` in the policy",
        code=EXIT_CANNOT_ISOLATE,
    )


def _interpreters() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Interpreter, and what to give for it, from the likeliest on."""
    own = os.path.realpath(sys.executable)
    yield own, ()
    prefix = os.path.dirname(os.path.dirname(own))
    if prefix not in ("/", "/usr"):
        yield own, (prefix,)
    if os.path.exists(SYSTEM_PYTHON):
        yield os.path.realpath(SYSTEM_PYTHON), ()


def _program(truths: Mapping[str, Any]) -> bytes:
    """One program of all the modules: each is made under its own name, so that it finds the others."""
    folder = resources.files("jail.launch.attacks")
    sources = [(name, folder.joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    return _LOADER.format(sources=sources, truths=json.dumps(truths)).encode("utf-8", "backslashreplace")


_LOADER: Final = """import json, sys, types
package = types.ModuleType("attacks")
package.__path__ = []
sys.modules["attacks"] = package
for name, text in {sources!r}:
    module = types.ModuleType("attacks." + name)
    module.__package__ = "attacks"
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules["attacks.runner"].main(json.loads({truths!r}))
"""
