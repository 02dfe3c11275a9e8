"""From rows to BPF, by libseccomp, and the proof that nothing was lost on the way.

Rule: no filter leaves this module that was not asked about each of its rules. libseccomp up to 2.6.0 can
merge 64-bit comparisons into a weaker filter (GHSA-4q85-33p6-j5g6), and knows no recent call by name; so
rules go in by number, and what comes out is run against `jail.kernel.denials` before anybody gets it.

Imported on a cache miss only.
"""

import ctypes.util
import errno
import os
from collections.abc import Iterator, Sequence
from typing import Any

from jail.errors import EXIT_CANNOT_ISOLATE, JailError, bug
from jail.kernel import bpf, denials
from jail.kernel.syscalls import Arch


def build(arch: Arch) -> bytes:
    """The deny filter for `arch`, which must be the native one, compiled by libseccomp and checked against
    the rules.

    Another architecture, x32 among them, is ENOSYS here: the guard is what kills, and the strictest answer
    wins (seccomp(2)), so x32 calls stay ENOSYS and i386 calls die. Raises JailError as
    `jail.kernel.filters.compiled` says.
    """
    asked = denials.rules(arch)
    program = assemble(asked)
    check(program, arch, asked)
    return program


def assemble(asked: Sequence[denials.Rule]) -> bytes:
    """The rules as BPF for the native architecture, unchecked."""
    seccomp = _pyseccomp()
    made = seccomp.SyscallFilter(seccomp.ALLOW)
    made.set_attr(seccomp.Attr.ACT_BADARCH, bpf.fail(errno.ENOSYS))
    made.set_attr(seccomp.Attr.CTL_OPTIMIZE, 2)  # a binary tree over the numbers instead of a list
    for rule in asked:
        arguments = [_argument(seccomp, when) for when in rule.when]
        try:
            made.add_rule_exactly(seccomp.ERRNO(rule.errno), rule.number, *arguments)
        except OSError as error:
            raise bug(f"libseccomp refused the rule for {rule.call} ({rule.number}): {error}") from error
    # pyseccomp wants a file; a memfd is one that never has a name
    with open(os.memfd_create("jail-filter", os.MFD_CLOEXEC), "rb") as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()


def _argument(seccomp: Any, when: denials.When) -> Any:
    if when.test == denials.EQUAL:
        return seccomp.Arg(when.argument, seccomp.MASKED_EQ, when.mask, when.value)
    return seccomp.Arg(when.argument, seccomp.NE if when.test == denials.DIFFERS else seccomp.GE, when.value)


def _pyseccomp() -> Any:
    """pyseccomp, imported without running anything.

    On import it calls ctypes.util.find_library twice, which runs ldconfig, and where that fails gcc and ld,
    found through PATH (which costs 30 ms, too). While it is imported, find_library answers by
    soname, which is all that the loader needs.
    """
    before = ctypes.util.find_library
    ctypes.util.find_library = _soname
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError) as error:
        raise JailError(
            "the system-call filter cannot be built",
            where=f"import pyseccomp: {error}",
            hint="install libseccomp2 (libseccomp on Fedora), and pyseccomp in jail's own environment",
            code=EXIT_CANNOT_ISOLATE,
        ) from error
    finally:
        ctypes.util.find_library = before
    return pyseccomp


def _soname(name: str) -> str | None:
    """What pyseccomp asks for: its libc, where None is the one that this process has, and libseccomp."""
    return {"c": None, "seccomp": "libseccomp.so.2"}[name]


def check(program: bytes, arch: Arch, asked: Sequence[denials.Rule]) -> None:
    """Ask `program` about every rule, just inside and just outside it, and about every call that no rule
    names.

    Raises JailError (a defect) at the first answer that differs from the rules.
    """
    for number in range(arch.max_known + 1):
        concerning = [rule for rule in asked if rule.number == number]
        for arguments in questions(concerning):
            refusal = denials.expected(concerning, number, arguments)
            wanted = bpf.fail(refusal) if refusal else bpf.ALLOW
            answer = bpf.verdict(program, number, arguments, audit=arch.audit)
            if answer != wanted:
                raise bug(
                    f"the built filter answers {answer:#x} instead of {wanted:#x} to system call {number} "
                    f"with {', '.join(map(hex, arguments))}"
                )


def questions(concerning: Sequence[denials.Rule]) -> Iterator[list[int]]:
    """Argument vectors that tell the rules for one call apart: each rule met, and missed by one argument at a
    time.
    """
    yield [0] * 6
    yield [denials.WORD] * 6
    for rule in concerning:
        met = [0] * 6
        for when in rule.when:
            met[when.argument] = when.value + (when.test == denials.DIFFERS)
        yield met
        for when in rule.when:
            value, free = met[when.argument], denials.WORD & ~when.mask
            near = (value ^ 1, value + 1, when.value, when.value - 1, 0)
            for other in (value | free, value ^ (1 << 32), value ^ (1 << 63), *near):
                yield [*met[: when.argument], other & denials.WORD, *met[when.argument + 1 :]]
