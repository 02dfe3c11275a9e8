"""The filters loaded for real: each denial with its errno, and the programs that people use still work."""

import errno
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.kernel import denials, filters_build, syscalls
from support.confined import SOURCE, confined, python, workspace

MAKE_CALLS = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
answers = []
for words in json.loads(sys.stdin.read()):
    words = [*words, 0, 0, 0, 0, 0, 0][:7]  # else whatever the registers hold
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(word if word < 1 << 63 else word - (1 << 64)) for word in words])
    answers.append([result, ctypes.get_errno() if result == -1 else 0])
print(json.dumps(answers))
"""

BAD = 1
"""A pointer that leads nowhere: without the filter these calls fail too, but each with its own errno, and
change nothing.
"""
NO_FD = -1

PROBES: list[tuple[str, list[int]]] = [
    ("mount", [BAD] * 3),
    ("umount2", [BAD, 0xFFFF]),
    ("chroot", [BAD]),
    ("setns", [NO_FD, 0]),
    ("unshare", [0]),
    ("add_key", [BAD]),
    ("request_key", [BAD]),
    ("keyctl", [0xFFFF]),
    ("bpf", [9999, BAD, 16]),
    ("perf_event_open", [BAD, 0, 0, NO_FD, 0xFFFF]),
    ("quotactl", [0xFF]),
    ("quotactl_fd", [NO_FD]),
    ("settimeofday", [BAD, 0]),
    ("clock_settime", [999, 0]),
    ("modify_ldt", [99]),
    ("move_pages", [0, 0, 0, 0, 0, 0xFF]),
    ("migrate_pages", [0, 1 << 40]),
    ("mbind", [1, 1, 99]),
    ("get_mempolicy", []),
    ("set_mempolicy", [99]),
    ("open_by_handle_at", [NO_FD, BAD]),
    ("fanotify_mark", [NO_FD, 0, 0, NO_FD]),
    ("kcmp", [0, 0, 99]),
    ("pidfd_getfd", [NO_FD]),
    ("process_madvise", [NO_FD]),
    ("clone3", [0, 0]),
    ("openat2", [NO_FD, BAD, BAD, 0]),
    ("userfaultfd", [0xFFFFFFF]),
    ("open_tree", [NO_FD, BAD, 0xFFFFFFF]),
    ("move_mount", [NO_FD, BAD, NO_FD, BAD]),
    ("fsopen", [BAD]),
    ("fsconfig", [NO_FD]),
    ("fsmount", [NO_FD]),
    ("fspick", [NO_FD, BAD]),
    ("mount_setattr", [NO_FD, BAD]),
    ("ioctl", [NO_FD, 0x5412]),
    ("ioctl", [NO_FD, 0x541C | 1 << 32]),
    ("ioctl", [NO_FD, 0x5423]),
    ("socket", [2 | 1 << 32, 1]),
    ("socket", [1 | 1 << 63, 1]),
    ("socket", [16, 3, 4]),
    ("socket", [16, 3, 15]),
    ("socket", [2, 10, 768]),
    ("socketpair", [2, 1, 0, BAD]),
    ("setsockopt", [NO_FD, 6, 31, BAD, 4]),
    ("fchmod", [NO_FD, 0o2755]),
    ("fchmod", [NO_FD, 0o4755]),
    ("fchmodat", [NO_FD, BAD, 0o4755]),
    ("fchmodat2", [NO_FD, BAD, 0o4755]),
    ("openat", [NO_FD, BAD, 0o101, 0o4755]),
    ("renameat2", [NO_FD, BAD, NO_FD, BAD, 4]),
    ("mknodat", [NO_FD, BAD, 0o104755]),
    ("clone", [0x10000 | 0x10000000]),
    ("clone", [0x10000 | 0x40000000]),
    ("clone", [0x10000 | 0x20000]),
    ("personality", [0x400000]),
]
"""Calls that answer differently without the filter, even to an unprivileged uid."""

PROBES_X86: list[tuple[str, list[int]]] = [
    ("chmod", [BAD, 0o4755]),
    ("creat", [BAD, 0o4755]),
    ("open", [BAD, 0o101, 0o2755]),
    ("open", [BAD, 0o20200002, 0o4755]),
    ("mknod", [BAD, 0o104755]),
]

HARMLESS: list[tuple[str, list[int], int]] = [
    ("fchmod", [NO_FD, 0o755], errno.EBADF),
    ("fchmodat", [NO_FD, BAD, 0o1755], errno.EFAULT),
    ("openat", [NO_FD, BAD, 0, 0o4755], errno.EFAULT),
    ("openat", [NO_FD, BAD, 0o101, 0o755], errno.EFAULT),
    ("mkdirat", [NO_FD, BAD, 0o2755], errno.EFAULT),
    ("renameat2", [NO_FD, BAD, NO_FD, BAD, 1], errno.EFAULT),
    ("ioctl", [NO_FD, 0x5413], errno.EBADF),
    ("setsockopt", [NO_FD, 6, 1, BAD, 4], errno.EBADF),
    ("setsockopt", [NO_FD, 1, 31, BAD, 4], errno.EBADF),
    ("socketpair", [1, 1, 0, BAD], errno.EFAULT),
    ("clone", [0x10000], errno.EINVAL),
    ("seccomp", [99], errno.EINVAL),
    ("landlock_restrict_self", [NO_FD], errno.EBADF),
    ("pidfd_open", [NO_FD], errno.EINVAL),
]
"""The neighbours of what is denied: the kernel, not the filter, must answer."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with workspace() as made:
        yield made


