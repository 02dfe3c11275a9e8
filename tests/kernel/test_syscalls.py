"""The table of numbers: right, complete, and within what was reviewed."""

import re
from pathlib import Path

import pytest

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.kernel import filters_build, syscalls

HEADERS = {
    "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
    "aarch64": ["/usr/include/asm-generic/unistd.h"],
}


def header_numbers(name: str) -> dict[str, int]:
    found = [Path(path) for path in HEADERS[name] if Path(path).exists()]
    if not found:
        pytest.skip("no kernel headers (linux-libc-dev) on this machine")
    return {
        call: int(number)
        for call, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", found[0].read_text())
    }


@pytest.mark.parametrize("name", syscalls.ARCHES)
def test_numbers_are_those_of_the_kernel_headers(name: str) -> None:
    headers = header_numbers(name)
    arch = syscalls.ARCHES[name]
    ours = {call: syscalls.numbered(call, arch) for call in syscalls.NUMBERS}
    both = ours.keys() & headers.keys()
    assert len(both) > 60
    assert {call: ours[call] for call in both} == {call: headers[call] for call in both}


@pytest.mark.parametrize("name", syscalls.ARCHES)
def test_the_review_covers_every_number_of_the_headers(name: str) -> None:
    headers = header_numbers(name)
    headers.pop("syscalls", None)  # asm-generic: the count, not a call
    arch = syscalls.ARCHES[name]
    common = {
        number for call, number in headers.items() if not (call.endswith("64") and 403 <= number <= 423)
    }
    holes = {number for first, last in arch.holes for number in range(first, last + 1)}
    if name == "aarch64":
        common -= set(range(244, 260)) | set(
            range(403, 424)
        )  # others' own calls, and those of 32-bit machines
    assert max(common) <= arch.max_known
    assert not common & holes


@pytest.mark.parametrize("name", syscalls.ARCHES)
def test_numbers_agree_with_libseccomp_where_it_knows_the_name(name: str) -> None:
    seccomp = filters_build._pyseccomp()
    arch = syscalls.ARCHES[name]
    unknown = []
    for call in syscalls.NUMBERS:
        resolved = seccomp.resolve_syscall(arch.audit, call)
        if resolved == -1:
            unknown.append(call)
        else:
            assert (resolved if resolved >= 0 else None) == syscalls.numbered(call, arch), call
    assert len(unknown) < 10


@pytest.mark.parametrize("name", syscalls.ARCHES)
def test_every_number_was_reviewed(name: str) -> None:
    arch = syscalls.ARCHES[name]
    for call in syscalls.NUMBERS:
        number = syscalls.numbered(call, arch)
        assert number is None or number <= arch.max_known
        assert not any(first <= (number or 0) <= last for first, last in arch.holes), call


def test_a_machine_that_the_filters_were_not_written_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uname:
        machine = "riscv64"

    monkeypatch.setattr(syscalls.os, "uname", Uname)
    with pytest.raises(JailError, match="riscv64") as caught:
        syscalls.native()
    assert caught.value.code == EXIT_CANNOT_ISOLATE


def test_a_32_bit_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls.struct, "calcsize", lambda _: 4)
    with pytest.raises(JailError, match="32-bit"):
        syscalls.native()


def test_a_name_that_is_not_in_the_table_is_our_defect() -> None:
    with pytest.raises(JailError, match="defect in jail: system call frobnicate"):
        syscalls.number("frobnicate")
    with pytest.raises(JailError, match="does not exist on aarch64"):
        syscalls.number("open", syscalls.ARCHES["aarch64"])
