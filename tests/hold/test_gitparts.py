"""The tier of a change that is a part of a git dir, or makes one."""

import pytest

from jail.hold.change import DELETED, MODIFIED, PLAIN, REFUSED, RENAMED, TYPE, WARNED
from jail.hold.ground import Ground
from jail.hold.tiers import judged
from support.changed import FOLDER, WORKSPACE, Sides, change, file, link, met, tree

GIT = {"HEAD": b"ref: refs/heads/main\n", "objects/x": b"", "refs/x": b""}
"""Names that make a folder a git dir."""


def git_dir(folder: str, **more: bytes) -> dict[str, bytes | str]:
    return {f"{folder}/{name}": content for name, content in {**GIT, **more}.items()}


@pytest.mark.parametrize(
    ("path", "content", "tier"),
    [
        ("hooks/pre-commit", b"#!/bin/sh\n", REFUSED),
        ("hooks/pre-commit.sample", b"#!/bin/sh\n", PLAIN),
        ("hooks/sub/x.sample", b"#!/bin/sh\n", REFUSED),
        ("config", b"[core]\n\tbare = false\n", PLAIN),
        ("config/x", b"[core]\n\tbare = false\n", REFUSED),
        ("rebase-merge/strategy", b"evil", WARNED),
        ("rebase-apply/x", b"", WARNED),
        ("sequencer/todo", b"", WARNED),
        ("rr-cache/a/postimage", b"", WARNED),
        ("remotes/origin", b"URL: x", WARNED),
        ("branches/x", b"", WARNED),
        ("BISECT_RUN", b"", WARNED),
        ("config", b"[core]\n\tfsmonitor = ./x\n", REFUSED),
        ("config", b"[core\n", REFUSED),
        ("config.worktree", b"", REFUSED),
        ("commondir", b"..\n", REFUSED),
        ("gitdir", b"/x\n", REFUSED),
        ("info/attributes", b"* filter=x\n", REFUSED),
        ("info/exclude", b"# as git init makes it\n", PLAIN),
        ("info/exclude", b"# more\n*.py\n", REFUSED),
        ("info/refs", b"", PLAIN),
        ("objects/info/alternates", b"/x\n", REFUSED),
        ("objects/ab/cd", b"", PLAIN),
        ("HEAD", b"ref: x\n", PLAIN),
        ("index", b"", PLAIN),
        ("description", b"", PLAIN),
    ],
)
@pytest.mark.parametrize(
    "folder", [".git", ".git/modules/sub", "sub/.git", "bare.git", "odd/name", ".git/worktrees/w"]
)
def test_parts_of_a_git_dir_wherever_it_lies(folder: str, path: str, content: bytes, tier: str) -> None:
    new = {**git_dir(folder), f"{folder}/{path}": content}
    found = change(f"{folder}/{path}", new=file(content))
    assert met(found, new=new)[0] == tier
    # Half of it on the host, half of it made inside.
    old = {f"{folder}/refs/x": b"", f"{folder}/objects/x": b""}
    halves = {key: value for key, value in new.items() if key not in old}
    assert met(found, old, halves)[0] == tier
    # On a file system that knows no case.
    other = {path.upper(): value for path, value in new.items()}
    assert met(change(found.path.upper(), new=file(content)), new=other)[0] == tier


@pytest.mark.parametrize("path", ["hooks/pre-commit", "config", "info/exclude", "commondir", "gitdir"])
def test_the_same_names_elsewhere_are_the_work(path: str) -> None:
    assert met(change(f"src/{path}"), new={f"src/{path}": b"x"}) == (PLAIN, "")


def test_the_keys_of_a_config_are_named_and_one_that_is_too_long_to_read_is_refused() -> None:
    config = b'[alias]\n\tx = "!y"\n[core]\n\teditor = z\n'
    new = {**git_dir("a/.git"), "a/.git/config": config}
    assert met(change("a/.git/config"), new=new) == (
        REFUSED,
        "its keys make git run programs: alias.x, core.editor",
    )
    assert met(change("a/.git/config"), new=git_dir("a/.git"))[0] == REFUSED
    plain = {**git_dir("a/.git"), "a/.git/config": b""}
    assert met(change("a/.git/config", new=link()), new={**plain, "a/.git/config": "b"})[0] == REFUSED
    assert met(change("a/.git/config", MODIFIED), new=plain)[0] == REFUSED, (
        "of an old one the keys are judged"
    )
    assert met(change("a/.git/config", DELETED))[0] == REFUSED
    assert met(change("a/.git/hooks/x.sample", DELETED))[0] == PLAIN


@pytest.mark.parametrize(
    ("lying", "tier"),
    [
        ({"x/config": b"[core]\n\tfsmonitor = ./y\n"}, REFUSED),
        ({"x/hooks/pre-commit": b""}, REFUSED),
        ({"x/config": b"[core]\n\tbare = true\n", "x/hooks/a.sample": b""}, PLAIN),
        ({}, PLAIN),
    ],
)
@pytest.mark.parametrize("last", ["x/HEAD", "x/refs", "x/objects"])
def test_what_makes_a_git_dir_of_a_folder_is_as_grave_as_what_lies_there(
    lying: dict[str, bytes], tier: str, last: str
) -> None:
    old = {**git_dir("x"), **lying}
    old = {path: value for path, value in old.items() if path != last and not path.startswith(f"{last}/")}
    new: dict[str, bytes | str] = {last if last == "x/HEAD" else f"{last}/x": b""}
    state = file() if last == "x/HEAD" else FOLDER
    assert met(change(last, new=state), old, new)[0] == tier
    moved = change(last, RENAMED, source="x/other", old=state, new=state)
    assert met(moved, old, new)[0] == tier
    assert met(change(last, TYPE, old=link(), new=state), old, new)[0] == tier
    whole = {**git_dir("x"), **lying}
    assert met(change(last, MODIFIED), whole, new)[0] == PLAIN, "it was one before"
    nameless = {**whole, "x/HEAD": b"none\n"}
    assert met(change("x/HEAD", MODIFIED), nameless, new)[0] == tier, "git would not have obeyed it"


@pytest.mark.parametrize("path", ["sequencer/x.c", "remotes/x", "branches/x", "rebase-merge/x"])
def test_what_git_left_half_done_is_such_in_a_git_dir_alone(path: str) -> None:
    assert met(change(f"src/{path}"), new={f"src/{path}": b"x"}) == (PLAIN, "")
    assert met(change(f".git/{path}", DELETED), old={f".git/{path}": b"x"}) == (PLAIN, "")


class Counting(Sides):
    asked = 0

    def names(self, path: str) -> frozenset[str]:
        self.asked += 1
        return super().names(path)


@pytest.mark.parametrize("name", ["hooks", "info", "objects/info", "config", "sequencer"])
def test_what_a_deep_folder_is_to_git_is_asked_once_and_not_for_each_name_in_it(name: str) -> None:
    folder = "/".join([name] * 200)
    sides = Counting({}, {f"{folder}/x": b""})
    ground = Ground(tree(), WORKSPACE, sides, lambda _: "")
    first = [judged(change(f"{folder}/{number}"), ground) for number in range(2)]
    asked = sides.asked
    found = [judged(change(f"{folder}/{number}"), ground) for number in range(100)]
    assert {each.tier for each in (*first, *found)} == {PLAIN}
    assert sides.asked == asked
