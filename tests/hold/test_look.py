"""What changed in held things: the same acts give the same list over an overlay and in a copy."""

import hashlib
import os
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from jail.errors import JailError
from jail.hold import base, look, names, opening, store
from jail.hold.change import ABSENT, LETTERS, Change, State
from jail.kernel import trees
from jail.plan.held import COPY, FILE, GIT_CONFIG, OVERLAY, Held
from support.overlays import Session, deepen, in_memory

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
    "everything closed": ("echo x >alpha; chmod 0 d .", ["m ", "M alpha", "m d"]),
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


def write(path: Path, content: str) -> None:
    """As the host's tools do: a new file moved over the old one."""
    path.with_name("beside").write_text(content)
    path.with_name("beside").rename(path)


def wipe(path: Path) -> None:
    subprocess.run(["/bin/rm", "-rf", str(path)], check=True)


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


@TREES
def test_without_a_whole_base_all_is_a_conflict_but_what_the_host_has(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind)
    session.run(
        "echo x >alpha; chmod 600 run; touch beta; rm -r d; mkdir d; chmod 755 d; echo y >d/new; rm -r s link;"
        " mkdir n; echo z >n/z; : >>empty"
    )
    Path(session.base_file).unlink()
    assert [line.removesuffix(f": {look.NOT_WHOLE}") for line in told(found(session))] == [
        "M alpha", "A d/new", "D d/one", "D d/sub", "D d/sub/three", "D d/two", "D link", "A n",
        "A n/z", "m run", "D s", "D s/in",
    ]  # fmt: skip
    assert all(each.conflict == look.NOT_WHOLE for each in found(session))
    assert {each.old.kind for each in found(session)} == {"unknown"}


@TREES
def test_what_changed_while_the_run_began_has_no_base(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind, snapshot=False)
    time.sleep(0.02)
    write(session.tree / "alpha", "late\n")
    write(session.tree / "beta", "late\n")
    session.snapshot()
    session.run("echo x >alpha; rm beta; echo y >run")
    assert told(found(session)) == [f"M alpha: {look.BEGAN}", f"D beta: {look.BEGAN}", "M run"]


