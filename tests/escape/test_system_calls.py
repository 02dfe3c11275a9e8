"""D: the system calls that a command, its threads and its grandchildren can make, in a whole `jail run`."""

import pytest

from support.answers import PRELUDE, Answers, Attempt, judge, judge_allowed, new_jail, numbers, run_table
from support.entries import Entries, compile_entries
from support.installed import Installed
from support.jails import Jail

NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "time": 0x00000080,
}
"""CLONE_NEW* of <linux/sched.h>."""
CALLS = """
    unshare clone clone3 setns mount umount2 pivot_root chroot mount_setattr open_tree open_tree_attr
    move_mount fsopen fsconfig fsmount fspick io_uring_setup io_uring_enter io_uring_register add_key
    request_key keyctl bpf perf_event_open userfaultfd lsm_set_self_attr personality pidfd_open pidfd_getfd
    kcmp process_vm_writev seccomp prctl memfd_create execveat socket
""".split()

SETUP = r'''
USER = 0x10000000

def alone(flag):
    """A new namespace of one kind; outside, a user namespace gives the right to the others first."""
    if flag != USER:
        try:
            call("unshare", USER)
        except OSError:
            pass
    return call("unshare", flag)

def cloned(flag):
    if flag != USER:
        try:
            call("unshare", USER)
        except OSError:
            pass
    pid = call("clone", flag | signal.SIGCHLD)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def in_new_world(action):
    """As root of a user and mount namespace of its own, where that can be had."""
    try:
        call("unshare", USER | 0x00020000)
    except OSError:
        pass
    return action()

def mounted():
    return in_new_world(lambda: call("mount", text(b"x"), text(b"/tmp"), text(b"tmpfs")))

def unmounted():
    return in_new_world(lambda: call("umount2", text(b"/nowhere"), 0))

def new_root(name, *words):
    return in_new_world(lambda: call(name, *words))

def key(name, *words):
    return call(name, text(b"user"), text(b"jail-probe"), *words)

def joined(kind):
    fd = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
    return call("setns", fd, 0)

def child_fd():
    """pidfd_getfd(2) of a child's fd."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        return call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)

def written_into_child():
    target = ctypes.create_string_buffer(b"old")
    source = ctypes.create_string_buffer(b"new")
    pid = os.fork()
    if pid == 0:
        signal.pause()
    vector = struct.Struct("PN")
    local = ctypes.create_string_buffer(vector.pack(ctypes.addressof(source), 3))
    remote = ctypes.create_string_buffer(vector.pack(ctypes.addressof(target), 3))
    try:
        return call("process_vm_writev", pid, local, 1, remote, 1, 0)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)

def traced_child():
    """gdb's and strace's way: allowed."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        attached = libc.ptrace(ctypes.c_long(16), ctypes.c_long(pid), None, None)  # PTRACE_ATTACH
        if attached != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        os.waitpid(pid, 0)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)

def own_filter(flags, returns):
    """Load a filter of one instruction, as any program may once no_new_privs is set."""
    call("prctl", 38, 1, 0, 0, 0)
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, returns))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))
    return call("seccomp", 1, flags, program)

def denied_under_own_filter():
    own_filter(0, 0x7FFF0000)  # SECCOMP_RET_ALLOW
    return call("unshare", USER)

def denied_under_own_listener():
    """A listener of the program's own, on unshare alone, that answers "continue"."""
    call("prctl", 38, 1, 0, 0, 0)
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, NUMBERS["unshare"]), (6, 0, 0, 0x7FC00000), (6, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    listener = call("seccomp", 1, 8, program)  # SECCOMP_FILTER_FLAG_NEW_LISTENER

    def answer_one():
        request = bytearray(80)  # struct seccomp_notif
        fcntl.ioctl(listener, 0xC0502100, request)
        fcntl.ioctl(listener, 0xC0182101, struct.pack("QqiI", struct.unpack_from("Q", request)[0], 0, 0, 1))

    if os.fork() == 0:
        if select.select([listener], [], [], 0.5)[0]:
            answer_one()
        os._exit(0)
    try:
        return call("unshare", USER)
    finally:
        os.wait()

def socket_families():
    """Families, plain and with a high bit set, of which the kernel says anything but "not supported"."""
    found = set()
    for family in range(64):
        for word in (family, family | 1 << 32, family | 1 << 63):
            for kind in (1, 2, 3, 5):
                try:
                    os.close(call("socket", word, kind, 0))
                except OSError as error:
                    if error.errno == errno.EAFNOSUPPORT:
                        continue
                found.add(family if word == family else -family)
    return " ".join(map(str, sorted(found)))

def netlink_protocols():
    found = []
    for protocol in range(32):
        try:
            os.close(call("socket", 16, 3, protocol))
            found.append(protocol)
        except OSError:
            pass
    return " ".join(map(str, found))

def shown(path):
    return "ok" if os.path.exists(path) else "ENOENT"

def from_memory():
    """A program that lies in no folder: memfd_create(2), execveat(2)."""
    fd = call("memfd_create", text(b"probe"), 0)
    with open("/bin/sh", "rb") as file:
        os.write(fd, file.read())
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        script = b"grep -E '^(NoNewPrivs|Seccomp|CapBnd):' /proc/self/status"
        arguments = [text(b"sh"), text(b"-c"), text(script)]
        vector = (ctypes.c_void_p * 4)(*map(ctypes.addressof, arguments), None)
        call("execveat", fd, text(b""), vector, (ctypes.c_void_p * 1)(None), 0x1000)
    os.close(write)
    os.waitpid(pid, 0)
    return " ".join(open(read).read().split())

def threads_and_forks():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    done = subprocess.run(["/bin/sh", "-c", "echo $(echo forked)"], capture_output=True, text=True)
    return done.stdout.strip()
'''

