"""Compilers inside: programs and libraries in C and C++, `make -j`, sanitizers, perl, and java where it is."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.installed import Installed
from support.work import STARTERS, Ground, Said, make_ground, row

Row = Mapping[str, Said]

FILES = {
    "Makefile": """\
CFLAGS = -O1 -Wall -Werror
OBJECTS = one.o two.o three.o four.o
all: program shared
libparts.a: $(OBJECTS)
\tar rcs $@ $^
program: main.o libparts.a
\t$(CC) -o $@ main.o -L. -lparts -lm -lpthread
shared: main.o libshared.so
\t$(CC) -o $@ main.o -L. -lshared -lm -lpthread -Wl,-rpath,'$$ORIGIN'
libshared.so: one.c two.c three.c four.c
\t$(CC) $(CFLAGS) -shared -fPIC -o $@ $^
check: program
\t./program
install: program
\tinstall -D program $(DESTDIR)/usr/bin/program
clean:
\trm -f *.o *.a *.so program shared
.PHONY: all check install clean
""",
    "parts.h": "int one(void); int two(void); int three(void); int four(void);\n",
    **{
        f"{name}.c": f'#include "parts.h"\nint {name}(void) {{ return {number}; }}\n'
        for number, name in enumerate(("one", "two", "three", "four"), 1)
    },
    "main.c": r"""
#include "parts.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
static void *sum(void *to) { *(int *)to = one() + two() + three() + four(); return 0; }
int main(void) {
    pthread_t thread;
    int total = 0;
    if (pthread_create(&thread, 0, sum, &total) || pthread_join(thread, 0)) return 1;
    printf("%d %.0f\n", total, sqrt(total * 10.0));
    return 0;
}
""",
    "heap.c": r"""
#include <stdlib.h>
int main(int count, char **arguments) {
    (void)arguments;
    char *block = malloc(8);
    free(block);
    return block[count];
}
""",
    "leak.c": r"""
#include <stdlib.h>
static void *lost;
int main(void) { lost = malloc(1000); lost = 0; return 0; }
""",
    "overflow.c": "int main(int count, char **v) { (void)v; int big = 2147483647; return (big + count) == 0; }\n",
    "race.c": r"""
#include <pthread.h>
static int shared;
static void *add(void *unused) { (void)unused; for (int i = 0; i < 1000; i++) shared++; return 0; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, add, 0);
    pthread_create(&b, 0, add, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
""",
    "words.cpp": r"""
#include <filesystem>
#include <iostream>
#include <map>
#include <thread>
int main() {
    std::map<std::string, int> words{{"b", 2}, {"a", 1}};
    std::thread([&] { words["c"] = 3; }).join();
    for (auto const &[word, count] : words) std::cout << word << count << ' ';
    std::cout << std::filesystem::exists("words.cpp") << '\n';
}
""",
    "Words.java": r"""
import java.nio.file.*;
public class Words {
    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(() -> System.out.println("thread"));
        thread.start();
        thread.join();
        Process child = new ProcessBuilder("echo", "child").inheritIO().start();
        System.out.println("exit " + child.waitFor());
        Files.writeString(Path.of("written.txt"), "by java");
        System.out.println(Runtime.getRuntime().availableProcessors() > 0);
        System.out.println(java.net.InetAddress.getLoopbackAddress().isLoopbackAddress());
    }
}
""",
}

WORK = row("""
make -j:
    make -s -j4 all
    ls libparts.a libshared.so
check:
    make -s check
    ./shared
up to date:
    make -q all
install:
    make -s install DESTDIR=/tmp/installed
    /tmp/installed/usr/bin/program
clean:
    make -s clean
    ls *.o program || true
nothing but gcc:
    echo 'int main(void) { return 5; }' | gcc -x c - -o five -pipe
    code=0
    ./five || code=$?
    echo $code
c++:
    g++ -std=c++17 -O1 words.cpp -o words -lpthread
    ./words
address:
    gcc -g -fsanitize=address heap.c -o heap
    ! ./heap
leak:
    gcc -g -O0 -fsanitize=address leak.c -o leak
    ! ./leak
undefined:
    gcc -g -fsanitize=undefined overflow.c -o overflow
    ./overflow
thread:
    gcc -g -fsanitize=thread race.c -o race
    ! ./race
coverage:
    gcc --coverage -O0 one.c -c -o one-covered.o
    ls one-covered.gcno
perl:
    perl -MIPC::Open3 -MSocket -MPOSIX=:sys_wait_h -e '
    my $child = fork() // die; if (!$child) { exit 4 } waitpid($child, 0); print WEXITSTATUS($?), "\\n";
    my $said = `echo from a shell`; print $said;
    socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die; print "pair\\n";'
""")

JAVA = row("""
java:
    javac Words.java
    java -cp . Words
    cat written.txt
""")


@pytest.fixture(scope="module", params=STARTERS)
def ground(request: pytest.FixtureRequest, installed: Installed, open_folder: Path) -> Ground:
    found = make_ground(request.param, installed, open_folder / "compilers")
    for name, text in FILES.items():
        (found.workspace / name).write_text(text)
    found.hand_over()
    return found


@pytest.fixture(scope="module")
def work(ground: Ground) -> Row:
    return ground.work(WORK)


def test_make_builds_in_parallel_a_static_and_a_shared_library_and_programs(work: Row) -> None:
    assert work["make -j"] == Said(0, "libparts.a\nlibshared.so\n")
    assert work["check"] == Said(0, "10 10\n10 10\n")


def test_make_sees_that_nothing_is_to_be_done(work: Row) -> None:
    assert work["up to date"] == Said(0, "")


def test_install_and_clean_work(work: Row) -> None:
    assert work["install"] == Said(0, "10 10\n")
    assert work["clean"].code == 0


def test_gcc_reads_a_pipe_and_what_it_made_runs(work: Row, ground: Ground) -> None:
    assert work["nothing but gcc"] == Said(0, "5\n")
    assert ground.made_by_owner("five")


def test_cpp_with_threads_and_the_file_system_runs(work: Row) -> None:
    assert work["c++"] == Said(0, "a1 b2 c3 1\n")


def test_the_sanitizers_find_what_they_should_and_name_the_line(work: Row) -> None:
    assert "heap-use-after-free" in work["address"].text
    assert "heap.c:7" in work["address"].text
    assert "signed integer overflow" in work["undefined"].text
    assert "overflow.c:1" in work["undefined"].text


def test_the_leak_sanitizer_stops_the_world_and_finds_the_leak(work: Row) -> None:
    assert "detected memory leaks" in work["leak"].text
    assert "leak.c:4" in work["leak"].text


def test_the_thread_sanitizer_finds_the_race(work: Row) -> None:
    assert "data race" in work["thread"].text


def test_coverage_notes_are_written(work: Row) -> None:
    assert work["coverage"].code == 0, work["coverage"].text


def test_perl_forks_runs_a_shell_and_makes_sockets(work: Row) -> None:
    assert work["perl"] == Said(0, "4\nfrom a shell\npair\n")


def test_java_compiles_and_runs_with_threads_and_children(ground: Ground) -> None:
    if shutil.which("javac", path="/usr/bin") is None:
        pytest.skip("no javac on this host")
    said = ground.work(JAVA)["java"]
    assert said == Said(0, "thread\nchild\nexit 0\ntrue\ntrue\nby java")
