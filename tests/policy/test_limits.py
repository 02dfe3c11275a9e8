"""Sizes, durations and counts as a person writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.policy import amounts, limits


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2 GiB", 2 << 30),
        ("512 MiB", 512 << 20),
        ("512MiB", 512 << 20),
        ("1.5 GiB", 3 << 29),
        ("1024 KiB", 1 << 20),
        ("1 TiB", 1 << 40),
        (1 << 20, 1 << 20),
        (1 << 40, 1 << 40),
    ],
)
def test_a_size_is_read(text: int | str, size: int) -> None:
    assert limits.size("tmp", text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "2",
        "2 GB",
        "2 gib",
        "GiB",
        "-2 GiB",
        "+2 GiB",
        " 2 GiB",
        "2  GiB",
        "2 GiB ",
        "2\tGiB",
        "1e3 MiB",
        "0x10 MiB",
        "1_000 MiB",
        "1.2.3 GiB",
        ".5 GiB",
        "1. GiB",
        "٢ GiB",
        "inf GiB",
        "nan",
        "9" * 21 + " GiB",
        "2 GiB\n",
        "2 GiB; rm",
        "2²GiB",
        "unlimited",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(amounts.UnfitError) as refused:
        limits.size("tmp", text)
    assert '"2 GiB"' in refused.value.hint


@pytest.mark.parametrize("value", [0, -1, (1 << 20) - 1, (1 << 40) + 1, "1 KiB", "0 GiB", "2 TiB"])
def test_a_size_out_of_bounds_is_refused_with_the_bounds(value: int | str) -> None:
    with pytest.raises(amounts.UnfitError) as refused:
        limits.size("tmp", value)
    assert "1 MiB to 1 TiB" in refused.value.hint


def test_a_number_that_python_refuses_to_print_is_refused_in_words() -> None:
    with pytest.raises(amounts.UnfitError, match="a number of 20001 bits"):
        limits.size("tmp", 1 << 20000)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("45m", 2700),
        ("12h", 43200),
        ("1d", 86400),
        ("1.5h", 5400),
        ("0.5s", 0.5),
        ("30 d", 2592000),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert limits.duration("timeout", text) == seconds


def test_zero_alone_is_no_limit() -> None:
    assert limits.duration("timeout", "0") == 0.0


@pytest.mark.parametrize("text", ["0s", "0h", "0.0", "00", "-0", "0 ", "", "0.01s"])
def test_no_other_zero_is_no_limit(text: str) -> None:
    """A number that is small by mistake must not become the largest."""
    with pytest.raises(amounts.UnfitError):
        limits.duration("timeout", text)


@pytest.mark.parametrize(
    "text", ["90", "12 hours", "1h30m", "h", "-1h", "1e3s", "31d", "infs", "12H", "never"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(amounts.UnfitError) as refused:
        limits.duration("timeout", text)
    assert '"12h"' in refused.value.hint


@pytest.mark.parametrize(("key", "least", "most"), [("processes", 16, 1 << 20), ("open_files", 64, 1 << 20)])
def test_counts_have_two_bounds(key: str, least: int, most: int) -> None:
    assert limits.count(key, least) == least
    assert limits.count(key, most) == most
    for value in (least - 1, most + 1, 0, -1, 1 << 20000):
        with pytest.raises(amounts.UnfitError) as refused:
            limits.count(key, value)
        assert str(least) in refused.value.hint
        assert str(most) in refused.value.hint


@pytest.mark.parametrize("key", limits.BOUNDS)
def test_the_limit_of_an_absent_key_is_within_its_bounds(key: str) -> None:
    bound = limits.BOUNDS[key]
    assert 0 < bound.least <= bound.absent <= bound.most


@given(st.text(max_size=30))
def test_any_text_is_a_limit_within_bounds_or_refused(text: str) -> None:
    for key, read in (("tmp", limits.size), ("timeout", limits.duration)):
        try:
            value = read(key, text)
        except amounts.UnfitError:
            continue
        bound = limits.BOUNDS[key]
        assert bound.least <= value <= bound.most or (text == "0" and key == "timeout")
