"""The survey of this very host: what a plan is made of is looked at once, and nothing of a refused workspace."""

import os
import stat
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.launch import endpoints, gitidentity, guarded, places, survey, ways
from jail.plan import held
from jail.plan.build import build
from support.hosts import POLICY
from support.jails import git


class Ground:
    """A home with a project in it, on this host."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = self.home / "src"
        self.workspace.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "PATH": f"{self.workspace}/bin:/usr/bin"}
        self.own = places.own(self.environ, str(self.home))

    def looks(self, workspace: Path | None = None, **policy: object) -> survey.Facts:
        caller = survey.Caller(self.environ, str(self.home), "/", str(workspace or self.workspace))
        facts, self.identities = survey.survey(POLICY._replace(**policy), caller, self.own, "true")
        return facts


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path.resolve())


def test_the_facts_are_what_is_there_and_make_a_plan(ground: Ground) -> None:
    (ground.workspace / "out").mkdir()
    (ground.workspace / "CLAUDE.md").write_text("x")
    (ground.workspace / "secret").write_text("x")
    (ground.workspace / "alias").hardlink_to(ground.workspace / "secret")
    facts = ground.looks(write=("./out",), read=("~",), hide=("./secret",))
    work = str(ground.workspace)
    assert facts.workspace.real == work
    assert facts.folder == work, "the current folder is not in it"
    assert [place.real for place in (*facts.write, *facts.read)] == [f"{work}/out", str(ground.home)]
    assert [place.real for place in facts.hide] == [f"{work}/secret", f"{work}/alias"]
    assert f"{work}/CLAUDE.md" in [each.path for each in facts.guarded]
    assert f"{work}/bin" in [each.path for each in facts.absent], "a PATH folder that is not there"
    assert facts.repository is None
    assert facts.memory_most > 0
    status = Path(work).stat()
    assert ground.identities[work] == (status.st_dev, status.st_ino)
    assert build(POLICY, facts, ("true",)).workspace == work


def test_a_list_of_held_changes_is_told_of_what_no_table_names(ground: Ground) -> None:
    work = ground.workspace
    git(work, "init", "-q", ".")
    (work / "CLAUDE.md").write_text("x")
    (work / "CLAUDE.md").rename(work / "AGENTS.md")
    (work / "second").hardlink_to(work / "AGENTS.md")
    (work / "tools").mkdir()
    (work / ".git/hooks/post-commit").symlink_to(work / "tools/target")
    (work / "tools/target").write_text("")
    git(work, "config", "core.hooksPath", "absent/hooks")
    git(work, "config", "include.path", "../team.cfg")
    (work / "team.cfg").write_text("")
    found = dict(guarded.obeyed(ground.looks()))
    names = ("second", "tools/target", "absent/hooks", "team.cfg", "bin")
    assert found.keys() == {f"{work}/{name}" for name in names}
    assert found[f"{work}/team.cfg"] == "included by the repository's configuration"


def test_what_is_held_is_looked_at_as_what_is_written(ground: Ground) -> None:
    """`.` is the workspace; sockets and second names of hidden files are found where the tree shows them."""
    lib = ground.home / "lib"
    lib.mkdir()
    (ground.home / "link").symlink_to(lib)
    (ground.workspace / "secret").write_text("x")
    (lib / "alias").hardlink_to(ground.workspace / "secret")
    os.mknod(lib / "socket", stat.S_IFSOCK | 0o600)
    facts = ground.looks(hold=(".", "~/link"), hide=("./secret",))
    work = str(ground.workspace)
    assert [(place.given, place.real) for place in facts.hold] == [
        (work, work),
        (f"{ground.home}/link", str(lib)),
    ]
    assert facts.sockets == (f"{lib}/socket",)
    assert [place.real for place in facts.hide] == [f"{work}/secret", f"{lib}/alias"]
    assert {work, str(lib)} <= set(ground.identities)
    assert ground.looks().hold == ()


def test_what_a_project_holds_is_told_from_what_the_person_does(ground: Ground) -> None:
    allowed = (("write", "."), ("hold", "."))
    facts = ground.looks(hold=(".", "x"), allowed=allowed)
    assert [place.project for place in facts.hold] == [False, True]
    assert [verb for verb, _ in facts.allowed] == ["write", "hold"]


def test_a_link_that_a_command_laid_in_a_held_tree_is_not_believed(ground: Ground) -> None:
    lib = ground.home / "lib"
    lib.mkdir()
    (lib / "out").symlink_to(ground.home)
    [held, strayed] = ground.looks(hold=("~/lib", "~/lib/out/src")).hold
    assert held.strays == ""
    assert strayed.strays == f"{lib}/out"


@pytest.mark.parametrize("folder", ["/", "/usr", "home"])
def test_a_workspace_that_must_not_be_given_is_not_walked(
    folder: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[str] = []
    for module, name in (
        (ways, "known"),
        (endpoints, "look"),
        (guarded, "protected_paths"),
        (guarded, "layout_of"),
        (gitidentity, "personal"),
    ):
        monkeypatch.setattr(module, name, lambda *_, name=name: walked.append(name))
    workspace = ground.home if folder == "home" else Path(folder)
    with pytest.raises(JailError, match="the workspace"):
        ground.looks(workspace, write=("./out",))
    assert walked == []


def test_what_is_to_be_held_is_decided_once_for_a_run(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    decide = held._wanted
    monkeypatch.setattr(held, "_wanted", lambda facts: asked.append(facts) or decide(facts))
    facts = ground.looks(hold=(".",))
    assert [thing.path for thing in build(POLICY, facts, ("true",)).held] == [str(ground.workspace)]
    assert len(asked) == 1
