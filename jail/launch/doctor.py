"""`jail doctor`: layer by layer what this host can give, verified by trying it, and the remedy for each gap.

Rule: one table of checks, in the order in which a person mends them; each check is a function of the facts
(doctor_checks.py) and asks the host nothing itself (doctor_look.py did). A run is refused here exactly when a
check says `missing`, or `lost` with a loss that the policy does not accept; the last check is a real run, so
that the table cannot be kinder than that.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from jail.errors import EXIT_CANNOT_ISOLATE
from jail.launch import doctor_checks as checks
from jail.launch import doctor_look
from jail.launch.doctor_calls import LIBRARIES
from jail.launch.doctor_facts import LOST, MISSING, Check, Host, Row

REAL_RUN: Final = "a real run"
LATER: Final = "for a later version of jail: no run of this one needs these"


class Report(NamedTuple):
    """The rows, and what `policy` accepts of them; `probes` of the real run: name, held, what was met."""

    rows: tuple[Row, ...]
    policy: str
    accepted: tuple[str, ...]
    probes: tuple[tuple[str, bool, str], ...]

    def refusing(self) -> tuple[Row, ...]:
        """The rows for which `jail run` is refused on this host."""
        return tuple(row for row in self.rows if row.state == MISSING or self._is_refused(row))

    def causes(self) -> tuple[Row, ...]:
        """As `refusing`, without the real run where something else explains that it was refused."""
        found = self.refusing()
        others = tuple(row for row in found if row.name != REAL_RUN)
        return others or found

    def _is_refused(self, row: Row) -> bool:
        return row.state == LOST and row.loss not in self.accepted

    @property
    def code(self) -> int:
        """0 when a run would be started, else 78."""
        return EXIT_CANNOT_ISOLATE if self.refusing() else 0


def examine(environ: Mapping[str, str], policy: str | None = None) -> Report:
    """Look at this host as `jail run --policy POLICY` in the current folder would meet it; in some seconds.

    Raises JailError for a policy with faults.
    """
    name, accepted = doctor_look.accepted(environ, policy)
    return report(doctor_look.host(environ, policy), name, accepted)


def report(host: Host, policy: str, accepted: tuple[str, ...]) -> Report:
    """The facts judged: each row of the table, and one for each loss of the plan that has none of its own."""
    rows = [
        Row(check.layer, check.name, *check.judge(host))
        for check in CHECKS
        if host.launcher == 0 or check not in FOR_ROOT
    ]
    named = {row.loss for row in rows}
    losses = host.whole.losses if host.whole else ()
    rows += [
        Row("all together", name, LOST, what, "", (remedy,), name)
        for name, what, remedy in losses
        if name not in named
    ]
    found = Report(tuple(rows), policy, accepted, host.whole.probes if host.whole else ())
    return found._replace(rows=tuple(_without_echo(row, found) for row in found.rows))


def _without_echo(row: Row, found: Report) -> Row:
    """The real run's remedy is that of what explains it; said again it would look like one gap more."""
    echo = row.name == REAL_RUN and row in found.refusing() and row not in found.causes()
    return row._replace(remedy=()) if echo else row


BECOME: Final = Check("system", "command's uid", checks.wall("become"))
ROOTS_FILES: Final = Check("files", "root's files", checks.roots_files)
FOR_ROOT: Final = (BECOME, ROOTS_FILES)
"""What is asked only where root starts jail."""
CHECKS: Final = (
    Check("system", "Linux", checks.linux),
    Check("system", "surroundings", checks.around),
    Check("system", "Python", checks.python),
    BECOME,
    *(Check("libraries", name, checks.library(name)) for name in LIBRARIES),
    Check("libraries", "libseccomp", checks.libseccomp),
    Check("kernel calls", "openat2", checks.call("openat2", "5.6")),
    Check("kernel calls", "close_range", checks.call("close_range", "5.11")),
    Check("kernel calls", "mount_setattr", checks.call("mount_setattr", "5.12")),
    Check("namespaces", "user", checks.wall("user")),
    Check("namespaces", "mounts", checks.wall("mount")),
    Check("namespaces", "root folder", checks.wall("pivot")),
    Check("namespaces", "processes", checks.wall("pid")),
    Check("namespaces", "network", checks.wall("net")),
    Check("namespaces", "ipc", checks.wall("ipc")),
    Check("namespaces", "host name", checks.wall("uts")),
    Check("namespaces", "cgroup", checks.wall("cgroup")),
    Check("second walls", "filter", checks.wall("filter")),
    Check("second walls", "deny rules", checks.deny_rules),
    Check("second walls", "Landlock", checks.landlock_),
    Check("second walls", "keys", checks.wall("keyring")),
    Check("files", "current folder", checks.current_folder),
    Check("files", "state folder", checks.state_folder),
    Check("files", "held trees", checks.held_trees),
    Check("files", "watches", checks.watches),
    ROOTS_FILES,
    Check("files", "terminal", checks.wall("terminal")),
    Check("limits", "memory", checks.memory),
    Check(LATER, "recorder", checks.later("listener", "the record of execs will need it; Linux 5.19 has it")),
    Check(LATER, "exit status", checks.later("exit status", "the record of execs; Linux 6.15 has it")),
    Check(LATER, "egress", checks.later("nf_tables", "without it only named ports will be caught")),
    Check("all together", REAL_RUN, checks.real_run),
)
"""Every check, in the order in which a person mends what is missing."""
