"""Amounts that are shown read back as the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.policy.amounts import duration_text, size_text
from jail.policy.limits import BOUNDS, duration, size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2 << 30, "2 GiB"),
        (3 << 29, "1536 MiB"),
        (64 << 10, "64 KiB"),
        (1 << 40, "1 TiB"),
        (1_000_001, "1000001"),
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


@given(st.integers(int(BOUNDS["memory"].least), int(BOUNDS["memory"].most)))
def test_every_size_reads_back(count: int) -> None:
    text = size_text(count)
    assert size("memory", int(text) if text.isdigit() else text) == count


@given(st.integers(1, 30 * 864000).map(lambda tenths: tenths / 10))
def test_every_duration_reads_back(seconds: float) -> None:
    assert duration("timeout", duration_text(seconds)) == seconds
