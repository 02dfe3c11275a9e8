"""A held tree in which a command did something of every kind, over an overlay or in a copy: what it saw,
what is listed, and what an apply of all of it leaves.
"""

import ast
import os
from pathlib import Path

from jail.hold import look
from jail.hold.account import Account
from jail.hold.apply import apply
from jail.hold.transaction import Applied
from support.holding import lay, state
from support.overlays import Session

TREE = {
    **{
        name: f"{name}\n"
        for name in ("alpha", "beta", "d/one", "d/two", "s/in", "s/sub/in", "empty", "hard", "run")
    },
    "link": "→alpha",
    "folder": None,
}


ACTS = """
echo new >alpha; mkdir -p n/m; echo x >n/m/f; ln -s ../alpha n/link; chmod 700 d; rm beta; mv d/one d/moved
rm -r s; mkdir s; echo other >s/other; rm -r folder; echo file >folder; rm empty; mkdir empty; echo in >empty/in
rm link; ln -s beta link; chmod 711 run; chmod u+x hard2; chmod u-x hard2; touch -d @5 hard; cp run new-run; chmod 600 new-run
"""


def listed(tmp_path: Path, kind: str) -> Session:
    tree = tmp_path / "tree"
    tree.mkdir()
    lay(tree, TREE)
    (tree / "hard2").hardlink_to(tree / "hard")
    session = Session(tmp_path / "session", tree, kind)
    (session.folder / "lock").touch()
    session.snapshot()
    return session


def applied_all(session: Session) -> Applied:
    every = list(look.changes(str(session.folder), session.manifest))
    return apply(str(session.folder), session.manifest, every, Account(lambda *_: None))


def view(session: Session) -> dict[str, object]:
    """What the command sees, in a later mount of the same layers."""
    told = session.folder / "told"
    session.run(lambda: told.write_text(repr(whole(Path()))) and None)
    found: dict[str, object] = ast.literal_eval(told.read_text())
    return found


def whole(tree: Path) -> dict[str, object]:
    """Kind, bits, content and, of files, times of all that is in a tree."""
    found: dict[str, object] = {}
    for path in sorted(tree.rglob("*")):
        seen_as = state(path)._asdict()
        if seen_as["kind"] != "file":
            seen_as["mtime_ns"] = 0
        found[os.fsencode(path.relative_to(tree)).hex()] = tuple(seen_as.values())
    return found
