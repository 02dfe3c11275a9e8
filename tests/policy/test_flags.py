"""What the command line adds to a policy."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jail
from jail.errors import EXIT_USAGE, JailError
from jail.policy.check import PolicyFaults
from jail.policy.flags import with_flags
from jail.policy.value import Policy
from support.composed import made

HOME, CWD = "/home/ada", "/home/ada/work"
BASE = made(
    own="""
    name = "base"
    [files]
    system = ["/usr"]
    write = ["~/out", "build"]
    hold = ["lib", "~/held"]
    read = ["/srv/data"]
    hide = ["/srv/data/private"]
    [environment]
    pass = ["TERM", "LC_*"]
    set = { A = "1", B = "2" }
    """
).policy


def given_flags(**flags: Any) -> Policy:
    return with_flags(BASE, **{"home": HOME, "cwd": CWD, **flags})


def faults(**flags: Any) -> list[tuple[str, str]]:
    with pytest.raises(PolicyFaults) as refused:
        given_flags(**flags)
    assert refused.value.code == EXIT_USAGE
    assert {fault.file for fault in refused.value.faults} == {"the command line"}
    return [(fault.key, fault.message) for fault in refused.value.faults]


def test_no_flags_change_nothing() -> None:
    assert given_flags() == BASE


FLAGS = {"write": "write", "hold_path": "hold", "read": "read", "hide": "hide"}
"""Option → the list of paths that it adds to."""
each_flag = pytest.mark.parametrize("flag", FLAGS)


@each_flag
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/x", "/x"),
        ("/x//y/", "/x/y"),
        ("x", f"{CWD}/x"),
        ("./x/", f"{CWD}/x"),
        (".", CWD),
        ("./", CWD),
        ("~/x", f"{HOME}/x"),
        ("./~/x", f"{CWD}/~/x"),
        ("\udcff", f"{CWD}/\udcff"),
    ],
)
def test_paths_become_absolute_and_follow_the_policys(flag: str, text: str, path: str) -> None:
    policy, verb = given_flags(**{flag: [text]}), FLAGS[flag]
    assert policy == BASE._replace(**{verb: (*getattr(BASE, verb), path)})


@pytest.mark.parametrize("workspace", ["", CWD])
def test_hold_is_the_whole_workspace_wherever_that_is(workspace: str) -> None:
    found = given_flags(hold=True, workspace=workspace)
    assert found == BASE._replace(hold=(*BASE.hold, "."))
    again = {"home": HOME, "cwd": CWD, "workspace": workspace}
    assert with_flags(found, hold=True, **again) == found  # type: ignore[arg-type]  # the values are texts
    assert given_flags(hold=False, workspace=workspace) == BASE


def test_the_workspace_is_held_once_by_whatever_name() -> None:
    found = given_flags(hold=True, hold_path=[".", "~/work"], workspace=CWD)
    assert found.hold == (*BASE.hold, ".")
    named = BASE._replace(hold=(CWD,))
    assert with_flags(named, hold=True, home=HOME, cwd="/", workspace=CWD) == named


def test_what_lies_in_a_workspace_that_is_held_may_be_written_or_read() -> None:
    found = given_flags(hold=True, write=["out"], read=["docs"], hold_path=["lib"], workspace=CWD)
    assert found.hold == (*BASE.hold, ".")
    assert (found.write[-1], found.read[-1]) == (f"{CWD}/out", f"{CWD}/docs")


def test_the_policy_given_is_not_changed() -> None:
    before = BASE.digest
    assert given_flags(write=["x"]).digest != before
    assert BASE.digest == before


@each_flag
@pytest.mark.parametrize(
    "text",
    ["", "/", "..", "../x", "/a/../b", "~", HOME, "/home", "a\nb", "*.pem", "$HOME", "/proc/1", " x", "~bob"],
)
def test_paths_are_checked_as_in_a_file_and_the_flag_is_named(flag: str, text: str) -> None:
    [(key, message)] = faults(**{flag: [text]})
    assert key == f"--{flag.replace('_', '-')} {text}"
    assert message


@each_flag
def test_the_current_folder_is_judged_as_the_path_that_it_is(flag: str) -> None:
    [(key, message)] = faults(**{flag: ["."], "cwd": HOME})
    assert key == f"--{flag.replace('_', '-')} ."
    assert "home folder" in message


@pytest.mark.parametrize(
    ("flags", "key", "other"),
    [
        ({"read": ["~/out"]}, "--read ~/out", "`write` of the policy `base`"),
        ({"hide": ["~/out"]}, "--hide ~/out", "`write` of the policy `base`"),
        ({"write": ["/srv/data"]}, "--write /srv/data", "`read` of the policy `base`"),
        ({"write": ["/srv/data/private/x"]}, "--write /srv/data/private/x", "`hide` of the policy `base`"),
        ({"hide": ["/srv"]}, "--hide /srv", "`read` of the policy `base`"),
        ({"write": ["/usr"]}, "--write /usr", "`system` of the policy `base`"),
        ({"write": ["x"], "read": [f"{CWD}/x"]}, f"--read {CWD}/x", "--write x"),
        ({"write": ["~/held"]}, "--write ~/held", "`hold` of the policy `base`"),
        ({"hold_path": ["~/out"]}, "--hold-path ~/out", "`write` of the policy `base`"),
        ({"hold_path": ["/usr"]}, "--hold-path /usr", "`system` of the policy `base`"),
        ({"hold_path": ["/srv/data/private/x"]}, "--hold-path /srv/data/private/x", "`hide` of the policy"),
        ({"write": ["x"], "hold_path": ["x"]}, "--hold-path x", "--write x"),
        ({"write": ["."], "hold": True, "workspace": CWD}, "--write .", "--hold"),
    ],
)
def test_contradictions_name_the_flag_and_what_it_contradicts(
    flags: dict[str, list[str]], key: str, other: str
) -> None:
    [(found, message)] = faults(**flags)
    assert found == key
    assert other in message


def test_what_the_policy_says_of_the_workspace_is_compared_where_it_lies() -> None:
    policy = BASE._replace(hide=("secret",), read=("docs",))
    where = {"home": HOME, "cwd": CWD, "workspace": CWD}
    assert with_flags(policy, read=["docs"], **where) == policy
    for flags, key in (({"read": ["secret/x"]}, "--read secret/x"), ({"write": ["docs"]}, "--write docs")):
        with pytest.raises(PolicyFaults) as error:
            with_flags(policy, **flags, **where)  # type: ignore[arg-type]  # flags are lists
        assert [fault.key for fault in error.value.faults] == [key]


def test_the_command_line_has_the_last_word_after_a_project() -> None:
    project = '[limits]\ntimeout = "1m"\n[environment]\npass = []\n[files]\nwrite = []\n'
    narrow = made("interactive", user='[files]\nwrite = ["~/out"]\n', project=project).policy
    assert (narrow.timeout, narrow.pass_names, narrow.write) == (60.0, (), ())
    found = with_flags(narrow, timeout="0", env=["TERM"], write=["~/out"], home=HOME, cwd=CWD)
    assert (found.timeout, found.pass_names, found.write) == (0.0, ("TERM",), (f"{HOME}/out",))


@pytest.mark.parametrize(
    ("flags", "field", "path"),
    [
        ({"hide": ["~/out/x"]}, "hide", f"{HOME}/out/x"),
        ({"hide": ["/srv/data/x"]}, "hide", "/srv/data/x"),
        ({"write": ["/srv"]}, "write", "/srv"),
        ({"read": ["~/out/x"]}, "read", f"{HOME}/out/x"),
        ({"hold_path": ["~/out/x"]}, "hold", f"{HOME}/out/x"),
        ({"hold_path": ["/srv/data/x"]}, "hold", "/srv/data/x"),
        ({"write": ["~/held/x"]}, "write", f"{HOME}/held/x"),
    ],
)
def test_the_most_specific_path_wins(flags: dict[str, list[str]], field: str, path: str) -> None:
    assert given_flags(**flags) == BASE._replace(**{field: (*getattr(BASE, field), path)})


@pytest.mark.parametrize(
    "flags",
    [
        {"write": ["~/out", "/home/ada/out/"]},
        {"read": ["/srv/data", "/usr"]},
        {"hide": ["/srv/data/private"]},
        {"hold_path": ["~/held"]},
    ],
)
def test_repeating_the_policy_changes_nothing(flags: dict[str, list[str]]) -> None:
    assert given_flags(**flags) == BASE


def test_a_flag_may_be_repeated() -> None:
    assert given_flags(read=["x", "x", "./x/"]).read == (*BASE.read, f"{CWD}/x")


@pytest.mark.parametrize(
    ("env", "passed", "values"),
    [
        (["CI"], ("TERM", "LC_*", "CI"), {"A": "1", "B": "2"}),
        (["CI", "CI"], ("TERM", "LC_*", "CI"), {"A": "1", "B": "2"}),
        (["TERM"], ("LC_*", "TERM"), {"A": "1", "B": "2"}),
        (["C=3"], ("TERM", "LC_*"), {"A": "1", "B": "2", "C": "3"}),
        (["A="], ("TERM", "LC_*"), {"A": "", "B": "2"}),
        (["A=x=y"], ("TERM", "LC_*"), {"A": "x=y", "B": "2"}),
        (["A=9", "A=10"], ("TERM", "LC_*"), {"A": "10", "B": "2"}),
        (["TERM=dumb"], ("LC_*",), {"A": "1", "B": "2", "TERM": "dumb"}),
        (["A"], ("TERM", "LC_*", "A"), {"B": "2"}),
        (["NODE_OPTIONS=--max-old-space-size=99"], ("TERM", "LC_*"), None),
    ],
)
def test_env_passes_or_sets(env: list[str], passed: tuple[str, ...], values: dict[str, str] | None) -> None:
    policy = given_flags(env=env)
    assert policy.pass_names == passed
    assert list(policy.set_values) == sorted(policy.set_values)
    if values is not None:
        assert dict(policy.set_values) == values


@pytest.mark.parametrize(
    ("env", "key"),
    [
        (["*"], "--env *"),
        ([""], "--env "),
        (["=x"], "--env "),
        (["A-B=x"], "--env A-B"),
        (["LD_PRELOAD"], "--env LD_PRELOAD"),
        (["AWS_*"], "--env AWS_*"),
        (["HOME"], "--env HOME"),
        (["PATH=/bin"], "--env PATH"),
        (["X=\0"], "--env X"),
        (["X", "X=1"], "--env X"),
        (["X=1", "X"], "--env X"),
    ],
)
def test_env_is_checked_as_in_a_file(env: list[str], key: str) -> None:
    [(found, _)] = faults(env=env)
    assert found == key


def test_a_refused_value_is_not_repeated() -> None:
    with pytest.raises(PolicyFaults) as refused:
        given_flags(env=["MY-KEY=canary"])
    assert "canary" not in "\n".join(refused.value.lines())


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("2h", 7200.0), ("0", 0.0)])
def test_the_timeout_replaces_the_policys(text: str, seconds: float) -> None:
    assert given_flags(timeout=text) == BASE._replace(timeout=seconds)


@pytest.mark.parametrize("text", ["", "90", "0s", "-1s", "forever", "31d"])
def test_the_timeout_is_checked(text: str) -> None:
    [(key, _)] = faults(timeout=text)
    assert key == f"--timeout {text}"


def test_every_fault_of_every_flag_is_told_at_once() -> None:
    found = faults(write=["/", "ok"], read=["~"], hide=["", "~/out"], env=["*", "A-B=1"], timeout="soon")
    assert [key for key, _ in found] == [
        *("--write /", "--read ~", "--hide ", "--hide ~/out", "--env *", "--env A-B", "--timeout soon"),
    ]


def test_a_home_that_is_no_path_is_refused() -> None:
    with pytest.raises(JailError, match="home folder"):
        given_flags(home="", write=["/x"])


def judged(**flags: Any) -> Policy | None:
    """The policy, or None where faults were told; anything else fails the test."""
    try:
        return given_flags(**flags)
    except PolicyFaults:
        return None


TEXTS = st.lists(st.text(max_size=12), max_size=4)


@given(paths=st.tuples(*[TEXTS] * 4), env=TEXTS, timeout=st.none() | st.text(max_size=6))
def test_any_command_line_is_a_policy_or_faults(
    paths: tuple[list[str], ...], env: list[str], timeout: str | None
) -> None:
    policy = judged(**dict(zip(FLAGS, paths, strict=True)), env=env, timeout=timeout)
    if policy is None:
        return
    new = {path for verb in FLAGS.values() for path in {*getattr(policy, verb)} - {*getattr(BASE, verb)}}
    assert all(path.startswith("/") and ".." not in path.split("/") for path in new)


def test_flags_need_no_slow_import() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import os, jail.light; before = set(sys.modules); "
        "import jail.policy.flags; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(Path(jail.__file__).parent.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [name for name in done.stdout.split() if not name.startswith("jail.")] in (
        [],
        ["_sha256"],
        ["_sha2"],
    )


def test_a_gpu_is_given_when_asked_for_and_no_flag_takes_it_away() -> None:
    assert not given_flags().gpu
    assert given_flags(gpu=True) == BASE._replace(gpu=True)
    assert with_flags(BASE._replace(gpu=True), home="/home/ada", cwd="/work").gpu
