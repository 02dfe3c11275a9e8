"""The guard: other architectures die, unreviewed numbers do not exist, all else passes."""

import errno

import pytest

from jail.kernel import guard
from jail.kernel.syscalls import ARCHES, X32_BIT
from support.bpf import ALLOW, ARCH, KILL, answer

HOLES = {"x86_64": [337, 386, 423], "aarch64": [244, 259, 295, 402, 423]}
BESIDE_HOLES = {"x86_64": [334, 335, 336, 424], "aarch64": [243, 260, 294, 424]}


@pytest.fixture(params=ARCHES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(name: str, number: int, arch: str = "") -> int | str:
    return answer([guard.program(ARCHES[name])], number, arch=arch or name)


def test_every_reviewed_number_passes(name: str) -> None:
    holes = {number for first, last in ARCHES[name].holes for number in range(first, last + 1)}
    passed = {number for number in range(ARCHES[name].max_known + 1) if ask(name, number) == ALLOW}
    assert passed == set(range(ARCHES[name].max_known + 1)) - holes


def test_numbers_nobody_reviewed_are_absent(name: str) -> None:
    for number in [472, 473, 500, 511, 512, 547, 548, 1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE]:
        assert ask(name, number) == errno.ENOSYS, number


def test_holes_are_absent_and_their_neighbours_are_not(name: str) -> None:
    assert {ask(name, number) for number in HOLES[name]} == {errno.ENOSYS}
    assert {ask(name, number) for number in BESIDE_HOLES[name]} == {ALLOW}


def test_every_x32_number_is_absent() -> None:
    assert {ask("x86_64", X32_BIT | number) for number in range(600)} == {errno.ENOSYS}


def test_a_call_that_a_tracer_skipped_passes(name: str) -> None:
    assert ask(name, 0xFFFFFFFF) == ALLOW


def test_other_architectures_die_whatever_they_call(name: str) -> None:
    foreign = [arch for arch in ARCH if arch != name]
    assert {ask(name, number, arch) for arch in foreign for number in [0, 20, 472, 0xFFFFFFFF]} == {KILL}
