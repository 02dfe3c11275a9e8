"""policy + facts → plan: what no rule names is absent, the most specific path wins, refusals tell."""

import pytest

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.launch import steps
from jail.plan.build import build
from jail.plan.facts import Guarded, Repository
from jail.plan.steps import Plan, Step
from support.hosts import FACTS, HOME, POLICY, WORKSPACE, absent, file, folder, link


def plan(**facts: object) -> Plan:
    return build(POLICY, FACTS._replace(**facts), ("true",))


def step(found: Plan, target: str, verb: str = "") -> Step:
    steps = [each for each in found.steps if each.target == target and verb in ("", each.verb)]
    assert steps, f"no step for {target}"
    return steps[-1]


def verbs(found: Plan, target: str) -> list[str]:
    return [each.verb for each in found.steps if each.target == target]


def position(found: Plan, target: str, verb: str) -> int:
    return next(index for index, each in enumerate(found.steps) if (each.target, each.verb) == (target, verb))


def test_every_step_has_a_verb_of_the_table() -> None:
    assert {each.verb for each in plan().steps} <= steps.TABLE.keys()


def test_the_root_is_an_allow_list() -> None:
    bound = {each.source for each in plan().steps if each.verb == "bind"}
    assert bound == {"/usr", "/etc/ssl/certs", "/etc/localtime", WORKSPACE}


def test_the_workspace_is_writable_over_a_kept_read_only_mount_and_all_else_is_read_only() -> None:
    found = plan()
    assert verbs(found, WORKSPACE) == ["keep", "bind"]
    assert {each.target for each in found.steps if each.verb == "bind" and "rw" in each.options} == {
        WORKSPACE
    }


def test_a_linked_system_folder_stays_a_link() -> None:
    assert step(plan(), "/bin") == Step("link", "/bin", "/usr/bin", (), "as on the host")


def test_a_link_to_what_nobody_gives_brings_what_it_leads_to() -> None:
    found = plan(system=(*FACTS.system, link("/run/current-system", "/nix/store/abc")))
    assert step(found, "/nix/store/abc").options == ("ro",)


def test_protected_paths_are_mounted_after_the_pins_of_their_ancestors() -> None:
    found = plan()
    pin = position(found, f"{WORKSPACE}/.git", "pin")
    assert pin < position(found, f"{WORKSPACE}/.git/hooks", "protect")
    assert pin < position(found, f"{WORKSPACE}/.git/config", "held-file")
    assert position(found, WORKSPACE, "bind") < position(found, f"{WORKSPACE}/RESEARCH.md", "protect")


def test_the_folders_that_lead_to_the_workspace_in_a_private_home_are_pinned() -> None:
    found = plan()
    assert verbs(found, f"{HOME}/src") == ["pin"]
    assert position(found, HOME, "tmpfs") < position(found, f"{HOME}/src", "pin")
    assert position(found, f"{HOME}/src", "pin") < position(found, WORKSPACE, "bind")


def test_the_seal_comes_last() -> None:
    assert [each.verb for each in plan().steps][-6:] == [
        "freeze",
        "freeze",
        "freeze",
        "pivot",
        "loopback",
        "hostname",
    ]


def test_devices_are_the_six_without_state() -> None:
    devices = [each.target for each in plan().steps if each.verb == "device"]
    assert devices == ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"]


def test_the_environment_is_an_allow_list() -> None:
    assert dict(plan().environment) == {
        "GIT_CONFIG_SYSTEM": "/etc/gitconfig",
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
        "LOGNAME": "ada",
        "PATH": "/usr/bin:/bin",
        "PWD": f"{WORKSPACE}/notes",
        "JAIL": "1",
        "SHELL": "/bin/bash",
        "TERM": "xterm",
        "USER": "ada",
    }


def test_a_hidden_path_is_hidden_under_both_of_its_names() -> None:
    linked = link(f"{WORKSPACE}/.env", f"{WORKSPACE}/secrets/env")._replace(real_kind="file")
    found = plan(hide=(linked,))
    assert verbs(found, f"{WORKSPACE}/.env") == ["hide"]
    assert verbs(found, f"{WORKSPACE}/secrets/env") == ["hide"]
    assert verbs(found, f"{WORKSPACE}/secrets") == ["pin"]


def test_a_hidden_path_that_is_absent_is_told() -> None:
    assert any("there is no such path" in note for note in plan(hide=(absent("/x"),)).notes)


def test_jails_own_files_and_credentials_are_hidden_in_trees_that_hold_them() -> None:
    found = plan(system=(*FACTS.system, folder("/opt")), read=(folder(f"{HOME}/data"),), own=("/opt/jail",))
    assert verbs(found, "/opt/jail") == ["hide"]


def test_sockets_are_hidden() -> None:
    assert verbs(plan(sockets=(f"{WORKSPACE}/run/docker.sock",)), f"{WORKSPACE}/run/docker.sock") == ["hide"]


