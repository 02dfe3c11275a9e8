"""Everything that the kernel says of how a process is confined, as JSON: to compare two of them field by field.

Rule: nothing is chosen that would be equal by luck; what differs between any two processes (pids, times,
memory) is left out by name, and all else of /proc/self/status and its like is in. What no file says (Landlock,
the filters' answers) is asked of the kernel by trying.
"""

PROGRAM = r"""
import ctypes, errno, json, os, signal, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
OF_ANY_PROCESS = (
    "Name State Tgid Ngid Pid PPid FDSize SigQ VmPeak VmSize VmLck VmPin VmHWM VmRSS RssAnon RssFile RssShmem VmData VmStk"
    " VmExe VmLib VmPTE VmSwap HugetlbPages voluntary_ctxt_switches nonvoluntary_ctxt_switches NStgid NSpid NSpgid NSsid"
).split()
FILES = (
    "mountinfo cgroup limits oom_score_adj uid_map gid_map projid_map setgroups attr/current loginuid sessionid"
    " timerslack_ns coredump_filter personality patch_state"
).split()

def content(path):
    try:
        with open(path, errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        return errno.errorcode[error.errno]

def attempt(call):
    try:
        call()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]

def libc_call(name, *words):
    if getattr(libc, name)(*words) == -1:
        raise OSError(ctypes.get_errno(), name)

def asked(option):
    value = ctypes.c_int()
    libc.prctl(option, ctypes.byref(value), 0, 0, 0)
    return value.value

status = dict(line.split(":", 1) for line in content("/proc/self/status").splitlines())
found = {f"status {key}": value.split() for key, value in status.items() if key not in OF_ANY_PROCESS}
found |= {f"namespace {name}": os.readlink(f"/proc/self/ns/{name}") for name in sorted(os.listdir("/proc/self/ns"))}
found |= {name: content(f"/proc/self/{name}").splitlines() for name in FILES}
found |= {f"environment {name}": value for name, value in os.environ.items()}
found |= {
    "root": [os.stat("/").st_dev, os.stat("/").st_ino],
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "folder": os.getcwd(),
    "umask": os.umask(0o777),
    "open fds": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "kinds of stdio": [stat.S_IFMT(os.fstat(fd).st_mode) for fd in range(3)],
    "stdio belongs to": [os.fstat(fd).st_uid for fd in range(3)],
    "leads its session": os.getsid(0) == os.getpid() == os.getpgrp(),
    "parent": os.getppid(),
    "keys": content("/proc/keys"),
    "dumpable": libc.prctl(3, 0, 0, 0, 0),
    "securebits": libc.prctl(27, 0, 0, 0, 0),
    "signal of the parent's death": asked(2),
    "subreaper": asked(37),
    "nice, scheduler, affinity": [os.nice(0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
    "handled signals": {number: str(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
    "a nameless file in /usr": attempt(lambda: os.close(os.open("/usr", os.O_TMPFILE | os.O_WRONLY))),
    "mknod a device": attempt(lambda: os.mknod("node", stat.S_IFCHR | 0o600, os.makedev(1, 3))),
    "signal process 1": attempt(lambda: os.kill(1, 0)),
    "unshare user": attempt(lambda: libc_call("unshare", 0x10000000)),
    "packet socket": attempt(lambda: socket.socket(17, 3, 0)),
    "look into process 1": attempt(lambda: os.listdir("/proc/1/fd")),
    "trace process 1": attempt(lambda: libc_call("ptrace", 16, 1, 0, 0)),
}
print(json.dumps(found), flush=True)
"""
