"""Paths: which may stand under which verb, which contradict each other, and how faults are shown."""

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.policy.check import (
    VERBS,
    Entry,
    Fault,
    PolicyFaults,
    clean,
    clean_home,
    contradictions,
    path_complaint,
    resolved,
)

HOME = "/home/ada"
GIVE = ("system", "write", "hold", "read")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "path", ["/srv/data", "/usr/local", "/home/bob/x", "/home/ada/x", "/run/x", "/tmp/x", "/srv/[id].ts"]
)
def test_a_narrow_absolute_path_is_fine_everywhere(path: str, verb: str) -> None:
    assert path_complaint(path, verb, HOME) is None


@pytest.mark.parametrize("verb", ["write", "hold", "read", "hide"])
@pytest.mark.parametrize("path", ["~/x", "build", "a/b/", "./a", "...", "..a", "a..b", "./~x", "ümlaut/文"])
def test_paths_in_home_and_workspace_are_fine(path: str, verb: str) -> None:
    assert path_complaint(path, verb, HOME) is None


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("", "empty"),
        ("/a\0b", "seen"),
        ("/a\nb", "seen"),
        ("/a\u202eb", "seen"),
        ("/a\x1b[31m", "seen"),
        (" /a", "space"),
        ("/a ", "space"),
        ("$HOME/x", "variables"),
        ("${X}", "variables"),
        ("/etc/java*", "wildcards"),
        ("/a?", "wildcards"),
        ("/a/../b", ".."),
        ("..", ".."),
        ("~/../bob", ".."),
        ("/a/..", ".."),
        ("../x", ".."),
        ("/" + "a" * 256, "longer"),
        ("/" + "é" * 128, "longer"),
        ("/a" * 2048, "longer"),
        ("~bob/x", "home"),
        ("~~", "home"),
        ("/", "whole host"),
        ("//", "whole host"),
        ("///.//", "whole host"),
        ("/proc/self", "/proc"),
        ("/proc", "/proc"),
        ("/dev/sda", "/dev"),
        ("/dev/", "/dev"),
    ],
)
def test_what_no_verb_takes(path: str, part: str, verb: str) -> None:
    complaint = path_complaint(path, verb, HOME)
    assert complaint is not None
    if verb != "system" or path.startswith("/"):
        assert part in complaint[0]


@pytest.mark.parametrize("path", [".", "./", ".//.", "usr", "./usr", "~/x", "~"])
def test_system_takes_absolute_paths_only(path: str) -> None:
    complaint = path_complaint(path, "system", HOME)
    assert complaint is not None
    assert "not absolute" in complaint[0]


@pytest.mark.parametrize("verb", ["write", "read", "hide"])
@pytest.mark.parametrize("path", [".", "./", ".//."])
def test_the_workspace_itself_is_no_entry_but_of_hold(path: str, verb: str) -> None:
    complaint = path_complaint(path, verb, HOME)
    assert complaint is not None
    assert "workspace" in complaint[0]
    assert path_complaint(path, "hold", HOME) is None


@pytest.mark.parametrize("verb", ["write", "hold", "read", "hide"])
@pytest.mark.parametrize("path", ["~", "~/", "~/.", HOME, f"{HOME}//", "/home", "/home/"])
def test_neither_home_nor_what_holds_it(path: str, verb: str) -> None:
    complaint = path_complaint(path, verb, HOME)
    assert complaint is not None
    assert "home folder" in complaint[0]


def test_a_system_folder_may_hold_the_home_folder_but_not_be_it() -> None:
    """A service's home is often below /opt; the private home lies over it, as the more specific path."""
    assert path_complaint("/opt", "system", "/opt/service") is None
    assert path_complaint("/opt/service", "system", "/opt/service") is not None


def test_a_name_that_only_begins_like_home_is_another() -> None:
    assert path_complaint("/home/ada2", "write", HOME) is None
    assert path_complaint("/hom", "write", HOME) is None


@pytest.mark.parametrize("verb", GIVE)
@pytest.mark.parametrize("path", ["/sys", "/run", "/var/run", "/run/user", "/tmp", "/var/tmp", "/tmp//"])
def test_shared_places_are_not_given_whole(path: str, verb: str) -> None:
    assert path_complaint(path, verb, HOME) is not None
    assert path_complaint(path, "hide", HOME) is None


def test_sys_is_never_writable() -> None:
    assert path_complaint("/sys/devices", "read", HOME) is None
    assert path_complaint("/sys/devices", "write", HOME) is not None
    assert path_complaint("/sys/devices", "hold", HOME) is not None
    assert path_complaint("/system", "write", HOME) is None


@pytest.mark.parametrize("path", ["/\udcff", "/x\udc80"])
def test_paths_that_are_no_text_are_paths(path: str) -> None:
    assert path_complaint(path, "read", HOME) is None


