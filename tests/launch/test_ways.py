"""Links on the way to a path: which a command may have laid, and which are believed."""

import os
from pathlib import Path

import pytest

from jail.launch import ways
from jail.ledger import written


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = Path(os.path.realpath(tmp_path))
    for name in ("work/sub", "a/deep/er", "priv", "mine"):
        (home / name).mkdir(parents=True)
    return home


CASES = {
    "no link": ("", "a/deep", ""),
    "what is not there": ("", "a/none/x", ""),
    "a link that stays": ("a/l -> deep", "a/l/er", ""),
    "an absolute link that stays": ("a/l -> ~/a/deep", "a/l/er", ""),
    "a link that leaves": ("a/l -> ~/priv", "a/l", "a/l"),
    "a link that leaves by dots": ("a/l -> deep/../../priv", "a/l", "a/l"),
    "a link that leaves and comes back": ("a/l -> ../a/deep", "a/l/er", ""),
    "a link to what is not there": ("a/l -> ~/priv/none", "a/l", "a/l"),
    "a folder on the way": ("a/l -> ~", "a/l/priv", "a/l"),
    "a link of the person": ("mine/l -> ~/priv", "mine/l", ""),
    "a link of the person to one that leaves": ("mine/l -> ~/a/l; a/l -> ~/priv", "mine/l", "a/l"),
    "two links, the second leaves": ("a/k -> l; a/l -> ~/priv", "a/k", "a/k"),
    "dots behind a link that stays": ("a/l -> deep/er; mine/l -> ../a/l/../../..", "mine/l/priv", "a/l"),
    "dots of the person in the tree": ("mine/l -> ../a/deep/..", "mine/l/deep", ""),
    "a link in the workspace": ("work/l -> ~/priv", "work/l", "work/l"),
    "a link that stays in the workspace": ("work/sub/l -> ../x; work/x -> sub", "work/sub/l", ""),
    "a link that leaves a folded folder's tree": ("f/1/l -> x; f/1/x = ", "f/1/l", "f/1/l"),
    "in circles": ("a/l -> l", "a/l/x", "a/l"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_link_in_a_written_tree_is_believed_where_it_stays_in_it(name: str, home: Path) -> None:
    layout, path, expected = CASES[name]
    for item in filter(None, layout.split("; ")):
        link, _, target = item.partition(" -> ")
        place = home / link.removesuffix(" = ")
        place.parent.mkdir(parents=True, exist_ok=True)
        if target:
            place.symlink_to(target.replace("~", str(home)))
        else:
            place.mkdir()
    found = ways.Written(
        f"{home}/work",
        frozenset((f"{home}/a", f"{home}/work", f"{home}/work/sub")),
        frozenset((f"{home}/f",)),
    )
    assert found.strays(f"{home}/{path}") == (f"{home}/{expected}" if expected else "")


def test_what_earlier_runs_wrote_is_known_with_the_workspace(tmp_path: Path) -> None:
    written.remember(str(tmp_path), ["/a", "/b/c"])
    found = ways.known(str(tmp_path), "/work").also(["/now", ""])
    assert found.trees == {"/a", "/b/c", "/work", "/now"}
    assert found.now == {"/work", "/now"}
    assert found.holders("/b/c/d") == ["/b/c"]
    assert not found.holds("/b")


def test_each_link_on_the_way_is_told_by_its_canonical_place(home: Path) -> None:
    (home / "one").symlink_to("mine")
    (home / "mine/two").symlink_to("../a/deep")
    (home / "a/deep/three").symlink_to("none")
    assert ways.links(f"{home}/one/two/three/x") == [
        f"{home}/one",
        f"{home}/mine/two",
        f"{home}/a/deep/three",
    ]
    assert ways.links(f"{home}/a/deep") == []
