"""`jail policy`: levels, the policy of a run with the origin of each value, a judge for files, the schema."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jail.cli.policy import command
from support.composed import LEVELS, PARTS

WIDE = 'name = "wide"\n[limits]\ntimeout = "0"\n[environment]\npass = ["AWS_PROFILE"]\n'


class Person:
    """A person with a home and a workspace, who asks for `jail policy …` there."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        (self.home / ".config" / "jail").mkdir(parents=True)
        self.workspace.mkdir()
        self.user = self.home / ".config" / "jail" / "policy.toml"
        self.project = self.workspace / ".jail.toml"
        patch.setenv("HOME", str(self.home))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        patch.chdir(self.workspace)

    def asks(self, *arguments: str | Path) -> Result:
        return CliRunner().invoke(command, list(map(str, arguments)))

    def is_told(self, *arguments: str | Path) -> str:
        done = self.asks(*arguments)
        assert done.exit_code == 0, done.output
        return done.output

    def is_refused(self, *arguments: str | Path) -> list[str]:
        """The keys of the faults, or the message."""
        error = self.asks(*arguments).exception
        assert error is not None
        assert getattr(error, "code", None) == 2
        return [fault.key for fault in getattr(error, "faults", ())] or [str(error)]


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(tmp_path, monkeypatch)


def test_list_names_every_level_and_part_and_marks_the_default(person: Person) -> None:
    found = person.is_told("list").splitlines()
    assert [line[2:].split(" ")[0] for line in found[: len(LEVELS)]] == LEVELS
    assert [line.split()[1] for line in found if line.startswith("*")] == ["overnight"]
    assert found[-1] == f"parts: {', '.join(PARTS)}"
    person.user.write_text('base = "ci"\n', encoding="utf-8")
    assert [line.split()[1] for line in person.is_told("list").splitlines() if line.startswith("*")] == ["ci"]


def test_list_and_check_as_json(person: Person) -> None:
    found = json.loads(person.is_told("list", "--json"))
    assert [each["name"] for each in found["levels"]] == LEVELS
    assert [each["name"] for each in found["levels"] if each["default"]] == ["overnight"]
    assert all(each["description"] for each in found["levels"])
    assert found["parts"] == PARTS
    file = person.workspace / "file.toml"
    file.write_text("nonsense = 1\n", encoding="utf-8")
    done = person.asks("check", "--json", file)
    assert done.exit_code == 2
    said = json.loads(done.output)
    assert (said["file"], said["level"], [each["key"] for each in said["faults"]][:1]) == (
        str(file),
        None,
        person.is_refused("check", file)[:1],
    )
    file.write_text('name = "mine"\nbase = "ci"\n', encoding="utf-8")
    assert json.loads(person.is_told("check", "--json", file)) == {
        "file": str(file),
        "level": "ci",
        "faults": [],
    }


def test_show_is_the_policy_of_a_run_here(person: Person) -> None:
    person.user.write_text('base = "supervised"\n[limits]\ntmp = "3 GiB"\n', encoding="utf-8")
    person.project.write_text("[limits]\nprocesses = 99\n", encoding="utf-8")
    found = json.loads(person.is_told("show", "--json", "--timeout", "5m", "--read", person.home / "data"))
    assert (found["name"], found["level"]) == ("supervised", "supervised")

    def said(key: str) -> list[tuple[object, str]]:
        return [(entry["value"], entry["who"]) for entry in found["values"][key]]

    assert said("limits.tmp") == [(3 << 30, "your file")]
    assert said("limits.processes") == [(99, "project")]
    assert said("limits.timeout") == [(300.0, "flag --timeout")]
    assert said("files.read") == [(str(person.home / "data"), "flag --read")]
    assert said("limits.open_files") == [(65536, "level supervised")]
    text = person.is_told("show", "--policy", "ci")
    assert "level ci" in text
    assert "your file, policy.toml" in text


