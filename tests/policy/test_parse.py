"""TOML → Policy: what is absent is denied, what is misspelt means less, and every fault is told at once."""

import difflib
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.errors import EXIT_USAGE, JailError, printable, report
from jail.kernel.digest import sha256_hex
from jail.policy import limits
from jail.policy.check import VERBS, PolicyFaults, resolved
from jail.policy.compose import compose
from jail.policy.parse import LEVEL, OWN, PART, PROJECT, USER, Shipped, parse
from jail.policy.paths import beneath
from jail.policy.sources import Given, Text
from jail.policy.value import DELIVERIES, LOSSES, TERMINAL, TOOLCHAINS, Policy
from support.installed import CHECKOUT

HOME = "/home/ada"
DOTS = "b." * 20
GOLDEN = CHECKOUT / "tests" / "golden"
OVERNIGHT = (CHECKOUT / "policies" / "overnight.toml").read_text(encoding="utf-8")


KNOWN = Shipped(("ci", "overnight"), ("environment", "system"))


def policy(text: str | bytes, home: str = HOME) -> Policy:
    content = text.encode() if isinstance(text, str) else text
    return compose(Given("", Text("file.toml", content), None, None, home, "")).policy


def faults(text: str | bytes) -> list[tuple[str, str]]:
    """(key, message) of each fault."""
    with pytest.raises(PolicyFaults) as refused:
        policy(text)
    assert refused.value.code == EXIT_USAGE
    for fault in refused.value.faults:
        assert fault.file == "file.toml"
        assert fault.message
        assert fault.hint
    return [(fault.key, fault.message) for fault in refused.value.faults]


def test_a_name_alone_gives_nothing_and_the_strict_limits() -> None:
    content = b'name = "x"'
    assert policy(content) == Policy(
        name="x",
        description="",
        system=(),
        write=(),
        hold=(),
        read=(),
        hide=(),
        toolchains=(),
        gpu=False,
        pass_names=(),
        set_values=(),
        terminal=(),
        deliver=(),
        memory_bytes=2 << 30,
        processes=1024,
        open_files=4096,
        tmp_bytes=512 << 20,
        held_bytes=512 << 20,
        output_bytes=256 << 20,
        timeout=3600.0,
        accept=(),
        sources=(("file.toml", sha256_hex(content)),),
    )


@pytest.mark.parametrize(
    "table", "files toolchains environment environment.set terminal hold limits accept".split()
)
def test_an_empty_table_is_an_absent_one(table: str) -> None:
    assert policy(f'name = "x"\n[{table}]')._replace(sources=()) == policy('name = "x"')._replace(sources=())


def test_every_key_is_read() -> None:
    text = """
    name = "a-b_1"
    description = "Two\\nlines."
    [files]
    system = ["/usr/"]
    write = ["~/w", "./w//x/"]
    hold = ["./", "lib/"]
    read = ["/r"]
    hide = ["h", "./~"]
    [toolchains]
    use = ["rust", "cc"]
    gpu = true
    [environment]
    pass = ["TERM", "LC_*"]
    [environment.set]
    Z = "1"
    A = ""
    [terminal]
    allow = ["clipboard"]
    [hold]
    deliver = ["commands", "git-config"]
    [limits]
    memory = "64 MiB"
    processes = 20
    open_files = 0x100
    tmp = 1_048_576
    held = "1.5 GiB"
    output = "64 KiB"
    timeout = "0"
    [accept]
    losses = ["landlock", "cgroup-namespace"]
    """
    assert policy(text)[:-2] == (
        *("a-b_1", "Two\nlines.", ("/usr",), ("~/w", "w/x"), (".", "lib"), ("/r",), ("h", "./~")),
        *(("rust", "cc"), True, ("TERM", "LC_*"), (("A", ""), ("Z", "1")), ("clipboard",)),
        ("commands", "git-config"),
        *(64 << 20, 20, 256, 1 << 20, 3 << 29, 64 << 10, 0.0, ("landlock", "cgroup-namespace")),
    )


def test_windows_line_ends_read_the_same() -> None:
    lines = 'name = "x"\n[files]\nread = [\n "/a",\n "/b" ]\n'
    assert policy(lines.replace("\n", "\r\n"))._replace(sources=()) == policy(lines)._replace(sources=())


NOTHING = ["", "\n\n", "# a comment", "[files]", "[files]\nwrite = []"]


