"""The words of a plan: steps, losses, and the plan itself.

Rule: one record for all steps, with the verb as a field; launch/steps.py has the one table verb → function,
and nothing is done that is not a step of the printed plan.
"""

from jail.light import Final, NamedTuple


class Step(NamedTuple):
    """One thing done to build the walls.

    `target` is a path inside (or a name); `source` a path on the host, a link's text or a file's content, by
    verb; `options` say how (`ro`, `rw`, `size=…`); `why` is for the person who reads the plan.
    """

    verb: str
    target: str = ""
    source: str = ""
    options: tuple[str, ...] = ()
    why: str = ""


VERBS: Final = {
    "namespaces": "leave the host's namespaces for new ones",
    "map": "map one uid and one gid, each to itself",
    "root": "a new, empty root folder",
    "tmpfs": "an empty private folder in memory",
    "bind": "show a folder or file of the host",
    "keep": "a read-only copy of a tree's mount, kept out of reach, from which lost mounts are restored",
    "pin": "a folder that cannot be renamed",
    "protect": "read-only inside a writable tree",
    "hide": "absent inside a given tree",
    "link": "a symbolic link",
    "file": "a file that jail writes",
    "folder": "an empty folder",
    "device": "a device of the host that holds no state",
    "proc": "processes of this jail alone",
    "mask": "an empty file or folder over what tells of the host",
    "freeze": "read-only from here on",
    "devpts": "terminals of this jail alone",
    "pivot": "make the new root the only one; the host's is gone",
    "loopback": "bring up the loopback interface, the only one",
    "hostname": "set the host name",
}
"""Every verb, with what it means."""


class Loss(NamedTuple):
    """A wall that this host cannot give: `name` as in policy LOSSES, `what` is missing, and what would mend
    it.
    """

    name: str
    what: str
    remedy: str


class Plan(NamedTuple):
    """How one command will be run: what is built, what is lost, what the command gets.

    `folder`: its working directory; `environment`: the whole of it; `writable`: roots of Landlock's write
    rules; `watched`: absent protected paths; `limits`: name → value; `notes`: what a person should know.
    """

    command: tuple[str, ...]
    policy: str
    policy_digest: str
    workspace: str
    folder: str
    uid: int
    gid: int
    idmap_from: int
    steps: tuple[Step, ...]
    losses: tuple[Loss, ...]
    environment: tuple[tuple[str, str], ...]
    writable: tuple[str, ...]
    watched: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, int], ...]
    timeout: float
    landlock: int
    notes: tuple[str, ...]
