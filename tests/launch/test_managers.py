"""The table of managers: every word of it is one that its readers understand."""

import pytest

from jail.launch.managers import MANAGERS, PLUGINS, SHAPES, Manager, Shape
from jail.policy.value import TOOLCHAINS

ROWS = {row.name: row for row in (*MANAGERS, *SHAPES)}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_belongs_to_a_known_part_and_names_paths_beneath_its_root(name: str) -> None:
    row = ROWS[name]
    assert row.part in ("", *TOOLCHAINS)
    for pattern in [*row.given.split(), *row.secrets.split()]:
        assert not pattern.startswith("/")
        assert ".." not in pattern.split("/")
        assert all(part.count("*") <= 1 for part in pattern.split("/"))


def test_names_are_there_once_and_what_a_manager_needs_exists() -> None:
    assert len(ROWS) == len(MANAGERS) + len(SHAPES)
    needed = {word for row in MANAGERS for word in row.needs.split()}
    assert needed <= {row.name for row in MANAGERS}


def test_a_root_is_given_whole_only_where_it_holds_programs_alone() -> None:
    whole = {row.name for row in MANAGERS if "." in row.given.split()}
    assert whole == {"uv's Pythons", "uv's tools", "chruby"}
    assert not [shape.name for shape in SHAPES if "." in shape.given.split() or not shape.marks]


def test_plugins_belong_to_known_parts_and_to_one_each() -> None:
    names = [name for words in PLUGINS.values() for name in words.split()]
    assert set(PLUGINS) == set(TOOLCHAINS)
    assert len(names) == len(set(names))


def test_no_secret_is_given_by_name() -> None:
    for row in ROWS.values():
        assert isinstance(row, Manager | Shape)
        assert not set(row.given.split()) & set(row.secrets.split())