@pytest.mark.parametrize("home", ["", "relative", "~", ".", "/a\0"])
def test_without_an_absolute_home_nothing_is_checked(home: str) -> None:
    with pytest.raises(JailError, match="home folder") as refused:
        clean_home(home)
    assert refused.value.code == EXIT_USAGE


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a//b/", "/a/b"),
        ("//a", "/a"),
        ("///a", "/a"),
        ("a/./b/", "a/b"),
        ("~/a/", "~/a"),
        ("./~/a", "./~/a"),
        ("./~", "./~"),
        ("./a", "a"),
    ],
)
def test_clean(text: str, path: str) -> None:
    assert clean(text) == path
    assert clean(path) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~", HOME),
        ("~/a", f"{HOME}/a"),
        ("/a/", "/a"),
        ("a", "./a"),
        ("./a", "./a"),
        ("./~", "./~"),
        ("./~/a", "./~/a"),
        (".", "."),
        (".//./", "."),
    ],
)
def test_resolved(text: str, path: str) -> None:
    assert resolved(text, HOME) == path
    assert resolved(clean(text), HOME) == path


def test_home_at_the_root_is_resolved() -> None:
    assert resolved("~/a", "/") == "/a"


def judged(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    """(label, message) of each contradiction among the entries, which are labelled verb:position."""
    entries = [
        Entry(verb, f"{verb}:{place}", resolved(path, HOME)) for place, (verb, path) in enumerate(pairs)
    ]
    return [(found.entry.label, found.message) for found in contradictions(entries)]


SAME = [(one, other) for one in VERBS for other in VERBS if VERBS.index(one) <= VERBS.index(other)]


@pytest.mark.parametrize(("one", "other"), SAME)
@pytest.mark.parametrize(("path", "again"), [("/a/b", "/a//b/"), ("~/x", f"{HOME}/x")])
def test_one_path_stands_once(one: str, other: str, path: str, again: str) -> None:
    [(label, message)] = judged((one, path), (other, again))
    assert label == f"{other}:1"
    assert f"{one}:0" in message


NESTED = {
    ("hide", "write"): True,
    ("hide", "read"): True,
    ("hide", "system"): True,
    ("write", "hide"): False,
    ("read", "hide"): False,
    ("system", "hide"): False,
    ("hide", "hide"): False,
    ("write", "read"): False,
    ("read", "write"): False,
    ("write", "write"): False,
    ("system", "write"): False,
    ("system", "read"): False,
    ("hide", "hold"): True,
    ("hold", "hide"): False,
    ("hold", "hold"): False,
    ("hold", "write"): False,
    ("write", "hold"): False,
    ("hold", "read"): False,
    ("read", "hold"): False,
    ("system", "hold"): False,
}


def test_everything_may_stand_in_a_workspace_that_is_held() -> None:
    assert judged(("hold", "."), ("write", "a"), ("read", "b"), ("hide", "c"), ("hold", "d")) == []
    [(label, _)] = judged(("hold", "."), ("hold", "./"))
    assert label == "hold:1"


@pytest.mark.parametrize("paths", [("/a", "/a/b"), ("~/a", f"{HOME}/a/b/c"), ("a", "a/b"), ("./~", "./~/b")])
@pytest.mark.parametrize("verbs", NESTED)
@pytest.mark.parametrize("swap", [False, True])
def test_one_path_in_another(verbs: tuple[str, str], paths: tuple[str, str], swap: bool) -> None:
    pairs = list(zip(verbs, paths, strict=True))
    found = judged(*reversed(pairs)) if swap else judged(*pairs)
    assert bool(found) is NESTED[verbs]
    assert [label.endswith(":1") for label, _ in found] == [True] * NESTED[verbs]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("hide", "/a"), ("write", "/ab")),
        (("hide", "a"), ("write", "/a/b")),
        (("hide", "~/a"), ("write", "a/b")),
        (("hide", "/home/ada2"), ("read", "~/x")),
    ],
)
def test_paths_beside_each_other_are_fine(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert judged(one, other) == []


def test_every_contradiction_is_reported_in_order() -> None:
    found = judged(("hide", "/a"), ("write", "/b"), ("read", "/b"), ("write", "/a/x"), ("hide", "/b"))
    assert [label for label, _ in found] == ["read:2", "write:3", "hide:4"]


def test_faults_are_shown_safe_short_and_counted() -> None:
    faults = [Fault("f", f"k{number}", f"\x1b[31m\u202e{'x' * 1000}", "hint") for number in range(60)]
    error = PolicyFaults("the policy f", faults)
    lines = error.lines()
    assert error.code == EXIT_USAGE
    assert error.faults == tuple(faults)
    assert lines[0] == "the policy f has 60 faults; nothing was run"
    assert lines[1].startswith("  k0: \\x1b[31m\\u202exxx")
    assert max(map(len, lines)) < 420
    assert lines[-1] == "  … and 10 more"