TABLE = (
    *(
        Attempt("D7", f"a new {kind} namespace by unshare", f"alone({flag})", "EPERM", "ok")
        for kind, flag in NAMESPACES.items()
    ),
    *(
        Attempt("D7", f"a new {kind} namespace by clone", f"cloned({flag})", "EPERM", "ok")
        for kind, flag in NAMESPACES.items()
        if kind != "time"
    ),
    Attempt("D7", "setns", "joined('user')", "EPERM", "EINVAL"),
    Attempt("D6", "clone3, so that libc falls back", "call('clone3', 0, 0)", "ENOSYS", "EINVAL"),
    Attempt("agent 24", "mount in a namespace of its own", "mounted()", "EPERM", "ok"),
    Attempt("agent 24", "umount in a namespace of its own", "unmounted()", "EPERM", "ENOENT"),
    Attempt("agent 24", "chroot", "new_root('chroot', text(b'/'))", "EPERM", "ok"),
    Attempt("agent 24", "pivot_root", "new_root('pivot_root', text(b'/no'), text(b'/'))", "EPERM", "ENOENT"),
    *(
        Attempt("D9", f"the new mount API: {name}", f"new_root({name!r}, {words})", "ENOSYS")
        for name, words in (
            ("open_tree", "NO_FD, BAD, 0xFFFFFFF"),
            ("open_tree_attr", "NO_FD, BAD, 0xFFFFFFF"),
            ("move_mount", "NO_FD, BAD, NO_FD, BAD"),
            ("fsopen", "text(b'tmpfs')"),
            ("fsconfig", "NO_FD"),
            ("fsmount", "NO_FD"),
            ("fspick", "NO_FD, BAD"),
            ("mount_setattr", "NO_FD, BAD"),
        )
    ),
    Attempt("D5, agent 20", "io_uring_setup", "call('io_uring_setup', 1, text(bytes(256)))", "ENOSYS"),
    Attempt("D5, agent 20", "io_uring_enter", "call('io_uring_enter', NO_FD)", "ENOSYS"),
    Attempt("D5, agent 20", "io_uring_register", "call('io_uring_register', NO_FD)", "ENOSYS"),
    Attempt("D19", "a key in the process's own ring", "key('add_key', text(b'x'), 1, -2)", "EPERM", "ok"),
    Attempt("D19", "a search of the rings", "key('request_key', 0, -2)", "EPERM", "ENOKEY"),
    Attempt("D19", "a session ring of its own", "call('keyctl', 1, 0)", "EPERM", "ok"),
    Attempt("D20", "bpf", "call('bpf', 9999, BAD, 16)", "EPERM"),
    Attempt("D20", "perf_event_open", "call('perf_event_open', BAD, 0, 0, NO_FD, 0xFFFF)", "EPERM"),
    Attempt("D21", "userfaultfd", "call('userfaultfd', 0xFFFFFFF)", "ENOSYS"),
    Attempt(
        "D33", "the security label of the process", "call('lsm_set_self_attr', 9999, BAD, 0, 0xFF)", "EPERM"
    ),
    Attempt("D32", "personality READ_IMPLIES_EXEC", "call('personality', 0x400000)", "EPERM", "ok"),
    Attempt("D32", "personality ADDR_COMPAT_LAYOUT", "call('personality', 0x200000)", "EPERM", "ok"),
    Attempt("D32", "a personality with the sign bit", "call('personality', 0x80000000)", "EPERM", "ok"),
    Attempt("D", "an fd taken out of a child", "child_fd()", "EPERM", "ok"),
    Attempt("D", "process_vm_writev into a child", "written_into_child()", "EPERM", "ok"),
    Attempt("D", "kcmp", "call('kcmp', os.getpid(), os.getpid(), 1)", "EPERM", "ok"),
    Attempt("D15", "a filter of its own that allows all", "denied_under_own_filter()", "EPERM", "ok"),
    Attempt("D15", "a listener of its own that lets go on", "denied_under_own_listener()", "EPERM", "ok"),
    Attempt("D23-D26, agent 22", "address families but four", "socket_families()", "1 2 10 16"),
    Attempt("D27, agent 22", "netlink but for routes", "netlink_protocols()", "0"),
)
"""Each is refused inside, with that errno, from everywhere; `outside` is what it meets without walls."""

