"""Environment names: what may be passed on, what only set, what neither."""

import pytest

from jail.policy.names import CHANGES_WHAT_RUNS, JAIL_SETS, SECRETS, pass_complaint, set_complaint

RUNNING = sorted(name for names in CHANGES_WHAT_RUNS.values() for name in names)


@pytest.mark.parametrize(
    "name", ["TERM", "LC_*", "LANG", "_x", "CI", "GIT_AUTHOR_NAME", "PYTHONUNBUFFERED", "CCACHE_*"]
)
def test_plain_names_pass(name: str) -> None:
    assert pass_complaint(name) is None


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_passes_by_its_full_name_only(name: str) -> None:
    assert pass_complaint(name) is None
    for length in range(3, len(name) + 1):
        complaint = pass_complaint(f"{name[:length]}*")
        assert complaint is not None
        assert "reaches" in complaint[0]


@pytest.mark.parametrize(
    "pattern", ["*", "A*", "AB*", "LD*", "_*", "**", "*_TOKEN", "A*B", "LC_**", "L?_X", "[A]*"]
)
def test_broad_and_odd_patterns_are_refused(pattern: str) -> None:
    assert pass_complaint(pattern) is not None


@pytest.mark.parametrize(
    "pattern", ["GIT_*", "PYTHON*", "NODE_*", "BASH*", "LD_PRE*", "npm_*", "PATH*", "USER*"]
)
def test_a_pattern_that_reaches_a_dangerous_name_is_refused(pattern: str) -> None:
    complaint = pass_complaint(pattern)
    assert complaint is not None
    assert "reaches" in complaint[0]


@pytest.mark.parametrize("name", RUNNING)
def test_what_changes_what_runs_may_be_set_but_not_passed(name: str) -> None:
    example = name.replace("*", "X")
    complaint = pass_complaint(example)
    assert complaint is not None
    assert "may not come from the caller" in complaint[0]
    assert f"set {example}" in complaint[1]
    assert set_complaint(example, "value") is None


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "BASH_ENV", "ENV", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND", "EDITOR"]
)
def test_the_table_has_the_well_known_ones(name: str) -> None:
    assert pass_complaint(name) is not None


@pytest.mark.parametrize("name", JAIL_SETS)
def test_what_jail_sets_is_neither_passed_nor_set(name: str) -> None:
    assert pass_complaint(name) is not None
    assert set_complaint(name, "x") is not None


@pytest.mark.parametrize(
    "name", ["", "A-B", "1A", "A B", "A=B", "Ä", "A\0", "A\n", "BASH_FUNC_x%%", "A.B", "ＡＢ"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    assert pass_complaint(name) is not None
    assert set_complaint(name, "x") is not None


def test_a_value_may_be_empty_or_of_many_lines() -> None:
    assert set_complaint("NO_COLOR", "") is None
    assert set_complaint("TEXT", "one\ntwo") is None


@pytest.mark.parametrize("value", ["\0", "a\0b", "x" * (1 << 17), "ä" * (1 << 16)])
def test_a_value_that_execve_cannot_carry_is_refused(value: str) -> None:
    assert set_complaint("NAME", value) is not None


def test_the_longest_value_is_the_kernels() -> None:
    """NAME=VALUE and its NUL fill MAX_ARG_STRLEN, 131072 bytes."""
    longest = (1 << 17) - len("NAME=") - 1
    assert set_complaint("NAME", "x" * longest) is None
    assert set_complaint("NAME", "x" * (longest + 1)) is not None
