"""A classic-BPF machine for tests, written apart from jail.kernel.bpf, so that both would have to be wrong
alike.

Knows what seccomp_check_filter() in kernel/seccomp.c lets through: words of seccomp_data, constants, scratch
memory, arithmetic on A and X, forward jumps, returns. Sources: <linux/bpf_common.h>,
Documentation/networking/filter.rst."""

import operator
from collections.abc import Sequence
from ctypes import Structure, c_int32, c_uint8, c_uint16, c_uint32, c_uint64, sizeof

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003, "arm": 0x40000028}
KILL = "kill the process"
ALLOW = "allow"


class SeccompData(Structure):
    _fields_ = (("nr", c_int32), ("arch", c_uint32), ("ip", c_uint64), ("args", c_uint64 * 6))


class SockFilter(Structure):
    _fields_ = (("code", c_uint16), ("jt", c_uint8), ("jf", c_uint8), ("k", c_uint32))


ALU = {
    0x00: operator.add,
    0x10: operator.sub,
    0x20: operator.mul,
    0x30: operator.floordiv,
    0x40: operator.or_,
    0x50: operator.and_,
    0x60: operator.lshift,
    0x70: operator.rshift,
    0xA0: operator.xor,
}
TESTS = {0x10: operator.eq, 0x20: operator.gt, 0x30: operator.ge, 0x40: operator.and_}


class Machine:
    """One run of one program over one struct seccomp_data."""

    def __init__(self, program: bytes, data: bytes) -> None:
        self.instructions = [SockFilter.from_buffer_copy(program, at) for at in range(0, len(program), 8)]
        self.data = data
        self.a = self.x = self.at = 0
        self.memory = [0] * 16

    def run(self) -> int:
        while True:
            step = self.instructions[self.at]
            self.at += 1
            done = getattr(self, f"class_{step.code & 7}")(step)
            if done is not None:
                return int(done)

    def class_0(self, step: SockFilter) -> None:  # BPF_LD
        mode = step.code & 0xE0
        if mode == 0x20:
            self.a = c_uint32.from_buffer_copy(self.data, step.k).value
        elif mode == 0x00:
            self.a = step.k
        elif mode == 0x60:
            self.a = self.memory[step.k]
        else:
            self.a = sizeof(SeccompData)

    def class_1(self, step: SockFilter) -> None:  # BPF_LDX
        self.x = self.memory[step.k] if step.code & 0xE0 == 0x60 else step.k

    def class_2(self, step: SockFilter) -> None:  # BPF_ST
        self.memory[step.k] = self.a

    def class_3(self, step: SockFilter) -> None:  # BPF_STX
        self.memory[step.k] = self.x

    def class_4(self, step: SockFilter) -> None:  # BPF_ALU
        operand = self.x if step.code & 8 else step.k
        negated = step.code & 0xF0 == 0x80
        self.a = (-self.a if negated else ALU[step.code & 0xF0](self.a, operand)) & 0xFFFFFFFF

    def class_5(self, step: SockFilter) -> None:  # BPF_JMP
        if step.code & 0xF0 == 0:
            self.at += step.k
        else:
            operand = self.x if step.code & 8 else step.k
            self.at += step.jt if TESTS[step.code & 0xF0](self.a, operand) else step.jf

    def class_6(self, step: SockFilter) -> int:  # BPF_RET
        return self.a if step.code & 0x18 == 0x10 else step.k

    def class_7(self, step: SockFilter) -> None:  # BPF_MISC
        if step.code & 0xF8:
            self.a = self.x
        else:
            self.x = self.a


def raw(program: bytes, nr: int, args: Sequence[int] = (), *, arch: str = "x86_64") -> int:
    """What `program` returns for this call, as the kernel would see it."""
    words = (c_uint64 * 6)(*args)
    return Machine(program, bytes(SeccompData(c_int32(nr).value, ARCH[arch], 0, words))).run()


def answer(
    programs: Sequence[bytes], nr: int, args: Sequence[int] = (), *, arch: str = "x86_64"
) -> int | str:
    """What a process with all of `programs` loaded gets: ALLOW, KILL, or the errno. The smallest signed
    action wins (seccomp(2)).
    """
    actions = [c_int32(raw(program, nr, args, arch=arch)).value for program in programs]
    strictest = min(actions, key=lambda action: action & ~0xFFFF)
    kind = c_uint32(strictest & ~0xFFFF).value
    if kind == 0x00050000:
        return strictest & 0xFFFF
    return {0x7FFF0000: ALLOW, 0x80000000: KILL}[kind]
