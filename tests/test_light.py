"""The light NamedTuple and its kin do what the real ones do, as far as jail uses them."""

import copy
import pickle
import signal
import subprocess
import sys
import typing

import pytest

from jail import light


class Light(light.NamedTuple):
    """With a docstring."""

    one: int
    two: str = "second"
    three: light.Any = None

    @property
    def both(self) -> str:
        return f"{self.one}{self.two}"


class Real(typing.NamedTuple):
    """With a docstring."""

    one: int
    two: str = "second"
    three: typing.Any = None

    @property
    def both(self) -> str:
        return f"{self.one}{self.two}"


USES: dict[str, typing.Callable[[typing.Any], object]] = {
    "positions": lambda kind: tuple(kind(1, "b", [3])),
    "keywords": lambda kind: tuple(kind(one=1, three=4)),
    "both": lambda kind: tuple(kind(1, three=4)),
    "defaults": lambda kind: (kind(1).two, kind(1).three),
    "fields": lambda kind: (kind._fields, kind._field_defaults, kind.__match_args__),
    "property": lambda kind: kind(1).both,
    "make": lambda kind: tuple(kind._make([1, 2, 3])),
    "replace": lambda kind: tuple(kind(1)._replace(two="other")),
    "as a dict": lambda kind: kind(1)._asdict(),
    "representation": lambda kind: repr(kind(1)).partition("(")[2],
    "equality and hash": lambda kind: (
        kind(1) == (1, "second", None),
        hash(kind(1)) == hash((1, "second", None)),
    ),
    "unpacking": lambda kind: [*kind(1)],
    "slices": lambda kind: kind(1)[:2],
    "copies": lambda kind: tuple(copy.deepcopy(kind(1))),
    "docstring": lambda kind: kind.__doc__,
    "is a tuple": lambda kind: isinstance(kind(1), tuple),
}


@pytest.mark.parametrize("use", USES)
def test_it_is_used_as_the_real_one(use: str) -> None:
    assert USES[use](Light) == USES[use](Real)


WRONG: dict[str, typing.Callable[[typing.Any], object]] = {
    "too many": lambda kind: kind(1, 2, 3, 4),
    "too few": lambda kind: kind(),
    "unknown name": lambda kind: kind(1, four=4),
    "given twice": lambda kind: kind(1, one=1),
    "replace an unknown one": lambda kind: kind(1)._replace(four=4),
    "change": lambda kind: setattr(kind(1), "one", 2),
    "add": lambda kind: setattr(kind(1), "four", 2),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_the_real_one_refuses_it_refuses(wrong: str) -> None:
    for kind in (Light, Real):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            WRONG[wrong](kind)


def test_it_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Light(1))) == Light(1)


def test_match_statements_see_the_fields() -> None:
    match Light(1):
        case Light(one=1, two=text):
            assert text == "second"
        case _:
            pytest.fail("no match")


def test_suppress_ends_a_block_at_its_exceptions_and_at_no_other() -> None:
    reached = []
    with light.suppress(OSError, ValueError):
        reached.append("before")
        raise FileNotFoundError
    assert reached == ["before"]
    with pytest.raises(KeyError), light.suppress(OSError):
        raise KeyError
    with light.suppress(OSError):
        reached.append("nothing raised")
    assert reached == ["before", "nothing raised"]


def test_the_signals_are_the_systems() -> None:
    assert light.signal.SIGKILL == signal.SIGKILL
    assert light.signal.SIG_IGN == signal.SIG_IGN


def test_importing_it_imports_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); sys.path.append({!r}); from jail import light; "
        "print(*sorted(set(sys.modules) - before))"
    ).format(str(light.__file__).rsplit("/", 2)[0])
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) <= {"_collections", "_collections_abc", "_signal", "jail", "jail.light"}
