"""What the host did to a held tree while a command ran: a conflict of that path, or what the command did too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jail.hold import look
from jail.plan.held import COPY, OVERLAY
from support.looking import found, held, told, wipe, write

TREES = pytest.mark.parametrize("kind", [OVERLAY, COPY])


Act = Callable[[Path], object]


MEANWHILE: dict[str, tuple[str, Act, list[str]]] = {
    "changed what the command changed": (
        "echo x >alpha; echo y >beta",
        lambda tree: write(tree / "alpha", "host\n"),
        [f"M alpha: {look.CHANGED}", "M beta"],
    ),
    "changed it in place, to the same size": (
        "echo x >alpha",
        lambda tree: (tree / "alpha").write_text("HOST!\n"),
        [f"M alpha: {look.CHANGED}"],
    ),
    "changed what the command did not touch": ("echo x >beta", lambda tree: write(tree / "alpha", "x"), ["M beta"]),
    "made the same change": ("echo x >alpha", lambda tree: write(tree / "alpha", "x\n"), []),
    "added what the command added": (
        "echo x >new; mkdir n; echo y >n/f",
        lambda tree: (write(tree / "new", "host"), (tree / "n").write_text("")),
        [f"A n: {look.APPEARED}", f"A n/f: {look.FOLDER_GONE}", f"A new: {look.APPEARED}"],
    ),
    "added the same": (
        "umask 022; echo x >new; mkdir n; echo y >n/f",
        lambda tree: (write(tree / "new", "x\n"), (tree / "n").mkdir(mode=0o755)),
        ["A n/f"],
    ),
    "deleted what the command changed": (
        "echo x >alpha; chmod 600 run; touch d/one",
        lambda tree: ((tree / "alpha").unlink(), (tree / "run").unlink(), wipe(tree / "d")),
        [f"M alpha: {look.VANISHED}", f"M d/one: {look.FOLDER_GONE}", f"M run: {look.VANISHED}"],
    ),
    "deleted what the command deleted": (
        "rm -r alpha d",
        lambda tree: ((tree / "alpha").unlink(), wipe(tree / "d")),
        [],
    ),
    "changed what the command deleted": (
        "rm -r alpha s",
        lambda tree: (write(tree / "alpha", "host"), write(tree / "s/in", "host")),
        [f"D alpha: {look.CHANGED}", f"D s: {look.HOLDS_CONFLICT}", f"D s/in: {look.CHANGED}"],
    ),
    "added to a folder that the command deleted": (
        "rm -r d",
        lambda tree: (tree / "d/sub/new").write_text("host"),
        [
            f"D d: {look.HOLDS_CONFLICT}", "D d/one", f"D d/sub: {look.GREW}", "D d/sub/three", "D d/two",
        ],
    ),
    "added to a folder that became a file": (
        "rm -r s; echo x >s",
        lambda tree: (tree / "s/new").write_text("host"),
        [f"T s: {look.GREW}", "D s/in"],
    ),
    "deleted the folder that the command worked in": (
        "mkdir -p d/sub/n; echo x >d/sub/n/new",
        lambda tree: wipe(tree / "d"),
        [f"A d/sub/n: {look.FOLDER_GONE}", f"A d/sub/n/new: {look.FOLDER_GONE}"],
    ),
    "put a link in place of a folder": (
        "echo x >d/new; echo x >d/one",
        lambda tree: ((tree / "d").rename(tree / "moved"), (tree / "d").symlink_to("moved")),
        [f"A d/new: {look.FOLDER_GONE}", f"M d/one: {look.FOLDER_GONE}"],
    ),
    "put a folder in place of a file": (
        "echo x >alpha",
        lambda tree: ((tree / "alpha").unlink(), (tree / "alpha").mkdir()),
        [f"M alpha: {look.CHANGED}"],
    ),
    "changed the file that the command renamed": (
        "mv alpha omega",
        lambda tree: write(tree / "alpha", "HOST!\n"),
        [f"D alpha: {look.CHANGED}", "A omega"],
    ),
    "added a file where the command's went": (
        "mv alpha omega",
        lambda tree: write(tree / "omega", "host"),
        ["D alpha", f"A omega: {look.APPEARED}"],
    ),
    "made another name for a file, and put it back after a move": (
        "echo x >alpha; rm beta",
        lambda tree: (
            (tree / "alpha2").hardlink_to(tree / "alpha"),
            (tree / "beta").rename(tree / "b"),
            (tree / "b").rename(tree / "beta"),
        ),
        ["M alpha", "D beta"],
    ),
    "has lost the tree": (
        "echo x >alpha; rm beta; mkdir n",
        lambda tree: tree.rename(tree.with_name("elsewhere")),
        [f"M alpha: {look.FOLDER_GONE}", f"A n: {look.FOLDER_GONE}"],
    ),
    "changed bits": ("echo x >alpha; touch beta", lambda tree: (tree / "beta").chmod(0o600), ["M alpha", f"t beta: {look.CHANGED}"]),
    "gave the bits that would be applied": ("chmod 4777 alpha", lambda tree: (tree / "alpha").chmod(0o775), []),
    "gave a folder the bits that would be applied": ("chmod 6777 d", lambda tree: (tree / "d").chmod(0o2775), []),
}  # fmt: skip


@TREES
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_what_the_host_did_meanwhile_is_a_conflict_or_done(tmp_path: Path, kind: str, meanwhile: str) -> None:
    act, on_host, expected = MEANWHILE[meanwhile]
    session = held(tmp_path, kind)
    session.run(act)
    on_host(session.tree)
    assert told(found(session)) == expected
