"""The guard: a few raw instructions in front of the deny filter, for what a list of denials cannot name.

Rule: what nobody has reviewed does not exist. A deny list is silent about next year's system calls and about
other numberings of today's; the guard closes both, and is written by hand so that no compiler stands between
the rule and its bytes.

- Another architecture (i386 by int 0x80, 32-bit ARM) kills the process: there is no errno that its caller
  would look for.
- A number above the last reviewed one, compared unsigned, is ENOSYS, which callers take as "an older kernel".
  This covers x32 as well: its bit 30 makes every number large.
- A number in a hole of the table is ENOSYS too, since a later kernel may fill it.
- -1 passes: it is no system call, but what a tracer writes to skip one (ptrace(2)); an errno here would
  overwrite the result that the tracer gave.
"""

import errno

from jail.kernel import bpf
from jail.kernel.syscalls import Arch

_NO_CALL = 0xFFFFFFFF


def program(arch: Arch) -> bytes:
    """The guard for `arch`, as bytes of struct sock_filter, ready for seccomp(2)."""
    absent = bpf.instruction(bpf.RETURN, bpf.fail(errno.ENOSYS))
    holes = [
        # from `first` on and not above `last`: fall into the return; else leave it out
        bpf.instruction(bpf.JUMP_FROM, first, 0, 2) + bpf.instruction(bpf.JUMP_ABOVE, last, 1, 0) + absent
        for first, last in arch.holes
    ]
    return b"".join(
        [
            bpf.instruction(bpf.LOAD, bpf.OFFSET_ARCH),
            bpf.instruction(bpf.JUMP_EQUAL, arch.audit, 1, 0),
            bpf.instruction(bpf.RETURN, bpf.KILL_PROCESS),
            bpf.instruction(bpf.LOAD, bpf.OFFSET_NUMBER),
            bpf.instruction(bpf.JUMP_EQUAL, _NO_CALL, 2, 0),
            bpf.instruction(bpf.JUMP_ABOVE, arch.max_known, 0, 1),
            absent,
            *holes,
            bpf.instruction(bpf.RETURN, bpf.ALLOW),
        ]
    )
