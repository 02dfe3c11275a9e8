"""The tables of a policy file, their keys, and how a place in the file is written."""

import tomllib

import pytest
from pydantic import BaseModel

from jail.policy.shape import SHAPES, File, Path, at, shaped, shown

WRONG: tuple[tuple[object, str], ...] = (
    ("x", "a string"),
    (7, "a whole number"),
    (7.5, "a number"),
    (True, "true or false"),
    (["x"], "an array"),
    ([7], "an array"),
    ({"x": "y"}, "a table"),
    (tomllib.loads("x = 2025-01-01")["x"], "a date or time"),
)


def keys(model: type[BaseModel], path: Path = ()) -> list[Path]:
    found = []
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        found.append(here)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += keys(field.annotation, here)
    return found


def test_every_key_has_its_words() -> None:
    assert sorted(map(str, SHAPES)) == sorted(map(str, keys(File)))


@pytest.mark.parametrize("path", SHAPES, ids=shown)
def test_each_example_is_taken_by_its_key(path: Path) -> None:
    tables, example = shown(path[:-1]), SHAPES[path].example
    header = f"[{tables}]\n" if tables else ""
    first = "" if path == ("name",) else 'name = "x"\n'
    assert shaped(tomllib.loads(first + header + example)) == []


@pytest.mark.parametrize(("value", "words"), WRONG, ids=[words for _, words in WRONG])
@pytest.mark.parametrize("path", SHAPES, ids=shown)
def test_no_value_of_another_type_is_taken_or_converted(path: Path, value: object, words: str) -> None:
    expected = SHAPES[path].takes
    document: dict[str, object] = {"name": "x"}
    table = document
    for key in path[:-1]:
        inner: dict[str, object] = {}
        table[str(key)], table = inner, inner
    table[str(path[-1])] = value
    found = shaped(document)
    fits = {
        "a string": isinstance(value, str),
        "a string or a number of bytes": isinstance(value, str) or value == 7,
        "a whole number": value == 7,
        "true or false": isinstance(value, bool),
        "an array of strings": value == ["x"],
        "a table": False,
    }[expected] or (path == ("environment", "set") and isinstance(value, dict))
    assert bool(found) is not fits
    if not fits and not isinstance(value, (list, dict)):
        assert [(one.path, one.message) for one in found] == [(path, f"{words}, but it takes {expected}")]


@pytest.mark.parametrize(
    ("path", "guess"),
    [
        (("nmae",), "did you mean `name`?"),
        (("file",), "did you mean `files`?"),
        (("Files",), "did you mean `files`?"),
        (("files", "wirte"), "did you mean `write`?"),
        (("files", "WRITE"), "did you mean `write`?"),
        (("files", "hidden"), "did you mean `hide`?"),
        (("limits", "open-files"), "did you mean `open_files`?"),
        (("write",), "it belongs to [files]"),
        (("files", "timeout"), "it belongs to [limits]"),
        (("limits", "name"), "it belongs to the top of the file"),
        (("losses",), "it belongs to [accept]"),
        (("files", "set"), "it belongs to [environment]"),
        (("network",), "unknown key `network`"),
        (("environment", "pass_names"), "unknown key"),
    ],
)
def test_an_unknown_key_is_refused_with_a_guess(path: Path, guess: str) -> None:
    document: dict[str, object] = {"name": "x"}
    if len(path) == 1:
        document[str(path[0])] = {}
    else:
        document[str(path[0])] = {str(path[1]): []}
    found = shaped(document)
    assert [one.path for one in found] == [path]
    assert guess in found[0].message


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("files", "write", 2), "files.write[2]"),
        (("environment", "set", "A_1"), "environment.set.A_1"),
        (("environment", "set", "a b"), 'environment.set."a b"'),
        (("",), '""'),
        (("ä",), '"ä"'),
    ],
)
def test_a_place_is_written_as_in_toml(path: Path, text: str) -> None:
    assert shown(path) == text


def test_at_finds_what_stands_there_and_nothing_elsewhere() -> None:
    document = {"files": {"write": ["a", "b"]}}
    assert at(document, ("files", "write", 1)) == "b"
    assert at(document, ("files", "read")) is None
    assert at(document, ("files", "write", "x")) is None
    assert at(document, ("files", "write", 1, "x")) is None
