"""The merge: a level of its parts, then the person's file, each value with its origin."""

import pytest

from jail.errors import JailError
from jail.policy.compose import BUILT_IN, Composed
from jail.policy.draft import KEYS
from jail.policy.value import Policy
from support.composed import LEVELS, USER_FILE, made, refused

SYSTEM = made("overnight").policy.system


def origin(composed: Composed, field: str, value: object = None) -> tuple[str, str]:
    """Who said a value, and at which key."""
    [found] = [item.origin for item in composed.draft[field] if value in (None, item.value)]
    return found.who, found.key


def test_without_any_word_of_the_person_it_is_overnight() -> None:
    assert made().policy == made("overnight").policy
    assert made().level == "overnight"


@pytest.mark.parametrize("level", LEVELS)
def test_an_empty_file_of_the_person_changes_nothing(level: str) -> None:
    assert made(level, user="# nothing yet\n").policy[:-2] == made(level).policy[:-2]


def test_the_person_chooses_the_level_and_the_command_line_overrides_it() -> None:
    user = 'base = "supervised"\n[limits]\nprocesses = 100\n'
    assert (made(user=user).level, made(user=user).policy.processes) == ("supervised", 100)
    assert (made("ci", user=user).level, made("ci", user=user).policy.processes) == ("ci", 100)


USER = """
name = "mine"
[files]
system = ["/srv/compilers"]
write = ["~/out"]
hold = [".", "~/lib"]
read = ["~/data", "docs"]
hide = [".env"]
[toolchains]
gpu = true
[environment]
pass = ["EDITOR_COLORS", "TERM"]
[environment.set]
PIP_RETRIES = "3"
DEBUG = "1"
[terminal]
allow = ["title"]
[hold]
deliver = ["git-config"]
[limits]
timeout = "2h"
[accept]
losses = ["cgroup-namespace"]
[without]
system = ["/opt"]
toolchains = ["java"]
environment = ["CI", "npm_config_fetch_retries"]
losses = ["landlock"]
deliver = ["commands"]
"""


def test_lists_are_joined_single_values_replaced_and_without_takes_away() -> None:
    base, mine = made("overnight").policy, made("overnight", user=USER).policy
    assert mine == base._replace(
        name="mine",
        system=(*(path for path in base.system if path != "/opt"), "/srv/compilers"),
        write=("~/out",),
        hold=(".", "~/lib"),
        read=("~/data", "docs"),
        hide=(".env",),
        toolchains=("python", "node", "rust", "go", "ruby", "cc"),
        gpu=True,
        pass_names=(*(name for name in base.pass_names if name != "CI"), "EDITOR_COLORS"),
        set_values=(("DEBUG", "1"), ("PIP_RETRIES", "3")),
        terminal=("title",),
        deliver=("git-config",),
        timeout=7200.0,
        accept=("limits-memory", "landlock-rights", "cgroup-namespace"),
        sources=mine.sources,
    )
    assert [file for file, _ in mine.sources[-1:]] == [USER_FILE]


def test_each_value_says_where_it_comes_from() -> None:
    composed = made("overnight", user=USER)
    assert origin(composed, "system", "/usr") == ("part system", "files.system[0]")
    assert origin(composed, "system", "/srv/compilers") == ("your file", "files.system[0]")
    assert origin(composed, "pass_names", "TERM") == ("part screen", "environment.pass[0]")
    assert origin(composed, "set_values", ("PIP_RETRIES", "3")) == (
        "your file",
        "environment.set.PIP_RETRIES",
    )
    assert origin(composed, "timeout") == ("your file", "limits.timeout")
    assert origin(composed, "memory_bytes") == ("level overnight", "limits.memory")
    assert origin(made(own='name = "x"'), "memory_bytes") == (BUILT_IN.who, "")
    for field in KEYS:
        now = getattr(composed.policy, field)
        values = [item.value for item in composed.draft.get(field, [])]
        assert sorted(map(str, values)) == sorted(map(str, now if isinstance(now, tuple) else [now]))


