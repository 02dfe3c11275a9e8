"""Keys and fields: every key of a file fills a field, and every field has its key."""

import pytest

from jail.policy.draft import KEYS, WITHOUT, Item, Origin, named
from jail.policy.value import Policy
from support.composed import LEAVES


def test_every_field_of_a_policy_has_its_key() -> None:
    assert {*KEYS, "sources", "allowed"} == set(Policy._fields)


def test_every_key_of_a_file_fills_a_field_or_changes_the_order_of_things() -> None:
    taken = {("without", key) for key in WITHOUT}
    assert {*KEYS.values(), *taken, ("base",), ("parts",)} == LEAVES


def test_what_takes_away_takes_from_lists_that_there_are() -> None:
    assert {field for fields in WITHOUT.values() for field in fields} < set(KEYS)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("write", "~/out/", "/home/ada/out"),
        ("hide", "x", "./x"),
        ("hold", "./", "."),
        ("deliver", "commands", "commands"),
        ("set_values", ("A", "1"), "A"),
        ("accept", "landlock", "landlock"),
    ],
)
def test_an_entry_is_known_by_its_path_or_name(field: str, value: object, name: str) -> None:
    assert named(field, Item(value, Origin("", "", "")), "/home/ada") == name