def test_states_are_those_of_the_three_times(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.run("echo new! >alpha; chmod 4755 alpha; ln -sfn beta link; rm -r s; mv beta omega")
    changes = {each.path: each for each in found(session)}
    alpha = changes["alpha"]
    assert alpha.tree == "t0"
    assert alpha.old == State("file", 0o644, 6, OLD, digest("alpha\n"))
    assert alpha.now == alpha.old
    assert alpha.new == State("file", 0o4755, 5, alpha.new.mtime_ns, digest("new!\n"))
    assert (changes["link"].old.digest, changes["link"].new.digest) == (digest("alpha"), digest("beta"))
    assert (changes["s/in"].old.size, changes["s/in"].new, changes["s/in"].now.kind) == (3, ABSENT, "file")
    omega = changes["omega"]
    assert (omega.old, omega.now) == (State("file", 0o644, 5, OLD, digest("beta\n")), ABSENT)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def forge() -> None:
    """What a command can try through the mount; the folder's content must stay in sight."""
    for name, value in (("opaque", b"y"), ("whiteout", b""), ("redirect", b"/s"), ("metacopy", b"")):
        for target in ("d", "alpha"):
            with suppress(OSError):
                os.setxattr(target, f"user.overlay.{name}", value)
    with suppress(OSError):
        os.mknod("device", stat.S_IFCHR | 0o600, 0)
    with suppress(OSError):
        os.unlink("beta")
        os.mknod("beta", stat.S_IFCHR | 0o600, 0)


def test_forged_marks_mean_nothing_over_an_overlay(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.run(forge)
    assert told(found(session)) == ["D beta"]


def test_forged_marks_mean_nothing_in_a_copy(tmp_path: Path) -> None:
    session = held(tmp_path, COPY)
    session.run(forge)
    assert told(found(session)) == ["T beta", "A device"]
    assert {each.new.kind for each in found(session)} == {"special"}
    assert os.getxattr(session.inside / "d", "user.overlay.opaque") == b"y"


@TREES
def test_bits_that_were_taken_away_stay_away_and_sockets_are_named(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind)

    def act() -> None:
        os.makedirs("n/in")
        Path("n/in/f").write_text("closed")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("n/in/sock")
        for name in ("n/in/f", "n/in", "n"):
            os.chmod(name, 0)

    session.run(act)
    before = (session.inside / "n").stat()
    changes = {each.path: each for each in found(session)}
    assert told(list(changes.values())) == ["A n", "A n/in", "A n/in/f", "A n/in/sock"]
    assert changes["n/in/f"].new.digest == digest("closed")
    assert {changes[path].new.mode for path in ("n", "n/in", "n/in/f")} == {0}
    assert changes["n/in/sock"].new.kind == "socket"
    after = (session.inside / "n").stat()
    assert (before.st_mode, before.st_ctime_ns) == (after.st_mode, after.st_ctime_ns)
    fd = opening.open_new(str(session.folder), session.thing, "n/in/f")
    assert os.read(fd, 100) == b"closed"
    os.close(fd)
    os.chmod(session.inside / "n", 0o700)
    os.chmod(session.inside / "n/in", 0o700)


@TREES
def test_a_tree_of_ten_thousand_levels_is_listed_as_far_as_a_path_can_name_it(kind: str) -> None:
    with in_memory() as folder:
        session = held(folder, kind)
        session.run(lambda: (os.mkdir("deep"), deepen(Path("deep"), 10_000))[1])
        changes = found(session)
        assert {each.what for each in changes} == {"added"}
        assert len(changes) == 2047
        assert len(changes[-1].path) == 4096
        assert names.complaint(changes[-1].path, changes[-1].new)
        assert not names.complaint(changes[-2].path, changes[-2].new)


@TREES
def test_a_change_deeper_than_any_path_is_told_by_the_folder_that_it_is_in(kind: str) -> None:
    with in_memory() as folder:
        session = held(folder, kind, snapshot=False)
        (session.tree / "deep").mkdir()
        deepen(session.tree / "deep", 2_100)
        session.started_ns = 1 << 62
        session.snapshot()
        assert found(session) == []
        time.sleep(0.02)

        def act() -> None:
            top = os.open(".", os.O_RDONLY)
            leaf = opening.open_below(top, "deep/" + "d/" * 2_100 + "leaf", os.O_WRONLY)
            os.write(leaf, b"changed")

        session.run(act)
        (change,) = found(session)
        assert (change.what, change.conflict, len(change.path)) == ("modified", look.BEYOND, 4096)
        assert names.complaint(change.path, change.new)


@TREES
def test_every_path_of_a_deep_folder_that_was_deleted_is_listed(kind: str) -> None:
    with in_memory() as folder:
        session = held(folder, kind, snapshot=False)
        (session.tree / "d/deep").mkdir()
        deepen(session.tree / "d/deep", 2_100)
        session.started_ns = 1 << 62
        session.snapshot()

        def act() -> None:
            fd = os.open(".", os.O_RDONLY)
            trees.remove_tree(fd, "d")
            os.close(fd)

        session.run(act)
        changes = found(session)
        assert {each.what for each in changes} == {"deleted"}
        assert [each.conflict for each in changes] == [""] * 2107
        assert max(len(each.path) for each in changes) == len("d/deep/") + 2 * 2100 + len("leaf")


@TREES
def test_a_sparse_file_of_terabytes_is_told_by_what_is_in_it(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind, snapshot=False)
    for name in ("one", "two", "three"):
        (session.tree / name).write_bytes(b"x")
        os.truncate(session.tree / name, 4 << 40)
    session.started_ns = 1 << 62
    session.snapshot()

    def act() -> None:
        os.utime("one")
        with open("two", "r+b") as file:
            file.seek(1 << 40)
            file.write(b"x")
        os.rename("three", "four")

    session.run(act)
    assert told(found(session)) == ["R three > four", "t one", "M two"]
    assert all(each.new.digest.startswith("cells:") for each in found(session))


class Sides(NamedTuple):
    """Where a held file is."""

    new: Path
    host: Path


CONFIG: dict[str, tuple[Callable[[Sides], object], list[str]]] = {
    "nothing": (lambda at: at.new.read_text(), []),
    "touched": (lambda at: (os.utime(at.new), os.chmod(at.new, 0o600)), []),
    "a key": (lambda at: at.new.write_text("[a]\nb = 1\n"), ["S "]),
    "a key, and another on the host": (
        lambda at: (at.new.write_text("[a]\nb = 1\n"), write(at.host, "[c]\n")),
        ["S "],
    ),
    "the same on the host": (lambda at: (at.new.write_text("x"), write(at.host, "x")), []),
    "deleted": (lambda at: at.new.unlink(), ["D "]),
    "a link": (lambda at: (at.new.unlink(), at.new.symlink_to("/etc/passwd")), ["T "]),
    "a pipe": (lambda at: (at.new.unlink(), os.mkfifo(at.new)), ["T "]),
    "closed": (lambda at: (at.new.write_text("x"), at.new.chmod(0)), ["S "]),
    "gone from the host": (lambda at: (at.new.write_text("x"), at.host.unlink()), [f"S : {look.VANISHED}"]),
    "with its folder": (lambda at: (at.new.write_text("x"), wipe(at.host.parent)), [f"S : {look.VANISHED}"]),
    "a link on the host": (
        lambda at: (at.new.write_text("x"), at.host.unlink(), at.host.symlink_to("/etc/passwd")),
        [f"S : {look.CHANGED}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("act", CONFIG)
def test_a_held_file_is_compared_by_its_content(tmp_path: Path, act: str) -> None:
    do, expected = CONFIG[act]
    host = tmp_path / "repository/config"
    host.parent.mkdir()
    thing = Held("f0", FILE, str(host), "a test", GIT_CONFIG)
    manifest = store.Manifest("s", str(tmp_path), 0, 0, -1, 0, (), (thing,))
    assert list(look.changes(str(tmp_path), manifest)) == []
    new = tmp_path / "held/files/f0/config"
    new.parent.mkdir(parents=True)
    base_file = tmp_path / "held/base/f0"
    base_file.parent.mkdir()
    for path in (host, new, base_file):
        path.write_text("[core]\n")
    do(Sides(new, host))
    changes = list(look.changes(str(tmp_path), manifest))
    assert told(changes) == expected
    assert all(each.old == each.old._replace(kind="file", digest=digest("[core]\n")) for each in changes)
    if expected:
        base_file.unlink()
        assert all(each.conflict == look.NOT_WHOLE for each in look.changes(str(tmp_path), manifest))


PLAIN: dict[str, tuple[Callable[[Sides], object], list[str]]] = {
    "changed": (lambda at: at.new.write_text("x"), ["M "]),
    "another on the host": (
        lambda at: (at.new.write_text("x"), write(at.host, "y")),
        [f"M : {look.CHANGED}"],
    ),
    "the same on the host": (lambda at: (at.new.write_text("x"), write(at.host, "x")), []),
    "git obeys it": (lambda at: (at.new.write_text("x"), write(at.host.parent / "HEAD", "")), ["S "]),
}


@pytest.mark.parametrize("act", PLAIN)
def test_a_file_that_a_rule_holds_is_a_whole_unless_git_obeys_it(tmp_path: Path, act: str) -> None:
    do, expected = PLAIN[act]
    sides = Sides(tmp_path / "held/files/f0/config", tmp_path / "repository/config")
    base_file = tmp_path / "held/base/f0"
    for path in (*sides, base_file):
        path.parent.mkdir(parents=True)
        path.write_text("fact\n")
    do(sides)
    thing = Held("f0", FILE, str(sides.host), "a test")
    manifest = store.Manifest("s", str(tmp_path), 0, 0, -1, 0, (), (thing,))
    assert told(list(look.changes(str(tmp_path), manifest))) == expected


def test_what_was_pinned_is_the_base(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.run("echo x >alpha; echo y >beta")
    write(session.tree / "alpha", "applied\n")
    pinned = base.entry_of((session.tree / "alpha").lstat())
    base.pin(str(session.held), "t0", {"alpha": pinned})
    assert told(found(session)) == ["M alpha", "M beta"]


def test_a_run_that_never_began_holds_nothing(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.inside.rmdir()
    assert found(session) == []


@pytest.mark.parametrize(
    ("bound", "most"), [("jail.kernel.walk.FOLDER_ENTRIES", 3), ("jail.hold.inside.LEFT_BYTES", 20_000)]
)
def test_too_many_names_are_an_error_not_a_short_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    session = held(tmp_path, COPY)
    monkeypatch.setattr(bound, most)
    with pytest.raises(JailError, match="too many names"):
        found(session)
