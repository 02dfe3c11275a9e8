"""The first entry of a run's ledger: the plan as `jail plan` prints it, and everything that it was made from.

Rule: who reads the ledger later needs neither this host nor this version of jail to know which walls there
were and what was held.
"""

import os
import sys

from jail import __version__
from jail.plan import text
from jail.plan.steps import Plan
from jail.policy.value import Policy


def fields(plan: Plan, policy: Policy, resumed: str) -> dict[str, object]:
    """The fields of the start entry; `resumed`: the session that this one goes on from, "" for none."""
    kernel = os.uname()
    more: dict[str, object] = {}
    if plan.held:
        more["held"] = [[each.name, each.kind, each.path, each.deliver] for each in plan.held]
    if resumed:
        more["resumed"] = resumed
    return {
        "plan": "\n".join(text.lines(plan, policy.accept)),
        "policy": policy.name,
        "policy_digest": policy.digest,
        "policy_sources": [list(source) for source in policy.sources],
        "versions": {
            "jail": __version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "kernel": kernel.release,
            "machine": kernel.machine,
        },
        "losses": [loss.name for loss in plan.losses],
        "command": list(plan.command),
        "workspace": plan.workspace,
        "pid": os.getpid(),
        **more,
    }
