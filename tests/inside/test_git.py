"""git inside: a developer's day in a repository whose RESEARCH.md is tracked, in one where it is not, in a
worktree, and in one that is made inside.

A tracked RESEARCH.md cannot be replaced, so git does some commands by half: what it says and what is left is
asserted here, and `/run/jail/README` tells the same.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.hold import gitkeys
from support.installed import Installed
from support.work import STARTERS, Ground, Said, make_ground, row

Row = Mapping[str, Said]
BUSY = "Device or resource busy"

DAY = row("""
status:
    git status --porcelain
commit:
    echo two >> a.txt
    git commit -qam second
    git log -1 --format='%s by %an'
switch:
    git switch -q -c feature
    echo f > f.txt
    git add .
    git commit -qm feature
    git switch -q main
    ls
merge:
    git merge --no-edit plain
    git log --merges --format=%s
    cat plain.txt
conflict:
    git switch -qc left
    echo left > a.txt
    git commit -qam left
    git switch -qc right HEAD~
    echo right > a.txt
    git commit -qam right
    ! git merge left
    echo both > a.txt
    git add a.txt
    git commit -qm both
    git status --porcelain
    git switch -q main
stash:
    echo dirty >> a.txt
    echo new > new.txt
    git stash -q -u
    git status --porcelain
    git stash pop -q
    git status --porcelain
    git restore a.txt
    rm new.txt
rebase:
    git switch -q feature
    git rebase -q main
    git log --format=%s -2
    git switch -q main
rebase -i:
    git switch -q feature
    echo g >> f.txt
    git commit -qam again
    GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -q -i main
    git log --format=%s -2
    cat f.txt
    git switch -q main
cherry-pick:
    git cherry-pick feature
    git revert --no-edit HEAD
    git reset -q --hard HEAD~2
    git status --porcelain
bisect:
    git bisect start main v0
    git bisect run sh -c '! grep -q bug code.txt'
    git bisect reset
    git branch --show-current
worktree:
    git worktree add -q /tmp/tree -b side
    cd /tmp/tree
    echo w > w.txt
    git add .
    git commit -qm side
    cd -
    git worktree add -q tree left
    cd tree
    git commit -q --allow-empty -m there
    git status --porcelain
    cd ..
    git worktree list
    git worktree remove tree
    git worktree remove /tmp/tree
    git worktree prune
clone:
    git clone -q . /tmp/copy
    cd /tmp/copy
    echo c > c.txt
    git add .
    git commit -qm cloned
    git push -q origin HEAD:refs/heads/from-clone
    cd -
    git log -1 --format=%s from-clone
clone beside:
    git clone -q . copy
    git -C copy log -1 --format=%s
    git -C copy config remote.origin.url
    rm -rf copy
