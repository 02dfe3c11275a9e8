"""One change that a session holds, as values: what the listing, the review and the applier speak of.

Rule: a change is told by three states of one path: as it was when the run began (`old`), as the command left
it (`new`), and as the host has it now (`now`). It can be applied where `now` is `old`, is done where `now` is
`new`, and is a conflict elsewhere. Paths are relative to the held tree, str with surrogateescape.
"""

from jail.light import Final, NamedTuple
from jail.plan import autoexec

ADDED: Final = "added"
MODIFIED: Final = "modified"
DELETED: Final = "deleted"
RENAMED: Final = "renamed"
TYPE: Final = "type"
MODE: Final = "mode"
TIME: Final = "time"
SETTINGS: Final = "settings"
LETTERS: Final = {
    ADDED: "A",
    MODIFIED: "M",
    DELETED: "D",
    RENAMED: "R",
    TYPE: "T",
    MODE: "m",
    TIME: "t",
    SETTINGS: "S",
}
"""What happened to a path → its letter in a list. `time`: of a file, the modification time alone; `settings`:
of a git config that was there before, whose keys are looked at one by one and never the file as a whole.
"""
PLAIN: Final = ""
WARNED: Final = autoexec.WARNED
REFUSED: Final = autoexec.REFUSED
NEVER: Final = autoexec.NEVER
TIERS: Final = (NEVER, REFUSED, WARNED, PLAIN)
"""How a change is met, the gravest first: it cannot be applied at all; only when its path is named, word for
word; with a warning; like any other.
"""


class State(NamedTuple):
    """One path at one time. `kind` as jail.kernel.files.kind has it, or "absent", or "unknown" where nobody
    knows any more; `mode`: permission bits with setuid, setgid and sticky; `size` in bytes, 0 but for files;
    `mtime_ns`: since the epoch; `digest`: of a file's content (jail.hold.digests), SHA-256 in hex of a link's
    target, "" for all else and where it was not read.
    """

    kind: str
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    digest: str = ""


ABSENT: Final = State("absent")
UNKNOWN: Final = State("unknown")


class Change(NamedTuple):
    """`tree`: name of the held thing (jail.plan.held.Held); `path`: in it, "" for the thing itself; `what` in
    LETTERS; `source`: where a renamed thing was, and then `old` is what it was there; `conflict`: why the
    host's side is not the base any more, "" where it is; `tier` in TIERS, and `reason` why it is not plain;
    `waits`: it is never delivered unasked, however plain it is.
    """

    tree: str
    path: str
    what: str
    old: State
    new: State
    now: State
    source: str = ""
    conflict: str = ""
    tier: str = PLAIN
    reason: str = ""
    waits: bool = False
