"""What changed in lists of packages: told by keys and by sources, whatever the text is."""

import pytest

from jail.hold import sources
from jail.hold.sources import MOST_BYTES, UNREAD, new_sources
from support.lines import executed


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        (
            "package-lock.json",
            '"resolved": "https://registry.example.org/a/-/a-1.tgz"',
            '"resolved": "https://registry.example.org/b/-/b-1.tgz", "https://evil.example.net/b.tgz"',
            "evil.example.net",
        ),
        ("package-lock.json", "https://one.example/a", "https://one.example/b", ""),
        ("package-lock.json", "https://one.example/a", "http://one.example/a", "http://one.example"),
        ("package-lock.json", "https://one.example/a", "HTTPS://user:pw@ONE.example/a", ""),
        (
            "yarn.lock",
            'resolved "https://code.example/good/x.git#1"',
            'resolved "https://code.example/evil/x.git#1"',
            "code.example/evil/x",
        ),
        (
            "yarn.lock",
            "",
            '"x@git@code.example:evil/x.git", "y@github:evil/y#main", git+ssh://git@code.example/evil/z.git',
            "ssh://code.example/evil/z, git@code.example:evil/x, github:evil/y",
        ),
        (
            "uv.lock",
            'source = { registry = "https://pypi.example/simple" }',
            'source = { registry = "https://pypi.example/simple" }\nsource = { git = "https://code.example/a/b?rev=1.git" }',
            "code.example/a/b",
        ),
        (
            "cargo.lock",
            'source = "registry+https://index.example/x"',
            'source = "git+https://code.example/o/r?branch=x#1"',
            "code.example/o/r",
        ),
        ("go.sum", "a.example/m v1 h1:x=", "a.example/m v2 h1:y=\nb.example/n v1 h1:z=", "b.example/n"),
        (
            "gemfile.lock",
            "  remote: https://gems.example/",
            "  remote: https://gems2.example/",
            "gems2.example",
        ),
        ("requirements.txt", "a==1", "a==2\nb==1", ""),
        ("requirements.txt", "a==1", "--index-url https://evil.example/simple\na==1", "evil.example"),
        ("requirements.txt", "", "b @ https://files.example/o/archive/b.zip", "files.example/o/archive"),
        (
            "poetry.lock",
            "",
            " ".join(f"https://h{n}.example/" for n in range(9)),
            "h0.example, h1.example, h2.example and 6 more",
        ),
    ],
)
def test_a_lock_file_is_told_by_the_sources_that_it_did_not_have(
    name: str, old: str, new: str, told: str
) -> None:
    assert new_sources(name, old.encode(), new.encode()) == (f"new sources: {told}" if told else "")


def test_all_sources_of_a_new_lock_file_are_new_and_one_that_is_too_long_is_said() -> None:
    assert new_sources("uv.lock", None, b"https://a.example/x") == "new sources: a.example"
    assert new_sources("uv.lock", b"x" * (MOST_BYTES + 1), b"https://a.example/x") == "new sources: a.example"
    assert new_sources("uv.lock", b"", None) == UNREAD
    assert new_sources("uv.lock", b"", b"x" * (MOST_BYTES + 1)) == UNREAD


@pytest.mark.parametrize("text", ["://", "a", "git@git@:", "github:a", "https://a"])
def test_no_text_takes_more_than_a_time_linear_in_its_length(text: str) -> None:
    small, large = ((text * size)[:size].encode() for size in (1 << 11, 1 << 15))
    one, sixteen = (executed(lambda: new_sources("yarn.lock", b"", each)) for each in (small, large))  # noqa: B023 - called at once
    assert sixteen <= 18 * one


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *(
            (name, True)
            for name in ("package-lock.json", "uv.lock", "requirements.txt", "requirements-dev.txt")
        ),
        *((name, True) for name in ("requirements.in", "constraints.txt", "cargo.lock", "go.sum")),
        *((name, False) for name in ("requirements.md", "my-requirements.txt", "lock", "x.lock")),
    ],
)
def test_which_names_are_lock_files(name: str, found: bool) -> None:
    assert sources.is_lock(name) == found
