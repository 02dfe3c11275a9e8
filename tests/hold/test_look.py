"""What changed in held things: the same acts give the same list over an overlay and in a copy."""

import os
from pathlib import Path

import pytest

from jail.hold import look
from jail.hold.change import LETTERS, Change
from jail.plan.held import COPY, OVERLAY
from support.overlays import Session

TREES = pytest.mark.parametrize("kind", [OVERLAY, COPY])
OLD = 10**18
"""When the files of the tree were last changed."""


def fill(tree: Path) -> None:
    """What every scenario finds."""
    for name, content in {
        "alpha": "alpha\n",
        "beta": "beta\n",
        "empty": "",
        "d/one": "one\n",
        "d/two": "two\n",
        "d/sub/three": "three\n",
        "e/config": "plain\n",
        "g/HEAD": "ref: refs/heads/main\n",
        "g/config": "[core]\n",
        "g/refs/x": "x",
        "g/objects/x": "y",
        "hard": "hard\n",
        "run": "#!/bin/sh\n",
        "\udcff\udcfe": "odd\n",
        "s/in": "in\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content)
    (tree / "hard2").hardlink_to(tree / "hard")
    (tree / "link").symlink_to("alpha")
    (tree / "folder").mkdir()
    os.chmod(tree / "run", 0o755)
    for folder, folders, names in os.walk(tree):
        for name in [*folders, *names]:
            os.utime(os.path.join(folder, name), ns=(OLD, OLD), follow_symlinks=False)


def held(tmp_path: Path, kind: str, *, snapshot: bool = True) -> Session:
    tree = tmp_path / "tree"
    tree.mkdir()
    fill(tree)
    session = Session(tmp_path / "session", tree, kind)
    if snapshot:
        session.snapshot()
    return session


def found(session: Session) -> list[Change]:
    return list(look.changes(str(session.folder), session.manifest))


def told(changes: list[Change]) -> list[str]:
    """Letter and path of each; a rename with its source, a conflict with its reason."""
    return [
        f"{LETTERS[each.what]} {each.source + ' > ' if each.source else ''}{each.path}"
        + (f": {each.conflict}" if each.conflict else "")
        for each in changes
    ]


def long_ago(path: str) -> str:
    return f"touch -h -d @{OLD // 10**9} {path}"


SCENARIOS: dict[str, tuple[str, list[str]]] = {
    "nothing": ("cat alpha; ls -R >/dev/null", []),
    "an added file, folder and link": (
        "echo x >new; mkdir n; ln -s nowhere n/l; : >n/empty",
        ["A n", "A n/empty", "A n/l", "A new"],
    ),
    "a changed content": ("echo x >>alpha; echo ALPHA >beta", ["M alpha", "M beta"]),
    "the same size and time with another content": (
        f"printf 'ALPHA\\n' >alpha; {long_ago('alpha')}",
        ["M alpha"],
    ),
    "written with what it had": (f"printf 'alpha\\n' >alpha; {long_ago('alpha')}", []),
    "opened for writing and nothing written": (": >>alpha; : >>empty", []),
    "a time alone": ("touch alpha; touch d; touch -h link", ["t alpha"]),
    "bits alone": ("chmod 600 alpha; chmod 700 d; chmod u+s run", ["m alpha", "m d", "m run"]),
    "bits of the tree itself": ("chmod 700 .", ["m "]),
    "bits and content": ("chmod 600 alpha; echo x >alpha", ["M alpha"]),
    "content of an empty file": ("echo x >empty", ["M empty"]),
    "emptied": (": >alpha", ["M alpha"]),
    "deleted": ("rm alpha link empty", ["D alpha", "D empty", "D link"]),
    "deleted and made again": (f"rm alpha; printf 'alpha\\n' >alpha; {long_ago('alpha')}", []),
    "a folder deleted": ("rm -r d", ["D d", "D d/one", "D d/sub", "D d/sub/three", "D d/two"]),
    "a folder emptied": ("rm -r d/*", ["D d/one", "D d/sub", "D d/sub/three", "D d/two"]),
    "a folder deleted and made again": (
        "rm -r d; mkdir d; chmod 755 d; echo x >d/new; mkdir d/sub; chmod 755 d/sub",
        ["A d/new", "D d/one", "D d/sub/three", "D d/two"],
    ),
    "a folder made again by the one that was moved in": (
        "rm -r d; mkdir n; chmod 755 n; echo x >n/one; mv n d",
        ["M d/one", "D d/sub", "D d/sub/three", "D d/two"],
    ),
    "a file becomes a folder": ("rm alpha; mkdir alpha; echo x >alpha/x", ["T alpha", "A alpha/x"]),
    "a file becomes a link": ("rm alpha; ln -s beta alpha", ["T alpha"]),
    "a folder becomes a file": (
        "rm -r d; echo x >d",
        ["T d", "D d/one", "D d/sub", "D d/sub/three", "D d/two"],
    ),
    "a folder becomes a link": (
        "rm -r d; ln -s e d",
        ["T d", "D d/one", "D d/sub", "D d/sub/three", "D d/two"],
    ),
    "a link becomes a folder": ("rm link; mkdir link; echo x >link/x", ["T link", "A link/x"]),
    "a link becomes a file": ("cp alpha link.new; mv link.new link", ["T link"]),
    "a link leads elsewhere": ("ln -sfn beta link", ["M link"]),
    "a file renamed": ("mv alpha omega", ["R alpha > omega"]),
    "a file renamed over another": ("mv alpha beta", ["D alpha", "M beta"]),
    "an empty file renamed": ("mv empty omega", ["D empty", "A omega"]),
    "a link renamed": ("mv link omega", ["D link", "A omega"]),
    "renamed, closed and changed in time": ("mv alpha omega; chmod 600 omega; touch omega", ["R alpha > omega"]),
    "renamed and copied": ("cp -p alpha psi; mv alpha omega", ["R alpha > omega", "A psi"]),
    "a file of the same last name is the one that moved": (
        "mkdir n; cp alpha n/a; mv alpha n/alpha; mv beta n/z",
        ["A n", "A n/a", "R alpha > n/alpha", "R beta > n/z"],
    ),
    "a folder moved": (
        "mv d m 2>/dev/null || { cp -a d m; rm -r d; }",
        ["D d", "D d/sub", "A m", "R d/one > m/one", "A m/sub", "R d/sub/three > m/sub/three", "R d/two > m/two"],
    ),
    "two files changed places": ("mv alpha x; mv beta alpha; mv x beta", ["M alpha", "M beta"]),
    "one name of two written": ("echo x >>hard", ["M hard"]),
    "a new name for a file": ("ln beta beta2 || cp -p beta beta2; rm hard2", ["A beta2", "D hard2"]),
    "two new names of one file": ("echo x >n; ln n n2", ["A n", "A n2"]),
    "without any bits": (
        "mkdir -p n/in; echo x >n/in/f; chmod 0 n/in/f n/in n alpha d",
        ["m alpha", "m d", "A n", "A n/in", "A n/in/f"],
    ),
    "odd names": (
        "mv \"$(printf '\\377\\376')\" \"$(printf '\\375')\"; echo x >\"$(printf 'a\\nb')\"; echo y >./-rf",
        ["A -rf", "A a\nb", "R \udcff\udcfe > \udcfd"],
    ),
    "special files": ("mkfifo p; rm beta; mkfifo beta", ["T beta", "A p"]),
    "the config of a git dir, and another": ("echo x >>g/config; echo x >>e/config", ["M e/config", "S g/config"]),
    "a folder that becomes a git dir around a config": (
        "cd e; echo x >>config; mkdir objects refs; echo ref >HEAD",
        ["A e/HEAD", "S e/config", "A e/objects", "A e/refs"],
    ),
    "bytes of a path give the order": ("mkdir n n-a; echo 1 >n/z; echo 2 >n-a/a", ["A n", "A n-a", "A n-a/a", "A n/z"]),
}  # fmt: skip


@TREES
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_done_is_what_is_listed(tmp_path: Path, kind: str, scenario: str) -> None:
    act, expected = SCENARIOS[scenario]
    session = held(tmp_path, kind)
    session.run(act)
    assert told(found(session)) == expected
