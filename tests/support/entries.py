"""Small C programs for what Python cannot do: raw entries into the kernel, busy threads, an argv that lies.

Rule: one source and one binary, whose first argument is the mode. The 32-bit program is made of instructions
alone, as no 32-bit C library may be there.
"""

import subprocess
from pathlib import Path
from typing import NamedTuple

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#if defined(__x86_64__)
static long raw(long number) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(0L), "S"(0L), "d"(0L)
                     : "rcx", "r11", "memory");
    return result;
}
static long old(long number) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(0L), "c"(0L), "d"(0L) : "memory");
    return result;
}
#endif

static void *spin(void *unused) {
    for (volatile unsigned long count = 0;; count++) {}
    return unused;
}

static void busy(int threads) {
    pthread_t thread;
    for (int number = 1; number < threads; number++)
        if (pthread_create(&thread, 0, spin, 0)) exit(3);
    puts("busy");
    fflush(stdout);
    spin(0);
}

static void lie(char **arguments, int count) {
    char *first = arguments[0], *end = arguments[count - 1] + strlen(arguments[count - 1]);
    memset(first, 0, (size_t)(end - first));
    strcpy(first, "pytest");
    prctl(PR_SET_NAME, "pytest");
    char shown[4096] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    if (!file || !fread(shown, 1, sizeof shown - 1, file)) exit(3);
    puts(shown);
}

static void credentials(void) {
    char line[256];
    printf("uid %d %d\n", (int)getuid(), (int)geteuid());
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "CapEff", 6) || !strncmp(line, "CapPrm", 6)) fputs(line, stdout);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "busy")) busy(atoi(arguments[2]));
    if (!strcmp(mode, "lie")) lie(arguments, count);
    if (!strcmp(mode, "credentials")) credentials();
    if (!strcmp(mode, "crash")) raise(SIGSEGV);
#if defined(__x86_64__)
    if (!strcmp(mode, "native")) printf("%d\n", raw(39) == getpid());
    if (!strcmp(mode, "x32")) {
        int reached = 0;
        for (long number = 0; number < 700; number++)
            if (raw(number | 0x40000000) != -38) reached++;
        printf("%d\n", reached);
    }
    if (!strcmp(mode, "int80")) printf("%d\n", old(20) == getpid());
#endif
    return 0;
}
"""
SOURCE_32 = """
.globl _start
_start: mov $1, %eax
        mov $7, %ebx
        int $0x80
.section .note.GNU-stack, "", @progbits
"""


class Entries(NamedTuple):
    """`program` has modes (see SOURCE); `program_32` exits with 7, None where it cannot be made."""

    program: Path
    program_32: Path | None


def compile_entries(folder: Path) -> Entries:
    """Compile both into `folder`, which is visible inside."""
    program, program_32 = folder / "entries", folder / "entries-32"
    command = ["gcc", "-O1", "-pthread", "-o", str(program), "-x", "c", "-"]
    subprocess.run(command, input=SOURCE, text=True, check=True, capture_output=True, timeout=60)
    command = ["gcc", "-m32", "-nostdlib", "-static", "-o", str(program_32), "-x", "assembler", "-"]
    done = subprocess.run(command, input=SOURCE_32, text=True, check=False, capture_output=True, timeout=60)
    return Entries(program, program_32 if done.returncode == 0 else None)
