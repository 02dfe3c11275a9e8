import pytest

from jail.cli import units
from jail.errors import JailError


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("30d", 30 * 86400), ("5 s", 5)]
)
def test_a_time_is_a_number_and_a_unit(text: str, value: float) -> None:
    assert units.seconds("--time", text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("5GiB", 5 << 30), ("1.5 MiB", 3 << 19), ("7KiB", 7 << 10)]
)
def test_a_size_is_a_number_and_a_unit(text: str, value: int) -> None:
    assert units.size("--keep-bytes", text) == value


@pytest.mark.parametrize(
    "text", ["", "30", "s", "-1s", "1e3s", "inf", "nan", "1.2.3s", "½h", "5GiB", "1 d y", "٣s"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(JailError) as met:
        units.seconds("--older-than", text)
    assert met.value.where == "--older-than"
    assert "30d" in met.value.hint
    assert met.value.code == 2
