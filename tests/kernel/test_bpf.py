"""The product's BPF reader agrees with the tests' own one, and refuses what it does not know."""

import random

import pytest

from jail.kernel import bpf, denials, guard
from jail.kernel.filters_build import assemble
from jail.kernel.syscalls import ARCHES, native
from support import bpf as other


def test_an_instruction_has_the_layout_of_struct_sock_filter() -> None:
    assert bpf.instruction(bpf.JUMP_EQUAL, 0xC000003E, 1, 2) == bytes([0x15, 0, 1, 2, 0x3E, 0, 0, 0xC0])


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (b"", "no program"),
        (b"1234567", "no program"),
        (bpf.instruction(bpf.RETURN, 0) * 4097, "no program"),
        (bpf.instruction(bpf.LOAD, 0), "runs off its end"),
        (bpf.instruction(bpf.JUMP, 9), "runs off its end"),
        (bpf.instruction(bpf.LOAD, 64), "loads word 64"),
        (bpf.instruction(bpf.LOAD, 3), "loads word 3"),
        (bpf.instruction(0x87, 0), "unknown code 0x87"),
    ],
)
def test_what_the_kernel_would_not_take_is_refused(program: bytes, complaint: str) -> None:
    with pytest.raises(bpf.BadProgramError, match=complaint):
        bpf.verdict(program, 0, audit=0)


def test_two_readers_written_apart_agree() -> None:
    arch = native()
    programs = [guard.program(arch), assemble(denials.rules(arch))]
    chance = random.Random(22)
    edges = [
        0,
        1,
        2,
        10,
        16,
        0o4755,
        0o2000,
        0x5412,
        1 << 31,
        1 << 32,
        (1 << 32) | 2,
        (1 << 63) | 16,
        denials.WORD,
    ]
    for _ in range(4000):
        number = chance.choice(
            [chance.randrange(500), chance.randrange(1 << 32), 0xFFFFFFFF, 0x40000000 | chance.randrange(500)]
        )
        arguments = [chance.choice([*edges, chance.randrange(1 << 64)]) for _ in range(6)]
        audit = chance.choice(["x86_64", "i386", arch.name])
        for program in programs:
            ours = bpf.verdict(program, number, arguments, audit=other.ARCH[audit])
            assert ours == other.raw(program, number, arguments, arch=audit)


def test_both_architectures_have_the_audit_numbers_of_the_kernel() -> None:
    assert {name: arch.audit for name, arch in ARCHES.items()} == {name: other.ARCH[name] for name in ARCHES}
