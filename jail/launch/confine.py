"""What every process inside loses, once and for good, before the command exists.

Rule: process 1 goes through this and the command is forked from it, so that there is no moment in which one
of the two is less confined than the other; the probes then look from the command's side. The order: keys,
capabilities, no_new_privs, Landlock, guard, deny; each needs what the next ones take. Nothing here can be
taken back.
"""

import os

from jail.kernel import landlock, privileges, seccomp
from jail.kernel.filters import Filters
from jail.plan.steps import Plan


def confine(plan: Plan, filters: Filters) -> None:
    """Confine the calling process, which has one thread. Raises OSError: half confined, it must not go on."""
    privileges.forget_keys()
    privileges.drop_bounding_set()
    privileges.keep_capabilities()
    privileges.no_new_privileges()
    _restrict_files(plan)
    seccomp.install(filters.guard, "guard")
    seccomp.install(filters.deny, "deny")


def _restrict_files(plan: Plan) -> None:
    used = landlock.known(plan.landlock)
    if used is None:
        return  # the plan names this as a loss, which the policy accepted
    flags = os.O_PATH | os.O_CLOEXEC
    root, devices, proc = (os.open(path, flags) for path in ("/", "/dev", "/proc"))
    writable = [os.open(path, flags) for path in plan.writable]
    landlock.restrict(landlock.grants(root, writable, devices=(devices,), proc=proc), used)
    for fd in (root, devices, proc, *writable):
        os.close(fd)
