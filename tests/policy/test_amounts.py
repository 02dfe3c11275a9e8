"""Amounts that are shown read back as the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.policy import limits
from jail.policy.amounts import (
    UnfitError,
    duration,
    duration_text,
    limit_text,
    measured_duration,
    measured_size,
    size,
    size_text,
)
from jail.policy.limits import BOUNDS


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2 << 30, "2 GiB"),
        (3 << 29, "1536 MiB"),
        (64 << 10, "64 KiB"),
        (1 << 40, "1 TiB"),
        (1_000_001, "1000001 B"),
        (0, "0 B"),
    ],
)
def test_a_size_is_shown_in_its_largest_whole_unit(count: int, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0"), (90.0, "90s"), (5400.0, "90m"), (43200.0, "12h"), (86400.0, "1d"), (0.5, "0.5s")],
)
def test_a_duration_is_shown_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_no_time_is_no_limit() -> None:
    assert [limit_text(seconds) for seconds in (0, 90)] == ["no limit", "90s"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (912, "912 B"),
        (4097, "4 KiB"),
        (31 << 20, "31 MiB"),
        (5 << 19, "2.5 MiB"),
        (3 << 40, "3.0 TiB"),
        (1 << 60, "1048576 TiB"),
    ],
)
def test_a_measured_size_is_rounded(count: int, text: str) -> None:
    assert measured_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (86400 * 8, "8d"), (-5, "-5s")],
)
def test_a_measured_duration_is_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert measured_duration(seconds) == text


@pytest.mark.parametrize(
    "text", ["", "5", "1.2.3s", "1e3s", "½h", "٣s", "9" * 400 + "d", "5  s", "-1s", "s", "GiB"]
)
def test_what_is_no_amount_is_refused_with_the_units_and_an_example(text: str) -> None:
    with pytest.raises(UnfitError, match="is not a duration") as refused:
        duration(text, "7m")
    assert refused.value.hint == "write a number and one of s, m, h, d, as in 7m"
    with pytest.raises(UnfitError, match="is not a size") as refused:
        size(text.replace("GiB", "gib"), "7 KiB")
    assert refused.value.hint == "write a number and one of B, KiB, MiB, GiB, TiB, as in 7 KiB"


def test_nothing_needs_no_unit() -> None:
    assert (size("0", ""), duration("0", "")) == (0, 0)


@given(st.integers(int(BOUNDS["memory"].least), int(BOUNDS["memory"].most)))
def test_every_size_reads_back(count: int) -> None:
    assert limits.size("memory", size_text(count)) == count


@given(st.integers(1, 30 * 864000).map(lambda tenths: tenths / 10))
def test_every_duration_reads_back(seconds: float) -> None:
    assert limits.duration("timeout", duration_text(seconds)) == seconds
