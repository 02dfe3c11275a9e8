"""What a running session uses: processor time and memory of the supervisor and all that descends from it.

Rule: figures to look at, no wall. They are taken process by process while these come and go, so what ended
meanwhile is left out; psutil is imported here alone, for those who ask.
"""

from jail.launch import reach
from jail.light import NamedTuple


class Usage(NamedTuple):
    """`cpu` in seconds, ended processes among them once they are reaped; `memory` in bytes: the sum of PSS
    (proc_pid_smaps(5)), or of the resident size for those that are closed to all (keeper and process 1).
    """

    processes: int
    cpu: float
    memory: int


def of_session(folder: str, pid: object) -> Usage | None:
    """The usage of the session in `folder`, whose start entry names the supervisor `pid`; None when that
    process does not run it.
    """
    supervisor = reach.Supervisor.of(folder, pid)
    if supervisor is None:
        return None
    try:
        return of_tree(supervisor.pid)
    finally:
        supervisor.close()


def of_tree(pid: int) -> Usage | None:
    """The usage of a process and its descendants; None when it is gone."""
    import psutil

    try:
        root = psutil.Process(pid)
        every = [root, *root.children(recursive=True)]
    except psutil.Error:
        return None
    count, cpu, memory = 0, 0.0, 0
    for process in every:
        try:
            with process.oneshot():
                times = process.cpu_times()
                memory += _memory(process)
        except psutil.Error:
            continue
        count += 1
        # Those whose parent is still there are counted by themselves; children_* has the reaped ones alone.
        cpu += times.user + times.system + times.children_user + times.children_system
    return Usage(count, cpu, memory)


def _memory(process: "psutil.Process") -> int:  # type: ignore[name-defined]  # noqa: F821 - imported where it is needed
    import psutil

    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
