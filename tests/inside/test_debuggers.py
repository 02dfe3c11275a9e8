"""Debuggers inside: gdb and strace on processes of one's own, a core that is not written, and tmux."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.installed import Installed
from support.work import ROOT_ONCE, Ground, Said, make_ground, row

Row = Mapping[str, Said]

FILES = {
    "deep.c": """\
#include <stdio.h>
#include <unistd.h>
int inner(int depth) { return depth ? inner(depth - 1) + 1 : getpid() > 0; }
int main(int count, char **arguments) {
    int found = inner(2);
    printf("found %d\\n", found);
    if (count > 1) { puts("waits"); fflush(stdout); pause(); }
    return arguments == 0;
}
""",
    "crash.c": "int main(void) { volatile int *nowhere = 0; return *nowhere; }\n",
    "many.c": """\
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *unused) { return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    if (!fork()) { execlp("true", "true", (char *)0); _exit(1); }
    wait(0);
    return 0;
}
""",
}

PAUSE = {"x86_64": "pause", "aarch64": "ppoll"}
"""The system call that the C library's pause() makes."""

WORK = row("""
build:
    for name in deep crash many; do gcc -g -O0 $name.c -o $name -lpthread; done
run:
    gdb -nx -batch -ex 'break inner if depth == 0' -ex run -ex bt -ex 'print depth' -ex finish -ex 'info threads' \\
        -ex 'frame function main' -ex 'watch found' -ex continue -ex continue ./deep
crash:
    gdb -nx -batch -ex run -ex bt ./crash
fork:
    gdb -nx -batch -ex 'set follow-fork-mode child' -ex run ./many
attach:
    ./deep wait > said & child=$!
    until grep -q waits said; do sleep 0.02; done
    gdb -nx -batch -p $child -ex bt -ex detach
    kill $child
core:
    ulimit -c
    bash -c './crash; echo $?' 2>/dev/null
    ls core* || true
strace:
    strace -f -qq -e trace=execve,clone,wait4 -o trace ./many
    cat trace
strace -c:
    strace -f -c -o counted sh -c 'cat deep.c | wc -w'
    grep -c execve counted
strace -p:
    ./deep wait > said & child=$!
    until grep -q waits said; do sleep 0.02; done
    strace -p $child -o attached & tracer=$!
    until grep -q '(' attached; do sleep 0.05; done 2>/dev/null
    kill $tracer $child
    cat attached
python:
    python3 -c 'import faulthandler, os, time; file = open("stacks", "w")
    faulthandler.dump_traceback_later(0.02, file=file)
    while not os.path.getsize("stacks"): time.sleep(0.02)'
    cat stacks
tmux:
    tmux -f /dev/null new-session -d -s work -x 100 -y 30 'sh -c "tput cols; tty; stty size; exec sh"'
    tmux send-keys -t work 'echo typed $((6*7))' Enter
    for try in $(seq 300); do
        tmux capture-pane -p -t work > screen
        ! grep -q 'typed 42' screen || break
        sleep 0.2
    done
    cat screen
    tmux kill-server
script:
    script -qec 'test -t 0 && test -t 1 && tty' /dev/null
""")


@pytest.fixture(scope="module", params=ROOT_ONCE)
def work(request: pytest.FixtureRequest, installed: Installed, open_folder: Path) -> Row:
    ground: Ground = make_ground(request.param, installed, open_folder / "debuggers")
    for name, text in FILES.items():
        (ground.workspace / name).write_text(text)
    ground.hand_over()
    return ground.work(WORK)


def test_gdb_breaks_runs_and_tells_the_stack(work: Row) -> None:
    said = work["run"].text
    assert re.search(r"#0 +inner \(depth=0\) at deep.c:3", said), said
    assert re.search(r"#3 .*main \(.*\) at deep.c:5", said), said
    assert "$1 = 0" in said
    assert "atchpoint 2: found" in said
    assert re.search(r"Old value = .*\nNew value = 3", said), said


def test_gdb_needs_no_address_space_of_its_own(work: Row) -> None:
    assert "warning: Error disabling address space randomization" not in work["run"].text


def test_gdb_shows_where_a_program_crashed(work: Row) -> None:
    assert "SIGSEGV" in work["crash"].text
    assert "crash.c:1" in work["crash"].text


def test_gdb_follows_a_child(work: Row) -> None:
    assert "is executing new program" in work["fork"].text
    assert "exited normally" in work["fork"].text


def test_gdb_attaches_to_an_own_process(work: Row) -> None:
    assert work["attach"].code == 0, work["attach"].text
    assert "main (" in work["attach"].text


def test_no_core_is_written(work: Row) -> None:
    assert work["core"].text.split()[:2] == ["0", "139"]
    assert "core." not in work["core"].text


def test_strace_follows_threads_and_children(work: Row) -> None:
    said = work["strace"].text
    assert 'execve("./many"' in said
    assert '"true"' in said
    assert said.count("clone(") == 2
    assert "si_code=CLD_EXITED" in said


def test_strace_counts(work: Row) -> None:
    words = len(FILES["deep.c"].split())
    assert work["strace -c"] == Said(0, f"{words}\n1\n")


def test_strace_attaches_to_an_own_process(work: Row) -> None:
    assert "strace: Process" in work["strace -p"].text
    assert f"{PAUSE[os.uname().machine]}(" in work["strace -p"].text


def test_python_dumps_the_stacks_of_its_threads(work: Row) -> None:
    assert "most recent call first" in work["python"].text


def test_tmux_has_a_session_with_a_terminal_of_its_own(work: Row) -> None:
    said = work["tmux"].text
    assert work["tmux"].code == 0, said
    assert "typed 42" in said
    assert "/dev/pts/" in said


def test_script_gives_a_terminal(work: Row) -> None:
    assert work["script"].code == 0
    assert work["script"].text.strip().startswith("/dev/pts/")
