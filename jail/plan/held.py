"""What a run holds: trees and files whose writes stay in the session until they are delivered or applied.

Rule: a held thing is named in the plan with how it is held, why, and what of it is delivered by itself.
"""

from jail.light import Final, NamedTuple
from jail.policy import value

OVERLAY: Final = "overlay"
COPY: Final = "copy"
FILE: Final = "file"
KINDS: Final = (OVERLAY, COPY, FILE)
"""How a thing is held: a tree by an overlay file system, a tree by a copy where no overlay can be had, one
file by a symlink that is mounted over it and leads to a copy.
"""
COMMANDS: Final = value.COMMANDS
GIT_CONFIG: Final = value.GIT_CONFIG
DELIVERIES: Final = value.DELIVERIES
"""What may be delivered at the end of a run without being asked for: the words of a policy."""


class Held(NamedTuple):
    """One held thing.

    `name`: its folder in the session's `held` ("t0", "t1" for trees, "f0" for files); `kind` in KINDS;
    `path`: canonical, on the host and inside; `why` for a person; `deliver`: the word in DELIVERIES by which
    it may be delivered, "" where a person decides; `commands`: canonical PATH folders in it.
    """

    name: str
    kind: str
    path: str
    why: str
    deliver: str = ""
    commands: tuple[str, ...] = ()
