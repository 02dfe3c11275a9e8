"""Durations and sizes of the command line: read as in a policy, and refused in the same words."""

import pytest

from jail.cli import units
from jail.errors import JailError
from jail.policy import limits
from jail.policy.amounts import UnfitError


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("30d", 30 * 86400), ("5 s", 5)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, value: float) -> None:
    assert units.seconds("--older-than", text, "30d") == value


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("5GiB", 5 << 30), ("1.5 MiB", 3 << 19), ("7KiB", 7 << 10), ("9 B", 9)]
)
def test_a_size_is_a_number_and_a_unit(text: str, value: int) -> None:
    assert units.size("--keep", text, "5GiB") == value


@pytest.mark.parametrize("text", ["", "30", "s", "-1s", "1e3s", "inf", "nan", "½h", "5GiB", "9" * 400 + "s"])
def test_a_fault_is_told_in_the_words_of_a_policy_with_an_example_of_the_option(text: str) -> None:
    with pytest.raises(JailError) as met:
        units.seconds("--older-than", text, "30d")
    assert (met.value.where, met.value.code) == ("--older-than", 2)
    assert met.value.hint == "write a number and one of s, m, h, d, as in 30d"
    with pytest.raises(UnfitError) as unfit:
        limits.duration("timeout", text)
    assert met.value.message == unfit.value.message


def test_more_than_the_option_takes_is_refused_with_the_most() -> None:
    assert units.seconds("--grace", "1h", "10s", 3600) == 3600
    with pytest.raises(JailError) as met:
        units.seconds("--grace", "61m", "10s", 3600)
    assert (met.value.message, met.value.hint) == ("`61m` is too large", "write 1h at most, as in 10s")
