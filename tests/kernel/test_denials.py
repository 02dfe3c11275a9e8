"""The deny list itself: what SYSCALLS.md asks for is there, on both architectures, with its errno."""

import errno
import stat

import pytest

from jail.kernel import denials, syscalls
from jail.kernel.filters_build import questions

EPERM = """
acct add_key request_key keyctl bpf perf_event_open kexec_load kexec_file_load init_module finit_module
delete_module mount umount2 pivot_root chroot swapon swapoff reboot quotactl quotactl_fd settimeofday
clock_settime iopl ioperm vhangup syslog lookup_dcookie move_pages migrate_pages open_by_handle_at
fanotify_init fanotify_mark setns unshare kcmp pidfd_getfd process_vm_writev process_madvise sethostname
setdomainname modify_ldt lsm_set_self_attr get_mempolicy set_mempolicy mbind set_mempolicy_home_node
""".split()
ENOSYS = """
clone3 openat2 memfd_secret io_uring_setup io_uring_enter io_uring_register userfaultfd open_tree open_tree_attr
move_mount fsopen fsconfig fsmount fspick mount_setattr listns uselib ustat sysfs _sysctl nfsservctl
create_module get_kernel_syms query_module
""".split()
NOT_ON_AARCH64 = """
iopl ioperm modify_ldt uselib ustat sysfs _sysctl create_module get_kernel_syms query_module open creat
chmod mknod
""".split()


@pytest.fixture(params=syscalls.ARCHES)
def arch(request: pytest.FixtureRequest) -> syscalls.Arch:
    return syscalls.ARCHES[request.param]


def refusal(arch: syscalls.Arch, call: str, *arguments: int) -> int:
    number = syscalls.number(call, arch)
    return denials.expected(denials.rules(arch), number, [*arguments, 0, 0, 0, 0, 0, 0][:6])


@pytest.mark.parametrize(("calls", "number"), [(EPERM, errno.EPERM), (ENOSYS, errno.ENOSYS)])
def test_calls_that_are_denied_whatever_their_arguments(
    arch: syscalls.Arch, calls: list[str], number: int
) -> None:
    present = [call for call in calls if arch.name == "x86_64" or call not in NOT_ON_AARCH64]
    asked = denials.rules(arch)
    for call in present:
        for arguments in ([0] * 6, [denials.WORD] * 6):
            assert denials.expected(asked, syscalls.number(call, arch), arguments) == number, call


def test_nothing_is_left_out_but_what_the_architecture_lacks() -> None:
    named = {call for row in denials.DENIALS for call in row.calls}
    compiled = {rule.call for rule in denials.rules(syscalls.ARCHES["aarch64"])}
    assert named - compiled == set(NOT_ON_AARCH64)
    assert named == {rule.call for rule in denials.rules(syscalls.ARCHES["x86_64"])}


def test_rules_that_hold_together_agree_on_the_errno(arch: syscalls.Arch) -> None:
    asked = denials.rules(arch)
    for number in {rule.number for rule in asked}:
        concerning = [rule for rule in asked if rule.number == number]
        for arguments in questions(concerning):
            met = {rule.errno for rule in concerning if all(when.holds(arguments) for when in rule.when)}
            assert len(met) <= 1, (concerning[0].call, arguments)


def test_every_row_says_why() -> None:
    assert all(len(row.reason) > 15 for row in denials.DENIALS)


def test_what_stays_allowed() -> None:
    """seccomp and Landlock for the recorder and for sandboxes inside; uprobes, else host tracing kills
    (SYSCALLS.md).
    """
    named = {call for row in denials.DENIALS for call in row.calls}
    assert not named & set(
        "seccomp prctl landlock_create_ruleset ptrace process_vm_readv statmount listmount name_to_handle_at "
        "memfd_create uretprobe uprobe rseq mseal tkill vmsplice remap_file_pages fcntl flock adjtimex "
        "clock_adjtime execveat".split()
    )


