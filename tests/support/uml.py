"""A Linux kernel of the tests' own: User Mode Linux, a kernel that runs as a program (Debian: user-mode-linux;
Documentation/virt/uml/user_mode_linux_howto_v2.rst).

Rule: the kernel runs as an unprivileged uid of the host, so that nothing that its root does can be more than
that uid may do, and in a pid namespace of its own, so that all its processes end with the first. Its root is
the host's, read-only; what is written lies in memory, a folder for findings excepted. There is no image to
make, and nothing of it is left.
"""

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

PROGRAM = "/usr/bin/linux.uml"
USER = 65533
"""Who the kernel is on the host; without an account, as in scripts/test."""
MEMORY = "768M"
PATIENCE = 240
"""Seconds; the boot takes two, what the tests ask of it less than ninety where nothing else runs."""

# /dev is mounted by the kernel itself (CONFIG_DEVTMPFS_MOUNT). Process 1 may not end: it powers off by sysrq
# (Documentation/admin-guide/sysrq.rst), which is not waited for.
_PROCESS_1 = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
exec </dev/null
(
    set -e
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p /dev/pts /dev/shm
    mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    ln -s /proc/self/fd /dev/fd
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir /run/findings
    mount -t hostfs -o {findings} hostfs /run/findings
    {commands}
) 2>&1
echo "ended: $?"
echo o >/proc/sysrq-trigger
sleep 60
"""


class Ended(NamedTuple):
    """What a kernel left: all that its console showed, and the folder for findings."""

    console: str
    findings: Path


def boot(folder: Path, commands: str) -> Ended:
    """Boot, run `commands` (lines of sh, the first that fails is the last) as its root, power off.

    `folder`: on the host, of root, enterable by others. In it is made what the kernel needs and, as
    /run/findings inside, where `commands` leave what is to be seen. Raises nothing where the kernel fails:
    the console says what it did.
    """
    findings, own = folder / "findings", folder / "own"
    for made in (findings, own):
        made.mkdir(parents=True)
        shutil.chown(made, USER, USER)
    process_1 = folder / "process-1"
    process_1.write_text(_PROCESS_1.format(findings=shlex.quote(str(findings)), commands=commands))
    process_1.chmod(0o755)
    folder.chmod(0o755)
    return Ended(_console(_command(process_1, own)), findings)


def _command(process_1: Path, own: Path) -> list[str]:
    """`own`: for its pid file and the socket of its console; its memory is an unlinked file in /dev/shm."""
    contained = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--net",
        "--ipc",
    ]
    user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--no-new-privs"]
    # A change of uid forgets what unshare --kill-child asks for (prctl(2), PR_SET_PDEATHSIG); setpriv asks after it.
    user += ["--inh-caps=-all", "--pdeathsig", "KILL"]
    root = ["rootfstype=hostfs", "rootflags=/", "ro", f"init={process_1}"]
    consoles = ["con=null", "con0=null,fd:1", "ssl=null", "loglevel=2"]
    return [*contained, *user, PROGRAM, f"mem={MEMORY}", f"uml_dir={own}/", *root, *consoles]


def _console(command: list[str]) -> str:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent"}
    with subprocess.Popen(
        command,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            return process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return f"{process.communicate()[0]}\nnot done after {PATIENCE} s"
        finally:
            process.kill()  # where the tests are interrupted, too