def test_trees_with_hard_links_elsewhere_are_held_single_files_read_only_and_git_objects_are_told() -> None:
    names = ("node_modules/a/index.js", "data.bin", ".git/objects/aa/bb")
    found = plan(hardlinked=tuple(f"{WORKSPACE}/{name}" for name in names))
    assert verbs(found, f"{WORKSPACE}/node_modules") == ["overlay"]
    assert verbs(found, f"{WORKSPACE}/data.bin") == ["protect"]
    assert not verbs(found, f"{WORKSPACE}/.git/objects/aa/bb")
    assert any("git repack" in note for note in found.notes)


def test_a_git_folder_elsewhere_is_given_when_it_points_back_and_not_when_it_does_not() -> None:
    common = "/srv/main/.git"
    trusted = Repository(f"{common}/worktrees/engine", common, "")
    guarded = (Guarded(f"{common}/hooks", "folder", "git runs what is in it"),)
    found = plan(repository=trusted, guarded=guarded)
    assert verbs(found, common) == ["keep", "bind"]
    assert step(found, f"{common}/hooks") == Step(
        "protect", f"{common}/hooks", common, ("folder",), "git runs what is in it"
    )
    refused = plan(repository=Repository("", "", "it does not point back"), guarded=guarded)
    assert not verbs(refused, common)
    assert "git: it does not point back" in refused.notes


def test_gits_objects_are_a_mount_of_their_own_in_an_overlay_only_so_that_a_clone_copies_them() -> None:
    objects = f"{WORKSPACE}/.git/objects"
    repository = FACTS.repository._replace(objects=objects) if FACTS.repository else None
    held = {"repository": repository, "hold": (folder(WORKSPACE),)}
    assert verbs(plan(**held), objects) == ["pin"]
    assert position(plan(**held), WORKSPACE, "overlay") < position(plan(**held), objects, "pin")
    assert not verbs(plan(repository=repository), objects)
    copied = plan(**held, no_overlay=((WORKSPACE, "refused"),), sizes=((WORKSPACE, 1, 1),))
    assert verbs(copied, WORKSPACE)[-1] == "copy"
    assert not verbs(copied, objects)


REFUSED: dict[str, dict[str, object]] = {
    "the workspace holds the home folder": {"workspace": folder("/home")},
    "the workspace is the home folder": {"workspace": folder(HOME)},
    "the workspace is the root folder": {"workspace": folder("/")},
    "the workspace is a file": {"workspace": file("/home/ada/notes.txt")},
    "the workspace is absent": {"workspace": absent("/home/ada/gone")},
    "the workspace holds jail's state": {"workspace": folder(f"{HOME}/.local")},
    "the workspace lies in jail's code": {"workspace": folder("/opt/jail/lib")},
    "the workspace lies among credentials": {"workspace": folder(f"{HOME}/.ssh/keys")},
    "the workspace is a system folder": {"workspace": folder("/usr")},
    "write of an absent path": {"write": (absent("/srv/none"),)},
    "write of a folder that holds the home folder": {"write": (folder("/home"),)},
    "write of a folder that holds credentials": {"write": (folder(HOME),)},
    "hold of an absent path": {"hold": (absent("/srv/none"),)},
    "hold of the root folder": {"hold": (folder("/"),)},
    "hold of a folder that holds the home folder": {"hold": (folder("/home"),)},
    "hold of a folder that holds credentials": {"hold": (folder(HOME),)},
    "hold of credentials": {"hold": (folder(f"{HOME}/.ssh/keys"),)},
    "hold of what holds jail's own files": {"hold": (folder(f"{HOME}/.local"),)},
    "hold through a link that a command laid": {"hold": (folder("/srv/x")._replace(strays="/srv/w/x"),)},
    "hold of a socket": {"hold": (folder("/srv/s")._replace(real_kind="socket"),)},
    "hold and write of one place": {"hold": (folder("/srv/x"),), "write": (folder("/srv/x"),)},
    "read of credentials": {"read": (folder(f"{HOME}/.aws"),)},
    "read of jail's own files": {"read": (folder(f"{HOME}/.local/state/jail/sessions"),)},
    "read of the root folder": {"read": (folder("/"),)},
    "read of a socket": {"read": (folder("/run/docker.sock")._replace(real_kind="socket"),)},
    "hide of the workspace": {"hide": (folder(WORKSPACE),)},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_must_not_be_given_is_refused_with_what_to_do(case: str) -> None:
    with pytest.raises(JailError) as caught:
        plan(**REFUSED[case])
    assert caught.value.code == EXIT_CANNOT_ISOLATE
    assert caught.value.where
    assert caught.value.hint


@pytest.mark.parametrize(("abi", "lost"), [(0, True), (1, True), (2, False), (7, False)])
def test_landlock_without_moves_is_a_loss(abi: int, lost: bool) -> None:
    assert ("landlock" in [loss.name for loss in plan(landlock=abi).losses]) is lost


def test_the_open_files_limit_is_never_above_the_hosts() -> None:
    assert dict(plan(open_files_hard=100).limits)["open_files"] == 100


def test_ids_of_a_mapped_root_workspace_are_told() -> None:
    found = plan(uid=60600, gid=60600, launcher=0, idmap_from=0)
    assert (found.uid, found.idmap_from) == (60600, 0)
    assert "uid=60600" in step(found, "", "map").options
