"""What a package.json is told by: what some program obeys, and first what runs by itself."""

import json

import pytest

from jail.hold.packages import REASON, is_ordinary, package_changes
from jail.hold.sources import MOST_BYTES, UNREAD, WIDTH


def package(**keys: object) -> bytes:
    return json.dumps({"name": "x", "version": "1", **keys}).encode()


BASE = package(scripts={"test": "jest"}, dependencies={"a": "1", "b": "1"})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (BASE, BASE, ""),
        (BASE, BASE.replace(b'"version": "1"', b'"version": "2"'), ""),
        (BASE, BASE.replace(b": ", b" :  "), ""),
        (None, package(description="only words"), ""),
        (None, package(scripts={"postinstall": "x"}), "scripts: +postinstall"),
        (
            BASE,
            package(scripts={"test": "curl", "postinstall": "x"}, dependencies={"b": "1"}),
            "scripts: +postinstall ~test; dependencies: -a",
        ),
        (BASE, package(scripts={"test": "jest"}), "dependencies: -a -b"),
        (package(main="a.js"), package(main="b.js"), "main"),
        (package(), package(bin="x", jest={"preset": "y"}, unheard_of=1), "bin; jest: +preset; unheard_of"),
        (package(scripts={}), package(scripts=[1]), "scripts"),
        (
            package(),
            package(scripts={str(n): "" for n in range(9)}),
            "scripts: +0 +1 +2 and 6 more",
        ),
        (package(), package(**{str(n): n for n in range(9)}), "0; 1; 2 and 6 more"),
        # what npm runs by itself comes first, whatever else is said
        (
            package(),
            package(
                **{f"a{n}": n for n in range(9)},
                scripts={
                    **{f"s{n}": "" for n in range(9)},
                    "prepare": "x",
                    "postinstall": "x",
                    "preinstall": "x",
                },
            ),
            "scripts: +preinstall +postinstall +prepare and 9 more; a0; a1 and 7 more",
        ),
        (
            package(scripts={"install": "a", "postinstall": "b", "x": ""}),
            package(scripts={"install": "b", "prepublishOnly": "", "a": "", "b": ""}),
            "scripts: ~install +prepublishOnly +a and 3 more",
        ),
        (
            package(),
            package(
                scripts=dict.fromkeys(("z", "prepack", "prepare", "install", "postinstall", "preinstall"), "")
            ),
            "scripts: +preinstall +install +postinstall +prepare +prepack and 1 more",
        ),
        (package(), package(scripts={"a; -b": ""}), 'scripts: +"a; -b"'),
        # of two keys that are alike npm takes the last, and so do we
        (package(), b'{"scripts": {"x": ""}, "scripts": {"install": ""}}', "scripts: +install"),
        (BASE, b"{", UNREAD),
        (BASE, b"[]", UNREAD),
        (BASE, b"[" * 100_000, UNREAD),
        (BASE, b'{"a":' * 100_000, UNREAD),
        (BASE, b'{"a":' + b"9" * 10_000 + b"}", UNREAD),
        (BASE, b"\xff\xfe", UNREAD),
        (BASE, b'{"scripts": "' + b"x" * MOST_BYTES + b'"}', UNREAD),
        (BASE, None, UNREAD),
        (b"{", BASE, "what was there before cannot be read"),
    ],
)
def test_a_package_json_is_told_by_what_some_program_obeys(old: bytes, new: bytes, told: str) -> None:
    assert package_changes(old, new) == told


def test_a_long_key_is_cut() -> None:
    assert len(package_changes(package(), package(**{"k" * 10_000: 1}))) == WIDTH


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("scripts: +test ~build; main", True),
        ("bin: +postinstall-x", True),
        ("scripts: +postinstall", False),
        ("scripts: ~install +test; main", False),
        ("scripts: -postinstall", True),
        (UNREAD, False),
        ("", False),
    ],
)
def test_what_each_installed_package_says_is_ordinary(told: str, found: bool) -> None:
    assert is_ordinary(f"{REASON}: {told}") == found
    assert not is_ordinary("a link that leads out, to x")
    assert not is_ordinary("make runs it: scripts: +test")
