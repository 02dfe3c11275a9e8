"""What a rule gives where it really leads: by another name no more than by its own, and a project no more than the person."""

import pytest

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.plan import ranks
from jail.plan.facts import Place
from support.hosts import FACTS, HOME, WORKSPACE, absent, folder

A = f"{HOME}/a"
ALLOWED = (
    ("write", folder(WORKSPACE)),
    ("write", folder(A)),
    ("hold", folder(f"{A}/held")),
    ("read", folder(f"{A}/ro")),
    ("hide", folder(f"{A}/no")),
)


def named(path: str, real: str = "", *, project: bool = True) -> Place:
    return folder(path)._replace(real=real or path, project=project)


def judged(**facts: object) -> str:
    """The message of the refusal, "" for none."""
    try:
        ranks.judge(FACTS._replace(**facts))
    except JailError as error:
        return error.message if error.hint and error.code == EXIT_CANNOT_ISOLATE else "neither hint nor code"
    return ""


@pytest.mark.parametrize(
    ("verb", "real", "fits"),
    [
        ("write", f"{A}/x", True),
        ("write", f"{WORKSPACE}/x", True),
        ("write", f"{A}/held", False),
        ("write", f"{A}/held/deep", False),
        ("hold", f"{A}/x", True),
        ("hold", f"{A}/held/deep", True),
        ("hold", WORKSPACE, True),
        ("hold", f"{A}/ro", False),
        ("hold", f"{A}/no/x", False),
        ("hold", f"{HOME}/priv", False),
        ("read", f"{A}/held/x", True),
        ("write", f"{A}/ro", False),
        ("write", f"{A}/ro/deep", False),
        ("write", f"{A}/no", False),
        ("write", f"{HOME}/priv", False),
        ("write", HOME, False),
        ("read", f"{A}/ro/deep", True),
        ("read", f"{A}/x", True),
        ("read", f"{A}/no/x", False),
        ("read", f"{HOME}/priv", False),
    ],
)
def test_what_a_project_names_lies_in_what_the_person_gives_there(
    verb: str, real: str, *, fits: bool
) -> None:
    said = judged(allowed=ALLOWED, **{verb: (named(f"{A}/l", real),)})
    assert (said == "") is fits
    if not fits:
        assert "a project's file names" in said
    assert judged(allowed=ALLOWED, **{verb: (named(f"{A}/l", real, project=False),)}) == "", "the person may"


def test_an_entry_of_the_person_that_a_command_turned_elsewhere_allows_nothing() -> None:
    turned = (("write", folder(f"{A}/l")._replace(real=f"{HOME}/priv", strays=f"{A}/l")),)
    assert judged(allowed=turned, write=(named(f"{HOME}/priv/x"),))


@pytest.mark.parametrize(
    ("write", "read", "fits"),
    [
        ((f"{A}/ro/w", f"{A}/ro/w"), (f"{A}/ro", f"{A}/ro"), True),
        ((f"{A}/l", f"{A}/ro/w"), (f"{A}/ro", f"{A}/ro"), False),
        ((f"{A}/l/w", f"{A}/ro/w"), (f"{A}/l", f"{A}/ro"), True),
        ((f"{A}/ro/w", f"{A}/ro/w"), (f"{HOME}/other", f"{A}/ro"), True),
        ((f"{A}/l", f"{A}/x"), (f"{A}/ro", f"{A}/ro"), True),
    ],
)
def test_read_wins_over_write_by_another_name(
    write: tuple[str, str], read: tuple[str, str], *, fits: bool
) -> None:
    rules = {"write": (named(*write, project=False),), "read": (named(*read, project=False),)}
    assert (judged(**rules) == "") is fits


@pytest.mark.parametrize(
    ("verb", "lesser"), [("write", "read"), ("write", "hold"), ("hold", "read")], ids=" beside ".join
)
def test_by_another_name_the_lesser_of_two_counts(verb: str, lesser: str) -> None:
    rule = named(f"{A}/less", project=False)
    through = named(f"{A}/l", f"{A}/less/w", project=False)
    said = judged(**{verb: (through,), lesser: (rule,)})
    assert f"{lesser} = {rule.given}" in said
    assert judged(**{verb: (named(f"{A}/less/w", project=False),), lesser: (rule,)}) == "", "as it says"
    assert judged(**{lesser: (through,), verb: (rule,)}) == "", "less is no harm"


@pytest.mark.parametrize("verb", ["write", "read"])
def test_one_place_is_not_held_and_given_otherwise_by_two_names(verb: str) -> None:
    other = named(f"{A}/x", project=False)
    alias = named(f"{A}/l", f"{A}/x", project=False)
    for hold, given in ((alias, other), (other, alias)):
        said = judged(hold=(hold,), **{verb: (given,)})
        assert f"{A}/x" in said
    assert judged(hold=(named(f"{A}/y", project=False),), **{verb: (other,)}) == ""


@pytest.mark.parametrize("verb", ["read", "hold", "write"])
def test_what_lies_in_a_hidden_place_is_given_by_no_name(verb: str) -> None:
    hide = (folder(f"{WORKSPACE}/secrets"),)
    said = judged(hide=hide, **{verb: (named(f"{HOME}/l", f"{WORKSPACE}/secrets/s", project=False),)})
    assert f"hide = {WORKSPACE}/secrets" in said
    assert judged(hide=hide, **{verb: (named(f"{HOME}/l", f"{WORKSPACE}/secrets2", project=False),)}) == ""


def test_what_the_person_reads_is_there_though_a_project_hides_it() -> None:
    gone = absent(f"{WORKSPACE}/GATES.md")
    assert "is absent" in judged(allowed=(*ALLOWED, ("read", gone)), hide=(gone,))
    assert judged(allowed=ALLOWED, hide=(gone,)) == ""
