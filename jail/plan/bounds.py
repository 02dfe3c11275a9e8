"""What everything inside may use up: the limits of a plan, and what is lost where the kernel cannot keep one.

Rule: a limit of the policy is narrowed to what this host and this caller have, and never widened. Memory as a
whole is bounded by a control group where the host lets us make one, else watched by jail, which is later and
coarser than the kernel: that is a loss. RLIMIT_AS and RLIMIT_DATA are not set: they count addresses, of which
node, Java, Go and sanitizers reserve far more than they use.
"""

from jail.light import Final
from jail.plan.facts import Facts
from jail.plan.steps import Loss, Plan
from jail.policy.value import Policy

CORE_DUMPS: Final = 1
"""No core dump: at 0 the kernel would still run a handler of the host's core_pattern (fs/coredump.c)."""
OOM_SCORE: Final = 500
"""Where memory runs out, the jail is ended before the host's own programs (proc_pid_oom_score_adj(5))."""
SHARE: Final = (3, 4)
"""Of the memory there is: with all of it in one run, the host would swap, and end programs of its own."""
_MIB: Final = 1 << 20


def limits(policy: Policy, facts: Facts) -> tuple[tuple[str, int], ...]:
    """Name → value: bytes, or a number."""
    return (
        ("memory_bytes", _memory(policy, facts)),
        ("processes", _within(policy.processes, facts.processes_hard)),
        ("open_files", _within(policy.open_files, facts.open_files_hard)),
        ("core", CORE_DUMPS),
        ("tmp_bytes", policy.tmp_bytes),
        ("held_bytes", policy.held_bytes),
        ("output_bytes", policy.output_bytes),
        ("oom_score", OOM_SCORE),
    )


def _within(value: int, hard: int) -> int:
    """A limit no higher than the caller's own hard one; -1 is none (RLIM_INFINITY)."""
    return value if hard < 0 else min(value, hard)


def _memory(policy: Policy, facts: Facts) -> int:
    if not facts.memory_most:
        return policy.memory_bytes
    part, whole = SHARE
    return min(policy.memory_bytes, facts.memory_most * part // whole // _MIB * _MIB)


def notes(policy: Policy, facts: Facts) -> tuple[str, ...]:
    """What a person should know: a policy that allows more memory than there is."""
    bound = _memory(policy, facts)
    if bound == policy.memory_bytes:
        return ()
    part, whole = SHARE
    return (f"memory is bounded by {part}/{whole} of what this host has, less than the policy allows",)


def unbounded(why: str) -> Loss:
    """The loss of a host that gives no control group."""
    return Loss(
        "limits-memory",
        f"memory as a whole is watched by jail, not bounded by the kernel: {why}",
        "start jail in a systemd user session (systemd-run --user --scope jail run …), or in a container or "
        "unit to which control groups v2 are delegated",
    )


def watched_instead(plan: Plan, why: str) -> Plan:
    """The same plan where the control group, once tried, could not be made."""
    return plan._replace(cgroup="", no_cgroup=why, losses=(unbounded(why), *plan.losses))