@pytest.mark.parametrize("text", NOTHING)
def test_a_file_without_a_name_is_no_policy(text: str) -> None:
    """A file that was cut short must not pass for one that means what is left."""
    assert faults(text) == [("name", "missing")]


ONE_FAULT = [
    ('name = ""', "name", "empty"),
    ('name = "Ä"', "name", "not a name"),
    ('name = "../x"', "name", "not a name"),
    ("name = '" + "x" * 65 + "'", "name", "not a name"),
    ('description = ""', "description", "empty"),
    ("description = '" + "x" * 1001 + "'", "description", "more than 1000"),
    ("[files]\nwirte = []", "files.wirte", "did you mean `write`?"),
    ("[flies]\nwrite = ['/x']", "flies", "did you mean `files`?"),
    ("[files.write]\nx = 1", "files.write", "an array of strings"),
    ("[[files]]\nwrite = []", "files", "a table"),
    ("files = 'x'", "files", "a table"),
    ("[files]\nwrite = '/x'", "files.write", "an array of strings"),
    ("[files]\nwrite = [['/x']]", "files.write[0]", "a string"),
    ("[files]\nwrite = ['/x', 7, '/y']", "files.write[1]", "a string"),
    ("[files]\nread = ['/x', '']", "files.read[1]", "empty"),
    ("[files]\nwrite = ['~']", "files.write[0]", "home folder"),
    ("[files]\nwrite = ['/home']", "files.write[0]", "home folder"),
    ("[files]\nread = ['/']", "files.read[0]", "whole host"),
    ("[files]\nhide = ['/']", "files.hide[0]", "whole host"),
    ("[files]\nsystem = ['usr']", "files.system[0]", "not absolute"),
    ('[files]\nhide = ["a\\u0000"]', "files.hide[0]", "cannot be seen"),
    ("[files]\nwrite = ['/a']\nread = ['/a/']", "files.read[0]", "files.write[0]"),
    ("[files]\nread = ['/a']\nwrite = ['/a/']", "files.read[0]", "files.write[0]"),
    ("[files]\nwrite = ['/a/b']\nhide = ['/a']", "files.hide[0]", "files.write[0]"),
    ("[files]\nhide = ['a', './a']", "files.hide[1]", "files.hide[0]"),
    ("[files]\nsystem = ['/usr']\nwrite = ['/usr']", "files.write[0]", "contradicts"),
    ("[files]\nread = [" + "'/a'," * 1001 + "]", "files.read", "more than 1000"),
    ("[environment]\npass = [" + "'A'," * 1001 + "]", "environment.pass", "more than 1000"),
    ("[environment]\npass = ['*']", "environment.pass[0]", "every secret"),
    ("[environment]\npass = ['A', 'A']", "environment.pass[1]", "environment.pass[0]"),
    ("[environment]\npass = ['LD_PRELOAD']", "environment.pass[0]", "may not come from the caller"),
    ("[environment]\npass = ['A']\nset = { A = '1' }", "environment.set.A", "environment.pass[0]"),
    ("[environment.set]\nA = 1", "environment.set.A", "a string"),
    ("[environment.set]\n'' = 'x'", 'environment.set.""', "not an environment name"),
    ("[environment.set]\nPATH = '/x'", "environment.set.PATH", "jail itself"),
    ("[environment]\nunset = ['A']", "environment.unset", "unknown"),
    ("[limits]\nprocesses = -1", "limits.processes", "too small"),
    ("[limits]\nprocesses = true", "limits.processes", "true or false"),
    ("[limits]\nprocesses = 4096.0", "limits.processes", "a number"),
    ("[limits]\nprocesses = '4096'", "limits.processes", "a string"),
    ("[limits]\nopen_files = 0x" + "f" * 9000, "limits.open_files", "too large"),
    ("[limits]\ntmp = 0x" + "f" * 9000, "limits.tmp", "too large"),
    ("[limits]\ntmp = true", "limits.tmp", "true or false"),
    ("[limits]\ntmp = 1.5", "limits.tmp", "a number"),
    ("[limits]\ntmp = '2 GB'", "limits.tmp", "not a size"),
    ("[limits]\ntimeout = 0", "limits.timeout", "a whole number"),
    ("[limits]\ntimeout = '0s'", "limits.timeout", "too small"),
    ("[limits]\ntimeout = inf", "limits.timeout", "a number"),
    ("[limits]\ntimeout = 12:00:00", "limits.timeout", "a date or time"),
    ("[limits]\nmemory = '32 MiB'", "limits.memory", "too small"),
    ("[limits]\nheld = '2 TB'", "limits.held", "not a size"),
    ("[limits]\noutput = false", "limits.output", "true or false"),
    ("[toolchains]\nuse = ['pyton']", "toolchains.use[0]", "did you mean `python`?"),
    ("[toolchains]\nuse = ['cc', 'cc']", "toolchains.use[1]", "already"),
    ("[toolchains]\ngpu = 1", "toolchains.gpu", "a whole number"),
    ("[terminal]\nallow = ['bell']", "terminal.allow[0]", "unknown name"),
    ("[hold]\ndeliver = ['comands']", "hold.deliver[0]", "did you mean `commands`?"),
    ("[hold]\ndeliver = ['commands', 'commands']", "hold.deliver[1]", "there already"),
    ("[files]\nhold = ['.', './']", "files.hold[1]", "stands in files.hold[0] too"),
    ("[files]\nhold = ['a']\nwrite = ['a']", "files.hold[0]", "contradicts"),
    ("[files]\nhold = ['a/b']\nhide = ['a']", "files.hide[0]", "which stands in files.hold[0]"),
    ("[accept]\nlosses = ['landlok']", "accept.losses[0]", "did you mean `landlock`?"),
    ("[accept]\nlosses = ['*']", "accept.losses[0]", "unknown loss"),
    ("[accept]\nlosses = ['landlock', 'landlock']", "accept.losses[1]", "already"),
    ("[accept]\nlosses = 'landlock'", "accept.losses", "an array of strings"),
]


