"""What a lock file of lines says; what a tool would decode is never taken for read."""

import pytest

from jail.hold.locktext import of_lines


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("yarn.lock", 'resolved "https\\x3a//x"'),
        ("pnpm-lock.yaml", 'tarball: "\\u0068ttps"'),
        ("pnpm-lock.yaml", "a: !!binary aHR0cHM6Ly8="),
        ("podfile.lock", '"\\x2f"'),
        ("bun.lock", '"\\u0061"'),
        ("requirements.txt", "a\\b"),
        ("requirements.txt", "#coding=utf-7"),
        ("yarn.lock", "a\0b"),
        ("yarn.lock", "\udcff\udcfea"),
    ],
)
def test_a_line_that_a_tool_would_decode_is_not_read_unless_it_was_there(name: str, line: str) -> None:
    assert of_lines(name, f"a\n{line}\n", "") is None
    assert of_lines(name, f"a\n{line}\n", f"{line}\n") is not None


@pytest.mark.parametrize(
    ("name", "text", "packages"),
    [
        ("yarn.lock", '"@s/a@^1", "@s/a@^2":\n  version "2"\nb@1:\n', ["@s/a", "b"]),
        ("pnpm-lock.yaml", "packages:\n  /c@1:\n  '@s/d@1(e@2)':\n", ["c", "@s/d"]),
        ("gemfile.lock", "GEM\n  specs:\n    rake (1.0)\n      dep (>= 1)\n", ["rake"]),
        ("podfile.lock", "PODS:\n  - A (1.0)\n  - B (2.0):\n    - A\n", ["A", "B"]),
        ("mix.lock", '%{\n  "x": {:hex, :x, "1"},\n}\n', ["x"]),
        ("bun.lock", '{\n    "y": ["y@1", "", {}, "sha512-1"],\n', ["y"]),
        ("requirements.txt", "A==1\nb[extra]>=2; python_version > '3'  # why\n", ["a", "b"]),
    ],
)
def test_the_packages_of_a_format(name: str, text: str, packages: list[str]) -> None:
    found = of_lines(name, text, "")
    assert found is not None
    assert [*found.packages] == packages