ALLOWED = (
    Attempt("D6", "threads, forks and pipes go on working", "threads_and_forks()", "forked"),
    Attempt("D32", "asking for the personality", "call('personality', 0xFFFFFFFF)", "ok"),
    Attempt("D32", "gdb's personality", "call('personality', 0x40000)", "ok"),
    Attempt("D15", "a filter of a program's own", "own_filter(0, 0x7FFF0000)", "ok"),
    Attempt("D15", "a listener of a program's own", "own_filter(8, 0x7FFF0000)", "ok"),
    Attempt("D", "ptrace of a child", "traced_child()", "ok"),
    Attempt("D27", "the netlink of interfaces and routes", "call('socket', 16, 3, 0)", "ok"),
)
"""What the same walls must let through, or the refusals above would say nothing."""


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    """One jail for this module's tables."""
    return new_jail(installed, tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="module")
def entries(folder: Jail) -> Entries:
    return compile_entries(folder.workspace)


@pytest.fixture(scope="module")
def answers(folder: Jail) -> Answers:
    return run_table(folder, (*TABLE, *ALLOWED), CALLS, SETUP)


@pytest.mark.parametrize("attempt", TABLE, ids=lambda attempt: attempt.name)
def test_refused_from_everywhere_inside(attempt: Attempt, answers: Answers) -> None:
    judge(attempt, answers)


@pytest.mark.parametrize("attempt", ALLOWED, ids=lambda attempt: attempt.name)
def test_still_possible_inside(attempt: Attempt, answers: Answers) -> None:
    judge_allowed(attempt, answers)


def test_d29_d30_the_command_its_threads_and_its_grandchildren_have_no_right_and_both_filters(
    answers: Answers,
) -> None:
    outside = answers.outside["the command"]["posture"]
    assert int(outside["CapBnd"], 16), "no positive control: these tests run without any capability to lose"
    for who, found in answers.inside.items():
        posture = found["posture"]
        assert posture["NoNewPrivs"] == "1", who
        assert posture["Seccomp"] == "2", who
        assert int(posture["Seccomp_filters"]) == int(outside["Seccomp_filters"]) + 2, who
        capabilities = {name: int(value, 16) for name, value in posture.items() if name.startswith("Cap")}
        assert set(capabilities.values()) == {0}, who


VISIBLE = r"""
subprocess.Popen(["/bin/sh", "-c", "sleep 99 & setsid sleep 99 & wait"])
while [status_of(pid, "Name")["Name"] for pid in os.listdir("/proc") if pid.isdigit()].count("sleep") < 2:
    time.sleep(0.01)
print(json.dumps({pid: status_of(pid, "Name", "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapBnd", "CapEff")
    for pid in os.listdir("/proc") if pid.isdigit()}))
"""


def test_agent_36_every_process_that_is_seen_inside_has_the_same_posture(folder: Jail) -> None:
    found = folder.inside(PRELUDE + VISIBLE, numbers())
    assert len(found) >= 5, "process 1, the command, a shell and two programs"
    for pid, posture in found.items():
        assert (posture["NoNewPrivs"], posture["Seccomp"]) == ("1", "2"), (pid, posture)
        assert int(posture["CapBnd"], 16) == int(posture["CapEff"], 16) == 0, (pid, posture)
    assert len({posture["Seccomp_filters"] for posture in found.values()}) == 1


def test_agent_23_a_program_that_lies_in_memory_only_runs_behind_the_same_walls(folder: Jail) -> None:
    program = PRELUDE + SETUP + "print(json.dumps(from_memory()))"
    found, control = (run(program, numbers(*CALLS)) for run in (folder.inside, folder.outside))
    assert sorted(found.split()) == sorted("CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2".split())
    assert "CapBnd:" in control, "no positive control: the program did not run outside either"
    assert sorted(control.split()) != sorted(found.split())