@pytest.mark.parametrize(("text", "key", "part"), ONE_FAULT, ids=[text[:40] for text, _, _ in ONE_FAULT])
def test_one_fault_is_told_once_at_its_key(text: str, key: str, part: str) -> None:
    [(found, message)] = faults(text if text.startswith("name") else f'name = "x"\n{text}')
    assert found == key
    assert part in message


@pytest.mark.parametrize(
    ("text", "where", "part"),
    [
        ('name = "x"\n[files\n', "line 2, column 7", "not TOML"),
        ('name = "x"\nwrite', "line 2, the end of the file", "not TOML"),
        ('name = "x"\n\nname = "y"\n', "line 3, column 11", "overwrite"),
        ('name = "x\n', "line 1, column 10", "not TOML"),
        ("null = null", "line 1, column 8", "Invalid value"),
        ('\ufeffname = "x"', "line 1, column 1", "not TOML"),
        (b'name = "x"\n# \xff\n', "line 2, byte 3", "not UTF-8"),
        (b"\xff\xfen\0", "line 1, byte 1", "not UTF-8"),
        ("x = " + "9" * 5000, "the file", "not TOML"),
        ("x = " + "[" * 100_000, "the file", "nested too deeply"),
        ("\0", "line 1, column 1", "not TOML"),
        # Keys that tomllib would take minutes for, wherever TOML lets one stand and whatever is before it.
        ("a." * 100_000 + "a = 1", "line 1", "dots"),
        (f'name = "x"\n[{DOTS}a]', "line 2", "dots"),
        (f"[[ {DOTS}a ]]", "line 1", "dots"),
        (f"x = {{ {DOTS}a = 1 }}", "line 1", "dots"),
        (f"x = [1, {{ y = 2, {DOTS}a = 1 }}]", "line 1", "dots"),
        ('"a" . ' * 99 + "'a' = 1", "line 1", "dots"),
        (f'x = """\\""""\n"""""" # "\n{DOTS}a = 1', "line 3", "dots"),
        (f'x = """y"""""\n{DOTS}a = 1', "line 2", "dots"),
        (f"x = '''y\\'''''\n{DOTS}a = 1", "line 2", "dots"),
        (f"x = '\\'\n{DOTS}a = 1", "line 2", "dots"),
        (f'x = "\\\\"\n{DOTS}a = 1', "line 2", "dots"),
        (f"# \"\"\" '''\n{DOTS}a = 1", "line 2", "dots"),
        (f'x = "#"\n{DOTS}a = 1', "line 2", "dots"),
    ],
)
def test_what_is_not_toml_is_told_with_its_place(text: str | bytes, where: str, part: str) -> None:
    [(key, message)] = faults(text)
    assert key == where
    assert part in message


