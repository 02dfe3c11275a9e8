"""Whether a symlink of a held tree stays in it."""

import pytest

from jail.hold.links import HOPS, stays

TOP = "/home/someone/work"
LINKS: dict[str, tuple[str, ...]] = {
    "out": ("/srv/out",),
    "up": ("..",),
    "in": ("a/b",),
    "twice": ("in/c",),
    "either": ("a", "/srv/out"),
    "both": ("a", "a/b"),
    "self": ("self",),
    "a/back": ("../in",),
}


@pytest.mark.parametrize(
    ("folder", "target", "found"),
    [
        ("", "x", True),
        ("", ".", True),
        ("", "x/../y", True),
        ("", "x/../../y", False),
        ("a", "../x", True),
        ("a", "../../x", False),
        ("", TOP, True),
        ("", f"{TOP}/a/x", True),
        ("", f"{TOP}/../x", False),
        ("", f"{TOP}-other", False),
        ("", "/etc/passwd", False),
        # through what is a link itself, on one side or on both
        ("", "out", False),
        ("", "out/x", False),
        ("", "out/../x", False),
        ("", "up/work/x", False),
        ("", "in/../../x", True),
        ("", "in/../../../x", False),
        ("", "twice", True),
        ("", "a/back/x", True),
        ("", "either", False),
        ("", "both/../x", True),
        ("", "both/../../x", False),
        ("", "self", False),
    ],
)
def test_a_link_is_read_as_the_kernel_would_follow_it(folder: str, target: str, found: bool) -> None:
    def targets(path: str) -> tuple[str, ...]:
        return LINKS.get(path[len(TOP) + 1 :], ())

    assert stays(TOP, f"{TOP}/{folder}".rstrip("/"), target, targets) is found


def test_a_long_chain_of_links_is_given_up() -> None:
    def targets(path: str) -> tuple[str, ...]:
        at = int(path.rpartition("/")[2])
        return (str(at + 1), str(at + 1)) if at < HOPS else ()

    assert not stays(TOP, TOP, "0", targets)
