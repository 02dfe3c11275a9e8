"""The files and variables that jail itself writes for the command."""

from jail.plan import inside
from jail.plan.build import build
from support.hosts import FACTS, POLICY


def content(path: str, **facts: object) -> str:
    plan = build(POLICY, FACTS._replace(**facts), ("true",))
    (step,) = [each for each in plan.steps if each.target == path]
    return step.source


def test_passwd_knows_the_command_and_nobody_of_the_host() -> None:
    assert [line.split(":")[0] for line in content("/etc/passwd").splitlines()] == ["root", "ada", "nobody"]


def test_names_resolve_for_localhost_alone() -> None:
    assert "localhost" in content("/etc/hosts")
    assert "nameserver" not in content("/etc/resolv.conf")


def test_git_has_the_persons_identity_and_signs_nothing() -> None:
    text = content("/etc/gitconfig")
    assert 'name = "Ada"' in text
    assert "gpgSign = false" in text


def test_an_identity_cannot_add_lines_to_the_git_configuration() -> None:
    text = content("/etc/gitconfig", identity=('x"\n[core]\n\tpager = evil\\', "a@b"))
    assert "[core]\n" not in text
    assert '\\"' in text


def test_the_readme_names_what_is_writable_and_the_cause_of_half_done_git_commands() -> None:
    text = content("/run/jail/README")
    assert FACTS.workspace.real in text
    assert "RESEARCH.md" in text
    assert "Device or resource busy" in text


def test_a_value_of_the_policy_is_set_and_what_jail_sets_wins() -> None:
    policy = POLICY._replace(set_values=(("DEBUG", "1"), ("HOME", "/elsewhere")))
    found = dict(inside.environment(policy, FACTS, "/usr/bin", {"DEBUG": "0"}))
    assert found["DEBUG"] == "1"
    assert found["HOME"] == FACTS.home