def answers(folder: Path, calls: list[list[int]], *, filters: bool = True) -> list[list[int]]:
    done = python(MAKE_CALLS, folder, text=json.dumps(calls), filters=filters)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def refusal(call: str, arguments: list[int]) -> int:
    words = [*(word & denials.WORD for word in arguments), 0, 0, 0, 0, 0, 0][:6]
    return denials.expected(denials.rules(syscalls.native()), syscalls.number(call), words)


def test_every_denied_call_fails_as_said_and_differently_without_the_filter(folder: Path) -> None:
    probes = [*PROBES, *(PROBES_X86 if syscalls.native().name == "x86_64" else [])]
    calls = [[syscalls.number(call), *arguments] for call, arguments in probes]
    within, without = answers(folder, calls), answers(folder, calls, filters=False)
    for (call, arguments), inside, outside in zip(probes, within, without, strict=True):
        assert inside == [-1, refusal(call, arguments)], call
        assert outside != inside, f"{call}: no positive control"


def test_every_condition_of_every_rule_holds_in_the_kernel(folder: Path) -> None:
    """All argument vectors for which the rules say no, high bits and all: some 2000 calls, none of which may
    get through.
    """
    asked = denials.rules(syscalls.native())
    calls, wanted = [], []
    for number in sorted({rule.number for rule in asked}):
        concerning = [rule for rule in asked if rule.number == number]
        for arguments in filters_build.questions(concerning):
            if refused := denials.expected(concerning, number, arguments):
                calls.append([number, *arguments])
                wanted.append([-1, refused])
    assert len(calls) > 1000
    assert answers(folder, calls) == wanted


def test_the_neighbours_of_what_is_denied_reach_the_kernel(folder: Path) -> None:
    calls = [[syscalls.number(call), *arguments] for call, arguments, _ in HARMLESS]
    assert answers(folder, calls) == [[-1, number] for _, _, number in HARMLESS]


def test_sockets_and_pairs_that_programs_need_can_be_made(folder: Path) -> None:
    socket, allowed = syscalls.number("socket"), [[1, 1], [1, 5], [2, 1, 6], [2, 2, 17], [10, 1], [16, 3, 0]]
    assert all(result >= 0 for result, _ in answers(folder, [[socket, *words] for words in allowed]))


def test_unreviewed_and_x32_numbers_are_absent(folder: Path) -> None:
    unknown = [472, 500, 1000, 1 << 20, 0x7FFFFFFF, 0x80000000]
    if syscalls.native().name == "x86_64":
        unknown += [337, 423, *(syscalls.X32_BIT | number for number in range(600))]
    assert answers(folder, [[number, 0, 0] for number in unknown]) == [[-1, errno.ENOSYS]] * len(unknown)


