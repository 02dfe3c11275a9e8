"""Links that a command laid in what it was given to write, and what they give a later run: nothing (agent 3, 7, 10; A5, A14).

Each run is the person's own next one: another workspace, a policy or a flag that names the link, PATH, or a project's file that the
command wrote. Each has the control that the same way works where no command could have laid a link.
"""

import json
import os
from pathlib import Path

import pytest

from support.attempts import lay, warm_jail
from support.installed import Installed
from support.jails import Jail
from support.policies import nothing_ran, started

CANARY = "canary of the person"


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail whose person has `~/a`, which commands write, and `~/priv`, which nobody gives."""
    found = warm_jail(installed, tmp_path)
    lay(found.home, {"a/plain/file": "plain", "priv/s": CANARY})
    return found


def says(jail: Jail, file: str = "", **lists: list[str]) -> None:
    """The person's policy, or the project's in `file`."""
    path = Path(file) if file else jail.home / ".config/jail/policy.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["[files]", *(f"{key} = {json.dumps(value)}" for key, value in lists.items())]))


def shell(jail: Jail, script: str, *options: str | Path, **more: object) -> str:
    """What a run printed; it ended well."""
    done = jail.run("sh", "-c", script, options=options, **more)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(jail: Jail, *options: str | Path) -> str:
    """What a run that was refused, and ran nothing, said."""
    done = started(jail, *options)
    assert nothing_ran(jail, done), done.stdout + done.stderr
    assert "jail doctor" not in done.stderr
    return done.stderr


# ---- a rule whose path a command has turned elsewhere ----


@pytest.mark.parametrize("verb", ["--read", "--write"])
@pytest.mark.parametrize(
    "chain", ["one link", "behind a link of the person", "a folder on the way", "dots behind a link"]
)
def test_a_link_of_an_earlier_run_in_another_tree_is_not_followed(verb: str, chain: str, warm: Jail) -> None:
    laid, named = {
        "one link": ("ln -s ~/priv ~/a/ref", "~/a/ref"),
        "behind a link of the person": ("ln -s ~/priv ~/a/ref", "~/mine"),
        "a folder on the way": ("ln -s ~ ~/a/ref", "~/a/ref/priv"),
        "dots behind a link": ("mkdir -p ~/a/x/y; ln -s x/y ~/a/ref", "~/up/priv"),
    }[chain]
    (warm.home / "mine").symlink_to("a/ref")
    (warm.home / "up").symlink_to("a/ref/../../..")
    shell(warm, laid, "--write", "~/a")
    stderr = refused(warm, verb, named)
    assert f"{warm.home}/a/ref" in stderr
    if verb == "--read":
        assert shell(warm, f"cat {warm.home}/priv/s", verb, "~/priv") == CANARY, (
            "the control: by its own name"
        )
        shell(warm, "ln -s plain ~/a/near", "--write", "~/a")
        assert shell(warm, "cat ~/a/plain/file", verb, "~/a/near") == "plain", (
            "the control: it stays in its tree"
        )


def test_what_was_given_is_remembered_by_its_own_name_and_longer_than_sessions_are(warm: Jail) -> None:
    (warm.home / "alias").symlink_to("a")
    shell(warm, f"ln -s {warm.home}/priv ~/a/ref", "--write", "~/alias")
    assert warm.call("gc", "--older-than", "0s").returncode == 0
    assert warm.sessions() == []
    refused(warm, "--read", "~/a/ref")
    remembered = (warm.home / ".local/state/jail/written").read_text().splitlines()
    assert f"{warm.home}/a" in remembered


def test_a_workspace_and_a_status_file_are_not_reached_through_a_planted_link(warm: Jail) -> None:
    shell(warm, "ln -s ~/priv ~/a/ref", "--write", "~/a")
    before = sorted(os.listdir(warm.home / "priv"))
    assert "ref" in refused(warm, "--workspace", warm.home / "a/ref")
    assert "ref" in started(warm, "--status-file", warm.home / "a/ref/status").stderr
    assert sorted(os.listdir(warm.home / "priv")) == before
    assert started(warm, "--status-file", warm.home / "a/plain/status").returncode == 0, "the control"


# ---- a project's file, which the command may have written ----

PROJECTS = {
    "a link to what nobody gives, to write": ({"write": ["~/a"]}, "ln -s ~/priv ~/a/l", {"write": ["~/a/l"]}),
    "a link to what nobody gives, to read": ({"write": ["~/a"]}, "ln -s ~/priv ~/a/l", {"read": ["~/a/l"]}),
    "a link to what is read": (
        {"write": ["~/a"], "read": ["~/a/ro"]},
        "ln -s ro ~/a/l",
        {"write": ["~/a/l"]},
    ),
    "a link into what is read": (
        {"write": ["~/a"], "read": ["~/a/ro"]},
        "ln -s ro/sub ~/a/l",
        {"write": ["~/a/l"]},
    ),
    "a link into what is hidden": (
        {"write": ["~/a"], "hide": ["~/a/ro"]},
        "ln -s ro/sub ~/a/l",
        {"write": ["~/a/l"]},
    ),
    "a link to read what is hidden": (
        {"write": ["~/a"], "hide": ["~/a/ro"]},
        "ln -s ro ~/a/l",
        {"read": ["~/a/l/sub"]},
    ),
}


@pytest.mark.parametrize("name", PROJECTS)
@pytest.mark.parametrize("recorded", ["recorded", "not recorded"])
def test_agent_7_a_project_gives_no_more_through_a_link_than_the_person_does(
    name: str, recorded: str, warm: Jail
) -> None:
    person, laid, project = PROJECTS[name]
    lay(warm.home, {"a/ro/sub/file": "kept"})
    says(warm, **person)
    # What is hidden is not there for the command; a link to it leads nowhere for now.
    shell(warm, laid)
    if recorded == "not recorded":
        (warm.home / ".local/state/jail/written").unlink()
    says(warm, str(warm.workspace / ".jail.toml"), **{verb: ["~/a/plain"] for verb in project})
    assert shell(warm, "cat ~/a/plain/file") == "plain", "the control: what it may name"
    says(warm, str(warm.workspace / ".jail.toml"), **project)
    assert f"{warm.home}/a/l" in refused(warm)
    assert (warm.home / "a/ro/sub/file").read_text() == "kept"


def test_a_policy_in_a_written_tree_is_not_given_by_another_name(warm: Jail) -> None:
    lay(warm.home, {"dot/v1/policy.toml": '[files]\nwrite = ["~/dot"]\n'})
    (warm.home / ".config/jail").mkdir(parents=True)
    (warm.home / ".config/jail/policy.toml").symlink_to(warm.home / "dot/v1/policy.toml")
    shell(warm, "ln -s v1/policy.toml ~/dot/l; ln -s v1 ~/dot/m")
    for name, runs in (("l", False), ("m", True)):
        says(warm, str(warm.workspace / ".jail.toml"), write=[f"~/dot/{name}"])
        done = warm.run("sh", "-c", "echo ran; echo wider >> ~/dot/v1/policy.toml")
        assert ("ran" in done.stdout) is runs, done.stderr
        assert (warm.home / "dot/v1/policy.toml").read_text() == '[files]\nwrite = ["~/dot"]\n'


def test_read_only_and_written_at_once_by_two_names_is_refused(warm: Jail) -> None:
    (warm.home / "other").symlink_to("a")
    stderr = refused(warm, "--write", "~/a", "--read", "~/other")
    assert "at once" in stderr
    assert shell(warm, "echo x > ~/a/new; cat ~/a/new", "--write", "~/a") == "x\n"


@pytest.mark.parametrize("who", ["the person", "a project"])
def test_what_is_hidden_is_not_given_by_another_name_and_the_refusal_says_so(who: str, warm: Jail) -> None:
    lay(warm.workspace, {"secrets/s": CANARY})
    (warm.workspace / "alias").symlink_to("secrets")
    says(warm, hide=["secrets"])
    assert shell(warm, "cat secrets/s 2>&1 || true").count(CANARY) == 0
    if who == "a project":
        says(warm, str(warm.workspace / ".jail.toml"), read=["alias/s"])
        stderr = refused(warm)
    else:
        stderr = refused(warm, "--read", "alias/s")
    assert "alias/s" in stderr
    assert "secrets" in stderr


def test_what_the_person_wants_read_only_is_there_whatever_a_project_hides(warm: Jail) -> None:
    says(warm, read=["GATES.md"])
    assert "absent" in refused(warm)
    says(warm, str(warm.workspace / ".jail.toml"), hide=["GATES.md"])
    assert "absent" in refused(warm)
    lay(warm.workspace, {"GATES.md": "gates"})
    assert shell(warm, "cat GATES.md 2>/dev/null; echo end") == "end\n", (
        "the control: it is there, and hidden"
    )


@pytest.mark.parametrize("tree", ["the workspace", "another tree"])
def test_a_hidden_path_that_is_absent_stays_absent_on_the_host(tree: str, warm: Jail) -> None:
    folder = warm.workspace if tree == "the workspace" else warm.home / "a"
    options = ["--write", "~/a", "--hide", folder / "deep/secret"]
    shell(
        warm,
        f"mkdir -p {folder}/deep && echo x > {folder}/deep/secret; echo y > {folder}/deep/free",
        *options,
    )
    assert sorted(os.listdir(folder / "deep")) == ["free"]
    kept = [path for path in (warm.sessions()[-1] / "swept").iterdir() if path.is_file()]
    assert [path.read_text() for path in kept] == ["x\n"]


@pytest.mark.parametrize("flag", ["--read", "--hide"])
def test_the_link_that_a_rule_goes_through_stays_what_it_is(flag: str, warm: Jail) -> None:
    """Else the next run would guard what the command put in its place."""
    lay(warm.home, {"a/v1/kept": "kept", "a/v2/x": "x"})
    for link in ("rule", "free"):
        (warm.home / "a" / link).symlink_to("v1")
    swap = "ln -sfn v2 ~/a/rule; rm -f ~/a/rule; mv -T ~/a/rule ~/a/old; ln -sfn v2 ~/a/free; echo y > ~/a/v1/kept; true"
    shell(warm, swap, "--write", "~/a", flag, "~/a/rule/kept")
    assert os.readlink(warm.home / "a/rule") == "v1"
    assert os.readlink(warm.home / "a/free") == "v2", "the control: a link that no rule goes through"
    assert (warm.home / "a/v1/kept").read_text() == "kept"


# ---- the way to the policy ----


@pytest.mark.parametrize("way", ["a folder of versions", "the folder of settings", "a policy that is named"])
def test_a_policy_reached_through_a_link_that_the_command_could_replace_is_refused(
    way: str, warm: Jail
) -> None:
    text = '[files]\nwrite = ["~/dot"]\n'
    options: list[str | Path] = []
    if way == "a folder of versions":
        lay(warm.home, {"dot/v1/policy.toml": text})
        (warm.home / "dot/current").symlink_to("v1")
        (warm.home / ".config/jail").mkdir(parents=True)
        file = warm.home / ".config/jail/policy.toml"
        file.symlink_to(warm.home / "dot/current/policy.toml")
        link = warm.home / "dot/current"
    elif way == "the folder of settings":
        lay(warm.home, {"real/jail/policy.toml": text, "dot/x": "x"})
        (warm.home / "dot/config").symlink_to(warm.home / "real")
        file = warm.home / ".config"
        file.symlink_to(warm.home / "dot/config")
        link = warm.home / "dot/config"
    else:
        lay(warm.workspace, {"real.toml": f'name = "mine"\ndescription = "mine"\nbase = "overnight"\n{text}'})
        (warm.home / "dot").mkdir()
        file = link = warm.workspace / "p.toml"
        link.symlink_to("real.toml")
        options = ["--policy", "./p.toml"]
    assert f"through a link that a command may replace: {link}" in refused(warm, *options)
    target = os.path.realpath(file)
    file.unlink()
    file.symlink_to(target)
    if way == "a policy that is named":
        options = ["--policy", "./real.toml"]
    assert started(warm, *options).returncode == 0, "the control: without a link of the command's"


# ---- PATH ----


def test_a_path_folder_of_an_earlier_run_gives_nothing_that_its_links_lead_to(
    warm: Jail, tmp_path: Path
) -> None:
    """A virtual environment that a command laid, in a tree of its own or in another workspace, and then activated by the person."""
    lay(warm.home, {"proj/node_modules/dep/key": CANARY, ".local/share/notes/data/x/s": CANARY})
    lay(
        warm.home,
        {".local/share/notes/data/x/sync.sh": "#!/bin/sh\n", "priv/tool": f"#!/bin/sh\n# {CANARY}\n"},
    )
    for path in (".local/share/notes/data/x/sync.sh", "priv/tool", "proj/node_modules/dep/key"):
        (warm.home / path).chmod(0o755)
    lines = [
        "mkdir -p .venv/bin; cd .venv; echo home = /usr/bin > pyvenv.cfg; ln -s ~/priv lib; cd bin",
        "ln -s ~/proj/node_modules/dep/key n1; ln -s ~/.local/share/notes/data/x/sync.sh n9; ln -s ~/priv/tool python",
        'printf "#!%s\\n" ~/priv/tool > run; echo echo mine > own; chmod +x run own; cat own',
    ]
    other = tmp_path / "other"
    other.mkdir()
    looks = [
        f"cat {warm.home}/{path} 2>/dev/null"
        for path in ("proj/node_modules/dep/key", ".local/share/notes/data/x/s", "priv/s", "priv/tool")
    ]
    for first, options in ((warm.workspace, []), (warm.home / "a", ["--write", "~/a"])):
        assert shell(warm, f"cd {first}; " + "; ".join(lines), *options) == "echo mine\n"
        path = f"{first}/.venv/bin:/usr/bin:/bin"
        for record in ("recorded", "not recorded"):
            if record == "not recorded":
                (warm.home / ".local/state/jail/written").unlink(missing_ok=True)
            second = warm._replace(workspace=other)
            out = shell(second, f"own; {'; '.join(looks)}; true", env={"PATH": path})
            assert out == "mine\n", f"{first} {record}"


def test_a_path_folder_of_the_person_still_leads_where_its_links_do(warm: Jail) -> None:
    lay(warm.home, {"priv/tool": f"#!/bin/sh\necho {CANARY}\n"})
    (warm.home / "priv/tool").chmod(0o755)
    (warm.home / ".local/bin").mkdir(parents=True)
    (warm.home / ".local/bin/tool").symlink_to(warm.home / "priv/tool")
    path = f"{warm.home}/.local/bin:/usr/bin:/bin"
    assert shell(warm, "tool", env={"PATH": path}) == f"{CANARY}\n"
    # The same link, once what it passes was written by a command.
    shell(warm, "ln -s ~/priv/tool ~/a/tool", "--write", "~/a")
    (warm.home / ".local/bin/tool").unlink()
    (warm.home / ".local/bin/tool").symlink_to(warm.home / "a/tool")
    assert shell(warm, "tool 2>/dev/null || echo gone", env={"PATH": path}) == "gone\n"
