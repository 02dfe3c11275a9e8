"""The policy as a value: immutable, and its digest tells any two policies apart."""

import re
from pathlib import Path

import pytest

import jail.policy
from jail.policy.value import LOSSES, Policy

PLAIN = Policy(
    name="plain",
    description="",
    system=("/usr",),
    write=("a", "b"),
    hold=(),
    read=(),
    hide=(),
    toolchains=("python",),
    gpu=False,
    pass_names=("TERM",),
    set_values=(("A", "1"),),
    terminal=(),
    deliver=(),
    memory_bytes=90,
    processes=100,
    open_files=200,
    tmp_bytes=300,
    held_bytes=310,
    output_bytes=320,
    timeout=400.0,
    accept=(),
    sources=(("file", "0" * 64),),
)
OTHERWISE: dict[str, object] = {
    "name": "other",
    "description": "other",
    "system": (),
    "write": ("a, b",),
    "hold": ("c",),
    "read": ("r",),
    "hide": ("h",),
    "toolchains": (),
    "gpu": True,
    "pass_names": (),
    "set_values": (("A", "2"),),
    "terminal": ("title",),
    "deliver": ("commands",),
    "memory_bytes": 91,
    "processes": 101,
    "open_files": 201,
    "tmp_bytes": 301,
    "held_bytes": 311,
    "output_bytes": 321,
    "timeout": 0.0,
    "accept": ("landlock",),
    "sources": (),
    "allowed": (("write", "."),),
}


def test_every_field_is_covered_here() -> None:
    assert tuple(OTHERWISE) == Policy._fields


@pytest.mark.parametrize("field", OTHERWISE)
def test_the_digest_changes_with_every_field(field: str) -> None:
    assert PLAIN._replace(**{field: OTHERWISE[field]}).digest != PLAIN.digest


def test_the_digest_of_equal_policies_is_equal() -> None:
    again = Policy(*PLAIN)
    assert again is not PLAIN
    assert again.digest == PLAIN.digest
    assert len(bytes.fromhex(PLAIN.digest)) == 32


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a', 'b",), ("a", "b")),
        (("a",), ("a", "")),
        (("ä",), ("a\u0308",)),
        (("\udcff",), ("\\udcff",)),
    ],
)
def test_no_two_lists_render_the_same(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert PLAIN._replace(write=one).digest != PLAIN._replace(write=other).digest


def test_moving_a_path_between_verbs_changes_the_digest() -> None:
    assert PLAIN._replace(read=("x",)).digest != PLAIN._replace(hide=("x",)).digest


@pytest.mark.parametrize("field", Policy._fields)
def test_no_field_can_be_assigned(field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(PLAIN, field, OTHERWISE[field])


def test_a_change_is_a_copy() -> None:
    assert PLAIN._replace(write=()).write == ()
    assert PLAIN.write == ("a", "b")


def test_each_loss_is_a_name_and_one_sentence() -> None:
    assert {"landlock", "landlock-rights", "limits-memory", "cgroup-namespace"} <= set(LOSSES)
    for name, sentence in LOSSES.items():
        assert name.replace("-", "").isalpha()
        assert sentence
        assert "\n" not in sentence
        assert not sentence.endswith(".")


def test_the_room_names_each_of_its_modules() -> None:
    words = set(re.findall(r"[a-z]+", str(jail.policy.__doc__)))
    folder = Path(str(jail.policy.__file__)).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} - words == set()
