"""What the doctor found on this host, as plain values, and the words of a diagnosis.

Rule: a diagnosis is a function of these values alone, so that every bad host can be a row of a test. What was
tried says what the kernel answered, errno and all; nothing here is a guess from a version number.
"""

import errno
import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

OK: Final = "ok"
INFO: Final = "info"
LOST: Final = "lost"
MISSING: Final = "missing"
UNTRIED: Final = "untried"
STATES: Final = {
    OK: "this host gives it",
    INFO: "worth knowing; no run depends on it",
    LOST: "a wall that is not whole; a policy may accept that by the loss's name",
    MISSING: "a run is refused, whatever the policy",
    UNTRIED: "could not be tried before something else is mended",
}

NO_ERRNO: Final = -1
"""The `number` of a try that failed in another way than a system call."""


class Tried(NamedTuple):
    """How one try ended: `number` is 0 when it worked, else its errno or NO_ERRNO; `call` is what failed,
    `text` what was met.
    """

    number: int
    call: str = ""
    text: str = ""

    @property
    def worked(self) -> bool:
        """Whether the wall could be put up."""
        return self.number == 0

    def words(self) -> str:
        """The try for a person: `unshare(user): Operation not permitted (EPERM)`."""
        if self.number <= 0:
            return self.text
        said = f"{os.strerror(self.number)} ({errno.errorcode.get(self.number, self.number)})"
        return f"{self.call}: {said}" if self.call else said


class Whole(NamedTuple):
    """A real run of `true`: probes (name, held, what was met), the losses of the plan (name, what, remedy),
    and what went wrong (message, where, hint; None when nothing did). `seconds`: from survey to end.
    """

    probes: tuple[tuple[str, bool, str], ...] = ()
    losses: tuple[tuple[str, str, str], ...] = ()
    problem: tuple[str, str, str] | None = None
    seconds: float = 0.0


class Host(NamedTuple):
    """Everything that the diagnoses look at.

    `uid`: what the command would be inside; `launcher`: the effective uid that asks. `tries`: by the names of
    doctor_tries.TRIES, what was not tried is absent. `sysctls`: dotted name → value, absent ones left out.
    `seccomp`, `filters`, `no_new_privs`: of the process that asks. `apparmor`: its label; `lsm`: the kernel's
    list. `around`: container, WSL, … and the sign that says so. `over_proc`: mount points beneath /proc.
    """

    platform: str = "linux"
    machine: str = "x86_64"
    bits: int = 64
    python: tuple[int, int, int] = (3, 11, 0)
    executable: str = "/usr/bin/python3"
    release: str = ""
    uid: int = 1000
    launcher: int = 1000
    tries: Mapping[str, Tried] = {}
    sysctls: Mapping[str, str] = {}
    seccomp: int = 0
    filters: int = 0
    no_new_privs: bool = False
    apparmor: str = ""
    lsm: str = ""
    around: tuple[str, str] = ("", "")
    over_proc: tuple[str, ...] = ()
    chrooted: bool = False
    root_type: str = ""
    folder: str = "/"
    folder_type: str = ""
    folder_of_root: bool = False
    state: str = ""
    state_type: str = ""
    one_file_system: bool = True
    state_problem: str = ""
    whole: Whole | None = None


class Finding(NamedTuple):
    """What one check came to.

    `why` is the cause; `remedy` lines that begin with VERBATIM are to be typed or saved as they are; `loss`
    is the name that `accept.losses` of a policy takes, "" for none.
    """

    state: str
    found: str
    why: str = ""
    remedy: tuple[str, ...] = ()
    loss: str = ""


class Check(NamedTuple):
    """One row of the doctor's table: where it stands, its name, and how the facts are judged."""

    layer: str
    name: str
    judge: Callable[[Host], Finding]


class Row(NamedTuple):
    """One check with what it came to."""

    layer: str
    name: str
    state: str
    found: str
    why: str
    remedy: tuple[str, ...]
    loss: str


VERBATIM: Final = "    "
"""How a remedy line begins that must not be wrapped."""


def version_of(release: str) -> tuple[int, int]:
    """Major and minor number of a kernel release (uname(2)); (0, 0) for what is none."""
    numbers = release.split("-", 1)[0].split(".")
    try:
        return int(numbers[0]), int(numbers[1])
    except (ValueError, IndexError):
        return 0, 0