@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID, stat.S_ISUID | stat.S_ISGID])
def test_setuid_and_setgid_cannot_be_made(bit: int) -> None:
    x86, arm = syscalls.ARCHES["x86_64"], syscalls.ARCHES["aarch64"]
    mode, plain = bit | 0o755, 0o1777
    creat, tmpfile, at = 0o100 | 1, 0o20000000 | 2, 0xFFFFFF9C
    rows = [
        ("chmod", [0], []),
        ("fchmod", [3], []),
        ("creat", [0], []),
        ("mknod", [0], []),
        ("fchmodat", [at, 0], []),
        ("fchmodat2", [at, 0], [0x100]),
        ("mknodat", [at, 0], []),
        ("open", [0, creat], []),
        ("open", [0, tmpfile], []),
        ("openat", [at, 0, creat], []),
        ("openat", [at, 0, tmpfile], []),
    ]
    for call, before, after in rows:
        for arch in (x86, arm):
            if syscalls.numbered(call, arch) is not None:
                assert refusal(arch, call, *before, mode, *after) == errno.EPERM, call
                assert refusal(arch, call, *before, mode | 1 << 40, *after) == errno.EPERM, call
                assert refusal(arch, call, *before, plain, *after) == 0, call


def test_a_mode_that_the_kernel_does_not_read_is_not_judged() -> None:
    assert refusal(syscalls.ARCHES["x86_64"], "open", 0, 0, 0o7777) == 0
    assert refusal(syscalls.ARCHES["x86_64"], "openat", 0, 0, 2, 0o7777) == 0


def test_personality_takes_the_listed_sums_and_nothing_else(arch: syscalls.Arch) -> None:
    good = {a | b | c for a in (0, 8) for b in (0, 0x20000) for c in (0, 0x40000)} | {0xFFFFFFFF}
    bad = [1 << shift for shift in range(32) if 1 << shift not in (8, 0x20000, 0x40000)]
    tried = {
        *good,
        *bad,
        *(value | 8 for value in bad),
        *(0xFFFFFFFF ^ 1 << shift for shift in range(32)),
        0x7FFFFFFF,
        0xFFF9FFF7,
    }
    for value in tried:
        for high in (0, 1 << 32, denials.WORD ^ 0xFFFFFFFF):  # the kernel takes an unsigned int
            assert (refusal(arch, "personality", value | high) == 0) == (value in good), hex(value | high)


def test_sockets_that_programs_need_and_those_that_they_do_not(arch: syscalls.Arch) -> None:
    allowed = [
        (1, 1, 0),
        (1, 5, 0),
        (2, 1, 0),
        (2, 1, 6),
        (2, 2, 17),
        (10, 0x80801, 6),
        (2, 2, 1),
        (16, 3, 0),
        (0, 1, 0),
    ]
    assert [refusal(arch, "socket", *asked) for asked in allowed] == [0] * len(allowed)
    for family in range(70):
        for high in (0, 1 << 32, 1 << 63):
            denied = refusal(arch, "socket", family | high, 1, 0) == errno.EAFNOSUPPORT
            assert denied == (family not in (0, 1, 2, 10, 16) or bool(high)), (family, high)
    refused = [
        (16, 3, 12),
        (16, 3, 1 << 32),
        (2, 5, 0),
        (2, 0x80005, 132),
        (10, 6, 33),
        (2, 10, 768),
        (2, 1, 262),
        (2, 1, 1 << 32),
    ]
    assert {refusal(arch, "socket", *asked) for asked in refused} == {errno.EPROTONOSUPPORT}


@pytest.mark.parametrize(
    ("call", "refused", "allowed"),
    [
        *(
            (call, [(1,), (1 | 1 << 32,)], [(0,), (2,), (11,)])
            for call in ("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity")
        ),
        ("setpriority", [(0, 1), (0, 1 | 1 << 32), (2, 0), (2, 1234)], [(0, 0), (0, 2), (1, 0), (1, 1)]),
        ("ioprio_set", [(1, 1), (3, 0), (3, 1234)], [(1, 0), (1, 2), (2, 0), (2, 1)]),
    ],
)
def test_how_process_1_runs_is_not_changed_from_inside_and_any_other_process_may_be(
    arch: syscalls.Arch, call: str, refused: list[tuple[int, ...]], allowed: list[tuple[int, ...]]
) -> None:
    assert {refusal(arch, call, *arguments) for arguments in refused} == {errno.EPERM}
    assert {refusal(arch, call, *arguments) for arguments in allowed} == {0}
