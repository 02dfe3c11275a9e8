"""Classic BPF, as far as seccomp uses it: encode one instruction, and answer what a program would say to one
call.

Rule: a filter is believed only after it was asked. `verdict` runs a program as the kernel would, and refuses
every instruction that it does not know instead of guessing.

Sources: seccomp_check_filter() in kernel/seccomp.c (the instructions that seccomp accepts), <linux/filter.h>,
<linux/bpf_common.h>, <linux/seccomp.h> (struct seccomp_data and the return values).
"""

import struct

from jail.light import Final, Sequence

LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS: a word of seccomp_data
JUMP: Final = 0x05  # BPF_JMP | BPF_JA
JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_ABOVE: Final = 0x25  # BPF_JMP | BPF_JGT | BPF_K, unsigned
JUMP_FROM: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K, unsigned
AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
RETURN: Final = 0x06  # BPF_RET | BPF_K

OFFSET_NUMBER: Final = 0
OFFSET_ARCH: Final = 4
_DATA: Final = struct.Struct("<iIQ6Q")
"""struct seccomp_data: number, audit arch, instruction pointer, six arguments. Both of our architectures are
little-endian.
"""

_INSTRUCTION: Final = struct.Struct("<HBBI")
INSTRUCTION_SIZE: Final = 8
MAX_INSTRUCTIONS: Final = 4096
"""BPF_MAXINSNS of <linux/bpf_common.h>."""

KILL_PROCESS: Final = 0x80000000
ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000


class BadProgramError(ValueError):
    """Bytes that are not a program that seccomp would take."""


def fail(number: int) -> int:
    """The return value that makes the call fail with errno `number` (SECCOMP_RET_ERRNO)."""
    return _ERRNO | (number & 0xFFFF)


def instruction(code: int, operand: int, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` count the instructions that a jump leaves out."""
    return _INSTRUCTION.pack(code, yes, no, operand)


def verdict(program: bytes, number: int, arguments: Sequence[int] = (), *, audit: int) -> int:
    """What `program` answers to system call `number` with `arguments` (unsigned, 64 bits) under architecture
    `audit`.

    Returns the SECCOMP_RET value, unsigned; raises BadProgramError where the kernel would refuse the program
    or where it runs off its end. A program can only jump forward, so this always ends.
    """
    if not program or len(program) % INSTRUCTION_SIZE or len(program) // INSTRUCTION_SIZE > MAX_INSTRUCTIONS:
        raise BadProgramError(f"{len(program)} bytes are no program")
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    signed = number - (1 << 32) if number & 0x80000000 else number
    data = _DATA.pack(signed, audit, 0, *words)
    accumulator, at = 0, 0
    while at * INSTRUCTION_SIZE < len(program):
        code, yes, no, operand = _INSTRUCTION.unpack_from(program, at * INSTRUCTION_SIZE)
        at += 1
        if code == RETURN:
            return int(operand)
        if code == LOAD:
            if operand % 4 or operand + 4 > len(data):
                raise BadProgramError(f"instruction {at - 1} loads word {operand}")
            accumulator = int.from_bytes(data[operand : operand + 4], "little")
        elif code == AND:
            accumulator &= operand
        elif code == JUMP:
            at += operand
        elif code in _TESTS:
            at += yes if _TESTS[code](accumulator, operand) else no
        else:
            raise BadProgramError(f"instruction {at - 1} has unknown code {code:#x}")
    raise BadProgramError("it runs off its end")


_TESTS: Final = {JUMP_EQUAL: int.__eq__, JUMP_ABOVE: int.__gt__, JUMP_FROM: int.__ge__}