@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''"])
def test_dots_that_part_no_keys_are_nobodys_matter(quote: str) -> None:
    dots = f"..{DOTS}"
    tables = parse(
        f"# {dots}\nname = 'x'\ndescription = {quote}{dots}{quote} # {dots}".encode(), "f", HOME, OWN
    )
    assert tables.tables["description"] == dots


@pytest.mark.parametrize("text", ['"""\\', "'''a", '"""', '"\\', '""', "'", '"""\\"'])
def test_strings_that_do_not_end_are_read_once(text: str) -> None:
    with pytest.raises(PolicyFaults):
        parse((f"x = {text}" * 20_000).encode(), "f", HOME, OWN)


def test_one_wrong_key_hides_no_other_fault() -> None:
    text = """
    nme = "x"
    [files]
    write = ["/", 7, "~"]
    [environment]
    pass = ["*"]
    [limits]
    tmp = "much"
    [accept]
    losses = ["x"]
    """
    assert [key for key, _ in faults(text)] == [
        *("name", "nme", "files.write[0]", "files.write[1]", "files.write[2]"),
        *("environment.pass[0]", "limits.tmp", "accept.losses[0]"),
    ]


def test_faults_come_in_the_order_of_the_file() -> None:
    text = """
    name = "x"
    [accept]
    losses = 1
    [files]
    read = [""]
    write = [""]
    [environment.set]
    B = 1
    A = 1
    """
    assert [key for key, _ in faults(text)] == [
        *("accept.losses", "files.read[0]", "files.write[0]", "environment.set.B", "environment.set.A"),
    ]


KINDS = [
    (OWN, 'name = "x"\nbase = "overnite"', "base", "did you mean `overnight`?"),
    (OWN, 'name = "x"\nbase = ""', "base", "unknown level"),
    (OWN, 'name = "x"\nbase = "\u043evernight"', "base", "unknown level"),
    (OWN, 'name = "x"\nbase = "../mine.toml"', "base", "a file cannot be a base"),
    (OWN, 'name = "x"\nbase = ["ci"]', "base", "an array"),
    (OWN, 'name = "x"\nparts = ["sytem"]', "parts[0]", "did you mean `system`?"),
    (OWN, 'name = "x"\nparts = ["parts/system"]', "parts[0]", "unknown part"),
    (OWN, 'name = "x"\nparts = ["/etc/shadow"]', "parts[0]", "unknown part"),
    (OWN, 'name = "x"\nparts = ["system", "system"]', "parts[1]", "already"),
    (OWN, 'name = "x"\nparts = "system"', "parts", "an array of strings"),
    (OWN, 'name = "x"\n[without]\nlosses = ["landlock"]', "without", "no `base`"),
    (OWN, 'name = "x"\nbase = "ci"\n[accept]\nlosses = []', "accept.losses", "empty list"),
    (OWN, 'base = "ci"', "name", "missing"),
    (USER, "[environment]\npass = []", "environment.pass", "takes nothing away"),
    (USER, "[without]\nlosses = ['landlok']", "without.losses[0]", "did you mean `landlock`?"),
    (USER, "[without]\nwrite = ['/']", "without.write[0]", "whole host"),
    (USER, "[without]\nenviroment = ['CI']", "without.enviroment", "did you mean `environment`?"),
    (USER, "without = ['CI']", "without", "a table"),
    (PROJECT, "[files]\nhide = ['a', 'a/']", "files.hide[1]", "files.hide[0]"),
    (PROJECT, "[limits]\ntimeout = 0", "limits.timeout", "a whole number"),
    (LEVEL, 'name = "x"\nbase = "ci"', "base", "starts from nothing"),
    (LEVEL, 'name = "x"\n[without]', "without", "nothing to take away"),
    (LEVEL, 'description = "x"', "name", "missing"),
    (PART, 'name = "x"', "name", "name of its file"),
    (PART, 'base = "ci"', "base", "starts from nothing"),
    (PART, 'parts = ["system"]', "parts", "parts use no parts"),
    (PART, "[without]", "without", "nothing to take away"),
]


