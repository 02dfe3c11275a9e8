"""Answers of the kernel: what a program inside tried and what it met; outside, it is its own control.

Rule: one table of attempts is one jail start. Each attempt is Python text that ends in a system call, runs in
a child of its own, and is answered by a word: `ok`, the name of an errno, `killed by 9`, or the text that it
returned. A table is run from the command itself, from a thread of it and from a grandchild in a session of
its own, since filters and credentials belong to threads.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jail.kernel import syscalls
from support.installed import Installed
from support.jails import Jail, make_jail

PRELUDE = r'''
import ctypes, errno, fcntl, json, os, resource, select, signal, socket, struct, subprocess, sys, time
import threading
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = json.loads(sys.argv[1])
BAD, NO_FD = 1, -1  # a pointer that leads nowhere, no fd: the kernel's own answer to them is another errno

def word(value):
    if isinstance(value, ctypes.Array):
        return value
    return ctypes.c_long(value if value < 1 << 63 else value - (1 << 64))

def call(name, *words):
    """The raw system call `name`; its result, or OSError."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *map(word, [*words, 0, 0, 0, 0, 0, 0][:6]))
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result

def text(string):
    return ctypes.create_string_buffer(string)

def answer(action):
    """What became of `action()` in a child: ok, the text that it returned, an errno's name, or its end."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            found = action()
            said = found if isinstance(found, str) else "ok"
        except OSError as error:
            said = errno.errorcode.get(error.errno, type(error).__name__)
        except BaseException as error:
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    said = b""
    while piece := os.read(read, 65536):
        said += piece
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    return f"killed by {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said.decode()

def status_of(pid, *names):
    """Fields of /proc/PID/status, by name."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {name: fields.get(name, "").strip() for name in names}
'''

TABLE = r"""
ATTEMPTS = json.loads(sys.argv[2])
POSTURE = ("NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")

def run_all():
    found = {name: answer(eval("lambda: " + code)) for name, code in ATTEMPTS.items()}
    return {"posture": status_of("thread-self", *POSTURE), "answers": found}

def in_thread():
    kept = []
    thread = threading.Thread(target=lambda: kept.append(run_all()))
    thread.start()
    thread.join()
    return kept[0]

def in_grandchild():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, json.dumps(run_all()).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    with open(read, "rb") as file:
        return json.loads(file.read())

print(json.dumps({"the command": run_all(), "a thread": in_thread(), "a grandchild": in_grandchild()}))
"""


class Attempt(NamedTuple):
    """`code` is a Python expression; `inside` the word that the walls must answer, `outside` the control's.

    An empty `outside` asks for any other word than `inside`.
    """

    case: str
    sentence: str
    code: str
    inside: str
    outside: str = ""

    @property
    def name(self) -> str:
        return f"{self.case} {self.sentence}"


class Answers(NamedTuple):
    """What a table met inside and outside: who → posture and answers."""

    inside: Mapping[str, Any]
    outside: Mapping[str, Any]


def numbers(*names: str) -> str:
    """System-call numbers of this machine as JSON, for the prelude."""
    return json.dumps({name: syscalls.number(name) for name in names})


def run_table(jail: Jail, attempts: Iterable[Attempt], calls: Sequence[str], setup: str = "") -> Answers:
    """Run every attempt inside (one jail start) and outside; `setup` is Python before them."""
    arguments = [numbers(*calls), json.dumps({attempt.name: attempt.code for attempt in attempts})]
    program = PRELUDE + setup + TABLE
    return Answers(jail.inside(program, *arguments), jail.outside(program, *arguments))


def judge(attempt: Attempt, answers: Answers) -> None:
    """Assert what the attempt met, from everywhere inside; and that it is not what everybody meets."""
    control = answers.outside["the command"]["answers"][attempt.name]
    for who, found in answers.inside.items():
        assert found["answers"][attempt.name] == attempt.inside, f"{who}; outside it is {control}"
    if attempt.outside:
        assert control == attempt.outside, "the positive control fails"
    assert control != attempt.inside, "no positive control: the kernel says the same without walls"


def judge_allowed(attempt: Attempt, answers: Answers) -> None:
    """Assert that what must stay possible is: the same word inside and outside."""
    for who, found in [*answers.inside.items(), *answers.outside.items()]:
        assert found["answers"][attempt.name] == attempt.inside, who


def new_jail(installed: Installed, folder: Path) -> Jail:
    """A jail beneath `folder` whose compiled artefacts (parsed policy, filters) come from an earlier start.

    The first start with an empty cache takes a second or two, which is nothing to test here.
    """
    folder.mkdir(exist_ok=True)
    made = make_jail(installed, folder)
    cache = installed.root.parent / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    return made._replace(environment={**made.environment, "XDG_CACHE_HOME": str(cache)})
