"""Toolchains in a plan: read-only, secrets in them hidden, never credentials or jail's own, and each with its reason."""

import pytest

from jail.plan.build import build
from jail.plan.facts import Place, Toolchain, Tools
from jail.plan.steps import Plan, Step
from support.hosts import FACTS, HOME, POLICY, WORKSPACE, file, folder

NVM = f"{HOME}/.nvm"
ENTRY = f"{NVM}/versions/node/v20/bin"


def place(path: str, why: str = "nvm, through PATH") -> Place:
    return folder(path)._replace(given=why)


def tool(*given: Place, secrets: tuple[str, ...] = (), name: str = "nvm", part: str = "node") -> Toolchain:
    return Toolchain(part, name, NVM, ENTRY, given, secrets, bool(part))


def plan(tools: Tools, **facts: object) -> Plan:
    return build(POLICY, FACTS._replace(tools=tools, **facts), ("true",))


def steps(found: Plan, target: str) -> list[Step]:
    return [step for step in found.steps if step.target == target]


def notes(found: Plan) -> str:
    return "\n".join(found.notes)


def test_a_toolchain_is_read_only_and_path_keeps_the_name_that_leads_into_it() -> None:
    current = folder(f"{NVM}/versions/node/v20/bin")._replace(given=f"{NVM}/versions/current/bin")
    found = plan(Tools((tool(place(f"{NVM}/versions")),)), path=(current, *FACTS.path))
    assert steps(found, f"{NVM}/versions") == [
        Step("bind", f"{NVM}/versions", f"{NVM}/versions", ("ro",), "nvm, through PATH")
    ]
    assert not steps(found, ENTRY)
    assert dict(found.environment)["PATH"].split(":")[0] == f"{NVM}/versions/current/bin"


def test_its_note_says_part_name_root_way_and_what_is_absent() -> None:
    secrets = (f"{NVM}/versions/node/v20/etc", f"{NVM}/.npmrc")
    found = plan(Tools((tool(place(f"{NVM}/versions"), secrets=secrets),)))
    assert (
        f"toolchain node: nvm in {NVM}, through {ENTRY}: versions; absent: versions/node/v20/etc, .npmrc"
        in found.notes
    )
    assert [step.verb for step in steps(found, secrets[0])] == ["hide"]
    assert not steps(found, secrets[1]), "what no tree holds needs no wall"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/home", "it holds the home folder"),
        (f"{HOME}/src", "it holds the workspace"),
        (f"{HOME}/.cache/jail/x", "jail's own files"),
        (f"{HOME}/.ssh/x", "credentials"),
    ],
)
def test_what_must_not_be_given_is_not_whatever_leads_to_it(path: str, reason: str) -> None:
    found = plan(Tools((tool(place(path)),)))
    assert not [step for step in steps(found, path) if step.verb == "bind"]
    assert reason in notes(found)


def test_jails_own_folder_and_credentials_in_a_toolchain_are_hidden() -> None:
    own, secret = f"{NVM}/versions/jail", f"{NVM}/versions/credentials"
    found = plan(Tools((tool(place(f"{NVM}/versions")),)), own=(own,), credentials=(secret,))
    assert [steps(found, path)[0].verb for path in (own, secret)] == ["hide", "hide"]


def test_links_on_the_way_are_made_where_no_tree_has_them() -> None:
    given = file(f"{HOME}/.local/share/agent/versions/1")
    links = (
        (f"{HOME}/.local/bin/agent", "../share/agent/current"),
        (f"{HOME}/.local/share/agent/current", "versions/1"),
        ("/usr/bin/agent", "../x"),
    )
    tools = Tools((tool(given, name="a program", part=""),), links)
    found = plan(tools, path=(folder(f"{HOME}/.local/bin"), *FACTS.path))
    made = {step.target: step.source for step in found.steps if step.verb == "link"}
    assert made[f"{HOME}/.local/share/agent/current"] == "versions/1"
    assert not {f"{HOME}/.local/bin/agent", "/usr/bin/agent"} & set(made)


def test_single_programs_share_a_note() -> None:
    given = [tool(file(f"/srv/tool{number}"), name="a program", part="") for number in range(12)]
    found = plan(Tools(tuple(given)))
    (note,) = [note for note in found.notes if note.startswith("PATH leads to a program")]
    assert note.endswith("and 4 more")


def test_an_entry_that_was_left_out_says_why() -> None:
    entry = folder(ENTRY)
    found = plan(Tools(left=((ENTRY, "the policy does not use it"),)), path=(entry, *FACTS.path))
    assert f"PATH entry {ENTRY} is left out: the policy does not use it" in found.notes
    assert ENTRY not in dict(found.environment)["PATH"]


def test_variables_are_set_and_pointers_only_where_all_that_they_name_is_given() -> None:
    variables = (("NVM_DIR", NVM), ("TERM", "dumb"))
    pointers = (
        ("GEM_PATH", f"{NVM}/versions/a:{NVM}/versions/b"),
        ("JAVA_HOME", "/srv/jdk"),
        ("GOROOT", "x"),
    )
    found = dict(plan(Tools((tool(place(f"{NVM}/versions")),), (), (), variables, pointers)).environment)
    assert found["NVM_DIR"] == NVM
    assert found["GEM_PATH"] == pointers[0][1]
    assert not {"JAVA_HOME", "GOROOT"} & set(found)
    assert found["TERM"] == "xterm", "what the policy hands on of the caller's goes before it"


def test_a_toolchain_in_the_workspace_stays_writable() -> None:
    found = plan(Tools((tool(place(f"{WORKSPACE}/x/..")),)))
    assert "bind" in [step.verb for step in steps(found, WORKSPACE)]


def test_settings_are_a_file_of_its_own_where_nothing_else_is_there() -> None:
    path = f"{HOME}/.config/mise/config.toml"
    made = Step("file", path, "[tools]\n", (), "mise's settings")
    tools = Tools(settings=((path, "[tools]\n", "mise's settings"),))
    assert steps(plan(tools), path) == [made]
    hidden = folder(f"{HOME}/.config/mise")
    for facts in ({"hide": (hidden,)}, {"credentials": (path,)}, {"own": (path,)}, {"read": (hidden,)}):
        assert made not in steps(plan(tools, **facts), path), facts
