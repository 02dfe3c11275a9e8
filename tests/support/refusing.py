"""Faults that strace cannot single out: one call refused to one process of jail, or a step that fails.

Rule: the launch runs as it is installed, in an interpreter isolated as the installed one; only the entry of
one process (keeper, process 1, the command's) is wrapped, so that it first loads a seccomp filter which
answers one call with an errno. What fails is then the call itself, for the kernel's reasons as far as jail
can see. `step_failed` makes one step of the plan raise; `killed_writing` and `failed_writing` end
the supervisor's writing of its records.
"""

import errno
import json
import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from support.faults import Ended, run
from support.jails import Jail


class Refusal(NamedTuple):
    """`process` ("keeper", "init", "leader", "command") gets `errno` from `call` where its arguments, by position, are
    these values.
    """

    process: str
    call: str
    errno: int
    arguments: Mapping[int, int] = {}


NUMBERS: Final = {
    # name: (x86_64, aarch64), of <asm/unistd.h>
    "capset": (126, 91),
    "chdir": (80, 49),
    "close_range": (436, 436),
    "clone": (56, 220),
    "dup2": (33, 24),  # aarch64 has dup3 alone
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "keyctl": (250, 219),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "openat": (257, 56),
    "pipe2": (293, 59),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "read": (0, 63),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "seccomp": (317, 277),
    "sendmsg": (46, 211),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "write": (1, 64),
}

_DRIVER: Final = """
import json, os, sys
packages, what, arguments = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
sys.path.append(packages)
import _prctl
from jail.cli import main
from jail.kernel import bpf, seccomp
from jail.ledger import heads, writer
from jail.launch import command, init, keeper, leader, overlays, steps

def program(number, arguments, errno):
    words = [(bpf.OFFSET_NUMBER, number), *((16 + 8 * int(at), value) for at, value in arguments.items())]
    checks = []
    for left, (offset, value) in zip(range(len(words) * 2, 0, -2), words):
        checks += [(bpf.LOAD, offset), (bpf.JUMP_EQUAL, value & 0xFFFFFFFF, 0, left - 1)]
    answers = [(bpf.RETURN, bpf.fail(errno)), (bpf.RETURN, bpf.ALLOW)]
    return b"".join([bpf.instruction(*words) for words in [*checks, *answers]])

def refusing(run):
    def wrapped(*given):
        _prctl.prctl(_prctl.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.install(program(what["number"], what["arguments"], what["errno"]), "the test's")
        return run(*given)
    return wrapped

def failing(verb):
    real = steps.TABLE[verb]
    def wrapped(build, step):
        steps_of = [found for found in build.plan.steps if found.verb == verb]
        if step is steps_of[what["index"]]:
            raise OSError(what["errno"], os.strerror(what["errno"]), "a step that was made to fail")
        return real(build, step)
    return wrapped

def dying(write_whole):
    count = 0
    def wrapped(fd, data):
        nonlocal count
        count += 1
        if count == what["write"] and "errno" in what:
            raise OSError(what["errno"], os.strerror(what["errno"]))
        if count == what["write"]:
            os.write(fd, data[: int(len(data) * what["share"])])
            os.kill(os.getpid(), 9)
        return write_whole(fd, data)
    return wrapped

def no_sync(fd):
    raise OSError(what["sync"], os.strerror(what["sync"]))

if "sync" in what:
    writer.SYNC_AFTER = -1
    os.fsync = no_sync
elif "write" in what:
    heads.write_whole = dying(heads.write_whole)
elif "verb" in what:
    # What the survey tries is done with the same steps.
    overlays._tried = lambda facts, identities, state, asked: {
        path: "the test's" for path in asked if path.endswith("/copied")
    }
    steps.TABLE[what["verb"]] = failing(what["verb"])
elif what["process"] == "leader":
    leader._lead = refusing(leader._lead)
elif what["process"]:
    module = {"keeper": keeper, "init": init, "command": command}[what["process"]]
    module.run = refusing(module.run)
sys.exit(main.main(arguments))
"""


def refused(jail: Jail, mark: str, refusal: Refusal | None, arguments: Sequence[str]) -> Ended:
    """`jail ARGUMENTS` with one call refused; None: the same driver and no fault, the positive control."""
    return run(jail, mark, command_of(jail, what_of(refusal), arguments))


def what_of(refusal: Refusal | None) -> dict[str, object]:
    """What the driver is told."""
    if refusal is None:
        return {"process": ""}
    number = NUMBERS[refusal.call][("x86_64", "aarch64").index(os.uname().machine)]
    where = {str(at): value for at, value in refusal.arguments.items()}
    return {"process": refusal.process, "number": number, "errno": refusal.errno, "arguments": where}


def step_failed(jail: Jail, mark: str, verb: str, index: int, arguments: Sequence[str]) -> Ended:
    """`jail ARGUMENTS` where step number `index` (-1: the last) of those with `verb` fails with EIO; of trees
    that are to be held, no overlay can hold what is called `copied`.
    """
    what = {"verb": verb, "index": index, "errno": errno.EIO}
    return run(jail, mark, command_of(jail, what, arguments))


def killed_writing(jail: Jail, mark: str, write: int, share: float, arguments: Sequence[str]) -> Ended:
    """`jail ARGUMENTS` whose supervisor dies when `share` (0 to 1) of its `write`-th write to its records is
    done.
    """
    return run(jail, mark, command_of(jail, {"write": write, "share": share}, arguments))


def failed_writing(jail: Jail, mark: str, write: int, arguments: Sequence[str]) -> Ended:
    """`jail ARGUMENTS` on a file system that is full when its `write`-th write to its records comes."""
    return run(jail, mark, command_of(jail, {"write": write, "errno": errno.ENOSPC}, arguments))


def failed_sync(jail: Jail, mark: str, arguments: Sequence[str]) -> Ended:
    """`jail ARGUMENTS` on a disk that reports EIO when the records are to be synced, as they are after a long
    run.
    """
    return run(jail, mark, command_of(jail, {"sync": errno.EIO}, arguments))


def command_of(jail: Jail, what: Mapping[str, object], arguments: Sequence[str]) -> list[str]:
    """The command line of the driver."""
    driver = [str(jail.installed.python), "-B", "-I", "-S", "-c", _DRIVER]
    return [*driver, str(jail.installed.packages), json.dumps(what), *arguments]
