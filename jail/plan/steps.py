"""The words of a plan: steps, losses, and the plan itself.

Rule: one record for all steps, with the verb as a field; launch/steps.py has the one table verb → function,
and nothing is done that is not a step of the printed plan.
"""

from jail.light import NamedTuple
from jail.plan.held import Held


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
    rules; `watched`: absent protected paths; `limits`: name → value; `cgroup`: the folder of the host in
    which a control group is made for all that runs inside, "" and `no_cgroup`, why, where jail itself
    watches; `terminal`: words of policy
    TERMINAL that the person's terminal obeys; `notes`: what a person should know; `held`: what is kept in the
    session.
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
    cgroup: str
    no_cgroup: str
    landlock: int
    notes: tuple[str, ...]
    terminal: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()