@pytest.mark.skipif(syscalls.native().name != "x86_64", reason="int 0x80 is x86")
def test_the_32_bit_entry_kills(folder: Path) -> None:
    source = folder / "entry.c"
    source.write_text(
        'int main(void){long pid;__asm__ volatile("int $0x80":"=a"(pid):"a"(20):"memory");return pid<=0;}\n'
    )
    subprocess.run(["gcc", "-o", folder / "entry", source], check=True)
    control = confined([str(folder / "entry")], folder, filters=False).returncode
    if control == -signal.SIGSEGV:
        pytest.skip("this kernel has no IA32 emulation")
    assert control == 0
    assert confined([str(folder / "entry")], folder).returncode == -signal.SIGSYS


def test_the_status_tells_what_is_loaded(folder: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); "
        "from jail.kernel import seccomp; print(*seccomp.status())"
    )
    assert python(code, folder).stdout.split() == ["2", "2", "True"]
    assert python(code, folder, filters=False).stdout.split() == ["0", "0", "True"]


def test_filters_of_a_program_inside_add_up_and_take_nothing_off(folder: Path) -> None:
    """CASES.md D15: a filter that allows everything, loaded on top, allows nothing that was denied."""
    code = f"""
import sys; sys.path.insert(0, {str(SOURCE)!r})
from jail.kernel import bpf, seccomp, syscalls
from jail.kernel.libc import KernelError, syscall
seccomp.install(bpf.instruction(bpf.RETURN, bpf.ALLOW), "allow all")
print(seccomp.status().filters)
try:
    syscall("unshare", syscalls.number("unshare"), 0)
except KernelError as error:
    print(error)
"""
    assert python(code, folder).stdout.splitlines() == ["3", "unshare: Operation not permitted (EPERM)"]


def test_loading_without_no_new_privs_is_refused_by_the_kernel_and_said(folder: Path) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(SOURCE)!r})
from jail.kernel import bpf, seccomp
try:
    seccomp.install(bpf.instruction(bpf.RETURN, bpf.ALLOW), "guard")
except OSError as error:
    print(error)
print(*seccomp.status())
"""
    if sys.platform == "linux" and Path("/proc/self/status").read_text().find("NoNewPrivs:\t1") >= 0:
        pytest.skip("these tests run with no_new_privs already")
    identity = (
        {"user": 65533, "group": 65533, "extra_groups": []} if Path("/proc/self").stat().st_uid == 0 else {}
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, **identity
    )
    said, state = done.stdout.splitlines()
    assert said == "seccomp(SECCOMP_SET_MODE_FILTER, guard, 1 instructions): Permission denied (EACCES)"
    assert state == "0 0 False"


@pytest.mark.parametrize("program", [b"", b"1234567"])
def test_bytes_that_are_no_program_are_our_defect(program: bytes) -> None:
    from jail.errors import JailError
    from jail.kernel import seccomp

    with pytest.raises(JailError, match="defect in jail: guard"):
        seccomp.install(program, "guard")


def test_a_setuid_bit_cannot_be_left_on_the_host(folder: Path) -> None:
    """CASES.md A22, seen from outside: the mode of each file after every way to ask for the bit."""
    code = """
import os, shutil, sys
def attempt(action, *arguments):
    try: action(*arguments)
    except PermissionError: return
    print("was allowed:", action, arguments)
os.umask(0)
open("file", "w").close()
for bit in (0o4000, 0o2000, 0o6000):
    attempt(os.chmod, "file", bit | 0o755)
    attempt(os.open, "opened", os.O_CREAT | os.O_WRONLY, bit | 0o755)
    attempt(os.open, ".", os.O_TMPFILE | os.O_WRONLY, bit | 0o755)
    os.mkdir(f"folder{bit}", bit | 0o755)
    attempt(os.mknod, "node", 0o100000 | bit | 0o755)
    attempt(os.mkfifo, "pipe", bit | 0o755)