@pytest.mark.parametrize(
    ("kind", "text", "key", "part"), KINDS, ids=[f"{case[0]}-{case[2]}" for case in KINDS]
)
def test_each_kind_of_file_takes_its_own_keys(kind: str, text: str, key: str, part: str) -> None:
    with pytest.raises(PolicyFaults) as refused:
        parse(text.encode(), "file.toml", HOME, kind, KNOWN)
    [found] = refused.value.faults
    assert found.key == key
    assert part in f"{found.message} {found.hint}"


@pytest.mark.parametrize("kind", [USER, PROJECT, PART])
def test_what_only_changes_something_needs_no_name(kind: str) -> None:
    assert parse(b"", "file.toml", HOME, kind, KNOWN).tables == {}


def test_many_thousand_faults_are_told_in_a_moment() -> None:
    text = 'name = "x"\n' + "\n".join(f"k{number} = 1" for number in range(20_000))
    assert len(faults(text)) == 20_000


def test_a_thoroughly_wrong_policy_reads_as_its_golden_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Exactly what a person sees; JAIL_GOLDEN=write makes the file anew, for a person to read."""
    with pytest.raises(PolicyFaults) as refused:
        parse((GOLDEN / "policy-faults.toml").read_bytes(), "wrong.toml", HOME, OWN, KNOWN)
    report(refused.value)
    seen, golden = capsys.readouterr().err, GOLDEN / "policy-faults.txt"
    if os.environ.get("JAIL_GOLDEN") == "write":
        golden.write_text(seen, encoding="utf-8")
    expected = golden.read_text(encoding="utf-8")
    assert seen == expected, "\n".join(
        difflib.unified_diff(expected.splitlines(), seen.splitlines(), lineterm="")
    )


@pytest.mark.parametrize("home", ["", "home"])
def test_without_a_home_nothing_is_parsed(home: str) -> None:
    with pytest.raises(JailError, match="home folder"):
        policy('name = "x"', home)


GIVING = ("system", "write", "read", "toolchains", "pass_names", "set_values", "terminal", "deliver")
LIMITS = ("memory_bytes", "processes", "open_files", "tmp_bytes", "held_bytes", "output_bytes")


def gives_no_more(less: Policy, more: Policy) -> bool:
    """Whether `less` allows nothing that `more` does not."""
    within = all(set(getattr(less, field)) <= set(getattr(more, field)) for field in (*GIVING, "accept"))
    bounded = 0 < less.timeout <= more.timeout and all(
        getattr(less, field) <= getattr(more, field) for field in LIMITS
    )
    kept = less.hold == more.hold and set(less.hide) >= set(more.hide)
    return within and bounded and less.gpu <= more.gpu and kept


SHIPPED = {
    "overnight": OVERNIGHT,
    **{
        path.stem: 'name = "x"\n' + path.read_text(encoding="utf-8")
        for path in sorted((CHECKOUT / "policies" / "parts").glob("*.toml"))
    },
}
"""The default level, and each part as if it were a policy."""


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_without_any_one_line_gives_less_or_is_refused(name: str) -> None:
    lines = SHIPPED[name].splitlines(keepends=True)
    whole, read = policy(SHIPPED[name]), 0
    for number, line in enumerate(lines):
        try:
            rest = policy("".join(lines[:number] + lines[number + 1 :]))
        except PolicyFaults:
            continue
        read += 1
        assert gives_no_more(rest, whole), f"line {number + 1}: {line}"
    assert read > len(lines) / 4


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_cut_short_anywhere_gives_less_or_is_refused(name: str) -> None:
    lines = SHIPPED[name].splitlines(keepends=True)
    whole = policy(SHIPPED[name])
    for number in range(len(lines)):
        try:
            rest = policy("".join(lines[:number]))
        except PolicyFaults:
            continue
        assert gives_no_more(rest, whole), f"first {number} lines"


KEYS = [
    line.partition("=")[0].strip() for line in OVERNIGHT.splitlines() if "=" in line and line[:1].isalpha()
]


@pytest.mark.parametrize("key", KEYS)
def test_the_shipped_policy_with_any_key_misspelt_is_refused(key: str) -> None:
    found = faults(OVERNIGHT.replace(f"\n{key} =", f"\n{key}x ="))
    assert any(place.endswith(f"{key}x") for place, _ in found)


def in_toml(value: Any) -> str:
    """`value` as TOML 1.0.0 has it, tables inline."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value) + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{in_toml(key)} = {in_toml(inner)}" for key, inner in value.items()) + "}"
    return repr(value)