mail:
    git format-patch -q -1 feature -o /tmp/mail
    git am -q /tmp/mail/*.patch
    git reset -q --hard HEAD~
look:
    git blame a.txt
    git show --stat
    git grep -n bug
    git describe --tags
    git shortlog -s HEAD
    git archive HEAD | tar t
tag:
    git tag -a v1 -m one
    git tag -l
gc:
    git gc -q --prune=now
    git fsck --strict
""")

HALF = row("""
switch:
    git switch research
switched:
    git branch --show-current
    git status --porcelain
    cat RESEARCH.md found.txt
back:
    git switch main
forced back:
    git switch -f main
forced:
    git branch --show-current
    git status --porcelain
    ls
merge:
    git merge --no-edit research
merged:
    git log -1 --format=%s
    git status --porcelain
    cat RESEARCH.md
merge --abort:
    git merge --abort
cleaned:
    git clean -fdq
    git status --porcelain
rebase:
    git rebase research
rebased:
    git branch --show-current
    git log -1 --format=%s
    git status --porcelain
reset:
    git reset -q --hard
    git clean -fdq
    git status --porcelain
rm:
    git rm RESEARCH.md
mv:
    git mv RESEARCH.md notes.md
elsewhere:
    git worktree add -q --detach /tmp/there main
    cd /tmp/there
    git merge -q --no-edit research
    cat RESEARCH.md
    git branch merged
config:
    git config alias.x '!id'
remote:
    git remote add other /tmp/copy
hook:
    echo id > .git/hooks/pre-commit
readme:
    cat /run/jail/README
""")


def _laid(ground: Ground, research: str) -> Ground:
    """A repository with a history: v0, a bug after it on main, and from v0 the branches plain, which adds a
    file, and research, which also changes `research`.
    """
    ground.git("init", "-q")
    changes = (
        ("main", {"a.txt": "one\n", "code.txt": "fine\n"}, "first"),
        ("plain", {"plain.txt": "plain\n"}, "plain"),
        ("research", {research: "first\nsecond\n", "found.txt": "found\n"}, "research"),
        ("main", {"code.txt": "fine still\n"}, "second"),
        ("main", {"code.txt": "bug\n"}, "third"),
        ("main", {"code.txt": "bug and more\n"}, "fourth"),
    )
    if research == "RESEARCH.md":
        changes[0][1][research] = "first\n"
    for branch, files, subject in changes:
        if branch != "main":
            ground.git("switch", "-q", "-c", branch, "v0")
        elif subject != "first":
            ground.git("switch", "-q", "main")
        for name, text in files.items():
            (ground.workspace / name).parent.mkdir(exist_ok=True)
            (ground.workspace / name).write_text(text)
        ground.hand_over()
        ground.git("add", ".")
        ground.git("commit", "-qm", subject)
        if subject == "first":
            ground.git("tag", "-a", "v0", "-m", "start")
    return ground


@pytest.fixture(scope="module", params=STARTERS)
def starter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tracked(starter: str, installed: Installed, open_folder: Path) -> Ground:
    """A repository with a tracked RESEARCH.md, after a day's work."""
    return _laid(make_ground(starter, installed, open_folder / "git-tracked"), "RESEARCH.md")


@pytest.fixture(scope="module")
def day(tracked: Ground) -> Row:
    return tracked.work(DAY)


@pytest.fixture(scope="module")
def half(starter: str, installed: Installed, open_folder: Path) -> Row:
    """A repository of its own, since half a switch is where it starts from."""
    return _laid(make_ground(starter, installed, open_folder / "git-half"), "RESEARCH.md").work(HALF)


@pytest.mark.parametrize("name", DAY)
def test_a_days_work_succeeds(day: Row, name: str) -> None:
    assert day[name].code == 0, day[name].text


def test_nothing_of_a_days_work_meets_a_wall_but_the_config(day: Row) -> None:
    told = [
        line
        for said in day.values()
        for line in said.text.splitlines()
        if BUSY in line or "Read-only" in line
    ]
    assert not told


def test_a_clean_clone_is_clean_inside(day: Row) -> None:
    assert day["status"].text == ""


def test_commits_bear_an_identity_and_need_no_signature(day: Row) -> None:
    assert day["commit"].text == "second by agent\n"


def test_switch_merge_and_stash_leave_what_they_should(day: Row) -> None:
    assert day["switch"].text.split() == ["RESEARCH.md", "a.txt", "code.txt"]
    assert day["merge"].text.endswith("Merge branch 'plain'\nplain\n")
    assert "CONFLICT (content)" in day["conflict"].text
    assert day["stash"].text == " M a.txt\n?? new.txt\n"


def test_rebase_works_in_both_forms(day: Row) -> None:
    assert day["rebase"].text == "feature\nMerge branch 'plain'\n"
    assert day["rebase -i"].text == "feature\nMerge branch 'plain'\nf\ng\n"


def test_bisect_finds_the_bug_and_comes_back(day: Row) -> None:
    said = day["bisect"].text
    assert "is the first bad commit" in said
    assert "third" in said.partition("is the first bad commit")[2]
    assert said.endswith("main\n")


def test_a_worktree_is_made_in_the_workspace_and_beside_it(day: Row, tracked: Ground) -> None:
    listed = [line.split()[0] for line in day["worktree"].text.splitlines() if "[" in line]
    assert sorted(listed) == sorted((str(tracked.workspace), "/tmp/tree", f"{tracked.workspace}/tree"))


def test_a_clone_inside_pushes_to_where_it_came_from(day: Row) -> None:
    assert day["clone"].text.endswith("cloned\n")


def test_the_host_sees_a_sound_repository_of_its_owner(day: Row, tracked: Ground) -> None:
    assert day["gc"].code == 0
    assert tracked.git("fsck", "--strict") == ""
    assert tracked.git("status", "--porcelain") == ""
    assert "second" in tracked.git("log", "--format=%s")
    assert {path.lstat().st_uid for path in tracked.workspace.rglob("*")} == {tracked.owner}


def test_a_switch_that_would_change_a_tracked_research_is_done_but_for_that_file(half: Row) -> None:
    assert half["switch"] == Said(
        0,
        f"error: unable to unlink old 'RESEARCH.md': {BUSY}\nSwitched to branch 'research'\nM\tRESEARCH.md\n",
    )
    assert half["switched"].text == "research\n M RESEARCH.md\nfirst\nfound\n"


def test_the_way_back_from_half_a_switch_is_a_forced_one(half: Row) -> None:
    assert half["back"].code == 1
    assert "Your local changes to the following files would be overwritten by checkout" in half["back"].text
    assert (
        f"unable to unlink old 'RESEARCH.md': {BUSY}\nSwitched to branch 'main'" in half["forced back"].text
    )
    assert half["forced"].text == "main\nRESEARCH.md\na.txt\ncode.txt\n"


def test_a_merge_that_would_change_a_tracked_research_stops_with_its_files_laid_out(half: Row) -> None:
    assert half["merge"].code != 0
    assert f"unable to unlink old 'RESEARCH.md': {BUSY}" in half["merge"].text
    assert half["merged"].text == "fourth\n?? found.txt\nfirst\n"
    assert "There is no merge to abort" in half["merge --abort"].text
    assert half["cleaned"].text == ""


def test_a_rebase_onto_another_research_stops_and_reset_puts_the_files_back(half: Row) -> None:
    assert half["rebase"].code != 0
    assert f"unable to unlink old 'RESEARCH.md': {BUSY}" in half["rebase"].text
    assert half["rebased"].text == "main\nfourth\n M code.txt\n?? found.txt\n"
    assert half["reset"] == Said(0, "")


def test_a_tracked_research_is_neither_removed_nor_renamed(half: Row) -> None:
    for name in ("rm", "mv"):
        assert half[name].code != 0
        assert BUSY in half[name].text


def test_in_a_worktree_elsewhere_the_same_merge_is_done_whole(half: Row) -> None:
    assert half["elsewhere"] == Said(0, "first\nsecond\n")


def test_config_goes_to_a_copy_and_hooks_cannot_be_written(half: Row) -> None:
    assert half["config"] == half["remote"] == Said(0, "")
    assert ".git/hooks/pre-commit: Read-only file system" in half["hook"].text


def test_the_readme_inside_names_the_cause(half: Row) -> None:
    told = " ".join(half["readme"].text.split())
    assert BUSY in told
    assert "RESEARCH.md" in told
    assert "git config" in told


def test_the_readme_inside_tells_what_really_is_left_of_each_command(half: Row) -> None:
    """A switch is done, and only force leads back; merge, rebase and stash stop, and leave files behind."""
    told = " ".join(half["readme"].text.split())
    assert "switch -f" in told
    sentence = next(part for part in told.split(". ") if BUSY in part)
    assert "merge" not in sentence or "did the rest of its work" not in sentence


UNTRACKED = row("""
status:
    git status --porcelain
add:
    git add -A
    git commit -qm all
    git ls-files
uncommit:
    git reset -q HEAD~
commit:
    echo x >> a.txt
    git commit -qam second
switch:
    git switch research
merge:
    git merge --no-edit plain
stash:
    echo y >> a.txt
    git stash
    git stash pop
    git restore a.txt
stash -u:
    echo y >> a.txt
    git stash -u
after:
    cat RESEARCH.md
    ls -A .agent
clean:
    git clean -fdx
cleaned:
    cat RESEARCH.md
    ls -A .agent
""")


def test_an_untracked_research_is_no_obstacle_and_survives_all_that_cleans(
    starter: str, installed: Installed, open_folder: Path
) -> None:
    ground = _laid(make_ground(starter, installed, open_folder / "git-untracked"), "notes/RESEARCH.md")
    (ground.workspace / "RESEARCH.md").write_text("findings\n")
    (ground.workspace / ".agent").mkdir()
    (ground.workspace / ".agent" / "story.md").write_text("story\n")
    ground.hand_over()
    said = ground.work(UNTRACKED)
    for name in ("status", "add", "uncommit", "commit", "switch", "merge", "stash"):
        assert said[name].code == 0, (name, said[name].text)
    assert said["status"].text == "?? .agent/\n?? RESEARCH.md\n"
    assert said["add"].text.split()[:2] == [".agent/story.md", "RESEARCH.md"]
    for name in ("after", "cleaned"):
        assert said[name] == Said(0, "findings\nstory.md\n"), name


FRESH = row("""
init:
    git init -q -b main
commit:
    echo a > a
    git add a
    git commit -qm first
    git log --format='%s by %an <%ae>'
branch:
    git switch -q -c side
    echo b > b
    git add b
    git commit -qm side
    git switch -q main
    git merge -q side
    git branch -d side
remote:
    git init -q --bare /tmp/origin.git
    git remote add origin /tmp/origin.git
    git push -q -u origin main
    git status -sb
nested:
    git init -q -b main sub
    git -C sub commit -q --allow-empty -m nested
""")


def test_a_repository_made_inside_is_whole_at_once_and_delivered(
    starter: str, installed: Installed, open_folder: Path
) -> None:
    ground = make_ground(starter, installed, open_folder / "git-fresh")
    said = ground.work(FRESH)
    assert {name: done for name, done in said.items() if done.code} == {}
    assert said["commit"].text == "first by agent <agent@jail>\n"
    assert said["remote"].text.endswith("## main...origin/main\n")
    assert ground.git("log", "--format=%s") == "side\nfirst\n"
    assert ground.git("-C", "sub", "log", "--format=%s") == "nested\n"
    kinds = {entry["kind"]: entry["fields"] for entry in ground.jail.ledger()}
    assert "swept" not in kinds
    assert kinds["note"]["text"] == f"{ground.workspace}/.git: made inside, runs nothing; it stays"


CONFIG = row("""
branch -m:
    git branch -m plain renamed
    git branch --list renamed
remote add:
    git init -q --bare origin.git
    git remote add origin "$PWD/origin.git"
    git remote get-url origin
push -u:
    git push -q -u origin main
    git status -sb
submodule add:
    git -c protocol.file.allow=always submodule add -q "$PWD/origin.git" sub
    git commit -qm submodule
    git submodule status
config user.name:
    git config user.name Agent
    git commit -q --allow-empty -m named
    git log -1 --format=%an
worktree add:
    git worktree add -q tree -b side
    git -C tree commit -q --allow-empty -m there
worktree of a nested one:
    git init -q nested
    git -C nested commit -q --allow-empty -m one
    git -C nested worktree add -q ../nested-tree
remote rename:
    git remote add other /nowhere
    git remote rename other another
    git remote remove another
edit:
    GIT_EDITOR='echo "[alias] x = !touch ran" >>' git config --edit
    git x
programs:
    git config core.sshCommand 'touch ran'
    git config core.fsmonitor 'touch ran; false'
    git config filter.f.clean 'touch ran'
    git config include.path ../planted
    git config url./evil.insteadOf https://
    git config credential.helper '!touch ran'
    git config --list
""")


class Worked(NamedTuple):
    """What was said inside, and of the host: its config before and after, the session's copy, what it said."""

    said: Row
    before: bytes
    after: bytes
    copy: bytes
    ground: Ground


@pytest.fixture(scope="module")
def configured(starter: str, installed: Installed, open_folder: Path) -> Worked:
    ground = _laid(make_ground(starter, installed, open_folder / "git-config"), "notes/RESEARCH.md")
    config = ground.workspace / ".git/config"
    before = config.read_bytes()
    said = ground.work(CONFIG)
    after, held = config.read_bytes(), ground.jail.sessions()[-1] / "held"
    assert (held / "base/f0").read_bytes() == before
    return Worked(said, before, after, (held / "files/f0/config").read_bytes(), ground)


@pytest.mark.parametrize("name", CONFIG)
def test_what_writes_the_config_succeeds_inside(configured: Worked, name: str) -> None:
    assert configured.said[name].code == 0, configured.said[name].text


def test_git_reads_inside_what_it_wrote(configured: Worked) -> None:
    said = configured.said
    assert said["remote add"].text == f"{configured.ground.workspace}/origin.git\n"
    assert said["push -u"].text.startswith("## main...origin/main\n")
    assert said["config user.name"].text == "Agent\n"
    assert "core.fsmonitor=touch ran; false" in said["programs"].text


def test_the_config_of_the_host_is_bit_for_bit_what_it_was(configured: Worked) -> None:
    assert configured.after == configured.before
    assert configured.copy != configured.before


def test_of_the_copy_only_branches_remotes_and_submodules_are_offered(configured: Worked) -> None:
    keys = gitkeys.compared(configured.before, configured.copy)
    assert {each.key: each.after for each in keys.offered} == {
        "remote.origin.url": (f"{configured.ground.workspace}/origin.git",),
        "remote.origin.fetch": ("+refs/heads/*:refs/remotes/origin/*",),
        "branch.main.remote": ("origin",),
        "branch.main.merge": ("refs/heads/main",),
        "submodule.sub.url": (f"{configured.ground.workspace}/origin.git",),
        "submodule.sub.active": ("true",),
    }
    assert set(keys.refused) == {
        *("user.name", "alias.x", "core.sshcommand", "core.fsmonitor", "filter.f.clean", "include.path"),
        *("url./evil.insteadof", "credential.helper"),
    }


def test_what_was_taken_over_works_on_the_host_and_runs_nothing(configured: Worked) -> None:
    ground = configured.ground
    keys = gitkeys.compared(configured.before, configured.copy)
    ran = ground.workspace / "ran"
    ran.unlink(missing_ok=True)  # made inside, where the alias ran
    (ground.workspace / ".git/config").write_bytes(gitkeys.merged(configured.after, keys.offered))
    assert ground.git("status", "-sb").startswith("## main...origin/main")
    ground.git("fetch", "-q")
    assert ground.git("submodule", "status").endswith("sub (heads/main)\n")
    assert not ran.exists()


def test_submodule_and_worktrees_made_inside_are_whole_on_the_host(configured: Worked) -> None:
    ground = configured.ground
    assert ground.git("-C", "sub", "status", "--porcelain") == ""
    assert ground.git("-C", "tree", "log", "-1", "--format=%s") == "there\n"
    assert ground.git("-C", "nested-tree", "log", "-1", "--format=%s") == "one\n"
    assert len(ground.git("worktree", "list").splitlines()) == 2
    assert "swept" not in {entry["kind"] for entry in ground.jail.ledger()}
    again = ground.work(row("again:\n    git -C sub config user.name x\n    git -C tree status -s\n"))
    assert again["again"] == Said(0, "")


WORKTREE = row("""
status:
    git status --porcelain
    git branch --show-current
commit:
    echo x > x
    git add x
    git commit -qm inside
    git log --format=%s -2
switch:
    git switch -q -c another
    git merge -q --no-edit plain
    git gc -q
    git fsck
""")


def test_a_workspace_that_is_a_worktree_reaches_its_repository(
    starter: str, installed: Installed, open_folder: Path
) -> None:
    ground = make_ground(starter, installed, open_folder / "git-worktree")
    repository = ground.workspace.parent / "repository"
    repository.mkdir()
    main = ground._replace(jail=ground.jail._replace(workspace=repository))
    main.hand_over()
    _laid(main, "RESEARCH.md").git("worktree", "add", "-q", "-b", "work", str(ground.workspace))
    said = ground.work(WORKTREE)
    assert {name: done for name, done in said.items() if done.code} == {}
    assert said["status"].text == "work\n"
    assert said["commit"].text == "inside\nfourth\n"
    assert "Merge branch 'plain' into another" in main.git("log", "--all", "--format=%s")