os.chmod("file", 0o1777)
"""
    done = python(code, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir()} == {
        "file": 0o1777,
        "folder2048": 0o755,
        "folder1024": 0o755,
        "folder3072": 0o755,
    }
    control = python("import os; open('file', 'w').close(); os.chmod('file', 0o4755)", folder, filters=False)
    assert control.returncode == 0
    assert (folder / "file").stat().st_mode & 0o4000


PROGRAMS = {
    "gcc compiles and links": ["sh", "-c", "gcc -O2 -pthread -o hello hello.c && ./hello"],
    "make -j2": ["make", "-j2", "-s", "all"],
    "python multiprocessing": [sys.executable, "-I", "work.py"],
    "node with worker threads": ["node", "work.js"],
    "npm": ["npm", "--version"],
    "git init, commit, clone, gc": [
        "sh",
        "-ec",
        """git init -q repo; cd repo; git config user.name n; git config user.email e@x
        echo 1 > f; git add f; git commit -qm one; git switch -qc other; git gc -q
        git clone -q . ../copy; git -C ../copy log --oneline | wc -l""",
    ],
    "gdb on an own process": [
        "gdb",
        "-batch",
        "-nx",
        "-ex",
        "break main",
        "-ex",
        "run",
        "-ex",
        "backtrace",
        "hello-g",
    ],
    "strace follows forks": ["strace", "-f", "-o", "trace", "sh", "-c", "/bin/true; /bin/true"],
    "pipes, jobs and here documents of a shell": [
        "bash",
        "-ec",
        "seq 9 | sort -rn | head -1 & wait; cat <<< text",
    ],
}
SAID = {
    "gcc compiles and links": "hello\n",
    "make -j2": "hello\nhello\n",
    "python multiprocessing": "[0, 1, 4, 9] 6 ok\n",
    "node with worker threads": "worker 42 child\n",
    "git init, commit, clone, gc": "1\n",
    "pipes, jobs and here documents of a shell": "9\ntext\n",
}
FILES = {
    "hello.c": "#include <pthread.h>\n#include <stdio.h>\n"
    'static void *say(void *a){puts("hello");return a;}\n'
    "int main(void){pthread_t t;pthread_create(&t,0,say,0);pthread_join(t,0);return 0;}\n",
    "Makefile": "all: a b\na b: hello.c\n\tgcc -pthread -o $@ hello.c && ./$@\n",
    "work.py": "import multiprocessing as m, asyncio, sqlite3, ssl, subprocess, threading\n"
    "from multiprocessing import shared_memory\n"
    "def square(x): return x * x\n"
    "if __name__ == '__main__':\n"
    "    m.set_start_method('spawn')\n"
    "    with m.Pool(2) as pool: squares = pool.map(square, range(4))\n"
    "    s = shared_memory.SharedMemory(create=True, size=6); size = 6; s.close(); s.unlink()\n"
    "    asyncio.run(asyncio.sleep(0)); sqlite3.connect('x.db').execute('create table t (a)')\n"
    "    print(squares, size, subprocess.run(['echo', 'ok'], capture_output=True).stdout.decode().strip())\n",
    "work.js": "const {Worker}=require('worker_threads');const c=require('child_process');\n"
    "new Worker('require(\"worker_threads\").parentPort.postMessage(42)',{eval:true})\n"
    ".on('message',m=>console.log('worker',m,c.execSync('echo child').toString().trim()));\n",
}


@pytest.fixture
def sources(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).write_text(content)
    subprocess.run(["gcc", "-g", "-pthread", "-o", folder / "hello-g", folder / "hello.c"], check=True)
    return folder


@pytest.mark.parametrize("landlock", [False, True], ids=["filters", "filters and Landlock"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_work(sources: Path, name: str, landlock: bool) -> None:
    command = PROGRAMS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    write = [str(sources), "/dev/shm"] if landlock else None
    done = confined(command, sources, write=write)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SAID.get(name, "") in done.stdout
    if "gdb" in name:
        assert "main () at" in done.stdout
    if "strace" in name:
        assert (sources / "trace").read_text().count("execve(") == 3
