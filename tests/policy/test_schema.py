"""The JSON Schema says what the parser says: both judge the same files."""

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from jail.policy.schema import DIALECT, schema
from jail.policy.shape import SHAPES
from support.composed import LEVELS, PARTS, SHIPPED
from support.installed import CHECKOUT

SCHEMA = schema(LEVELS, PARTS)


def problems(text: str) -> list[str]:
    """Where a file does not fit the schema."""
    judge = jsonschema.Draft202012Validator(SCHEMA)
    return [".".join(map(str, error.absolute_path)) for error in judge.iter_errors(tomllib.loads(text))]


def test_it_is_a_schema_of_its_dialect() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == DIALECT == jsonschema.Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_it_takes_every_shipped_policy(path: Path) -> None:
    assert problems(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SHAPES, ids=".".join)
def test_it_describes_every_key_and_takes_its_example(path: tuple[str, ...]) -> None:
    found: Any = SCHEMA
    for key in path:
        found = found["properties"][key]
    assert found["description"] == SHAPES[path].about
    header = f"[{'.'.join(path[:-1])}]\n" if path[:-1] else ""
    assert problems(header + SHAPES[path].example) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("nmae = 'x'", ""),
        ("[files]\nwirte = []", "files"),
        ("[files]\nwrite = '/x'", "files.write"),
        ("[files]\nwrite = [7]", "files.write.0"),
        ("base = 'overnite'", "base"),
        ("parts = ['../mine']", "parts.0"),
        ("[toolchains]\nuse = ['pyton']", "toolchains.use.0"),
        ("[toolchains]\nuse = ['cc', 'cc']", "toolchains.use"),
        ("[toolchains]\ngpu = 1", "toolchains.gpu"),
        ("[terminal]\nallow = ['*']", "terminal.allow.0"),
        ("[limits]\nprocesses = 0", "limits.processes"),
        ("[limits]\ntmp = true", "limits.tmp"),
        ("[limits]\ntmp = 1", "limits.tmp"),
        ("[files]\nhold = '.'", "files.hold"),
        ("[hold]\ndeliver = ['comands']", "hold.deliver.0"),
        ("[hold]\ndeliver = ['commands', 'commands']", "hold.deliver"),
        ("[hold]\npaths = []", "hold"),
        ("[without]\ndeliver = ['x']", "without.deliver.0"),
        ("[accept]\nlosses = ['everything']", "accept.losses.0"),
        ("[environment.set]\nA = 1", "environment.set.A"),
        ("[network]\nallow = ['*']", ""),
    ],
)
def test_it_refuses_what_the_parser_refuses(text: str, where: str) -> None:
    assert problems(text) == [where]


def test_a_thoroughly_wrong_policy_does_not_fit() -> None:
    text = (CHECKOUT / "tests" / "golden" / "policy-faults.toml").read_text(encoding="utf-8")
    assert len(problems(text)) > 10
