"""A held tree with something of each kind, what was listed of it, and the ways in which a host changes things."""

import hashlib
import os
import subprocess
from pathlib import Path

from jail.hold import look
from jail.hold.change import LETTERS, Change
from support.overlays import Session

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
    for folder, folders, others in os.walk(tree):
        for name in [*folders, *others]:
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


def write(path: Path, content: str) -> None:
    """As the host's tools do: a new file moved over the old one."""
    path.with_name("beside").write_text(content)
    path.with_name("beside").rename(path)


def wipe(path: Path) -> None:
    subprocess.run(["/bin/rm", "-rf", str(path)], check=True)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