def test_show_takes_the_project_of_the_workspace_that_is_named(person: Person) -> None:
    other = person.home / "other"
    other.mkdir()
    (other / ".jail.toml").write_text("[limits]\nprocesses = 77\n", encoding="utf-8")
    assert "77 " not in person.is_told("show")
    assert "77 " in person.is_told("show", "--workspace", other)


def test_show_tells_the_faults_of_the_files(person: Person) -> None:
    person.project.write_text(WIDE, encoding="utf-8")
    assert person.is_refused("show") == ["name", "limits.timeout", "environment.pass[0]"]


def test_check_judges_a_policy_alone(person: Person) -> None:
    file = person.workspace / "mine.toml"
    file.write_text('name = "mine"\nbase = "ci"\n', encoding="utf-8")
    person.user.write_text("not TOML", encoding="utf-8")
    assert person.is_told("check", "mine.toml") == "mine.toml: can be used, on the level ci\n"
    file.write_text('nam = "mine"\n[files]\nwrite = ["/"]\n', encoding="utf-8")
    assert person.is_refused("check", file) == ["name", "nam", "files.write[0]"]


def test_check_knows_the_persons_file_by_its_place_or_when_told(person: Person) -> None:
    person.user.write_text('[environment]\npass = ["EDITOR_COLORS"]\n', encoding="utf-8")
    copy = person.home / "copy.toml"
    copy.write_text(person.user.read_text(encoding="utf-8"), encoding="utf-8")
    assert "on the level overnight" in person.is_told("check", person.user)
    assert "on the level overnight" in person.is_told("check", "--user", copy)
    assert person.is_refused("check", copy) == ["name"]


def test_check_judges_a_projects_file_against_the_policy_that_the_person_has(person: Person) -> None:
    person.project.write_text("[limits]\nprocesses = 5000\n", encoding="utf-8")
    assert person.is_refused("check", ".jail.toml") == ["limits.processes"]
    assert "can be used" in person.is_told("check", "--policy", "interactive", ".jail.toml")
    person.user.write_text("[limits]\nprocesses = 6000\n", encoding="utf-8")
    assert "can be used" in person.is_told("check", ".jail.toml")
    draft = person.home / "draft.toml"
    draft.write_text("[limits]\nprocesses = 7000\n", encoding="utf-8")
    assert person.is_refused("check", "--project", draft) == ["limits.processes"]


def test_check_refuses_a_policy_that_it_would_not_judge_by(person: Person) -> None:
    mine = person.workspace / "mine.toml"
    mine.write_text('name = "mine"\n', encoding="utf-8")
    person.user.write_text("", encoding="utf-8")
    for arguments in (("mine.toml",), (person.user,), ("--user", "mine.toml")):
        assert "can be used" in person.is_told("check", *arguments)
        done = person.asks("check", "--policy", "ci", *arguments)
        assert done.exit_code == 2
        assert "--policy is for a project's file" in done.output


@pytest.mark.parametrize("name", ["nothing.toml", "folder"])
def test_check_says_what_is_no_file(name: str, person: Person) -> None:
    (person.workspace / "folder").mkdir()
    [message] = person.is_refused("check", name)
    assert message.startswith("the policy ")


def test_check_refuses_a_linked_project_file_as_a_run_does(person: Person) -> None:
    person.user.write_text("", encoding="utf-8")
    person.project.symlink_to(person.user)
    assert "symbolic link" in person.is_refused("check", ".jail.toml")[0]


def test_check_takes_one_kind_only(person: Person) -> None:
    assert person.asks("check", "--user", "--project", "x").exit_code == 2


def test_schema_is_json(person: Person) -> None:
    found = json.loads(person.is_told("schema"))
    assert found["properties"]["base"]["enum"] == LEVELS


def test_help_has_the_order_of_the_files(person: Person) -> None:
    found = person.is_told("--help")
    for word in (
        ".jail.toml",
        "policy.toml",
        "only takes away",
        "last word",
        "show",
        "check",
        "list",
        "schema",
    ):
        assert word in found
