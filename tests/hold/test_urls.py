"""The sources that a text names."""

import pytest

from jail.hold.urls import sources_in
from support.lines import executed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nothing", []),
        ("https://user:pw@HOST.example/x/y", ["host.example"]),
        ("git+ssh://git@host.example/o/r.git#1", ["ssh://host.example/o/r"]),
        ("https://host.example/o/r/archive/x.zip", ["host.example/o/r"]),
        ("file:///tmp/evil", ["file:///tmp/evil"]),
        ("file:../evil.tgz", ["file:../evil.tgz"]),
        ("portal:../evil link:./x", ["link:./x", "portal:../evil"]),
        ("profile:x", []),
        ("github:o/r/x#1", ["github:o/r"]),
        ("git@host.example:o/r.git", ["git@host.example:o/r"]),
    ],
)
def test_of_each_source_what_owns_it(text: str, found: list[str]) -> None:
    assert list(sources_in(text)) == found


@pytest.mark.parametrize("text", ["://", "a", "git@git@:", "github:a", "https://a", "file:"])
def test_no_text_takes_more_than_a_time_linear_in_its_length(text: str) -> None:
    small, large = ((text * size)[:size] for size in (1 << 11, 1 << 15))
    one, sixteen = (executed(lambda: list(sources_in(each))) for each in (small, large))  # noqa: B023 - called at once
    assert sixteen <= 18 * one
