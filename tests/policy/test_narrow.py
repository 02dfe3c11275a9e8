"""A project's file only takes away: every key of a policy, and every way in which one could ask for more."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jail.policy import narrow
from jail.policy.check import PolicyFaults, resolved
from jail.policy.narrow import RULES
from jail.policy.paths import beneath
from jail.policy.shape import Path, shown
from jail.policy.value import DELIVERIES, Policy
from support.composed import HOME, LEAVES, LEVELS, PROJECT_FILE, WORKSPACE, made, refused

MINE = """
name = "mine"
parts = ["system"]
[files]
write = ["~/out", "~/spare", "~/data/scratch"]
hold = ["~/held", "~/out/draft", "lib"]
read = ["~/data", "docs", "~/out/kept", "/home/ada/src/engine/vendor", "~/held/kept"]
hide = [".env", "~/data/private"]
[toolchains]
use = ["python", "rust"]
[environment]
pass = ["LANG", "APP_*"]
[environment.set]
QUIET = "1"
[terminal]
allow = ["title"]
[hold]
deliver = ["commands", "git-config"]
[limits]
memory = "4 GiB"
processes = 500
open_files = 1000
tmp = "1 GiB"
held = "1 GiB"
output = "1 GiB"
timeout = "2h"
[accept]
losses = ["limits-memory", "landlock-rights"]
"""
"""A policy that gives something of everything, so that there is something to take away."""
BEFORE = made(own=MINE).policy


def narrowed(project: str, own: str = MINE) -> Policy:
    return made(own=own, project=project).policy


def changes(policy: Policy, before: Policy = BEFORE) -> dict[str, object]:
    """Field → value where a policy differs from the one before, its sources aside."""
    return {
        field: getattr(policy, field)
        for field in Policy._fields
        if field not in ("sources", "allowed") and getattr(policy, field) != getattr(before, field)
    }


# What each key asks for when it asks for more: the file, and what the message says of it.
WIDER: dict[Path, tuple[str, ...]] = {
    ("name",): ('name = "wide"',),
    ("base",): ('base = "interactive"', 'base = "offline"', 'base = "overnight"'),
    ("parts",): ('parts = ["screen"]', "parts = []"),
    ("files", "system"): ('system = ["/srv"]', 'system = ["/usr"]', "system = []"),
    ("files", "write"): (
        'write = ["~/data"]',
        'write = ["~/elsewhere"]',
        'write = ["docs"]',
        'write = ["/home/ada/src/engine/docs"]',
        'write = ["~/out/kept"]',
        'write = ["~/out/kept/x"]',
        'write = ["~/output"]',
        'write = ["/opt"]',
        'write = ["src"]',
        'write = [".env"]',
        'write = ["/home/ada/src"]',
        'write = ["~/held"]',
        'write = ["~/held/x"]',
        'write = ["~/out/draft"]',
        'write = ["~/out/draft/x"]',
        'write = ["lib"]',
        'write = ["/home/ada/src/engine"]',
    ),
    ("files", "hold"): (
        'hold = ["~/neither"]',
        'hold = ["~/data"]',
        'hold = ["~/data/x"]',
        'hold = ["docs"]',
        'hold = ["~/held/kept"]',
        'hold = ["~/out/kept/x"]',
        'hold = [".env"]',
        'hold = ["/opt"]',
        'hold = ["/etc/shadow"]',
        'hold = ["/home/ada/src"]',
        "hold = []",
    ),
    ("files", "read"): (
        'read = ["~/elsewhere"]',
        'read = ["~/dat"]',
        'read = ["~/data/private"]',
        'read = ["~/data/private/x"]',
        'read = [".env"]',
        'read = ["/etc/shadow"]',
        'read = ["/home/ada/src"]',
        "read = []",
    ),
    ("files", "hide"): ("hide = []",),
    ("toolchains", "use"): ('use = ["python", "java"]', 'use = ["cc"]'),
    ("toolchains", "gpu"): ("gpu = true",),
    ("environment", "pass"): ('pass = ["TERM"]', 'pass = ["LANG*"]', 'pass = ["QUIET"]', 'pass = ["APPS"]'),
    ("environment", "set"): ('set = { QUIET = "0" }', 'set = { LANG = "C" }', 'set = { X = "" }'),
    ("terminal", "allow"): ('allow = ["title", "clipboard"]', 'allow = ["clipboard"]'),
    ("limits", "memory"): ('memory = "4097 MiB"', f"memory = {(4 << 30) + 1}"),
    ("limits", "processes"): ("processes = 501",),
    ("limits", "open_files"): ("open_files = 1001",),
    ("limits", "tmp"): ('tmp = "2 GiB"',),
    ("limits", "held"): ('held = "2 GiB"',),
    ("limits", "output"): ('output = "2 GiB"',),
    ("limits", "timeout"): ('timeout = "0"', 'timeout = "3h"', 'timeout = "7201s"'),
    ("accept", "losses"): ('losses = ["landlock"]', 'losses = ["limits-memory", "cgroup-namespace"]'),
    ("without", "system"): ('system = ["/opt"]', "system = []"),
    ("without", "hold"): ('hold = ["~/out/draft"]', 'hold = ["lib"]', "hold = []"),
    ("without", "read"): ('read = ["docs"]', 'read = ["~/out/kept"]'),
    ("without", "hide"): ('hide = [".env"]',),
    ("without", "environment"): ('environment = ["QUIET"]', 'environment = ["APP_MODE"]'),
}
NEVER_MORE: set[Path] = {
    ("description",),
    ("hold", "deliver"),
    ("without", "write"),
    ("without", "toolchains"),
    ("without", "terminal"),
    ("without", "deliver"),
    ("without", "losses"),
}
"""Keys that cannot ask for more, whatever they say."""


def in_file(path: Path, line: str) -> str:
    return f"[{path[0]}]\n{line}\n" if len(path) > 1 else f"{line}\n"


def test_every_key_of_a_policy_has_its_rule_and_its_test() -> None:
    assert set(RULES) == LEAVES
    assert set(WIDER) | NEVER_MORE == LEAVES


@pytest.mark.parametrize(
    ("path", "line"), [(path, line) for path, lines in WIDER.items() for line in lines], ids=str
)
def test_a_project_that_asks_for_more_is_refused_at_that_key(path: Path, line: str) -> None:
    found = refused(own=MINE, project=in_file(path, line))
    assert len(found) == 1
    [(key, message)] = found.items()
    assert key.startswith(shown(path))
    assert "a project may not " in message
    assert "; now: " in message


def test_a_project_has_nothing_delivered_that_the_person_does_not() -> None:
    project = '[hold]\ndeliver = ["commands", "git-config"]\n'
    assert refused(level="ci", project=project) == {
        f"hold.deliver[{place}]": f"a project may not add `{name}`; now: nothing"
        for place, name in enumerate(DELIVERIES)
    }


def test_all_that_it_asks_for_is_told_at_once_in_the_order_of_the_file() -> None:
    lines = ['name = "wide"', 'base = "interactive"', 'parts = ["screen"]', ""]
    tables = "limits files accept environment terminal toolchains without"
    for table in tables.split():
        lines += [f"[{table}]", *(cases[0] for path, cases in WIDER.items() if path[:-1] == (table,))]
    with pytest.raises(PolicyFaults) as error:
        narrowed("\n".join(lines))
    keys = [fault.key for fault in error.value.faults]
    assert len(keys) == len(WIDER)
    tables = [key.partition(".")[0].partition("[")[0] for key in keys]
    expected = "name base parts limits files accept environment terminal toolchains without".split()
    assert list(dict.fromkeys(tables)) == expected
    assert error.value.where == PROJECT_FILE
    assert all("~/.config" not in fault.message for fault in error.value.faults)


def test_the_message_has_what_it_is_now_who_said_so_and_what_was_asked() -> None:
    project = '[limits]\ntmp = "9 GiB"\ntimeout = "0"\n[accept]\nlosses = ["landlock"]\n'
    assert refused(level="ci", project=project) == {
        "limits.tmp": "a project may not raise this to 9 GiB; now: 1 GiB, by level ci",
        "limits.timeout": "a project may not take the limit away; now: 1h, by level ci",
        "accept.losses[0]": "a project may not add `landlock`; now: limits-memory, landlock-rights",
    }


NARROWER: list[tuple[str, dict[str, object]]] = [
    ("", {}),
    ('description = "a game"', {}),
    ('[limits]\ntmp = "1 GiB"\nprocesses = 500\ntimeout = "120m"', {}),
    ('[limits]\ntmp = "1 MiB"\ntimeout = "1h"', {"tmp_bytes": 1 << 20, "timeout": 3600.0}),
    (
        '[limits]\nmemory = "1 GiB"\nprocesses = 16\nopen_files = 64\nheld = "1 MiB"\noutput = "1 MiB"',
        {
            "memory_bytes": 1 << 30,
            "processes": 16,
            "open_files": 64,
            "held_bytes": 1 << 20,
            "output_bytes": 1 << 20,
        },
    ),
    ("[files]\nwrite = []", {"write": ()}),
    ('[files]\nwrite = ["~/out/"]', {"write": ("~/out",)}),
    ('[files]\nwrite = ["~/out/a"]', {"write": ("~/out/a",)}),
    (
        '[files]\nread = ["~/spare"]',
        {"write": ("~/out", "~/data/scratch"), "read": (*BEFORE.read, "~/spare")},
    ),
    ('[files]\nwrite = ["~/data/scratch"]', {"write": ("~/data/scratch",)}),
    ('[files]\nread = ["~/data"]', {"write": ("~/out", "~/spare")}),
    ('[files]\nread = ["~/spare"]\nwrite = []', {"write": (), "read": (*BEFORE.read, "~/spare")}),
    ('[files]\nread = ["~/spare/x"]', {"read": (*BEFORE.read, "~/spare/x")}),
    ('[files]\nread = ["src", "docs", "docs/x", "~/data/x"]', {"read": (*BEFORE.read, "src")}),
    ('[files]\nread = ["/home/ada/src/engine/src"]', {"read": (*BEFORE.read, "/home/ada/src/engine/src")}),
    ('[files]\nhold = ["src"]', {"hold": (*BEFORE.hold, "src")}),
    ('[files]\nhold = ["./"]', {"hold": (*BEFORE.hold, ".")}),
    ('[files]\nhold = ["~/held", "~/held/x", "lib/x", "~/out/draft"]', {}),
    (
        '[files]\nhold = ["~/out"]',
        {"write": ("~/spare", "~/data/scratch"), "hold": (*BEFORE.hold, "~/out")},
    ),
    ('[files]\nhold = ["~/spare"]\nwrite = []', {"write": (), "hold": (*BEFORE.hold, "~/spare")}),
    ('[files]\nread = ["lib"]', {"hold": ("~/held", "~/out/draft"), "read": (*BEFORE.read, "lib")}),
    (
        '[files]\nread = ["~/out", "~/held/x"]',
        {
            "write": ("~/spare", "~/data/scratch"),
            "hold": ("~/held", "lib"),
            "read": (*BEFORE.read, "~/out", "~/held/x"),
        },
    ),
    (
        '[files]\nhide = ["~/held"]',
        {"hold": ("~/out/draft", "lib"), "read": BEFORE.read[:-1], "hide": (*BEFORE.hide, "~/held")},
    ),
    ('[hold]\ndeliver = ["commands"]', {"deliver": ("commands",)}),
    ("[hold]\ndeliver = []", {"deliver": ()}),
    ('[without]\ndeliver = ["git-config"]', {"deliver": ("commands",)}),
    ('[files]\nhide = ["secrets", ".env"]', {"hide": (*BEFORE.hide, "secrets")}),
    (
        '[files]\nhide = ["/opt", "~/out", "vendor"]',
        {
            "system": tuple(path for path in BEFORE.system if path != "/opt"),
            "write": ("~/spare", "~/data/scratch"),
            "hold": ("~/held", "lib"),
            "read": ("~/data", "docs", "~/held/kept"),
            "hide": (*BEFORE.hide, "/opt", "~/out", "vendor"),
        },
    ),
    ("[toolchains]\nuse = []\ngpu = false", {"toolchains": ()}),
    ('[toolchains]\nuse = ["rust"]', {"toolchains": ("rust",)}),
    ("[environment]\npass = []", {"pass_names": ()}),
    ('[environment]\npass = ["APP_MODE", "APP_X*"]', {"pass_names": ("APP_MODE", "APP_X*")}),
    ('[environment.set]\nQUIET = "1"', {}),
    ("[terminal]\nallow = []", {"terminal": ()}),
    ("[accept]\nlosses = []", {"accept": ()}),
    ('[accept]\nlosses = ["limits-memory"]', {"accept": ("limits-memory",)}),
    (
        '[without]\nwrite = ["~/spare", "~/none"]\ntoolchains = ["rust", "go"]\nenvironment = ["APP_*", "NONE"]',
        {"write": ("~/out", "~/data/scratch"), "toolchains": ("python",), "pass_names": ("LANG",)},
    ),
    (
        '[without]\nterminal = ["title", "clipboard"]\nlosses = ["landlock", "landlock-rights"]',
        {"terminal": (), "accept": ("limits-memory",)},
    ),
]


@pytest.mark.parametrize(("project", "expected"), NARROWER, ids=[case[0] or "empty" for case in NARROWER])
def test_a_project_takes_away_what_it_names(project: str, expected: dict[str, object]) -> None:
    assert changes(narrowed(project)) == expected


def test_taking_away_a_read_only_folder_would_open_what_lies_in_a_writable_one() -> None:
    """`~/out/kept` is read-only inside `~/out`, and `docs` inside the workspace: no list may lose them."""
    for project in ("[files]\nwrite = []", '[files]\nread = ["src"]', '[without]\nwrite = ["~/spare"]'):
        assert set(BEFORE.read) <= set(narrowed(project).read)


HELD = (
    'name = "held"\nparts = ["system"]\n[files]\nhold = ["."]\nwrite = ["build", "~/out"]\nread = ["docs"]\n'
)
"""A policy whose workspace is held, but for one folder."""


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ('[files]\nhold = ["build"]', {"write": ("~/out",), "hold": (".", "build")}),
        ('[files]\nhold = ["."]', {"write": ("~/out",)}),
        ("[files]\nwrite = []", {"write": ()}),
        ('[files]\nread = ["src"]', {"read": ("docs", "src")}),
        ('[without]\nwrite = ["build"]', {"write": ("~/out",)}),
    ],
)
def test_a_workspace_that_is_held_stays_so(project: str, expected: dict[str, object]) -> None:
    assert changes(narrowed(project, HELD), made(own=HELD).policy) == expected


@pytest.mark.parametrize(
    ("project", "said"),
    [
        ('[files]\nwrite = ["src"]', "the workspace is held, but for what is named"),
        ('[files]\nhold = ["docs"]', "it is read-only"),
        ('[without]\nhold = ["."]', "a project may not take this away"),
    ],
)
def test_a_project_does_not_turn_what_is_held_into_what_is_written(project: str, said: str) -> None:
    [message] = refused(own=HELD, project=project).values()
    assert said in message


def test_every_limit_of_a_level_without_an_end_can_be_given_one() -> None:
    found = made("interactive", project='[limits]\ntimeout = "30d"\n').policy
    assert found.timeout == 30 * 86400.0
    assert refused(level="interactive", project='[limits]\ntimeout = "0s"\n')
    assert (
        changes(made("interactive", project='[limits]\ntimeout = "0"\n').policy, made("interactive").policy)
        == {}
    )


def test_the_origin_of_what_it_changed_is_the_project() -> None:
    composed = made(own=MINE, project='[limits]\ntmp = "1 MiB"\n[files]\nhide = ["x"]\n')
    [size] = composed.draft["tmp_bytes"]
    assert (size.origin.who, size.origin.file, size.origin.key) == ("project", PROJECT_FILE, "limits.tmp")
    assert composed.draft["hide"][-1].origin.key == "files.hide[0]"
    assert composed.draft["hide"][0].origin.who == "your policy"
    assert composed.policy.sources[-1][0] == PROJECT_FILE


def test_twice_as_many_entries_cost_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = narrow.resolved
    monkeypatch.setattr(narrow, "resolved", lambda *given: asked.append(given[0]) or real(*given))

    def cost(verb: str, count: int) -> int:
        asked.clear()
        made(own=MINE, project=f"[files]\n{verb} = {[f'x{number}' for number in range(count)]}")
        return len(asked)

    for verb in ("hide", "read", "hold"):
        assert cost(verb, 400) <= 2 * cost(verb, 200), verb


# ---- CVE-2025-59536 and its kind: files of a project that are wrong, or written by who wishes harm ----

HOSTILE = {
    "a misspelt key": "[files]\nhiden = ['x']",
    "a key of another table": "hide = ['x']",
    "another alphabet": "[f\u0456les]\nhide = ['x']",
    "fullwidth letters": '"\uff46iles" = 1',
    "a hidden character": '"files\u200b" = 1',
    "null": "files = null",
    "a table for a list": "[files.hide]\nx = 1",
    "a list for a table": "files = []",
    "a text for a list": "[files]\nhide = 'x'",
    "a number in a list": "[files]\nhide = [1]",
    "an empty path": "[files]\nhide = ['']",
    "a way up": "[files]\nhide = ['../x']",
    "the whole host": "[files]\nwrite = ['/']",
    "the home folder": "[files]\nread = ['~']",
    "a dotted key that opens a table again": "[files]\nhide = ['x']\n[files.hide]\ny = 1",
    "a key twice": "[limits]\ntmp = '1 MiB'\ntmp = '9 GiB'",
    "a key twice, once dotted": "limits.tmp = '1 MiB'\n[limits]\ntmp = '9 GiB'",
    "both at once": "[files]\nhide = ['x']\nread = ['x']",
    "no number": "[limits]\nprocesses = nan",
    "a boolean for a number": "[limits]\nprocesses = true",
    "below the least": "[limits]\nprocesses = 0",
    "no limit, spelt otherwise": "[limits]\ntimeout = '0s'",
    "minus": "[limits]\ntimeout = '-1h'",
    "every variable": "[environment]\npass = ['*']",
    "a program of the host": "[environment]\nset = { PATH = '/tmp' }",
    "a hook": "[hooks]\nstart = 'curl x | sh'",
    "a gate": "gate = 'true'",
    "a network": "[network]\nallow = ['*']",
    "half a file": "[files",
    "bytes": "\udcff\udcfe",
    "a byte order mark": "\ufeff[files]",
    "a loss of another spelling": "[accept]\nlosses = ['Landlock']",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_agent_7_a_faulty_project_file_refuses_the_run(what: str) -> None:
    assert refused(own=MINE, project=HOSTILE[what])


@pytest.mark.parametrize(
    "text",
    [
        "limits.tmp = '1 MiB'",
        "limits = { tmp = '1 MiB' }",
        '"limits"."tmp" = 1048576',
        "[limits]\n'tmp' = 0x100000",
    ],
)
def test_every_way_to_write_a_key_in_toml_is_the_same_key(text: str) -> None:
    assert changes(narrowed(text)) == {"tmp_bytes": 1 << 20}
    assert list(
        refused(
            own=MINE,
            project=text.replace("1 MiB", "9 GiB")
            .replace("1048576", str(9 << 30))
            .replace("0x100000", hex(9 << 30)),
        )
    ) == ["limits.tmp"]


@pytest.mark.parametrize("level", LEVELS)
def test_no_project_changes_a_level_by_an_empty_file(level: str) -> None:
    assert made(level, project="").policy[:-2] == made(level).policy[:-2]


# ---- whatever a project says, it is refused or gives no more ----

NAMES = st.sampled_from(["LANG", "TERM", "APP_*", "APP_MODE", "QUIET", "*"])
PATHS = st.sampled_from(
    [
        *(
            "~/out",
            "~/out/kept",
            "~/out/kept/x",
            "~/out/a",
            "~/data",
            "~/data/private",
            "~/spare",
            "docs",
            "docs/x",
        ),
        *(
            "src",
            ".env",
            "/opt",
            "/opt/x",
            "/usr/lib",
            "/srv",
            "vendor",
            f"{WORKSPACE}/vendor",
            f"{WORKSPACE}/docs",
        ),
        *("~/held", "~/held/kept", "~/held/x", "~/out/draft", "~/out/draft/x", "lib", "lib/x"),
        *("/home/ada/src", "~/src", "/etc/ssl/certs", "~/data/scratch", "~/data/scratch/x"),
    ]
)


def some(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(values, max_size=3, unique=True)


SIZES = st.sampled_from(["1 MiB", "64 MiB", "1 GiB", "2 GiB", "4 GiB", "9 GiB"])
TABLES: st.SearchStrategy[dict[str, dict[str, Any]]] = st.fixed_dictionaries(
    {},
    optional={
        "files": st.fixed_dictionaries(
            {}, optional={verb: some(PATHS) for verb in ("write", "hold", "read", "hide")}
        ),
        "toolchains": st.fixed_dictionaries(
            {}, optional={"use": some(st.sampled_from(["python", "rust", "go"])), "gpu": st.booleans()}
        ),
        "environment": st.fixed_dictionaries({}, optional={"pass": some(NAMES)}),
        "terminal": st.fixed_dictionaries(
            {}, optional={"allow": some(st.sampled_from(["title", "clipboard"]))}
        ),
        "limits": st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(("memory", "tmp", "held", "output"), SIZES),
                "processes": st.integers(16, 1000),
                "open_files": st.integers(64, 2000),
                "timeout": st.sampled_from(["0", "1h", "2h", "3h"]),
            },
        ),
        "hold": st.fixed_dictionaries({}, optional={"deliver": some(st.sampled_from(list(DELIVERIES)))}),
        "accept": st.fixed_dictionaries(
            {}, optional={"losses": some(st.sampled_from(["limits-memory", "landlock-rights", "landlock"]))}
        ),
        "without": st.fixed_dictionaries(
            {},
            optional={
                "write": some(PATHS),
                "toolchains": some(st.sampled_from(["python", "rust"])),
                "environment": some(NAMES),
            },
        ),
    },
)
RANK = {"hide": 0, "system": 1, "read": 1, "hold": 2, "write": 3}


def rank(policy: Policy, path: str) -> int:
    """What may be done at a path: written here apart from narrow, from what the README says of the verbs."""

    def absolute(text: str) -> str:
        found = resolved(text, HOME)
        return found if found.startswith("/") else f"{WORKSPACE}/{found[2:]}".rstrip("/")

    given = [(absolute(text), RANK[verb]) for verb in RANK for text in getattr(policy, verb)]
    given += [(WORKSPACE, RANK["write"])]
    above = [(len(place), -value) for place, value in given if beneath(path, place)]
    return -max(above, default=(0, 0))[1]


def passes(policy: Policy, name: str) -> bool:
    return any(name.startswith(p[:-1]) if p.endswith("*") else name == p for p in policy.pass_names)


EVERYWHERE = [
    *(
        f"{HOME}/{path}"
        for path in ("out", "out/kept", "out/kept/x", "out/a", "out/a/b", "spare", "spare/x", "data")
    ),
    *(
        f"{WORKSPACE}/{path}"
        for path in ("docs", "docs/x", "src", "src/x", ".env", "vendor", "vendor/x", "new")
    ),
    *(f"{HOME}/data/private", f"{HOME}/data/private/x", f"{HOME}/src", f"{HOME}/.ssh", f"{HOME}/src/other"),
    *(
        f"{HOME}/{path}"
        for path in ("held", "held/x", "held/kept", "held/kept/x", "out/draft", "out/draft/x")
    ),
    *(f"{WORKSPACE}{path}" for path in ("", "/lib", "/lib/x")),
    *(f"{HOME}/data/scratch", f"{HOME}/data/scratch/x", f"{HOME}/data/x"),
    *("/opt", "/opt/x", "/usr/lib", "/usr/lib/x", "/srv", "/etc/ssl/certs", "/etc/shadow"),
]


@settings(max_examples=60)
@given(TABLES)
def test_whatever_a_project_says_it_gives_no_more_or_is_refused(tables: dict[str, dict[str, Any]]) -> None:
    lines = []
    for table, keys in tables.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    try:
        found = narrowed("\n".join(lines))
    except PolicyFaults:
        return
    assert [path for path in EVERYWHERE if rank(found, path) > rank(BEFORE, path)] == []
    for name in ("LANG", "TERM", "APP_MODE", "APP_X", "HOME", "TOKEN"):
        assert passes(found, name) <= passes(BEFORE, name)
    for field in ("toolchains", "terminal", "deliver", "accept", "set_values"):
        assert set(getattr(found, field)) <= set(getattr(BEFORE, field))
    for field in ("memory_bytes", "processes", "open_files", "tmp_bytes", "held_bytes", "output_bytes"):
        assert getattr(found, field) <= getattr(BEFORE, field)
    assert 0 < found.timeout <= BEFORE.timeout
    assert not found.gpu
    assert set(BEFORE.hide) <= set(found.hide)
