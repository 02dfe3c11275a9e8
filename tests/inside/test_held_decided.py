"""What is held and then resumed, discarded, in conflict with the host, or beside the workspace."""

from pathlib import Path

from support.decided import changes, held, ok
from support.jails import Jail, git

HELD_OUTSIDE = {"flag": ["--hold-path", "{folder}"], "policy": ["--policy", "{policy}"]}
"""Name → options of a run that holds a folder beside the workspace."""


def test_a_resumed_run_goes_on_where_the_last_one_ended(jail: Jail) -> None:
    (jail.workspace / "old").write_text("host\n")
    held(jail, "echo one > new; echo changed > old; mkdir folder")
    assert held(jail, "cat new old; echo two >> new; rmdir folder; echo more > more", "--resume", "last") == (
        "one\nchanged\n"
    )
    assert (jail.workspace / "old").read_text() == "host\n"
    assert {path: change["what"] for path, change in changes(jail).items()} == {
        "new": "added",
        "more": "added",
        "old": "modified",
    }
    ok(jail, "apply", "last")
    assert {path.name: path.read_text() for path in jail.workspace.iterdir()} == {
        "new": "one\ntwo\n",
        "more": "more\n",
        "old": "changed\n",
    }
    assert held(jail, "cat new", "--resume", "last") == "one\ntwo\n"


def test_what_is_discarded_is_gone_inside_too(jail: Jail) -> None:
    (jail.workspace / "old").write_text("host\n")
    (jail.workspace / "dropped").write_text("host\n")
    held(jail, "echo changed > old; rm dropped; echo new > new; echo kept > kept")
    ok(jail, "discard", "last", "old", "dropped", "new")
    assert set(changes(jail)) == {"kept"}
    assert held(jail, "ls; cat old", "--resume", "last").split() == ["dropped", "kept", "old", "host"]
    ok(jail, "discard", "last")
    assert changes(jail) == {}
    assert sorted(path.name for path in jail.workspace.iterdir()) == ["dropped", "old"]


def test_what_the_host_changed_meanwhile_is_a_conflict_and_nothing_is_lost(jail: Jail) -> None:
    for name in ("both", "inside", "removed", "host"):
        (jail.workspace / name).write_text("base\n")
    text = "for name in both inside removed; do echo inside > $name; done; echo inside > made"
    held(jail, f"{text}; printf '\\tinside\\n' > both")
    (jail.workspace / "both").write_text("host\n")
    (jail.workspace / "host").write_text("host\n")
    (jail.workspace / "made").write_text("host\n")
    (jail.workspace / "removed").unlink()
    done = jail.call("apply", "last")
    assert done.returncode == 1, done.stderr
    assert {path.name: path.read_text() for path in jail.workspace.iterdir()} == {
        "both": "host\n",
        "inside": "inside\n",
        "made": "host\n",
        "host": "host\n",
    }
    left = changes(jail)
    assert set(left) == {"both", "made", "removed"}
    assert all(change["conflict"] for change in left.values())
    (jail.workspace / "made").unlink()
    jail.call("apply", "last")
    assert (jail.workspace / "made").read_text() == "inside\n"
    assert set(changes(jail)) == {"both", "removed"}
    (jail.workspace.parent / "diff").write_text(ok(jail, "changes", "--diff", "both"))
    git(jail.workspace, "apply", "../diff")
    assert (jail.workspace / "both").read_text() == "\tinside\n"
    assert set(changes(jail)) == {"removed"}, "it is as the command left it"


def test_a_folder_outside_of_the_workspace_is_held(jail: Jail, tmp_path: Path) -> None:
    for name, options in HELD_OUTSIDE.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "file").write_text("host\n")
        policy = tmp_path / "policy.toml"
        policy.write_text(f'name = "mine"\nbase = "overnight"\n[files]\nhold = ["{folder}"]\n')
        given = [option.format(folder=folder, policy=policy) for option in options]
        done = jail.run("/bin/sh", "-ec", f"echo inside > {folder}/file; echo real > {name}", options=given)
        assert done.returncode == 0, done.stderr
        assert (folder / "file").read_text() == "host\n"
        assert (jail.workspace / name).read_text() == "real\n", "the workspace is written"
        ok(jail, "apply", "last")
        assert (folder / "file").read_text() == "inside\n"