PARTS = st.sampled_from(
    ["/", "~", ".", "..", "", "home", "ada", "usr", "etc", "a", "b", "*", "$X", " ", "\0", "é", "\u202e"]
)
PATHS = st.lists(PARTS, max_size=4).map("/".join) | st.text(max_size=10)
NAMES = st.sampled_from(["A", "LC_*", "*", "LD_PRELOAD", "PATH", "GIT_*", "TERM"]) | st.text(max_size=6)
AMOUNTS = st.sampled_from(["0", "0s", "90s", "12h", "2 GiB", "1 KiB", "x"]) | st.integers(-5, 1 << 45)
ANY = st.recursive(
    st.text(max_size=5) | st.integers() | st.booleans() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def table(known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Mostly a table of the known keys, each mostly with a value of its kind; now and then anything."""
    whole = st.fixed_dictionaries({}, optional=known)
    odd = st.fixed_dictionaries({}, optional=dict.fromkeys(known, ANY) | {"wirte": ANY, "": ANY})
    return st.one_of(whole, whole, whole, odd, ANY)


DOCUMENTS = st.fixed_dictionaries(
    {"name": st.just("x")},
    optional={
        "files": table({verb: st.lists(PATHS, max_size=4) for verb in VERBS}),
        "environment": table(
            {
                "pass": st.lists(NAMES, max_size=4),
                "set": st.dictionaries(NAMES, st.text(max_size=4), max_size=3),
            }
        ),
        "limits": table(dict.fromkeys(limits.BOUNDS, AMOUNTS)),
        "toolchains": table(
            {"use": st.lists(st.sampled_from([*TOOLCHAINS, "x"]), max_size=3), "gpu": st.booleans()}
        ),
        "terminal": table({"allow": st.lists(st.sampled_from([*TERMINAL, "x"]), max_size=2)}),
        "hold": table({"deliver": st.lists(st.sampled_from([*DELIVERIES, "x"]), max_size=2)}),
        "accept": table({"losses": st.lists(st.sampled_from([*LOSSES, "x"]), max_size=3)}),
    },
)


def judged(content: bytes) -> Policy | None:
    """The policy, or None where faults were told; anything else fails the test."""
    try:
        return policy(content)
    except PolicyFaults as refused:
        shown = refused.lines()
    assert len(shown) > 1
    assert shown == [printable(line) for line in shown]
    return None


@given(DOCUMENTS)
def test_any_document_is_a_policy_within_its_bounds_or_faults(document: dict[str, Any]) -> None:
    found = judged(
        "\n".join(f"{in_toml(key)} = {in_toml(value)}" for key, value in document.items()).encode()
    )
    if found is None:
        return
    for path in (*found.write, *found.hold, *found.read):
        assert not beneath(HOME, resolved(path, HOME))
        assert ".." not in path.split("/")
        assert not {"\0", "\n", "*"} & set(path)
    hidden = {resolved(path, HOME) for path in found.hide}
    given_paths = {resolved(path, HOME) for path in (*found.system, *found.write, *found.hold, *found.read)}
    assert not any(beneath(path, folder) for path in given_paths for folder in hidden)
    assert all(path.startswith("/") and path != "/" for path in found.system)
    assert "*" not in found.pass_names
    assert not {"LD_PRELOAD", "GIT_*", "PATH"} & set(found.pass_names)
    assert 16 <= found.processes <= 1 << 20
    assert 1 << 20 <= found.tmp_bytes <= 1 << 40
    assert set(found.accept) <= set(LOSSES)
    assert set(found.deliver) <= set(DELIVERIES)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_policy_or_faults(content: bytes) -> None:
    judged(content)


@given(st.text(alphabet="nameofilswrt=\"[]{}.,#\n\\u0/~- '1", max_size=60))
def test_any_text_like_toml_is_a_policy_or_faults(text: str) -> None:
    judged(text.encode())
    judged(f'name = "x"\n[files]\n{text}'.encode())


SCRATCHED = SHIPPED["system"]


@given(st.integers(0, len(SCRATCHED)), st.text(alphabet='"[]{}=#\n\\/*~. ax0', max_size=3), st.integers(0, 3))
def test_the_shipped_policy_scratched_anywhere_is_a_policy_or_faults(at: int, put: str, cut: int) -> None:
    judged((SCRATCHED[:at] + put + SCRATCHED[at + cut :]).encode())