@pytest.mark.parametrize(
    ("first", "then", "field", "value"),
    [
        ('write = ["~/out"]', 'read = ["~/out/"]', ("write", "read"), ((), ("~/out",))),
        ('read = ["~/out"]', 'write = ["~/out"]', ("write", "read"), (("~/out",), ())),
        ('write = ["~/out", "~/out/a"]', 'hide = ["~/out"]', ("write", "hide"), ((), ("~/out",))),
        ('hide = ["~/out"]', 'write = ["~/out"]', ("write", "hide"), (("~/out",), ())),
        ('write = ["~/out"]', 'hold = ["~/out"]', ("write", "hold"), ((), ("~/out",))),
        ('hold = ["~/out"]', 'write = ["~/out/"]', ("write", "hold"), (("~/out",), ())),
        ('hold = ["~/out", "~/out/a"]', 'hide = ["~/out"]', ("hold", "hide"), ((), ("~/out",))),
        ('hold = ["."]', 'hold = ["./"]', ("hold",), ((".",),)),
        ('read = ["/opt"]', 'read = ["/opt"]', ("read",), (("/opt",),)),
        ('system = ["/opt"]', 'read = ["/opt"]', ("system", "read"), (("/opt",), ())),
    ],
)
def test_on_one_path_the_later_file_counts(
    first: str,
    then: str,
    field: tuple[str, ...],
    value: tuple[tuple[str, ...], ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jail.policy import sources
    from jail.policy.sources import Text

    level = Text("/shipped/overnight.toml", f'name = "overnight"\n[files]\n{first}'.encode())
    monkeypatch.setattr(sources, "shipped", lambda *_: level)
    policy = made(user=f"[files]\n{then}\n").policy
    assert tuple(getattr(policy, name) for name in field) == value


def test_hiding_a_folder_of_the_system_takes_it_away() -> None:
    policy = made(user='[files]\nhide = ["/opt"]\n').policy
    assert policy.hide == ("/opt",)
    assert policy.system == tuple(path for path in SYSTEM if path != "/opt")


def test_a_name_is_passed_or_set_by_who_says_it_last() -> None:
    passed = made(user='[environment]\npass = ["PIP_RETRIES"]\n').policy
    assert "PIP_RETRIES" in passed.pass_names
    assert [name for name, _ in passed.set_values] == ["npm_config_fetch_retries"]
    as_set = made(user='[environment.set]\nTERM = "dumb"\n').policy
    assert "TERM" not in as_set.pass_names
    assert ("TERM", "dumb") in as_set.set_values


@pytest.mark.parametrize(
    ("user", "key"),
    [
        ('[without]\ntoolchains = ["java"]\nsystem = ["/opt", "/srv"]\n', "without.system[1]"),
        ('[without]\nenvironment = ["LC_*"]\n', "without.environment[0]"),
        ('base = "offline"\n[without]\ntoolchains = ["java"]\n', "without.toolchains[0]"),
        ('[without]\nterminal = ["title"]\n', "without.terminal[0]"),
        ('[without]\nhold = ["."]\n', "without.hold[0]"),
        ('[without]\ndeliver = ["git-config"]\n', "without.deliver[0]"),
        ('[without]\nwrite = ["~/out"]\n[files]\nwrite = ["~/out"]\n', "without.write[0]"),
    ],
)
def test_what_is_not_there_cannot_be_taken_away(user: str, key: str) -> None:
    """Misspelt, it would stay without anybody noticing."""
    assert list(refused(user=user)) == [key]


@pytest.mark.parametrize("key", ["pass", "write", "hold", "hide", "losses", "allow", "use", "deliver"])
def test_agent_case_1_an_empty_list_is_refused_where_it_would_change_nothing(key: str) -> None:
    """Who writes it means `none`; read as `no addition`, it would leave all that the level gives."""
    of_others = {"pass": "environment", "losses": "accept", "allow": "terminal", "use": "toolchains"}
    table = {**of_others, "deliver": "hold"}.get(key, "files")
    assert list(refused(user=f"[{table}]\n{key} = []\n")) == [f"{table}.{key}"]
    own = made(own=f'name = "x"\n[{table}]\n{key} = []\n').policy
    assert own[:-2] == made(own='name = "x"').policy[:-2], "alone over nothing it is what it says"


def test_a_policy_of_ones_own_stands_on_nothing_or_on_the_level_that_it_names() -> None:
    alone = made(own='name = "mine"').policy
    assert (alone.system, alone.pass_names, alone.processes) == ((), (), 1024)
    based = made(own='name = "mine"\nbase = "ci"\n[environment]\npass = ["TERM"]\n')
    assert based.level == "ci"
    assert based.policy.name == "mine"
    assert based.policy.timeout == made("ci").policy.timeout
    assert based.policy.pass_names == (*made("ci").policy.pass_names, "TERM")
    assert origin(based, "pass_names", "TERM")[0] == "your policy"


def test_a_policy_of_ones_own_may_use_parts_and_its_words_count_after_theirs() -> None:
    composed = made(
        own='name = "mine"\nparts = ["system", "unconnected"]\n[environment.set]\nPIP_RETRIES = "9"\n'
    )
    assert composed.policy.system == SYSTEM
    assert composed.policy.set_values == (("PIP_RETRIES", "9"), ("npm_config_fetch_retries", "0"))
    assert composed.policy.pass_names == ()
    assert origin(composed, "system", "/usr")[0] == "part system"


def test_the_persons_own_file_may_add_a_part_to_its_level() -> None:
    assert "TERM" in made("ci", user='parts = ["screen"]\n').policy.pass_names


def test_what_lies_in_a_hidden_folder_of_an_earlier_file_cannot_be_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jail.policy import sources
    from jail.policy.sources import Text

    level = Text("/shipped/overnight.toml", b'name = "overnight"\n[files]\nhide = ["~/keys"]\n')
    monkeypatch.setattr(sources, "shipped", lambda *_: level)
    found = refused(user='[files]\nread = ["~/keys/public"]\n')
    assert len(found) == 1
    assert made(user='[files]\nread = ["~/keys/public"]\n[without]\nhide = ["~/keys"]\n').policy.hide == ()


def test_all_faults_of_the_persons_file_are_told_at_once() -> None:
    user = 'base = "overnite"\nparts = ["x"]\n[files]\nwrite = ["/"]\n[limits]\ntmp = "2 GB"\n'
    assert list(refused(user=user)) == ["base", "parts[0]", "files.write[0]", "limits.tmp"]


def test_a_home_that_is_no_path_is_refused() -> None:
    with pytest.raises(JailError, match="home folder"):
        made(home="home")


def test_the_digest_tells_apart_what_files_were_used() -> None:
    one, other = made(user="# a\n").policy, made(user="# b\n").policy
    assert one[:-2] == other[:-2]
    assert one.digest != other.digest


def test_nothing_of_a_level_reaches_a_policy_on_nothing() -> None:
    assert made(own='name = "x"').policy == Policy(
        **{
            **made(own='name = "x"').policy._asdict(),
            "accept": (),
            "terminal": (),
            "deliver": (),
            "toolchains": (),
            "gpu": False,
        }
    )
