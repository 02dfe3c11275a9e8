"""Many at once: how long 1, 8 and 32 starts take together, and what memory each session needs.

Rule: a session's memory is that of its own processes, not of the command: those that lie in no pid namespace
of its own, and process 1 of that namespace. Private is what only this process has (Private_Clean +
Private_Dirty), proportional (Pss) counts a shared page by its share (proc_pid_smaps_rollup, proc(5)). Only
root can look into processes that are closed to their own user.
"""

import os
import subprocess
import time
from pathlib import Path

from candidates import Account

AT_ONCE = (1, 8, 32)
KIB_PER_MIB = 1024


def starts(account: Account, command: list[str], workspace: str, count: int) -> float:
    """Milliseconds from before the first start to after the last end of `count` commands at once."""
    start = time.perf_counter()
    null = subprocess.DEVNULL
    running = [account.start(command, workspace, stdin=null, stdout=null, stderr=null) for _ in range(count)]
    codes = [process.wait() for process in running]
    took = time.perf_counter() - start
    if any(codes):
        raise SystemExit(f"{' '.join(command)}: {count} at once ended with {sorted(set(codes))}")
    return took * 1e3


def memory(account: Account, command: list[str], workspace: str, count: int) -> tuple[float, float]:
    """MiB of one session, proportional and private, while `count` of them wait: their mean."""
    pipe = subprocess.PIPE
    running = [
        account.start([*command, "./work", "wait"], workspace, stdin=pipe, stdout=pipe) for _ in range(count)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            if process.stdout.readline() != "up\n":
                raise SystemExit(f"{' '.join(command)}: one of {count} at once did not start")
        sums = [_of_session(process.pid) for process in running]
    finally:
        for process in running:
            process.communicate()
    return sum(each[0] for each in sums) / count, sum(each[1] for each in sums) / count


def _of_session(pid: int) -> tuple[float, float]:
    """Pss and private MiB of the session that `pid` started."""
    proportional = private = 0
    for each in _own_processes(pid):
        rollup = Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
        sizes = {key: int(rest.split()[0]) for key, rest in (line.split(":") for line in rollup)}
        proportional += sizes["Pss"]
        private += sizes["Private_Clean"] + sizes["Private_Dirty"]
    return proportional / KIB_PER_MIB, private / KIB_PER_MIB


def _own_processes(pid: int) -> list[int]:
    own = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        children = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii")
        for child in map(int, children.split()):
            if _numbers_inside(child) in ([], ["1"]):
                own += _own_processes(child)
    return own


def _numbers_inside(pid: int) -> list[str]:
    """The pids that `pid` has in inner namespaces (NSpid, proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    own = next(line for line in status if line.startswith("NSpid:"))
    return own.split()[2:]
